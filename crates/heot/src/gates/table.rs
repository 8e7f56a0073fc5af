//! Public tables, and piecewise quadratics.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::product::{self, Second};
use crate::table::{self, Entries};
use crate::uses::Uses;
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Lookup`].
pub(crate) struct Tables<'a> {
    pub tables: &'a [Vec<i64>],
}

impl Gate for Tables<'_> {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let to = x.at.to();
        let tables: Vec<Vec<u64>> =
            self.tables.iter().map(|t| t.iter().map(|v| to.wrap(*v as u64)).collect()).collect();
        table::look_up(cx, x.at.from().bits(), to, &Entries::Same(&tables), &x.share(0))
    }

    fn uses(&self, at: &At) -> Uses {
        table::uses(at.from().bits(), at.to().bits(), self.tables.len(), at.operand(0).len())
    }
}

/// [`privet_plan::ir::Op::Piecewise`]: the client's low part c is the coin, `d = -c mod 2^shift`. The index of x + d is the sum of
/// both sides' high parts, the client's rounded up; what is added to a piece's first number is `s - d` for the server's low
/// part s. No comparison is needed.
pub(crate) struct Quadratics<'a> {
    pub shift: u32,
    pub pieces: &'a [[i64; 3]],
}

impl Quadratics<'_> {
    fn index_bits(&self) -> u32 {
        self.pieces.len().ilog2()
    }
}

impl Gate for Quadratics<'_> {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (to, n, shift) = (x.at.to(), x.at.len(), self.shift);
        let low = |x: u64| if shift == 0 { 0 } else { Ring::new(shift).wrap(x) };
        let (mut index, mut t) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for &x in x.share(0).iter() {
            let own = match cx.side {
                Side::Server => (x, low(x)),
                Side::Client => (x.wrapping_add(low(x.wrapping_neg())), low(x.wrapping_neg()).wrapping_neg()),
            };
            index.push(own.0 >> shift);
            t.push(to.wrap(own.1));
        }
        let tables: Vec<Vec<u64>> =
            (0..3).map(|c| self.pieces.iter().map(|p| to.wrap(p[c] as u64)).collect()).collect();
        let [c0, c1, c2]: [Vec<u64>; 3] = {
            let all = table::look_up(cx, self.index_bits(), to, &Entries::Same(&tables), &index)?;
            [0, 1, 2].map(|c| all[c * n..(c + 1) * n].to_vec())
        };
        // c0 + t (c1 + t c2)
        let mut sum = c2;
        for next in [c1, c0] {
            sum = product::multiply(cx, to, &t, &sum, Second::Shared)?;
            sum.iter_mut().zip(next).for_each(|(s, c)| *s = to.wrap(s.wrapping_add(c)));
        }
        Ok(sum)
    }

    fn uses(&self, at: &At) -> Uses {
        let (to, n) = (at.to().bits(), at.len());
        let product = || product::uses(to, n, Second::Shared);
        table::uses(self.index_bits(), to, 3, n).then(product()).then(product())
    }

    #[cfg(test)]
    fn coins(
        &self,
        _: &At,
        [_, client]: [&[u64]; 2],
        _: &dyn Fn(Ring, usize) -> Vec<u64>,
    ) -> Option<Vec<u64>> {
        let low = |x: &u64| Some(Ring::new(self.shift).wrap(x.wrapping_neg()));
        if self.shift == 0 { None } else { client.iter().map(low).collect() }
    }
}

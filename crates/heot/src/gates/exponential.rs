//! `e^x` as a product of what each side knows.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::table::{self, Entries};
use crate::uses::Uses;
use crate::{multiples, mux};
use privet_plan::tables;
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Exponential`]: the server's low part gives the coin, `d = -s mod 2^f`. So `x + d` has the client's low part as its fraction, and
/// the client knows the first factor. The second one, of the whole number and the coin, is a table of the server's, read at both sides'
/// high parts.
pub(crate) struct Exponentials<'a> {
    pub first: u32,
    pub rows: &'a [(i32, u32)],
    pub scale: u32,
}

/// Rings and bits of what is multiplied.
struct Widths {
    /// That in which the second factor is looked up, and that of the result.
    rings: [Ring; 2],
    /// Bits of the first factor beyond its least number.
    factor: u32,
}

impl Exponentials<'_> {
    fn functions(&self, at: &At) -> tables::Exponential {
        tables::Exponential::new(at.operand(0), self.first, self.rows, self.scale).expect("plans are checked")
    }

    fn widths(&self, at: &At, e: &tables::Exponential) -> Widths {
        let places = (0..e.rows()).flat_map(|row| (0..e.entries()).map(move |index| (row, index)));
        // a coin makes it less
        let coin = e.coin(0);
        let largest = places.map(|(row, index)| e.second(row, index, coin)).max().unwrap_or(0);
        // below half of its ring
        let bits = (u64::BITS - largest.leading_zeros() + 1).min(at.to().bits());
        let largest = e.first((1 << at.operand(0).frac) - 1) - self.least();
        Widths { rings: [Ring::new(bits), at.to()], factor: u64::BITS - largest.leading_zeros() }
    }

    /// A number below all first factors: these are from 1 on, nearly.
    fn least(&self) -> u64 {
        (1 << self.first) - (1 << (self.first - 3))
    }

    /// Bits of an index.
    fn index_bits(e: &tables::Exponential) -> u32 {
        e.entries().ilog2()
    }
}

impl Gate for Exponentials<'_> {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (e, own) = (self.functions(&x.at), x.share(0));
        let (n, frac) = (own.len(), x.at.operand(0).frac);
        let low = Ring::new(frac);
        let Widths { rings: [narrow, to], factor } = self.widths(&x.at, &e);
        let coin = |x: u64| low.wrap(x.wrapping_neg());
        let index: Vec<u64> = match cx.side {
            Side::Server => own.iter().map(|x| x.wrapping_add(coin(*x)) >> frac).collect(),
            Side::Client => own.iter().map(|x| x >> frac).collect(),
        };
        let entry = |i: usize, row: usize, entries: &mut [u64]| {
            let coin = e.coin_of_secret(coin(own[i]));
            entries.iter_mut().enumerate().for_each(|(index, entry)| *entry = e.second(row, index, coin));
        };
        let entries = Entries::Own { tables: e.rows(), of: &entry };
        let second = table::look_up(cx, Exponentials::index_bits(&e), narrow, &entries, &index)?;
        let second = mux::widen(cx, [narrow, to], second)?;
        let least = self.least();
        let first: Vec<u64> = match cx.side {
            Side::Server => vec![0; n],
            Side::Client => own.iter().map(|x| e.first_of_secret(low.wrap(*x)) - least).collect(),
        };
        let product = multiples::multiply(cx, to, factor, &second, &first.repeat(e.rows()))?;
        let sums = product.iter().zip(&second);
        Ok(sums.map(|(product, second)| to.wrap(product.wrapping_add(second.wrapping_mul(least)))).collect())
    }

    fn uses(&self, at: &At) -> Uses {
        let (e, n) = (self.functions(at), at.operand(0).len());
        let Widths { rings: [narrow, to], factor } = self.widths(at, &e);
        table::uses(Exponentials::index_bits(&e), narrow.bits(), e.rows(), n)
            .then(mux::widen_uses([narrow, to].map(Ring::bits), n * e.rows()))
            .then(multiples::uses(to, factor, n * e.rows()))
    }

    #[cfg(test)]
    fn coins(
        &self,
        at: &At,
        [server, _]: [&[u64]; 2],
        _: &dyn Fn(Ring, usize) -> Vec<u64>,
    ) -> Option<Vec<u64>> {
        let low = Ring::new(at.operand(0).frac);
        Some(server.iter().map(|x| low.wrap(x.wrapping_neg())).collect())
    }
}

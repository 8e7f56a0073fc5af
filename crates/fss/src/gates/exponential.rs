//! `e^x = e^f e^(e - d)`: the mask's fraction is the coin d, the masked value's is f, and the whole numbers differ by e.
//!
//! `x = xh - r`. The fraction of xh is public, so e^f is a public factor; the dealer knows d and, for every value that the
//! whole number of xh may have, what e would be: a dealt table of as many words, of which one is read. Its product with a
//! public factor is local, so one opening is all there is.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::Mask;
use crate::price;
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Opened, Wire, entries};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::tables::Exponential;
use privet_ring::Ring;

/// Deal for a value with mask `r`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, to: Ring, e: &Exponential, r: &[u64]) -> Result<(), KeyError> {
    let n = e.entries();
    entries::deal(cx, wire, to, r.len(), n * e.rows(), |i, words| {
        let (whole, fraction) = e.split(r[i]);
        let coin = e.coin(fraction);
        for index in 0..n {
            let entry = (index + whole) & (n - 1);
            (0..e.rows()).for_each(|row| words[row * n + entry] = e.second(row, index, coin));
        }
    })
}

/// Evaluate; gives the masked result in `to`, row after row. One round of its bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    to: Ring,
    e: &Exponential,
    xh: &[u64],
) -> Result<Opened, EvalError> {
    let (n, count) = (e.entries(), xh.len());
    let mut y = cx.result_mask_share(wire, to, e.rows() * count);
    entries::eval(cx, wire, to, count, n * e.rows(), |i, words| {
        let (entry, fraction) = e.split(xh[i]);
        let first = e.first(fraction);
        for (row, words) in words.chunks_exact(n).enumerate() {
            let y = &mut y[row * count + i];
            *y = to.wrap(y.wrapping_add(first.wrapping_mul(words[entry])));
        }
    })?;
    cx.open_masked("exponential", to, y.expose())
}

/// [`privet_plan::ir::Op::Exponential`].
pub(crate) struct Exponentials<'a> {
    pub first: u32,
    pub rows: &'a [(i32, u32)],
    pub scale: u32,
}

impl Exponentials<'_> {
    fn of(&self, at: &At) -> Result<Exponential, String> {
        Exponential::new(at.operand(0), self.first, self.rows, self.scale)
    }
}

impl Gate for Exponentials<'_> {
    /// The fraction of the mask.
    fn coins(&self, at: &At, _: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        let low = Ring::new(at.operand(0).frac);
        Some(mask().iter().map(|r| low.wrap(*r)).collect())
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (e, r) = (self.of(&x.at).map_err(KeyError::Corrupt)?, x.mask(cx, 0));
        deal(cx, x.at.wire(), x.at.to(), &e, &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let e = self.of(&x.at).map_err(EvalError::Missing)?;
        eval(cx, x.at.wire(), x.at.to(), &e, &x.value(0))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "exponential");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, to, rows) = (of.elements(), of.result_bits(), self.rows.len() as u64);
        let entries = 1 << (of.operand_bits() - of.operands[0].ty.frac);
        price::sum([price::dealt(n / rows, rows * entries, to), price::sent(n, to)])
    }
}

//! `e^x = e^f e^(e - d)`: f, the fraction of the masked value, is public; d is that of the mask, and the whole numbers differ by e.
//!
//! The helper knows the mask. For every whole number that the masked value may have it deals what the second factor would be:
//! a table of which one word is read, at a public place. Its product with the public factor is local.

use super::dealt;
use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::mutation;
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::seeds::PartySeed;
use crate::shares::Words;
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::tables::Exponential;
use privet_ring::Ring;

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
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (e, lambda) = (self.of(&x.at).map_err(PrepareError::Failed)?, x.mask(cx, 0));
        let (from, n) = (x.at.from(), e.entries());
        dealt::prepare(cx, &lambda, x.at.to(), n * e.rows(), &|lambda, words| {
            let (whole, fraction) = e.split(from.wrap(lambda));
            let whole = if mutation::active("exponential-not-rotated") { 0 } else { whole };
            let coin = e.coin(fraction);
            for index in 0..n {
                let entry = (index + whole) & (n - 1);
                (0..e.rows()).for_each(|row| words[row * n + entry] = e.second(row, index, coin));
            }
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (e, xh, to) = (self.of(&x.at).map_err(EvalError::Missing)?, x.value(0), x.at.to());
        let (n, count) = (e.entries(), xh.len());
        let mut y = cx.result_mask(x.at.wire(), to, e.rows() * count);
        dealt::pick(cx, to, count, n * e.rows(), |i, word| {
            let (entry, fraction) = e.split(xh[i]);
            let first = e.first(fraction);
            for row in 0..e.rows() {
                let y = &mut y[row * count + i];
                *y = to.wrap(y.wrapping_add(first.wrapping_mul(word(row * n + entry))));
            }
        })?;
        cx.open_masked("exponential", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "exponential");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (rows, whole) = (self.rows.len() as u64, of.operand_bits() - of.operands[0].ty.frac);
        dealt::price(of, of.elements() / rows, rows << whole, rows)
    }

    /// The fraction of the mask.
    fn coins(&self, at: &At, _: &[PartySeed], mask: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        Some(dealt::coins(&mask(), Ring::new(at.operand(0).frac)))
    }
}

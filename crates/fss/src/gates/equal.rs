//! `1{x = 0}` in k' bits (equality of two values is this on their difference): `x = 0` exactly where
//! `xh = r`, the point read-out of the comparison key over k bits.

use super::max::difference;
use crate::compare::{self, Comparison};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// Deal for a value with mask `r`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    let alpha: Secret = r.iter().map(|&r| from.wrap(r)).collect();
    let m = compare::deal(cx, wire, Comparison::equal(from.bits()), &alpha)?;
    let s = cx.fresh_mask(wire, to, r.len());
    tables::deal(cx, wire, to, r.len(), |i| {
        let m = m.get(i);
        [m.wrapping_add(s[i]), 1u64.wrapping_sub(2 * m)]
    })
}

/// Evaluate; gives the masked 0/1 result in `to`. Two rounds: one bit, then k' bits.
pub(super) fn eval(cx: &mut Eval, wire: Wire, from: Ring, to: Ring, xh: &[u64]) -> Result<Opened, EvalError> {
    let what = Comparison::equal(from.bits());
    let ch = compare::eval(cx, wire, "equality bit", what, xh.len(), |i| from.wrap(xh[i]))?;
    let y = bit_to_ring(cx, wire, to, &ch)?;
    cx.open_masked("equality", to, y)
}

/// Shares of `T0 + bit * S` for opened bits.
pub(super) fn bit_to_ring(cx: &mut Eval, wire: Wire, to: Ring, bit: &BitVec) -> Result<Vec<u64>, EvalError> {
    let mut y = vec![0; bit.len()];
    tables::eval_picked(cx, wire, to, bit, |range, picks, [t0, step]| {
        for (y, (pick, (t0, step))) in y[range].iter_mut().zip(picks.iter().zip(t0.iter().zip(step))) {
            *y = t0.wrapping_add(pick & step);
        }
    })?;
    Ok(y)
}

/// [`privet_plan::ir::Op::Equal`].
pub(crate) struct Equal;

impl Gate for Equal {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let from = x.at.from();
        let r = Secret::new(difference(from, &x.mask(cx, 0), &x.mask(cx, 1)));
        deal(cx, x.at.wire(), from, x.at.to(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let from = x.at.from();
        eval(cx, x.at.wire(), from, x.at.to(), &difference(from, &x.value(0), &x.value(1)))
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(Comparison::equal(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, Comparison::equal(at.from().bits()), "equality bit", "equality");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::gate(of, Comparison::equal(of.operand_bits()), 2)
    }
}

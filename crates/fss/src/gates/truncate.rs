//! Truncate-reduce: `signed(x) >> f` in k - f bits, exactly. Stochastic rounding, and one within a unit, need no comparison:
//! [`super::dither`].
//!
//! `TR(x) = TR(xh) - TR(r) - 1{xh_low < r_low}` with the low f bits of both. Two words of k - f bits an element:
//! `T(ch) = T0 + ch * S` with `S = +-1` secret.
//!
//! Into a larger ring of k' bits, for |x| < 2^(k-2): as in [`super::dither`], a third word, `2^(k-f) MSB(r)`, which the public
//! bit `1 - MSB(uh)` of `uh = xh + 2^(k-2)` selects.

use super::dither::{offset, widens};
use crate::compare::{self, Comparison};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, mutation, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// Deal for a value with mask `r`; the result's mask is the fresh mask of `wire`.
pub(super) fn deal(
    cx: &mut Deal,
    wire: Wire,
    [from, to]: [Ring; 2],
    shift: u32,
    r: &[u64],
) -> Result<(), KeyError> {
    let (n, low) = (r.len(), Ring::new(shift));
    let alpha: Secret = r.iter().map(|&r| low.wrap(r)).collect();
    let m = compare::deal(cx, wire, Comparison::less(shift), &alpha)?;
    let s = cx.fresh_mask(wire, to, n);
    let t0 = |i: usize| s[i].wrapping_sub(m.get(i)).wrapping_sub(from.wrap(r[i]) >> shift);
    let step = |i: usize| (2 * m.get(i)).wrapping_sub(1);
    if widens([from, to], shift) {
        let (back, high) = (offset(from) >> shift, from.bits() - shift);
        let words = |i: usize| [t0(i).wrapping_sub(back), step(i), from.msb(r[i]) << high];
        return tables::deal(cx, wire, to, n, words);
    }
    tables::deal(cx, wire, to, n, |i| [t0(i), step(i)])
}

/// Evaluate on the masked value `xh`; gives the masked result in `to`. Two rounds: one bit, then k' bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    [from, to]: [Ring; 2],
    shift: u32,
    xh: &[u64],
) -> Result<Opened, EvalError> {
    let (n, low) = (xh.len(), Ring::new(shift));
    let ch = compare::eval(cx, wire, "carry bit", Comparison::less(shift), n, |i| low.wrap(xh[i]))?;
    let ch = if mutation::active("carry-dropped") { BitVec::zeros(n) } else { ch };
    let leads = cx.leads() as u64;
    let mut y = vec![0; n];
    if widens([from, to], shift) {
        tables::eval_picked(cx, wire, to, &ch, |range, carries, [t0, step, wrapped]| {
            let words = t0.iter().zip(step.iter().zip(wrapped));
            let given = xh[range.clone()].iter().zip(carries.iter().zip(words));
            for (y, (xh, (carry, (t0, (step, wrapped))))) in y[range].iter_mut().zip(given) {
                let uh = from.wrap(xh.wrapping_add(offset(from)));
                let wrap = from.msb(uh).wrapping_sub(1) & wrapped;
                let public = (uh >> shift) & leads.wrapping_neg();
                *y = t0.wrapping_add(carry & step).wrapping_add(wrap).wrapping_add(public);
            }
        })?;
    } else {
        tables::eval_picked(cx, wire, to, &ch, |range, carries, [t0, step]| {
            let given = xh[range.clone()].iter().zip(carries.iter().zip(t0.iter().zip(step)));
            for (y, (xh, (carry, (t0, step)))) in y[range].iter_mut().zip(given) {
                let public = (from.wrap(*xh) >> shift) & leads.wrapping_neg();
                *y = t0.wrapping_add(carry & step).wrapping_add(public);
            }
        })?;
    }
    cx.open_masked("truncated", to, y)
}

/// [`privet_plan::ir::Op::Truncate`], rounded down.
pub(crate) struct Truncate {
    pub shift: u32,
}

impl Gate for Truncate {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), [x.at.from(), x.at.to()], self.shift, &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        eval(cx, x.at.wire(), [x.at.from(), x.at.to()], self.shift, &x.value(0))
    }

    fn compares(&self, _: u32) -> Option<Comparison> {
        Some(Comparison::less(self.shift))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, Comparison::less(self.shift), "carry bit", "truncated");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let words = if of.result_bits() > of.operand_bits() - self.shift { 3 } else { 2 };
        price::gate(of, Comparison::less(self.shift), words)
    }
}

//! Stochastic rounding, `floor((x + d) / 2^f)` with d uniform in f bits: what the mask's low bits make of a truncation that
//! leaves its carry out.
//!
//! First both evaluators add e, public coins of this wire, to xh, and the dealer adds them to r: x keeps its value and gets
//! a mask whose f low bits are uniform and independent of everything, whatever r's were. From here on r and xh are these.
//!
//! As integers modulo 2^(k-f), `TR(xh) - TR(r) = floor((x + r_low) / 2^f)`: stochastic rounding whose coin `xh_low` the
//! evaluators know. So TR(r) is the result's mask and TR(xh) its masked value: nothing is opened. The dealer knows TR(r);
//! one dealt word of k - f bits an element gives the evaluators shares of it.
//!
//! Into a larger ring, for |x| < 2^(k-2): the same of `u = x + 2^(k-2)`, which is in [0, 2^(k-1)) and has the masked value
//! `uh = u + r`. As an integer `u = uh - r + 2^k w` with `w = (1 - MSB(uh)) MSB(r)`: where MSB(r) = 0, u + r stays below
//! 2^k, and where it is 1, u + r is at least 2^(k-1), so that uh has its top bit cleared exactly if it wrapped. A second
//! word, `2^(k-f) MSB(r)`, which the public bit `1 - MSB(uh)` selects. That makes the mask depend on uh, so the result is opened
//! under a fresh one.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::{Mask, Masks};
use crate::price;
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// What is added to x so that it is not negative: 2^(k-2), whose lowest f bits are zero.
pub(super) fn offset(from: Ring) -> u64 {
    1 << (from.bits() - 2)
}

/// Whether the result has more bits than truncate-reduce leaves.
pub(super) fn widens([from, to]: [Ring; 2], shift: u32) -> bool {
    to.bits() > from.bits() - shift
}

/// `r + e` of the mask r, or `xh + e` of the masked value: e is the record's public coins for `wire`.
fn refreshed(public: &Public, wire: Wire, shift: u32, v: &[u64]) -> Vec<u64> {
    let mut out = public.rounding(wire, shift, v.len());
    out.iter_mut().zip(v).for_each(|(e, v)| *e = v.wrapping_add(*e));
    out
}

/// TR of every element, in its place.
fn high(from: Ring, shift: u32, v: &mut [u64]) {
    v.iter_mut().for_each(|v| *v = from.wrap(*v) >> shift);
}

/// Deal into a larger ring for a value with mask `r`, refreshed.
fn deal_widening(
    cx: &mut Deal,
    wire: Wire,
    [from, to]: [Ring; 2],
    shift: u32,
    r: &[u64],
) -> Result<(), KeyError> {
    let s = cx.fresh_mask(wire, to, r.len());
    let (back, high) = (offset(from) >> shift, from.bits() - shift);
    let base = |i: usize| s[i].wrapping_sub(from.wrap(r[i]) >> shift).wrapping_sub(back);
    tables::deal(cx, wire, to, r.len(), |i| [base(i), from.msb(r[i]) << high])
}

/// Evaluate into a larger ring on the refreshed masked value; gives the masked result. One round of its bits.
fn eval_widening(
    cx: &mut Eval,
    wire: Wire,
    [from, to]: [Ring; 2],
    shift: u32,
    xh: &[u64],
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut y = vec![0; xh.len()];
    tables::eval(cx, wire, to, xh.len(), |range, [base, wrapped]| {
        let words = base.iter().zip(wrapped);
        for ((y, xh), (base, wrapped)) in y[range.clone()].iter_mut().zip(&xh[range]).zip(words) {
            let uh = from.wrap(xh.wrapping_add(offset(from)));
            let wrap = (1 - from.msb(uh)) * wrapped;
            *y = base.wrapping_add(wrap).wrapping_add((uh >> shift) * leads);
        }
    })?;
    cx.open_masked("truncated", to, y)
}

/// [`privet_plan::ir::Op::Dither`], and [`privet_plan::ir::Op::Truncate`] rounded by [`privet_plan::ir::Rounding::Stochastic`] or
/// within one unit ([`privet_plan::ir::Rounding::OneUlp`]).
pub(crate) struct Dither {
    shift: u32,
    /// Half a unit is taken off first: `floor((x - 2^(f-1) + d) / 2^f)` is within one unit of rounding down.
    lower: bool,
}

impl Dither {
    /// Stochastic rounding.
    pub fn of(shift: u32) -> Dither {
        Dither { shift, lower: false }
    }

    /// Rounding down, one more or one less: stochastic of what was there before the half unit that rounds to the nearest.
    pub fn within_one(shift: u32) -> Dither {
        Dither { shift, lower: true }
    }

    /// The refreshed masked value, half a unit less where that is wanted.
    fn value(&self, public: &Public, wire: Wire, xh: &[u64]) -> Vec<u64> {
        let mut xh = refreshed(public, wire, self.shift, xh);
        if self.lower {
            xh.iter_mut().for_each(|x| *x = x.wrapping_sub(1 << (self.shift - 1)));
        }
        xh
    }

    fn widens(&self, at: &At) -> bool {
        widens([at.from(), at.to()], self.shift)
    }
}

impl Gate for Dither {
    /// The dealer's whole one: evaluators keep the share that was dealt to them, and the dealer the difference of both.
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        match self.widens(at) {
            true => masks.fresh(at.wire(), at.to(), at.len()),
            false => {
                let mut r = Secret::new(refreshed(masks.public(), at.wire(), self.shift, &operand(0)));
                high(at.from(), self.shift, &mut r);
                r
            }
        }
    }

    fn derives_mask(&self, at: &At) -> bool {
        !self.widens(at)
    }

    /// Up where the coin is below `x_low`: where `x_low + (r + e)_low` carries.
    fn coins(&self, at: &At, public: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        let low = Ring::new(self.shift);
        Some(refreshed(public, at.wire(), self.shift, &mask()).iter().map(|r| low.wrap(!r)).collect())
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (wire, rings) = (x.at.wire(), [x.at.from(), x.at.to()]);
        let r = Secret::new(refreshed(cx.public(), wire, self.shift, &x.mask(cx, 0)));
        if self.widens(&x.at) {
            return deal_widening(cx, wire, rings, self.shift, &r);
        }
        let [from, to] = rings;
        let word = |i: usize| from.wrap(r[i]) >> self.shift;
        let differences = tables::deal_differences(cx, wire, to, r.len(), word)?;
        x.keep_difference(differences);
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (wire, rings) = (x.at.wire(), [x.at.from(), x.at.to()]);
        let mut xh = self.value(cx.public(), wire, &x.value(0));
        if self.widens(&x.at) {
            return eval_widening(cx, wire, rings, self.shift, &xh);
        }
        let [from, to] = rings;
        let mut share = Secret::new(Vec::with_capacity(xh.len()));
        tables::eval(cx, wire, to, xh.len(), |_, [words]| share.extend_from_slice(words))?;
        x.keep_mask(share);
        high(from, self.shift, &mut xh);
        Ok(Opened::Here(xh))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        if self.widens(at) {
            at.opens(list, "truncated");
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, to) = (of.elements(), of.result_bits());
        match to > of.operand_bits() - self.shift {
            true => price::opened(n, 2, to),
            false => price::dealt(n, 1, to),
        }
    }
}

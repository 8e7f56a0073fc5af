//! Stochastic rounding, `floor((x + d) / 2^f)` with d uniform in f bits: what the mask's low bits make of a truncation that
//! leaves its carry out.
//!
//! First both evaluators add e, public coins of this wire, to xh, and the dealer adds them to r: x keeps its value and gets
//! a mask whose f low bits are uniform and independent of everything, whatever r's were. From here on r and xh are these.
//!
//! As integers modulo 2^(k-f), `TR(xh) - TR(r) = floor((x + r_low) / 2^f)`: stochastic rounding whose coin `xh_low` the
//! evaluators know. No comparison; one word of k - f bits an element.
//!
//! Into a larger ring, for |x| < 2^(k-2): the same of `u = x + 2^(k-2)`, which is in [0, 2^(k-1)) and has the masked value
//! `uh = u + r`. As an integer `u = uh - r + 2^k w` with `w = (1 - MSB(uh)) MSB(r)`: where MSB(r) = 0, u + r stays below
//! 2^k, and where it is 1, u + r is at least 2^(k-1), so that uh has its top bit cleared exactly if it wrapped. A second
//! word, `2^(k-f) MSB(r)`, which the public bit `1 - MSB(uh)` selects.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::Mask;
use crate::price;
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Secret, Wire, tables};
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

/// Deal for a value with mask `r`.
pub(super) fn deal(
    cx: &mut Deal,
    wire: Wire,
    rings: [Ring; 2],
    shift: u32,
    r: &[u64],
) -> Result<(), KeyError> {
    let [from, to] = rings;
    let r = Secret::new(refreshed(cx.public(), wire, shift, r));
    let s = cx.fresh_mask(wire, to, r.len());
    let base = |i: usize| s[i].wrapping_sub(from.wrap(r[i]) >> shift);
    if !widens(rings, shift) {
        return tables::deal(cx, wire, to, r.len(), |i| [base(i)]);
    }
    let (back, high) = (offset(from) >> shift, from.bits() - shift);
    tables::deal(cx, wire, to, r.len(), |i| [base(i).wrapping_sub(back), from.msb(r[i]) << high])
}

/// Evaluate; gives the masked result in the second ring. One round of its bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    rings: [Ring; 2],
    shift: u32,
    xh: &[u64],
) -> Result<Vec<u64>, EvalError> {
    let ([from, to], leads) = (rings, cx.leads() as u64);
    let xh = refreshed(cx.public(), wire, shift, xh);
    let mut y = vec![0; xh.len()];
    if widens(rings, shift) {
        tables::eval(cx, wire, to, xh.len(), |range, [base, wrapped]| {
            let words = base.iter().zip(wrapped);
            for ((y, xh), (base, wrapped)) in y[range.clone()].iter_mut().zip(&xh[range]).zip(words) {
                let uh = from.wrap(xh.wrapping_add(offset(from)));
                let wrap = (1 - from.msb(uh)) * wrapped;
                *y = base.wrapping_add(wrap).wrapping_add((uh >> shift) * leads);
            }
        })?;
    } else {
        tables::eval(cx, wire, to, xh.len(), |range, [base]| {
            for ((y, xh), base) in y[range.clone()].iter_mut().zip(&xh[range]).zip(base) {
                *y = base.wrapping_add((from.wrap(*xh) >> shift) * leads);
            }
        })?;
    }
    cx.open_masked("truncated", to, y)
}

/// [`privet_plan::ir::Op::Dither`], and [`privet_plan::ir::Op::Truncate`] rounded by [`privet_plan::ir::Rounding::Stochastic`].
pub(crate) struct Dither {
    pub shift: u32,
}

impl Gate for Dither {
    /// Up where the coin is below `x_low`: where `x_low + (r + e)_low` carries.
    fn coins(&self, at: &At, public: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        let low = Ring::new(self.shift);
        Some(refreshed(public, at.wire(), self.shift, &mask()).iter().map(|r| low.wrap(!r)).collect())
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), [x.at.from(), x.at.to()], self.shift, &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        eval(cx, x.at.wire(), [x.at.from(), x.at.to()], self.shift, &x.value(0))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "truncated");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let to = of.result_bits();
        price::opened(of.elements(), if to > of.operand_bits() - self.shift { 2 } else { 1 }, to)
    }
}

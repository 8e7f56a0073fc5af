//! `1{x < 0}` in k' bits: the opened selector of ReLU turned into a number, `T(e) = T0 + e * S`; in one bit by the
//! opening of the comparison itself.

use super::relu;
use crate::compare::{self, Comparison};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// The ring of bits.
const BIT: u32 = 1;

/// Deal for a value with mask `r`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    if to.bits() == BIT {
        compare::deal_keys(cx, wire, relu::sign_of(from.bits()), &relu::thresholds(from, r))?;
        return tables::deal(cx, wire, to, r.len(), |i| [from.msb(r[i])]);
    }
    let kappa = relu::deal_sign(cx, wire, from, r)?;
    let s = cx.fresh_mask(wire, to, r.len());
    tables::deal(cx, wire, to, r.len(), |i| {
        let k = kappa.get(i);
        [k.wrapping_add(s[i]), 1u64.wrapping_sub(2 * k)]
    })
}

/// Evaluate; gives the masked 0/1 result in `to`. Two rounds: one bit, then k' bits; with k' = 1 the first alone.
pub(super) fn eval(cx: &mut Eval, wire: Wire, from: Ring, to: Ring, xh: &[u64]) -> Result<Opened, EvalError> {
    if to.bits() == BIT {
        return eval_bit(cx, wire, from, to, xh);
    }
    let e = relu::eval_sign(cx, wire, from, xh)?;
    let y = super::equal::bit_to_ring(cx, wire, to, &e)?;
    cx.open_masked("sign", to, y)
}

/// `MSB(x) = MSB(xh) ^ MSB(r) ^ c`: the evaluators have XOR shares of c from the keys and of MSB(r) from a dealt bit, add
/// those of the wire's own mask, and so open the result under it.
fn eval_bit(cx: &mut Eval, wire: Wire, from: Ring, to: Ring, xh: &[u64]) -> Result<Opened, EvalError> {
    let (low, what, leads) = (relu::low(from), relu::sign_of(from.bits()), u64::from(cx.leads()));
    let keys = compare::walk(cx, wire, "sign bit", what, xh.len(), |i| low.wrap(xh[i]))?;
    let mut share = cx.mask_share(wire, to, xh.len());
    for (i, (share, xh)) in share.iter_mut().zip(xh).enumerate() {
        *share ^= keys.get(i) ^ (leads & from.msb(*xh));
    }
    tables::eval(cx, wire, to, xh.len(), |range, [msb]| {
        share[range].iter_mut().zip(msb).for_each(|(share, msb)| *share ^= msb);
    })?;
    cx.open_masked("sign bit", to, share.expose())
}

/// [`privet_plan::ir::Op::IsNegative`].
pub(crate) struct Sign;

impl Gate for Sign {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), x.at.from(), x.at.to(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), &x.value(0))
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        let what = relu::sign_of(at.from().bits());
        match at.to().bits() {
            BIT => {
                at.opens_levels(list, what, "sign bit", at.len());
                at.opens(list, "sign bit");
            }
            _ => at.opens_bits_and(list, what, "sign bit", "sign"),
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, what) = (of.elements(), relu::sign_of(of.operand_bits()));
        match of.result_bits() {
            // the opening of the comparison is that of the result; one dealt bit
            BIT => price::sum([price::comparison(of.form, what, n), price::dealt(n, 1, 1)]),
            _ => price::gate(of, what, 2),
        }
    }
}

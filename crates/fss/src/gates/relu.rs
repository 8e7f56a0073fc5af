//! ReLU from k to k' >= k bits, and the affine selection that max and argmax share with it.
//!
//! `DReLU(x) = 1 ^ MSB(x)` and `MSB(x) = MSB(xh) ^ MSB(r) ^ c` with `c = 1{xh_low < r_low}` over k - 1
//! bits. With the public `e = ch ^ MSB(xh)` the selector is `d(e) = 1 ^ e ^ MSB(r) ^ m`, so
//!
//! - k' = k: `y + s = d(e) xh + (s - d(e) r)`: words `A0 = d(0)` (and `A1 = 1 - A0`), `B0`, `B1`;
//! - k' > k: over the integers `x = xh - r + 2^k w` where, given x >= 0, `w = (1 - MSB(xh)) MSB(r)`; MSB(xh)
//!   is public, so B has two entries for each e.

use crate::compare::{self, Comparison};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Secret, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// The comparison that gives the sign of values of k bits.
pub(crate) fn sign_of(bits: u32) -> Comparison {
    Comparison::less(bits - 1)
}

/// The lower k - 1 bits, which it compares.
pub(super) fn low(ring: Ring) -> Ring {
    Ring::new(sign_of(ring.bits()).bits)
}

/// What the lower bits of values with masks `r` are compared with.
pub(super) fn thresholds(ring: Ring, r: &[u64]) -> Secret {
    let low = low(ring);
    r.iter().map(|&r| low.wrap(r)).collect()
}

/// Deal the sign comparison of a value with mask `r`; bit i of the result is `MSB(r) ^ m`, so that
/// `d(e) = 1 ^ e ^ bit`.
pub(crate) fn deal_sign(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    r: &[u64],
) -> Result<Secret<BitVec>, KeyError> {
    let mut kappa = compare::deal(cx, wire, sign_of(ring.bits()), &thresholds(ring, r))?;
    for (i, &r) in r.iter().enumerate() {
        let bit = kappa.get(i) ^ ring.msb(r);
        kappa.set(i, bit);
    }
    Ok(kappa)
}

/// Open the public selector bits `e` of a masked value.
pub(crate) fn eval_sign(cx: &mut Eval, wire: Wire, ring: Ring, xh: &[u64]) -> Result<BitVec, EvalError> {
    let (low, what) = (low(ring), sign_of(ring.bits()));
    let mut e = compare::eval(cx, wire, "sign bit", what, xh.len(), |i| low.wrap(xh[i]))?;
    for (w, x) in e.words_mut().iter_mut().zip(xh.chunks(64)) {
        *w ^= x.iter().enumerate().fold(0, |acc, (j, &x)| acc | ring.msb(x) << j);
    }
    Ok(e)
}

/// Deal the words of `d * x + (fresh mask of out)` within one ring, for selector constants `kappa`.
pub(crate) fn deal_select(
    cx: &mut Deal,
    out: Wire,
    ring: Ring,
    kappa: &BitVec,
    r: &[u64],
) -> Result<(), KeyError> {
    let s = cx.fresh_mask(out, ring, r.len());
    tables::deal(cx, out, ring, r.len(), |i| {
        let d = [1 ^ kappa.get(i), kappa.get(i)];
        [d[0], s[i].wrapping_sub(d[0] * r[i]), s[i].wrapping_sub(d[1] * r[i])]
    })
}

/// Evaluate `d * x` within one ring, opened under the mask of `out`.
pub(crate) fn eval_select(
    cx: &mut Eval,
    out: Wire,
    what: &str,
    ring: Ring,
    e: &BitVec,
    xh: &[u64],
) -> Result<Vec<u64>, EvalError> {
    let leads = cx.leads() as u64;
    let mut y = vec![0; xh.len()];
    tables::eval(cx, out, ring, xh.len(), |range, [a0, b0, b1]| {
        let start = range.start;
        for (j, (y, xh)) in y[range.clone()].iter_mut().zip(&xh[range]).enumerate() {
            let pick = e.get(start + j).wrapping_neg();
            let a = a0[j] ^ (pick & (a0[j] ^ leads.wrapping_sub(a0[j])));
            let b = b0[j] ^ (pick & (b0[j] ^ b1[j]));
            *y = a.wrapping_mul(*xh).wrapping_add(b);
        }
    })?;
    cx.open_masked(what, ring, y)
}

/// Deal ReLU for a value with mask `r`; the result's mask is the fresh mask of `wire` in `to`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    let kappa = deal_sign(cx, wire, from, r)?;
    if from == to {
        return deal_select(cx, wire, from, &kappa, r);
    }
    let s = cx.fresh_mask(wire, to, r.len());
    tables::deal(cx, wire, to, r.len(), |i| {
        let d = [1 ^ kappa.get(i), kappa.get(i)];
        let wrap = ring_size(from).wrapping_mul(from.msb(r[i]));
        let b = |d: u64, w: u64| s[i].wrapping_sub(d * from.wrap(r[i])).wrapping_add(d * w);
        [d[0], b(d[0], 0), b(d[0], wrap), b(d[1], 0), b(d[1], wrap)]
    })
}

/// Evaluate ReLU; gives the masked result in `to`. Two rounds: one bit, then k' bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    from: Ring,
    to: Ring,
    xh: &[u64],
) -> Result<Vec<u64>, EvalError> {
    let e = eval_sign(cx, wire, from, xh)?;
    if from == to {
        return eval_select(cx, wire, "relu", from, &e, xh);
    }
    let leads = cx.leads() as u64;
    let mut y = vec![0; xh.len()];
    tables::eval(cx, wire, to, xh.len(), |range, [a0, b00, b01, b10, b11]| {
        let start = range.start;
        for (j, (y, xh)) in y[range.clone()].iter_mut().zip(&xh[range]).enumerate() {
            let pick = e.get(start + j).wrapping_neg();
            let wrap = from.msb(*xh).wrapping_sub(1);
            let a = a0[j] ^ (pick & (a0[j] ^ leads.wrapping_sub(a0[j])));
            let b0 = b00[j] ^ (wrap & (b00[j] ^ b01[j]));
            let b1 = b10[j] ^ (wrap & (b10[j] ^ b11[j]));
            let b = b0 ^ (pick & (b0 ^ b1));
            *y = a.wrapping_mul(from.wrap(*xh)).wrapping_add(b);
        }
    })?;
    cx.open_masked("relu", to, y)
}

/// 2^k modulo 2^64.
pub(super) fn ring_size(ring: Ring) -> u64 {
    1u64.checked_shl(ring.bits()).unwrap_or(0)
}

/// [`privet_plan::ir::Op::Relu`].
pub(crate) struct Relu;

impl Gate for Relu {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), x.at.from(), x.at.to(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), &x.value(0))
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, sign_of(at.from().bits()), "sign bit", "relu");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let from = of.operand_bits();
        price::gate(of, sign_of(from), if from == of.result_bits() { 3 } else { 5 })
    }
}

//! ReLU from k to k' >= k bits, and the affine selection that max and argmax share with it.
//!
//! `DReLU(x) = 1 ^ MSB(x)` and `MSB(x) = MSB(xh) ^ MSB(r) ^ c` with `c = 1{xh_low < r_low}` over k - 1
//! bits. With the public `e = ch ^ MSB(xh)` the selector is `d(e) = 1 ^ e ^ MSB(r) ^ m`, so
//!
//! - k' = k: `y + s = d(e) xh + B_e` with `B_e = s - d(e) r`: words `A0 = d(0)` (and `A1 = 1 - A0`) and `B0`. As `d(0) + d(1)
//!   = 1`, `B1 = 2 s - r - B0`, of which an evaluator has a share without a word: it has its shares of both masks;
//! - k' > k: over the integers `x = xh - r + 2^k w` where, given x >= 0, `w = (1 - MSB(xh)) MSB(r)`, and MSB(xh) is public. So
//!   the words are A0, B0, B1 (shares of r modulo 2^k are none of the number r), and for the multiple of 2^k two words of k' - k
//!   bits, `V_e = d(e) MSB(r)`.

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
    flip_by_msb(ring, &mut kappa, r);
    Ok(kappa)
}

/// Open the public selector bits `e` of a masked value.
pub(crate) fn eval_sign(cx: &mut Eval, wire: Wire, ring: Ring, xh: &[u64]) -> Result<BitVec, EvalError> {
    let (low, what) = (low(ring), sign_of(ring.bits()));
    let mut e = compare::eval(cx, wire, "sign bit", what, xh.len(), |i| low.wrap(xh[i]))?;
    flip_by_msb(ring, &mut e, xh);
    Ok(e)
}

/// XOR the top bit of every element onto its bit.
fn flip_by_msb(ring: Ring, bits: &mut BitVec, of: &[u64]) {
    for (w, x) in bits.words_mut().iter_mut().zip(of.chunks(64)) {
        *w ^= x.iter().enumerate().fold(0, |acc, (j, &x)| acc | ring.msb(x) << j);
    }
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
        let d0 = 1 ^ kappa.get(i);
        [d0, s[i].wrapping_sub(d0 * r[i])]
    })
}

/// Evaluate `d * x` within one ring, opened under the mask of `out`; `r` is this evaluator's share of the mask of x.
pub(crate) fn eval_select(
    cx: &mut Eval,
    out: Wire,
    what: &str,
    ring: Ring,
    e: &BitVec,
    (xh, r): (&[u64], &[u64]),
) -> Result<Opened, EvalError> {
    let leads = cx.leads() as u64;
    let mut y = cx.mask_share(out, ring, xh.len());
    tables::eval_picked(cx, out, ring, e, |range, picks, [a0, b0]| {
        let given = xh[range.clone()].iter().zip(&r[range.clone()]).zip(a0.iter().zip(b0));
        for ((y, pick), ((xh, r), (a0, b0))) in y[range].iter_mut().zip(picks).zip(given) {
            let a = a0 ^ (pick & (a0 ^ leads.wrapping_sub(*a0)));
            let b1 = y.wrapping_mul(2).wrapping_sub(*r).wrapping_sub(*b0);
            *y = a.wrapping_mul(*xh).wrapping_add(b0 ^ (pick & (b0 ^ b1)));
        }
    })?;
    cx.open_masked(what, ring, y.expose())
}

/// Deal ReLU for a value with mask `r`; the result's mask is the fresh mask of `wire` in `to`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    let kappa = deal_sign(cx, wire, from, r)?;
    if from == to {
        return deal_select(cx, wire, from, &kappa, r);
    }
    let s = cx.fresh_mask(wire, to, r.len());
    tables::deal(cx, wire, to, r.len(), |i| {
        let (d1, r) = (kappa.get(i), from.wrap(r[i]));
        [1 ^ d1, s[i].wrapping_sub((1 ^ d1) * r), s[i].wrapping_sub(d1 * r)]
    })?;
    tables::deal(cx, high_wire(wire), high(from, to), r.len(), |i| {
        let (d1, msb) = (kappa.get(i), from.msb(r[i]));
        [(1 ^ d1) & msb, d1 & msb]
    })
}

/// The wire of the words that multiply 2^k.
fn high_wire(wire: Wire) -> Wire {
    wire.inner(1)
}

/// Their ring: the bits above k.
fn high(from: Ring, to: Ring) -> Ring {
    Ring::new(to.bits() - from.bits())
}

/// Evaluate ReLU on a masked value, `r` being this evaluator's share of its mask; gives the masked result in `to`. Two
/// rounds after the comparison's levels: one bit, then k' bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    from: Ring,
    to: Ring,
    xh: &[u64],
    r: &[u64],
) -> Result<Opened, EvalError> {
    let e = eval_sign(cx, wire, from, xh)?;
    if from == to {
        return eval_select(cx, wire, "relu", from, &e, (xh, r));
    }
    let leads = cx.leads() as u64;
    let mut y = vec![0; xh.len()];
    tables::eval_picked(cx, wire, to, &e, |range, picks, [a0, b0, b1]| {
        let words = a0.iter().zip(b0.iter().zip(b1));
        for ((y, xh), (pick, (a0, (b0, b1)))) in
            y[range.clone()].iter_mut().zip(&xh[range]).zip(picks.iter().zip(words))
        {
            let a = a0 ^ (pick & (a0 ^ leads.wrapping_sub(*a0)));
            let b = b0 ^ (pick & (b0 ^ b1));
            *y = a.wrapping_mul(from.wrap(*xh)).wrapping_add(b);
        }
    })?;
    tables::eval_picked(cx, high_wire(wire), high(from, to), &e, |range, picks, [v0, v1]| {
        let words = picks.iter().zip(v0.iter().zip(v1));
        for ((y, xh), (pick, (v0, v1))) in y[range.clone()].iter_mut().zip(&xh[range]).zip(words) {
            let v = v0 ^ (pick & (v0 ^ v1));
            let wrap = from.msb(*xh).wrapping_sub(1) & v;
            *y = y.wrapping_add(wrap << from.bits());
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

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let r = x.mask(cx, 0);
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), &x.value(0), &r)
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, sign_of(at.from().bits()), "sign bit", "relu");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, from, to) = (of.elements(), of.operand_bits(), of.result_bits());
        match from == to {
            true => price::max(of.form, n, to),
            false => price::sum([price::gate(of, sign_of(from), 3), price::dealt(n, 2, to - from)]),
        }
    }
}

//! Sign extension from k to k' >= k bits.
//!
//! With `u = x + 2^(k-1)` unsigned, `signed(x) = u - 2^(k-1)`, and over the integers
//! `u = uh - r + 2^k c` with `c = 1{uh < r}` over k bits. Two words: `T(ch) = T0 + ch * S`, `S = +-2^k`.

use super::relu::ring_size;
use crate::compare::{self, Comparison};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::price;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire, tables};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_ring::Ring;

/// Deal for a value with mask `r`; `to` has at least the bits of `from`.
pub(super) fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    let alpha: Secret = r.iter().map(|&r| from.wrap(r)).collect();
    let m = compare::deal(cx, wire, Comparison::less(from.bits()), &alpha)?;
    let s = cx.fresh_mask(wire, to, r.len());
    let (size, half) = (ring_size(from), 1u64 << (from.bits() - 1));
    tables::deal(cx, wire, to, r.len(), |i| {
        let (m, r) = (m.get(i), from.wrap(r[i]));
        let t0 = s[i].wrapping_sub(r).wrapping_sub(half).wrapping_add(m.wrapping_mul(size));
        [t0, size.wrapping_mul(1u64.wrapping_sub(2 * m))]
    })
}

/// Evaluate; gives the masked result in `to`. Two rounds: one bit, then k' bits.
pub(super) fn eval(cx: &mut Eval, wire: Wire, from: Ring, to: Ring, xh: &[u64]) -> Result<Opened, EvalError> {
    let (n, half) = (xh.len(), 1u64 << (from.bits() - 1));
    let uh = |i: usize| from.wrap(xh[i].wrapping_add(half));
    let ch = compare::eval(cx, wire, "carry bit", Comparison::less(from.bits()), n, uh)?;
    let leads = cx.leads() as u64;
    let mut y = super::equal::bit_to_ring(cx, wire, to, &ch)?;
    for (i, y) in y.iter_mut().enumerate() {
        *y = y.wrapping_add(uh(i) * leads);
    }
    cx.open_masked("extended", to, y)
}

/// [`privet_plan::ir::Op::Extend`].
pub(crate) struct Extend;

impl Gate for Extend {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), x.at.from(), x.at.to(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), &x.value(0))
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(Comparison::less(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, Comparison::less(at.from().bits()), "carry bit", "extended");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::gate(of, Comparison::less(of.operand_bits()), 2)
    }
}

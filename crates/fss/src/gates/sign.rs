//! `1{x < 0}` in k' bits: the opened selector of ReLU turned into a number, `T(e) = T0 + e * S`.

use super::relu;
use crate::keys::KeyError;
use crate::{Deal, Eval, EvalError, Wire, tables};
use privet_ring::Ring;

/// Deal for a value with mask `r`.
pub fn deal(cx: &mut Deal, wire: Wire, from: Ring, to: Ring, r: &[u64]) -> Result<(), KeyError> {
    let kappa = relu::deal_sign(cx, wire, from, r)?;
    let s = cx.fresh_mask(wire, to, r.len());
    tables::deal(cx, wire, to, r.len(), |i| {
        let k = kappa.get(i);
        [k.wrapping_add(s[i]), 1u64.wrapping_sub(2 * k)]
    })
}

/// Evaluate; gives the masked 0/1 result in `to`. Two rounds: one bit, then k' bits.
pub fn eval(cx: &mut Eval, wire: Wire, from: Ring, to: Ring, xh: &[u64]) -> Result<Vec<u64>, EvalError> {
    let e = relu::eval_sign(cx, wire, from, xh)?;
    let y = super::equal::bit_to_ring(cx, wire, to, &e)?;
    cx.open_masked("sign", to, y)
}

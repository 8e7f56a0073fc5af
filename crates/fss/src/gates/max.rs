//! Pairwise maximum `y + relu(x - y)` and the tournaments of max pooling.
//!
//! The difference is local; its mask is the difference of the masks. The result's mask is y's plus the
//! fresh mask of the gate's wire.

use super::relu;
use crate::keys::KeyError;
use crate::masks::Masks;
use crate::{Deal, Eval, EvalError, Wire};
use privet_plan::tournament::Tournament;
use privet_ring::Ring;

/// Deal a maximum of values with masks `rx`, `ry`; gives the mask of the result.
pub fn deal(cx: &mut Deal, wire: Wire, ring: Ring, rx: &[u64], ry: &[u64]) -> Result<Vec<u64>, KeyError> {
    relu::deal(cx, wire, ring, ring, &difference(ring, rx, ry))?;
    Ok(mask(cx, wire, ring, ry))
}

/// Evaluate a maximum; gives its masked value. Two rounds: one bit, then k bits.
pub fn eval(cx: &mut Eval, wire: Wire, ring: Ring, xh: &[u64], yh: &[u64]) -> Result<Vec<u64>, EvalError> {
    let diff = relu::eval(cx, wire, ring, ring, &difference(ring, xh, yh))?;
    Ok(sum(ring, yh, &diff))
}

/// Deal a tournament over values with masks `r`; level l uses inner wire `first + l` of `wire`. Gives the
/// masks of the winners.
pub fn deal_tournament(
    cx: &mut Deal,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: &Tournament,
    mut r: Vec<u64>,
) -> Result<Vec<u64>, KeyError> {
    for (l, level) in tournament.levels.iter().enumerate() {
        // A level without a pair only moves candidates: nothing to deal, nothing to open.
        let won = match level.pair_len() {
            0 => Vec::new(),
            _ => deal(cx, wire.inner(first + l), ring, &level.left(&r), &level.right(&r))?,
        };
        r = level.assemble(&won, &r);
    }
    Ok(r)
}

/// Evaluate a tournament over masked values.
pub fn eval_tournament(
    cx: &mut Eval,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: &Tournament,
    mut xh: Vec<u64>,
) -> Result<Vec<u64>, EvalError> {
    for (l, level) in tournament.levels.iter().enumerate() {
        let won = match level.pair_len() {
            0 => Vec::new(),
            _ => eval(cx, wire.inner(first + l), ring, &level.left(&xh), &level.right(&xh))?,
        };
        xh = level.assemble(&won, &xh);
    }
    Ok(xh)
}

/// Masks (or one evaluator's share of them) of a maximum, from those of y.
pub(crate) fn mask(masks: &dyn Masks, wire: Wire, ring: Ring, ry: &[u64]) -> Vec<u64> {
    sum(ring, ry, &masks.fresh(wire, ring, ry.len()))
}

/// Masks (or one evaluator's share of them) of a tournament's winners, from those before it.
pub(crate) fn tournament_mask(
    masks: &dyn Masks,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: &Tournament,
    mut r: Vec<u64>,
) -> Vec<u64> {
    for (l, level) in tournament.levels.iter().enumerate() {
        let won = mask(masks, wire.inner(first + l), ring, &level.right(&r));
        r = level.assemble(&won, &r);
    }
    r
}

pub(crate) fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(a, b)| ring.wrap(a.wrapping_sub(*b))).collect()
}

pub(crate) fn sum(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

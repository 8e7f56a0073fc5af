//! Pairwise maximum `y + relu(x - y)` and the tournaments of max pooling.
//!
//! The difference is local; its mask is the difference of the masks. The result's mask is y's plus the
//! fresh mask of the gate's wire.

use super::relu;
use crate::compare::Comparison;
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::{Mask, Masks, owned};
use crate::price;
use crate::{Deal, Eval, EvalError, Secret, Wire};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::tournament::{self, Tournament};
use privet_ring::{Pool2d, Ring};

/// Deal a maximum of values with masks `rx`, `ry`; gives the mask of the result.
fn deal(cx: &mut Deal, wire: Wire, ring: Ring, rx: &[u64], ry: &[u64]) -> Result<Secret, KeyError> {
    relu::deal(cx, wire, ring, ring, &Secret::new(difference(ring, rx, ry)))?;
    Ok(mask(cx, wire, ring, ry))
}

/// Evaluate a maximum; gives its masked value. Two rounds: one bit, then k bits.
fn eval(cx: &mut Eval, wire: Wire, ring: Ring, xh: &[u64], yh: &[u64]) -> Result<Vec<u64>, EvalError> {
    let diff = relu::eval(cx, wire, ring, ring, &difference(ring, xh, yh))?;
    Ok(sum(ring, yh, &diff))
}

/// Deal a tournament over values with masks `r`; level l uses inner wire `first + l` of `wire`. Gives the
/// masks of the winners.
fn deal_tournament(
    cx: &mut Deal,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: &Tournament,
    mut r: Secret,
) -> Result<Secret, KeyError> {
    for (l, level) in tournament.levels.iter().enumerate() {
        // A level without a pair only moves candidates: nothing to deal, nothing to open.
        let won = match level.pair_len() {
            0 => Secret::default(),
            _ => deal(
                cx,
                wire.inner(first + l),
                ring,
                &Secret::new(level.left(&r)),
                &Secret::new(level.right(&r)),
            )?,
        };
        r = Secret::new(level.assemble(&won, &r));
    }
    Ok(r)
}

/// Evaluate a tournament over masked values.
fn eval_tournament(
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
fn mask(masks: &dyn Masks, wire: Wire, ring: Ring, ry: &[u64]) -> Secret {
    Secret::new(sum(ring, ry, &masks.fresh(wire, ring, ry.len())))
}

/// Masks (or one evaluator's share of them) of a tournament's winners, from those before it.
fn tournament_mask(
    masks: &dyn Masks,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: &Tournament,
    mut r: Secret,
) -> Secret {
    for (l, level) in tournament.levels.iter().enumerate() {
        let won = mask(masks, wire.inner(first + l), ring, &Secret::new(level.right(&r)));
        r = Secret::new(level.assemble(&won, &r));
    }
    r
}

pub(super) fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(a, b)| ring.wrap(a.wrapping_sub(*b))).collect()
}

pub(super) fn sum(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

/// [`privet_plan::ir::Op::Max`].
pub(crate) struct Max;

impl Gate for Max {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        mask(masks, at.wire(), at.to(), &operand(1))
    }

    fn derives_mask(&self) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let (rx, ry) = (x.mask(cx, 0), x.mask(cx, 1));
        deal(cx, x.at.wire(), x.at.to(), &rx, &ry).map(drop)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        eval(cx, x.at.wire(), x.at.to(), &x.value(0), &x.value(1))
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, relu::sign_of(at.from().bits()), "sign bit", "relu");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        price::max(of.form, of.elements(), of.result_bits())
    }
}

/// [`privet_plan::ir::Op::MaxPool2d`]: rows, then columns.
pub(crate) struct Pool<'a>(pub &'a Pool2d);

impl Pool<'_> {
    /// Both tournaments, each with the inner wire of its first level.
    fn tournaments(&self, at: &At) -> [(usize, Tournament); 2] {
        let [rows, columns] = tournament::max_pool(self.0, &at.operand(0).shape);
        let first = 1 + rows.levels.len();
        [(1, rows), (first, columns)]
    }
}

impl Gate for Pool<'_> {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        let play = |r, (first, games): &(usize, Tournament)| {
            tournament_mask(masks, at.wire(), *first, at.to(), games, r)
        };
        self.tournaments(at).iter().fold(owned(operand(0)), play)
    }

    fn derives_mask(&self) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let mut r = owned(x.mask(cx, 0));
        for (first, games) in &self.tournaments(&x.at) {
            r = deal_tournament(cx, x.at.wire(), *first, x.at.to(), games, r)?;
        }
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        let mut xh = x.value(0).to_vec();
        for (first, games) in &self.tournaments(&x.at) {
            xh = eval_tournament(cx, x.at.wire(), *first, x.at.to(), games, xh)?;
        }
        Ok(xh)
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        for (_, games) in &self.tournaments(at) {
            at.opens_games(list, games, &[("relu", at.to().bits())]);
        }
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let all = tournament::max_pool(self.0, &of.operands[0].ty.shape);
        price::sum(
            all.map(|games| price::games(&games, |pairs| price::max(of.form, pairs, of.result_bits()))),
        )
    }
}

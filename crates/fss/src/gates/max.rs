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
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::tournament::{self, Tournament};
use privet_ring::{Pool2d, Ring};

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
        let wire = wire.inner(first + l);
        // A level without a pair only moves candidates: nothing to deal, nothing to open.
        if level.pair_len() > 0 {
            relu::deal(cx, wire, ring, ring, &Secret::new(level.differences(ring, &r)))?;
        }
        r = Secret::new(level.winners(ring, &r, &cx.fresh_mask(wire, ring, level.pair_len())));
    }
    Ok(r)
}

/// Evaluate a tournament over masked values, `r` being this evaluator's shares of their masks; gives both of the winners.
fn eval_tournament(
    cx: &mut Eval,
    wire: Wire,
    first: usize,
    ring: Ring,
    tournament: Tournament,
    (mut xh, mut r): (Opened, Secret),
) -> Result<(Opened, Secret), EvalError> {
    for (l, level) in tournament.levels.into_iter().enumerate() {
        let (wire, before) = (wire.inner(first + l), r);
        r = Secret::new(level.winners(ring, &before, &cx.mask_share(wire, ring, level.pair_len())));
        if level.pair_len() == 0 {
            xh = xh.then(move |xh| level.winners(ring, &xh, &[]));
            continue;
        }
        let x = cx.receive(xh)?;
        let masks = Secret::new(level.differences(ring, &before));
        let more = relu::eval(cx, wire, ring, ring, &level.differences(ring, &x), &masks)?;
        xh = more.then(move |more| level.winners(ring, &x, &more));
    }
    Ok((xh, r))
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
        let s = masks.fresh(wire.inner(first + l), ring, level.pair_len());
        r = Secret::new(level.winners(ring, &r, &s));
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
        Secret::new(sum(at.to(), &operand(1), &masks.fresh(at.wire(), at.to(), at.len())))
    }

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = Secret::new(difference(x.at.to(), &x.mask(cx, 0), &x.mask(cx, 1)));
        relu::deal(cx, x.at.wire(), x.at.to(), x.at.to(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (ring, yh) = (x.at.to(), x.value(1));
        let r = Secret::new(difference(ring, &x.mask(cx, 0), &x.mask(cx, 1)));
        let diff = difference(ring, &x.value(0), &yh);
        Ok(relu::eval(cx, x.at.wire(), ring, ring, &diff, &r)?.then(move |more| sum(ring, &yh, &more)))
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

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let mut r = owned(x.mask(cx, 0));
        for (first, games) in &self.tournaments(&x.at) {
            r = deal_tournament(cx, x.at.wire(), *first, x.at.to(), games, r)?;
        }
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let mut given = (Opened::Here(x.value(0).to_vec()), owned(x.mask(cx, 0)));
        for (first, games) in self.tournaments(&x.at) {
            given = eval_tournament(cx, x.at.wire(), first, x.at.to(), games, given)?;
        }
        Ok(given.0)
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

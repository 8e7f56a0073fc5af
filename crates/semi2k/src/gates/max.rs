//! Pairwise maximum `y + relu(x - y)` and the tournaments of max pooling.
//!
//! The difference is local; its mask is the difference of the masks. The result's mask is y's plus the fresh mask of the gate's
//! wire.

use super::relu;
use crate::Opened;
use crate::compare::Comparison;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::masks::{Mask, Masks};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::price;
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList, Wire};
use privet_plan::Form;
use privet_plan::cost::{Cost, Operation};
use privet_plan::tournament::{self, Level, Tournament};
use privet_ring::{Pool2d, Ring};

/// The masks of the differences of a level's pairs, among values with masks `lambda`.
pub(super) fn differences(level: &Level, lambda: &Words) -> Words {
    lambda.map(lambda.ring(), |x| level.differences(lambda.ring(), x))
}

/// The masks after the level, `s` being the fresh one of its games.
pub(super) fn winners(level: &Level, lambda: &Words, s: &Words) -> Words {
    Words::map_all(&[lambda, s], lambda.ring(), |x| level.winners(lambda.ring(), x[0], x[1]))
}

/// Prepare a tournament over values with masks `lambda`; level l uses inner wire `first + l` of `wire`. Gives the masks of the
/// winners.
fn prepare_tournament(
    cx: &mut dyn Preprocess,
    form: Option<Form>,
    (wire, first): (Wire, usize),
    ring: Ring,
    tournament: &Tournament,
    mut lambda: Words,
) -> Result<Words, PrepareError> {
    for (l, level) in tournament.levels.iter().enumerate() {
        let wire = wire.inner(first + l);
        // A level without a pair only moves candidates: nothing to prepare, nothing to open.
        if level.pair_len() > 0 {
            relu::prepare(cx, form, wire, [ring, ring], &differences(level, &lambda))?;
        }
        lambda = winners(level, &lambda, &cx.mask(wire, ring, level.pair_len()));
    }
    Ok(lambda)
}

/// Evaluate a tournament over masked values, `lambda` being this party's summands of their masks; gives both of the winners.
fn eval_tournament(
    cx: &mut Eval,
    (wire, first): (Wire, usize),
    ring: Ring,
    tournament: Tournament,
    (mut xh, mut lambda): (Opened, Words),
) -> Result<(Opened, Words), EvalError> {
    for (l, level) in tournament.levels.into_iter().enumerate() {
        let (wire, before) = (wire.inner(first + l), lambda);
        lambda = winners(&level, &before, &cx.mask(wire, ring, level.pair_len()));
        if level.pair_len() == 0 {
            xh = xh.then(move |xh| level.winners(ring, &xh, &[]));
            continue;
        }
        let x = cx.receive(xh)?;
        let masks = differences(&level, &before);
        let more = relu::eval(cx, wire, [ring, ring], &level.differences(ring, &x), masks.own())?;
        xh = more.then(move |more| level.winners(ring, &x, &more));
    }
    Ok((xh, lambda))
}

/// Masks of a tournament's winners, from those before it.
fn tournament_mask(
    masks: &dyn Masks,
    (wire, first): (Wire, usize),
    ring: Ring,
    tournament: &Tournament,
    mut lambda: Words,
) -> Words {
    for (l, level) in tournament.levels.iter().enumerate() {
        let s = masks.fresh(wire.inner(first + l), ring, level.pair_len());
        lambda = winners(level, &lambda, &s);
    }
    lambda
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
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        operand(1).add(&masks.fresh(at.wire(), at.to(), at.len()))
    }

    fn mask_from(&self, _: &At) -> MaskFrom {
        MaskFrom::Derived
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let lambda = x.mask(cx, 0).sub(&x.mask(cx, 1));
        relu::prepare(cx, x.at.node().form, x.at.wire(), [x.at.to(), x.at.to()], &lambda)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (ring, yh) = (x.at.to(), x.value(1));
        let lambda = x.mask(cx, 0).sub(&x.mask(cx, 1));
        let diff = difference(ring, &x.value(0), &yh);
        let more = relu::eval(cx, x.at.wire(), [ring, ring], &diff, lambda.own())?;
        Ok(more.then(move |more| sum(ring, &yh, &more)))
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
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        let play = |lambda, (first, games): &(usize, Tournament)| {
            tournament_mask(masks, (at.wire(), *first), at.to(), games, lambda)
        };
        self.tournaments(at).iter().fold(operand(0).as_ref().clone(), play)
    }

    fn mask_from(&self, _: &At) -> MaskFrom {
        MaskFrom::Derived
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let mut lambda = x.mask(cx, 0).as_ref().clone();
        for (first, games) in &self.tournaments(&x.at) {
            let form = x.at.node().form;
            lambda = prepare_tournament(cx, form, (x.at.wire(), *first), x.at.to(), games, lambda)?;
        }
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let mut given = (Opened::Here(x.value(0).to_vec()), x.mask(cx, 0).as_ref().clone());
        for (first, games) in self.tournaments(&x.at) {
            given = eval_tournament(cx, (x.at.wire(), first), x.at.to(), games, given)?;
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

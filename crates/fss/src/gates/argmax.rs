//! Index of the largest element: the tournament of max, in which one opened selector moves both the value
//! and the index. Ties keep the left candidate, whose index is smaller, because `relu` selects at x >= 0.

use super::max::{difference, sum};
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
use privet_ring::Ring;

/// Wires of level l: the value's table and the index's table (the comparison is on the value's wire).
fn wires(wire: Wire, l: usize) -> (Wire, Wire) {
    (wire.inner(2 * l + 1), wire.inner(2 * l + 2))
}

/// Deal for values with masks `r` in `ring`; the indices come out in `index`, see [`mask`].
fn deal(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    index: Ring,
    tournament: &Tournament,
    mut r: Secret,
) -> Result<(), KeyError> {
    // Positions are public: their masks are zero until the first match.
    let mut ri = Secret::new(vec![0; r.len()]);
    for (l, level) in tournament.levels.iter().enumerate() {
        let (value_wire, index_wire) = wires(wire, l);
        let [left, right] = [level.left(&r), level.right(&r)].map(Secret::new);
        let [ileft, iright] = [level.left(&ri), level.right(&ri)].map(Secret::new);
        let diff = Secret::new(difference(ring, &left, &right));
        let kappa = relu::deal_sign(cx, value_wire, ring, &diff)?;
        relu::deal_select(cx, value_wire, ring, &kappa, &diff)?;
        let idiff = Secret::new(difference(index, &ileft, &iright));
        relu::deal_select(cx, index_wire, index, &kappa, &idiff)?;
        let won = Secret::new(sum(ring, &right, &cx.fresh_mask(value_wire, ring, diff.len())));
        r = Secret::new(level.assemble(&won, &r));
        let won = Secret::new(sum(index, &iright, &cx.fresh_mask(index_wire, index, diff.len())));
        ri = Secret::new(level.assemble(&won, &ri));
    }
    Ok(())
}

/// Evaluate on masked values; `positions` are the public indices. Three rounds a level.
fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    index: Ring,
    tournament: &Tournament,
    mut xh: Vec<u64>,
    mut positions: Vec<u64>,
) -> Result<Vec<u64>, EvalError> {
    for (l, level) in tournament.levels.iter().enumerate() {
        let (value_wire, index_wire) = wires(wire, l);
        let [right, iright] = [level.right(&xh), level.right(&positions)];
        let diff = difference(ring, &level.left(&xh), &right);
        let idiff = difference(index, &level.left(&positions), &iright);
        let e = relu::eval_sign(cx, value_wire, ring, &diff)?;
        let value = relu::eval_select(cx, value_wire, "larger", ring, &e, &diff)?;
        let place = relu::eval_select(cx, index_wire, "index of larger", index, &e, &idiff)?;
        xh = level.assemble(&sum(ring, &right, &value), &xh);
        positions = level.assemble(&sum(index, &iright, &place), &positions);
    }
    Ok(positions)
}

/// Masks (or one evaluator's share of them) of the resulting indices.
fn mask(masks: &dyn Masks, wire: Wire, index: Ring, tournament: &Tournament) -> Secret {
    let mut r = Secret::new(vec![0; tournament.input_len]);
    for (l, level) in tournament.levels.iter().enumerate() {
        let s = masks.fresh(wires(wire, l).1, index, level.pair_len());
        let won = Secret::new(sum(index, &Secret::new(level.right(&r)), &s));
        r = Secret::new(level.assemble(&won, &r));
    }
    r
}

/// [`privet_plan::ir::Op::Argmax`].
pub(crate) struct Argmax {
    pub dim: usize,
}

impl Argmax {
    fn games(&self, at: &At) -> Tournament {
        tournament::argmax(&at.operand(0).shape, self.dim)
    }
}

impl Gate for Argmax {
    fn mask(&self, at: &At, masks: &dyn Masks, _: &dyn Fn(usize) -> Mask) -> Secret {
        mask(masks, at.wire(), at.to(), &self.games(at))
    }

    fn derives_mask(&self) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = owned(x.mask(cx, 0));
        deal(cx, x.at.wire(), x.at.from(), x.at.to(), &self.games(&x.at), r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Vec<u64>, EvalError> {
        let positions = tournament::positions(&x.at.operand(0).shape, self.dim);
        let (games, xh) = (self.games(&x.at), x.value(0).to_vec());
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), &games, xh, positions)
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        let values = [("larger", at.from().bits()), ("index of larger", at.to().bits())];
        at.opens_games(list, &self.games(at), &values);
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        // one bit selects the value, then the index
        let games = tournament::argmax(&of.operands[0].ty.shape, self.dim);
        let (bits, index) = (of.operand_bits(), of.result_bits());
        price::games(&games, |n| price::sum([price::max(of.form, n, bits), price::opened(n, 3, index)]))
    }
}

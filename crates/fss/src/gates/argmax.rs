//! Index of the largest element: the tournament of max, in which one opened selector moves both the value
//! and the index. Ties keep the left candidate, whose index is smaller, because `relu` selects at x >= 0.

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
use privet_ring::Ring;
use std::rc::Rc;

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
        let [lead, step] =
            [(ring, &r), (index, &ri)].map(|(ring, r)| Secret::new(level.differences(ring, r)));
        let kappa = relu::deal_sign(cx, value_wire, ring, &lead)?;
        relu::deal_select(cx, value_wire, ring, &kappa, &lead)?;
        relu::deal_select(cx, index_wire, index, &kappa, &step)?;
        r = Secret::new(level.winners(ring, &r, &cx.fresh_mask(value_wire, ring, kappa.len())));
        ri = Secret::new(level.winners(index, &ri, &cx.fresh_mask(index_wire, index, kappa.len())));
    }
    Ok(())
}

/// Evaluate on masked values, `r` being this evaluator's share of their masks; `positions` are the public indices. Two
/// rounds a level, beside the comparison's.
fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    index: Ring,
    tournament: Tournament,
    (xh, mut r): (Vec<u64>, Secret),
    positions: Vec<u64>,
) -> Result<Opened, EvalError> {
    let mut ri = Secret::new(vec![0; r.len()]);
    let (mut xh, mut positions) = (Opened::Here(xh), Opened::Here(positions));
    for (l, level) in tournament.levels.into_iter().map(Rc::new).enumerate() {
        let (value_wire, index_wire) = wires(wire, l);
        let (x, places) = (cx.receive(xh)?, cx.receive(positions)?);
        let [lead, step] = [level.differences(ring, &x), level.differences(index, &places)];
        let e = relu::eval_sign(cx, value_wire, ring, &lead)?;
        let masks = Secret::new(level.differences(ring, &r));
        let value = relu::eval_select(cx, value_wire, "larger", ring, &e, (&lead, &masks))?;
        r = Secret::new(level.winners(ring, &r, &cx.mask_share(value_wire, ring, lead.len())));
        let masks = Secret::new(level.differences(index, &ri));
        let place = relu::eval_select(cx, index_wire, "index of larger", index, &e, (&step, &masks))?;
        ri = Secret::new(level.winners(index, &ri, &cx.mask_share(index_wire, index, lead.len())));
        let same = Rc::clone(&level);
        xh = value.then(move |more| level.winners(ring, &x, &more));
        positions = place.then(move |more| same.winners(index, &places, &more));
    }
    Ok(positions)
}

/// Masks (or one evaluator's share of them) of the resulting indices.
fn mask(masks: &dyn Masks, wire: Wire, index: Ring, tournament: &Tournament) -> Secret {
    let mut r = Secret::new(vec![0; tournament.input_len]);
    for (l, level) in tournament.levels.iter().enumerate() {
        let s = masks.fresh(wires(wire, l).1, index, level.pair_len());
        r = Secret::new(level.winners(index, &r, &s));
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

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = owned(x.mask(cx, 0));
        deal(cx, x.at.wire(), x.at.from(), x.at.to(), &self.games(&x.at), r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let positions = tournament::positions(&x.at.operand(0).shape, self.dim);
        let (games, given) = (self.games(&x.at), (x.value(0).to_vec(), owned(x.mask(cx, 0))));
        eval(cx, x.at.wire(), x.at.from(), x.at.to(), games, given, positions)
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        let values = [("larger", at.from().bits()), ("index of larger", at.to().bits())];
        at.opens_games(list, &self.games(at), &values);
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        // one bit selects the value and the index, in the same round
        let games = tournament::argmax(&of.operands[0].ty.shape, self.dim);
        let (bits, index) = (of.operand_bits(), of.result_bits());
        price::games(&games, |n| {
            price::sum([price::max(of.form, n, bits), Cost { rounds: 0, ..price::opened(n, 2, index) }])
        })
    }
}

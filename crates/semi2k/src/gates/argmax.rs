//! Index of the largest element: the tournament of max, in which one opened selector moves both the value
//! and the index. Ties keep the left candidate, whose index is smaller, because `relu` selects at x >= 0.

use super::max::{differences, winners};
use super::relu::{self, eval_sign, prepare_sign, signed};
use crate::Opened;
use crate::compare::{Comparison, Linked};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::masks::{Mask, Masks};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_plan::tournament::{self, Tournament};
use privet_ring::Ring;
use std::rc::Rc;

/// Wires of level l: the value's and the index's (the comparison is on the value's wire).
fn wires(wire: Wire, l: usize) -> (Wire, Wire) {
    (wire.inner(2 * l + 1), wire.inner(2 * l + 2))
}

/// The games of a level: kappa and its product with the mask of each difference.
fn link(wire: Wire, ring: Ring, index: Ring) -> Linked {
    signed(wire, ring, vec![ring, ring, index, index])
}

/// Prepare for values with masks `lambda`; the indices come out in `index`, see [`mask`].
fn prepare(
    cx: &mut dyn Preprocess,
    x: &Given,
    tournament: &Tournament,
    mut lambda: Words,
) -> Result<(), PrepareError> {
    let (ring, index, wire) = (x.at.from(), x.at.to(), x.at.wire());
    let wide = Ring::new(ring.bits().max(index.bits()));
    // Positions are public: their masks are zero until the first match.
    let mut places = Words::zeros(lambda.seats(), index, lambda.len());
    for (l, level) in tournament.levels.iter().enumerate() {
        let (value_wire, index_wire) = wires(wire, l);
        let [lead, step] = [differences(level, &lambda), differences(level, &places)];
        let link = link(value_wire, ring, index);
        let kappa = |cx: &dyn Preprocess, piece: &crate::compare::Piece| piece.result_bits(cx);
        let form = x.at.node().form;
        prepare_sign(cx, form, &link, &lead, (ring, &[]), kappa, |cx, piece, kappa, _| {
            let bit = cx.to_words(&[kappa], piece.len(), wide)?.swap_remove(0);
            let moved = step.slice(piece.range.clone());
            let products = cx.times(&[(kappa, vec![piece.lambda, &moved])])?;
            cx.keep(Kept::Words(&bit.reduced(ring)))?;
            cx.keep(Kept::Words(&products[0][0]))?;
            cx.keep(Kept::Words(&bit.reduced(index)))?;
            cx.keep(Kept::Words(&products[0][1]))
        })?;
        lambda = winners(level, &lambda, &cx.mask(value_wire, ring, level.pair_len()));
        places = winners(level, &places, &cx.mask(index_wire, index, level.pair_len()));
    }
    Ok(())
}

/// Evaluate on masked values; `positions` are the public indices. Two rounds a level, beside the comparison's.
fn eval(cx: &mut Eval, x: &Held, tournament: Tournament, positions: Vec<u64>) -> Result<Opened, EvalError> {
    let (ring, index, wire) = (x.at.from(), x.at.to(), x.at.wire());
    let (mut xh, mut positions) = (Opened::Here(x.value(0).to_vec()), Opened::Here(positions));
    let mut lambda = x.mask(cx, 0).as_ref().clone();
    let mut places = Words::zeros(lambda.seats(), index, lambda.len());
    for (l, level) in tournament.levels.into_iter().map(Rc::new).enumerate() {
        let (value_wire, index_wire) = wires(wire, l);
        let (before, numbers) = (cx.receive(xh)?, cx.receive(positions)?);
        let [lead, step] = [level.differences(ring, &before), level.differences(index, &numbers)];
        let [values, indices] = [differences(&level, &lambda), differences(&level, &places)];
        let (e, read) = eval_sign(cx, &link(value_wire, ring, index), &lead)?;
        let [kappa, product, place_kappa, place_product] = read.words.as_slice() else {
            unreachable!("four words")
        };
        let (leads, n) = (cx.leads(), lead.len());
        let value = {
            let (given, s) = ((&lead[..], values.own().as_slice()), cx.result_mask(value_wire, ring, n));
            relu::select(ring, leads, &e, given, [kappa, product], s)
        };
        let place = {
            let given = (&step[..], indices.own().as_slice());
            let s = cx.result_mask(index_wire, index, n);
            relu::select(index, leads, &e, given, [place_kappa, place_product], s)
        };
        let value = cx.open_masked("larger", ring, value)?;
        let place = cx.open_masked("index of larger", index, place)?;
        lambda = winners(&level, &lambda, &cx.mask(value_wire, ring, n));
        places = winners(&level, &places, &cx.mask(index_wire, index, n));
        let same = Rc::clone(&level);
        xh = value.then(move |more| level.winners(ring, &before, &more));
        positions = place.then(move |more| same.winners(index, &numbers, &more));
    }
    Ok(positions)
}

/// Masks of the resulting indices.
fn mask(masks: &dyn Masks, wire: Wire, index: Ring, tournament: &Tournament) -> Words {
    let mut places = Words::zeros(masks.seats(), index, tournament.input_len);
    for (l, level) in tournament.levels.iter().enumerate() {
        let s = masks.fresh(wires(wire, l).1, index, level.pair_len());
        places = winners(level, &places, &s);
    }
    places
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
    fn mask(&self, at: &At, masks: &dyn Masks, _: &dyn Fn(usize) -> Mask) -> Words {
        mask(masks, at.wire(), at.to(), &self.games(at))
    }

    fn mask_from(&self, _: &At) -> MaskFrom {
        MaskFrom::Derived
    }

    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let lambda = x.mask(cx, 0).as_ref().clone();
        prepare(cx, x, &self.games(&x.at), lambda)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let positions = tournament::positions(&x.at.operand(0).shape, self.dim);
        eval(cx, x, self.games(&x.at), positions)
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(relu::sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        let values = [("larger", at.from().bits()), ("index of larger", at.to().bits())];
        at.opens_games(list, &self.games(at), &values);
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        // one bit selects the value and the index, which are opened together
        let games = tournament::argmax(&of.operands[0].ty.shape, self.dim);
        let (bits, index) = (of.operand_bits(), of.result_bits());
        let place = |n| {
            let opened = Cost { rounds: 0, ..price::opened(n, index) };
            price::sum([price::words(n, 2, index), price::selected(n, index), opened])
        };
        price::games(&games, |n| price::sum([price::max(of.form, n, bits), place(n)]))
    }
}

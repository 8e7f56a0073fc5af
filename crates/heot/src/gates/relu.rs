//! ReLU and sign extension into a ring that is as large or larger.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::leaf::Digits;
use crate::planes::Plane;
use crate::uses::Uses;
use crate::{compare, mutation, mux, planes};
use privet_plan::Cut;
use privet_ring::Ring;

/// [`privet_plan::ir::Op::Relu`]: a sign, a choice, and a larger ring. Of a truncation that nobody else reads it makes the carry, too.
pub(crate) struct Relu;

impl Gate for Relu {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (digits, rings) = (x.at.digits(), [x.at.from(), x.at.to()]);
        match x.at.cut() {
            Some(cut) => relu_of_cut(cx, digits, cut, x.at.to(), &x.share(0)),
            None => relu(cx, digits, rings, &x.share(0)),
        }
    }

    fn uses(&self, at: &At) -> Uses {
        let (digits, rings) = (at.digits(), [at.from().bits(), at.to().bits()]);
        match at.cut() {
            Some(cut) => relu_of_cut_uses(digits, cut, at.to().bits(), at.len()),
            None => relu_uses(digits, rings, at.len()),
        }
    }
}

/// The same of a value that is to be cut; x are shares of what it is before.
pub(crate) fn relu_of_cut(
    cx: &mut Cx,
    digits: Digits,
    cut: Cut,
    to: Ring,
    x: &[u64],
) -> Result<Vec<u64>, RunError> {
    let from = Ring::new(cut.chosen_bits());
    let (carry, negative) = compare::carry_and_sign(cx, digits, cut, x)?;
    let forgotten = mutation::active("low-part-forgotten");
    let sum =
        |(x, carry): (&u64, u64)| from.wrap((x >> cut.shift).wrapping_add(if forgotten { 0 } else { carry }));
    let value: Vec<u64> = x.iter().zip(carry).map(sum).collect();
    let chosen = mux::choose(cx, from, &complement(cx.side, negative, x.len()), &value)?;
    mux::widen(cx, [from, to], chosen)
}

pub(crate) fn relu_of_cut_uses(digits: Digits, cut: Cut, to: u32, n: usize) -> Uses {
    let from = cut.chosen_bits();
    let compared = compare::carry_and_sign_uses(digits, cut, n);
    compared.then(mux::choose_uses(from, n)).then(mux::widen_uses([from, to], n))
}

/// Shares of x where it is positive and of 0 elsewhere.
pub(crate) fn relu(
    cx: &mut Cx,
    digits: Digits,
    [from, to]: [Ring; 2],
    x: &[u64],
) -> Result<Vec<u64>, RunError> {
    let negative = compare::negative(cx, digits, from, x)?;
    let chosen = mux::choose(cx, from, &complement(cx.side, negative, x.len()), x)?;
    mux::widen(cx, [from, to], chosen)
}

/// Shares of the complement of a shared bit.
pub(crate) fn complement(side: Side, bits: Plane, n: usize) -> Plane {
    if side == Side::Server { planes::not(&bits, n) } else { bits }
}

/// What [`relu`] of n elements uses.
pub(crate) fn relu_uses(digits: Digits, [from, to]: [u32; 2], n: usize) -> Uses {
    let compared = compare::carry_uses(digits, from - 1, n);
    compared.then(mux::choose_uses(from, n)).then(mux::widen_uses([from, to], n))
}

/// [`privet_plan::ir::Op::Extend`]: with 2^(m-1) added it is no sign that is extended, and what is above 2^m is a carry.
pub(crate) struct Extend;

impl Gate for Extend {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (from, to, n) = (x.at.from(), x.at.to(), x.at.len());
        let own = x.share(0);
        if from == to {
            return Ok(own.to_vec());
        }
        let half = 1u64 << (from.bits() - 1);
        let shifted: Vec<u64> =
            own.iter().map(|x| from.wrap(x.wrapping_add(cx.side.constant(half)))).collect();
        let carry = compare::carry(cx, x.at.digits(), from.bits(), &shifted)?;
        let above = mux::element(cx, Ring::new(to.bits() - from.bits()), &carry, n)?;
        let own = shifted.iter().zip(above);
        Ok(own
            .map(|(x, above)| {
                let above = if mutation::active("borrow-forgotten") { 0 } else { above << from.bits() };
                to.wrap(x.wrapping_sub(above).wrapping_sub(cx.side.constant(half)))
            })
            .collect())
    }

    fn uses(&self, at: &At) -> Uses {
        let (from, to) = (at.from().bits(), at.to().bits());
        if from == to {
            return Uses::default();
        }
        compare::carry_uses(at.digits(), from, at.len()).then(mux::element_uses(to - from, at.len()))
    }
}

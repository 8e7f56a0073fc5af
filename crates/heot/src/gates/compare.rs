//! The sign and equality, as elements.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::planes::Plane;
use crate::uses::Uses;
use crate::{compare, mux, planes};
use privet_ring::Ring;

/// A shared bit as an element.
fn element(cx: &mut Cx, to: Ring, bits: &Plane, n: usize) -> Result<Vec<u64>, RunError> {
    match to.bits() {
        1 => Ok((0..n).map(|i| planes::bit(bits, i)).collect()),
        _ => mux::element(cx, to, bits, n),
    }
}

/// [`privet_plan::ir::Op::IsNegative`].
pub(crate) struct Sign;

impl Gate for Sign {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let bits = compare::negative(cx, x.at.digits(), x.at.from(), &x.share(0))?;
        element(cx, x.at.to(), &bits, x.at.len())
    }

    fn uses(&self, at: &At) -> Uses {
        let bits = compare::carry_uses(at.digits(), at.from().bits() - 1, at.len());
        bits.then(mux::element_uses(at.to().bits(), at.len()))
    }
}

/// [`privet_plan::ir::Op::Equal`].
pub(crate) struct Equal;

impl Gate for Equal {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let ring = x.at.from();
        let pairs = x.share(0);
        let difference: Vec<u64> =
            pairs.iter().zip(x.share(1).iter()).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect();
        let bits = compare::zero(cx, x.at.digits(), ring, &difference)?;
        element(cx, x.at.to(), &bits, x.at.len())
    }

    fn uses(&self, at: &At) -> Uses {
        let bits = compare::zero_uses(at.digits(), at.from().bits(), at.len());
        bits.then(mux::element_uses(at.to().bits(), at.len()))
    }
}

//! Products of elements.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::product::{self, Second};
use crate::uses::Uses;

/// [`privet_plan::ir::Op::Mul`].
pub(crate) struct Mul;

/// The operand that stands second, and what it is.
fn second(at: &At) -> (usize, Second) {
    match [at.is_static(0), at.is_static(1)] {
        [_, true] => (1, Second::AtServer),
        [true, false] => (0, Second::AtServer),
        [false, false] if at.node().inputs[0] == at.node().inputs[1] => (1, Second::Same),
        [false, false] => (1, Second::Shared),
    }
}

impl Gate for Mul {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (y, second) = second(&x.at);
        product::multiply(cx, x.at.to(), &x.share(1 - y), &x.share(y), second)
    }

    fn uses(&self, at: &At) -> Uses {
        product::uses(at.to().bits(), at.len(), second(at).1)
    }
}

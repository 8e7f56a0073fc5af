//! Choices by a shared bit.

use crate::context::{Cx, RunError};
use crate::gate::{At, Gate, Held};
use crate::uses::Uses;
use crate::{mux, planes};

/// [`privet_plan::ir::Op::Choose`]: a bit's shares are XORed.
pub(crate) struct Choose;

impl Gate for Choose {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        mux::choose(cx, x.at.to(), &planes::plane(&x.share(0), 0), &x.share(1))
    }

    fn uses(&self, at: &At) -> Uses {
        mux::choose_uses(at.to().bits(), at.len())
    }
}

/// [`privet_plan::ir::Op::ChooseEvery`]: by one bit after the other.
pub(crate) struct ChooseEvery;

impl Gate for ChooseEvery {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let last = x.at.node().inputs.len() - 1;
        (0..last).try_fold(x.share(last).to_vec(), |y, i| {
            mux::choose(cx, x.at.to(), &planes::plane(&x.share(i), 0), &y)
        })
    }

    fn uses(&self, at: &At) -> Uses {
        let each = || mux::choose_uses(at.to().bits(), at.len());
        (2..at.node().inputs.len()).fold(each(), |uses, _| uses.then(each()))
    }
}

/// [`privet_plan::ir::Op::Select`]: `y + c (x - y)`. The lowest bits of shares of a bit are XORed shares of it.
pub(crate) struct Select;

impl Gate for Select {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (ring, y) = (x.at.to(), x.share(2));
        let difference: Vec<u64> =
            x.share(1).iter().zip(y.iter()).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect();
        let chosen = mux::choose(cx, ring, &planes::plane(&x.share(0), 0), &difference)?;
        Ok(chosen.iter().zip(y.iter()).map(|(c, y)| ring.wrap(c.wrapping_add(*y))).collect())
    }

    fn uses(&self, at: &At) -> Uses {
        mux::choose_uses(at.to().bits(), at.len())
    }
}

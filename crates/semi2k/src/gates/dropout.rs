//! Dropout by public coins: masked values and masks are zero where a coin says so. Nothing is prepared and nothing opened.

use crate::Opened;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::masks::{Mask, Masks};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList};
use privet_plan::cost::{Cost, Operation};

/// [`privet_plan::ir::Op::Dropout`].
pub(crate) struct Dropout {
    pub stream: u32,
    pub keep: u32,
}

impl Gate for Dropout {
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        operand(0).map(at.to(), |x| masks.public().keep(self.stream, self.keep, x))
    }

    fn mask_from(&self, _: &At) -> MaskFrom {
        MaskFrom::Derived
    }

    fn prepare(&self, _: &mut dyn Preprocess, _: &Given) -> Result<(), PrepareError> {
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        Ok(Opened::Here(cx.public().keep(self.stream, self.keep, &x.value(0))))
    }

    fn openings(&self, _: &At, _: &mut OpeningList) {}

    fn price(&self, _: &Operation<'_>) -> Cost {
        // chosen by coins that all parties have
        Cost::default()
    }
}

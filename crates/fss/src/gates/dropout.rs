//! Dropout by public coins: masked values and masks are zero where a coin says so. Nothing is dealt and nothing opened.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::{Mask, Masks};
use crate::{Deal, Eval, EvalError, Opened, Secret};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};

/// [`privet_plan::ir::Op::Dropout`].
pub(crate) struct Dropout {
    pub stream: u32,
    pub keep: u32,
}

impl Gate for Dropout {
    fn mask(&self, _: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        Secret::new(masks.public().keep(self.stream, self.keep, &operand(0)))
    }

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn deal(&self, _: &mut Deal, _: &Dealt) -> Result<(), KeyError> {
        Ok(())
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        Ok(Opened::Here(cx.public().keep(self.stream, self.keep, &x.value(0))))
    }

    fn openings(&self, _: &At, _: &mut OpeningList) {}

    fn price(&self, _: &Operation<'_>) -> Cost {
        // chosen by coins that both evaluators have
        Cost::default()
    }
}

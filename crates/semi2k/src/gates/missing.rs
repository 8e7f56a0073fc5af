//! Operations that this family does not have: it refuses their plans before anything is prepared.

use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};

/// No gate.
pub(crate) struct Missing;

const WHY: &str = "protocol semi2k has no gate for this operation; plans with it are refused before they run";

impl Gate for Missing {
    fn prepare(&self, _: &mut dyn Preprocess, _: &Given) -> Result<(), PrepareError> {
        Err(PrepareError::Failed(WHY.into()))
    }

    fn eval(&self, _: &mut Eval, _: &Held) -> Result<Vec<u64>, EvalError> {
        Err(EvalError::Missing(WHY.into()))
    }

    fn openings(&self, _: &At, _: &mut OpeningList) {}

    fn price(&self, _: &Operation<'_>) -> Cost {
        Cost::default()
    }
}

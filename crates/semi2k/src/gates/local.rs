//! Local operations: the same linear map of masked values, and of masks without its constants. Nothing is prepared and nothing
//! opened.

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
use privet_plan::ir::Op;
use privet_plan::{Affine, apply_local};
use std::ops::Deref;

/// Every operation of [`privet_plan::apply_local`].
pub(crate) struct Local<'a>(pub &'a Op);

/// The map of these operands.
fn map(at: &At, affine: Affine, operands: &[&[u64]]) -> Vec<u64> {
    let node = at.node();
    let types: Vec<_> = (0..node.inputs.len()).map(|i| at.operand(i)).collect();
    apply_local(&node.op, &types, &node.ty, operands, affine)
}

/// The map of what `operand` gives.
pub(crate) fn apply<V: Deref<Target: AsRef<[u64]>>>(
    at: &At,
    affine: Affine,
    operand: impl Fn(usize) -> V,
) -> Vec<u64> {
    let operands: Vec<V> = (0..at.node().inputs.len()).map(operand).collect();
    let operands: Vec<&[u64]> = operands.iter().map(|x| x.deref().as_ref()).collect();
    map(at, affine, &operands)
}

impl Gate for Local<'_> {
    fn mask(&self, at: &At, _: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        let operands: Vec<Mask> = (0..at.node().inputs.len()).map(operand).collect();
        let operands: Vec<&Words> = operands.iter().map(|mask| mask.as_ref()).collect();
        Words::map_all(&operands, at.to(), |shares| map(at, Affine::Linear, shares))
    }

    fn mask_from(&self, at: &At) -> MaskFrom {
        if let Op::AddConst { .. } = self.0 {
            return MaskFrom::Operand(0);
        }
        self.value_of(at).map_or(MaskFrom::Derived, MaskFrom::Operand)
    }

    /// By default none: the map is computed, which is right for every operation.
    fn value_of(&self, _: &At) -> Option<usize> {
        if matches!(self.0, Op::Reshape | Op::Rescale) {
            return Some(0);
        }
        matches!(self.0, Op::Approximates { .. }).then_some(1)
    }

    fn prepare(&self, _: &mut dyn Preprocess, _: &Given) -> Result<(), PrepareError> {
        Ok(())
    }

    fn eval(&self, _: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        Ok(Opened::Here(apply(&x.at, Affine::Full, |i| x.value(i))))
    }

    fn openings(&self, _: &At, _: &mut OpeningList) {}

    fn price(&self, _: &Operation<'_>) -> Cost {
        Cost::default()
    }
}

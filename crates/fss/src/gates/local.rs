//! Local operations: the same linear map of masked values, of masks without its constants, and of shares of masks. Nothing
//! is dealt and nothing opened.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::KeyError;
use crate::masks::{Mask, Masks};
use crate::{Deal, Eval, EvalError, Opened, Secret};
use privet_family::OpeningList;
use privet_plan::cost::{Cost, Operation};
use privet_plan::ir::Op;
use privet_plan::{Affine, apply_local, apply_local_in_place};
use std::ops::Deref;
use std::rc::Rc;

/// Every operation of [`privet_plan::apply_local`].
pub(crate) struct Local<'a>(pub &'a Op);

/// The map of what `operand` gives.
pub(crate) fn apply<V: Deref<Target: AsRef<[u64]>>>(
    at: &At,
    affine: Affine,
    operand: impl Fn(usize) -> V,
) -> Vec<u64> {
    let node = at.node();
    let operands: Vec<V> = (0..node.inputs.len()).map(operand).collect();
    let operands: Vec<&[u64]> = operands.iter().map(|x| x.deref().as_ref()).collect();
    let types: Vec<_> = (0..node.inputs.len()).map(|i| at.operand(i)).collect();
    apply_local(&node.op, &types, &node.ty, &operands, affine)
}

impl Gate for Local<'_> {
    fn mask(&self, at: &At, _: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        if !self.0.is_elementwise() {
            return Secret::new(apply(at, Affine::Linear, operand));
        }
        match Rc::try_unwrap(operand(0)) {
            Ok(mut x) => {
                let (node, y) = (at.node(), (at.node().inputs.len() > 1).then(|| operand(1)));
                let types: Vec<_> = (0..node.inputs.len()).map(|i| at.operand(i)).collect();
                let y = y.as_deref().map(|y| y.as_slice());
                apply_local_in_place(self.0, &types, &node.ty, &mut x, y, Affine::Linear);
                x
            }
            // somebody else reads it
            Err(x) => Secret::new(apply(at, Affine::Linear, |i| if i == 0 { x.clone() } else { operand(i) })),
        }
    }

    fn derives_mask(&self, _: &At) -> bool {
        true
    }

    fn mask_of(&self) -> Option<usize> {
        if let Op::AddConst { .. } = self.0 { Some(0) } else { self.value_of() }
    }

    /// By default none: the map is computed, which is right for every operation.
    fn value_of(&self) -> Option<usize> {
        if matches!(self.0, Op::Reshape | Op::Rescale) {
            return Some(0);
        }
        matches!(self.0, Op::Approximates { .. }).then_some(1)
    }

    fn deal(&self, _: &mut Deal, _: &Dealt) -> Result<(), KeyError> {
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

use super::truncate::Truncation;
use super::{InterpretError, bilinear, gates};
use crate::Plan;
use crate::element::Element;
use crate::ir::{Op, Type};
use crate::local::{Affine, apply_local};
use privet_ring::Ring;

/// Evaluate a checked plan node by node. `given` supplies inputs and weights; `truncate` is the one operation
/// in which ring elements and real numbers differ by more than arithmetic.
///
/// A value is dropped after its last use unless `keep_all` is set or it is an output.
pub(crate) fn walk<E: Element>(
    plan: &Plan,
    keep_all: bool,
    mut given: impl FnMut(&Op, &Type) -> Result<Vec<E>, InterpretError>,
    mut truncate: impl FnMut(Truncation<'_>, &[E]) -> Result<Vec<E>, InterpretError>,
) -> Result<Vec<Option<Vec<E>>>, InterpretError> {
    let last_use = last_uses(plan);
    let mut values: Vec<Option<Vec<E>>> = Vec::with_capacity(plan.nodes.len());
    for (id, node) in plan.nodes.iter().enumerate() {
        let operand = |i: usize| values[i].as_deref().expect("operands are kept until their last use");
        let xs: Vec<&[E]> = node.inputs.iter().map(|&i| operand(i)).collect();
        let types: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
        let value = match &node.op {
            Op::Input { .. } | Op::Weight { .. } => given(&node.op, &node.ty)?,
            Op::Truncate { shift, rounding } => {
                let ring = Ring::new(types[0].bits);
                let layer = &node.layer;
                truncate(Truncation { node: id, layer, ring, shift: *shift, rounding: *rounding }, xs[0])?
            }
            op if op.is_local() => apply_local(op, &types, &node.ty, &xs, Affine::Full),
            Op::Linear | Op::MatMul | Op::Conv2d { .. } | Op::Mul => {
                bilinear::apply(&node.op, &types, &node.ty, &xs)
            }
            _ => gates::apply(&node.op, &types, &node.ty, &xs),
        };
        debug_assert_eq!(value.len(), node.ty.len());
        values.push(Some(value));
        if !keep_all {
            for &i in &node.inputs {
                if last_use[i] == id {
                    values[i] = None;
                }
            }
        }
    }
    Ok(values)
}

/// For every node the last node that reads it; outputs are read at the end.
fn last_uses(plan: &Plan) -> Vec<usize> {
    let mut last: Vec<usize> = (0..plan.nodes.len()).collect();
    for (id, node) in plan.nodes.iter().enumerate() {
        for &i in &node.inputs {
            last[i] = id;
        }
    }
    for output in &plan.outputs {
        last[output.value] = usize::MAX;
    }
    last
}

//! Masks of a plan's values, recomputed from seeds wherever they are needed.
//!
//! Every mask is a linear function of fresh, seeded masks, so one recursion serves the dealer, which gets
//! the masks, and each evaluator, which gets its additive share of them. Nothing is kept in memory.

use crate::Wire;
use crate::gates::{argmax, max};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::{Affine, apply_local, tournament};
use privet_ring::Ring;

/// Fresh masks, or one evaluator's shares of them.
pub(crate) trait Masks {
    /// Of a wire of the record.
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Vec<u64>;
    /// Of a weight of the session.
    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Vec<u64>;
}

/// The mask of value `v`, or one evaluator's share of it.
pub(crate) fn mask_of(masks: &dyn Masks, plan: &Plan, v: ValueId) -> Vec<u64> {
    let node = &plan.nodes[v];
    let (wire, ring, n) = (Wire::node(v), Ring::new(node.ty.bits), node.ty.len());
    let operand = |i: usize| mask_of(masks, plan, node.inputs[i]);
    match &node.op {
        Op::Weight { .. } => masks.weight(v, ring, n),
        Op::Select => {
            let picked = masks.fresh(wire.inner(1), ring, n);
            max::sum(ring, &operand(2), &picked)
        }
        Op::Max => max::mask(masks, wire, ring, &operand(1)),
        Op::MaxPool2d { window } => {
            let [rows, columns] = tournament::max_pool(window, &plan.nodes[node.inputs[0]].ty.shape);
            let r = max::tournament_mask(masks, wire, 1, ring, &rows, operand(0));
            max::tournament_mask(masks, wire, 1 + rows.levels.len(), ring, &columns, r)
        }
        Op::Argmax { dim } => {
            let shape = &plan.nodes[node.inputs[0]].ty.shape;
            argmax::mask(masks, wire, ring, &tournament::argmax(shape, *dim))
        }
        op if op.is_local() => {
            let operands: Vec<Vec<u64>> = (0..node.inputs.len()).map(operand).collect();
            let operands: Vec<&[u64]> = operands.iter().map(Vec::as_slice).collect();
            let types: Vec<_> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
            apply_local(op, &types, &node.ty, &operands, Affine::Linear)
        }
        _ => masks.fresh(wire, ring, n),
    }
}

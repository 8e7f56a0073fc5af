//! What is shown is rounded in full: no output has an error that depends on how shares were drawn.
//!
//! [`Rounding::OneUlp`] lets a family add an error that is a function of the summands of a shared value. A receiver of
//! such a value would learn more than the rounded value. So where only local operations are between a truncation and
//! an output, lowering makes the truncation exact. Half a unit was added before it, so it rounds to the nearest.

use crate::ir::{Op, Plan, Rounding};

/// Truncations that may be off by a unit, and that an output shows, itself or a local function of it.
pub fn inexact(plan: &Plan) -> Vec<usize> {
    let mut shown = vec![false; plan.nodes.len()];
    plan.outputs.iter().for_each(|output| shown[output.value] = true);
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        if shown[id] && node.op.is_local() {
            node.inputs.iter().for_each(|&i| shown[i] = true);
        }
    }
    let inexact = |op: &Op| matches!(op, Op::Truncate { rounding: Rounding::OneUlp, .. });
    (0..plan.nodes.len()).filter(|&id| shown[id] && inexact(&plan.nodes[id].op)).collect()
}

/// Make these truncations exact.
pub fn make_exact(plan: &mut Plan) {
    for id in inexact(plan) {
        if let Op::Truncate { rounding, .. } = &mut plan.nodes[id].op {
            *rounding = Rounding::Floor;
        }
    }
}

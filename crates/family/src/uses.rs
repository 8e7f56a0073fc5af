//! Which values of a plan last, and how long.

use privet_plan::ir::{Op, Plan, ValueId};

/// True where the value depends on weights alone: it is the same in every record of a session.
pub fn is_static(plan: &Plan, v: ValueId) -> bool {
    let node = &plan.nodes[v];
    matches!(node.op, Op::Weight { .. })
        || (node.op.is_local() && !node.inputs.is_empty() && node.inputs.iter().all(|&i| is_static(plan, i)))
}

/// The last node that reads each value (its own index where nobody does).
pub fn last_use(plan: &Plan) -> Vec<usize> {
    let mut last: Vec<usize> = (0..plan.nodes.len()).collect();
    for (i, node) in plan.nodes.iter().enumerate() {
        for &v in &node.inputs {
            last[v] = i;
        }
    }
    let kept = plan.outputs.iter().map(|o| o.value).chain(plan.updates.iter().map(|u| u.value));
    kept.for_each(|v| last[v] = plan.nodes.len());
    last
}

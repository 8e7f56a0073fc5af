//! Which values of a plan last, and how long.

use privet_plan::ir::Plan;
pub use privet_plan::is_static;

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

//! What a run will open, known from the plan alone.

use privet_family::{OpeningList, PlannedOpening, When};
use privet_plan::Plan;
use privet_plan::ir::{Op, ValueId};

/// Every opening that a plan leads to, in the order in which parties open: weights once a session, then inputs, states, what
/// `gate` adds for each node, and outputs.
pub fn planned_openings(plan: &Plan, mut gate: impl FnMut(ValueId, &mut OpeningList)) -> Vec<PlannedOpening> {
    let mut list = OpeningList::default();
    let nodes = || plan.nodes.iter().enumerate();
    for (id, node) in nodes() {
        if let Op::Weight { name, owner } = &node.op {
            list.value(id, node, format!("weight `{name}` of {owner}"), When::Session);
        }
    }
    for (id, node) in nodes() {
        if let Op::Input { name, owner, .. } = &node.op {
            list.value(id, node, format!("input `{name}` of {owner}"), When::Run);
        }
    }
    for (id, node) in nodes() {
        if let Op::State { name, .. } = &node.op {
            list.value(id, node, format!("state `{name}`"), When::Run);
        }
    }
    (0..plan.nodes.len()).for_each(|id| gate(id, &mut list));
    list.outputs(plan);
    list.finish()
}

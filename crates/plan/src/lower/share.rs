//! Equal operations on equal operands are one: a softmax and its logarithm share their exponentials.

use crate::ir::{Node, Op, Plan, Rounding};
use crate::ops;
use std::collections::HashMap;

/// The plan with every deterministic operation on the same operands once. What is drawn anew each time stays.
pub(super) fn shared(plan: Plan) -> Plan {
    let mut map: Vec<usize> = Vec::with_capacity(plan.nodes.len());
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut nodes: Vec<Node> = Vec::with_capacity(plan.nodes.len());
    for mut node in plan.nodes {
        node.inputs.iter_mut().for_each(|i| *i = map[*i]);
        let fresh = nodes.len();
        let id = match is_deterministic(&node.op) {
            true => *seen.entry(format!("{:?} {:?} {:?}", node.op, node.inputs, node.ty)).or_insert(fresh),
            false => fresh,
        };
        if id == fresh {
            nodes.push(node);
        }
        map.push(id);
    }
    renumbered(Plan { nodes, ..plan }, &map)
}

fn is_deterministic(op: &Op) -> bool {
    match op {
        ops!(source) | Op::Truncate { rounding: Rounding::Stochastic, .. } => false,
        Op::Truncate { rounding: Rounding::Floor | Rounding::OneUlp, .. } => true,
        // results of equal look-ups with different coins are both right, and so is one of them for both
        Op::Dither { .. } | ops!(table) => true,
        // the coins of a stream are alike
        ops!(local) | ops!(bilinear) | ops!(public) | ops!(comparison) => true,
    }
}

/// Outputs and updates by their new numbers.
pub(super) fn renumbered(mut plan: Plan, map: &[usize]) -> Plan {
    plan.outputs.iter_mut().for_each(|o| o.value = map[o.value]);
    plan.updates.iter_mut().for_each(|u| (u.state, u.value) = (map[u.state], map[u.value]));
    plan
}

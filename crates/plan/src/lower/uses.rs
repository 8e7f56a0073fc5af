//! Who may read what in a graph of training.

use super::precision::op_name;
use super::report::Problem;
use crate::graph::{Graph, GraphOp};

/// Public numbers that something other than a product reads, and bits that are read as numbers.
pub(super) fn problems(graph: &Graph) -> Vec<Problem> {
    let is_public = |i: usize| matches!(graph.nodes[i].op, GraphOp::Public { .. });
    let mut bits: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    let mut problems = Vec::new();
    for node in &graph.nodes {
        let read: Vec<bool> = node.inputs.iter().map(|&i| bits[i]).collect();
        let some = read.contains(&true);
        let layout = is_layout(&node.op);
        bits.push(node.op == GraphOp::Positive || (layout && some));
        let publics = node.inputs.iter().filter(|&&i| is_public(i)).count();
        let what = if publics > 1 || (publics == 1 && node.op != GraphOp::Mul) {
            "reads a public number, which only a product with a private value may"
        } else if node.op == GraphOp::Choose {
            if read == [true, false] {
                continue;
            }
            "chooses by what is no bit, or among bits"
        } else if some && !(layout && read.iter().all(|&b| b)) {
            "reads a bit as if it were a number"
        } else {
            continue;
        };
        problems.push(Problem {
            op: op_name(&node.op),
            layer: node.layer.clone(),
            source: node.source.clone(),
            what: what.into(),
            remedy: "capture the step again with this version; if that does not help, report the message"
                .into(),
        });
    }
    problems
}

fn is_layout(op: &GraphOp) -> bool {
    matches!(
        op,
        GraphOp::Reshape
            | GraphOp::Permute { .. }
            | GraphOp::Slice { .. }
            | GraphOp::Concat { .. }
            | GraphOp::Expand
            | GraphOp::Reverse { .. }
    )
}

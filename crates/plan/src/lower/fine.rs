//! What training has to know of values beyond a graph's shapes: which have more fraction bits than activations, and how
//! far sums have grown.

use super::demand::halvings;
use crate::graph::{Graph, GraphOp};

/// About one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fine {
    /// Fraction bits, where a state with fraction bits of its own demands them.
    pub frac: Option<u32>,
    /// log2 of the number of elements that one of this value's is the sum of, rounded up.
    pub growth: u32,
    /// Whether only sums and differences read it.
    pub summed: bool,
}

/// For every value of a graph. A state's fraction bits go to what sums, differences and public factors make of it, and to
/// what is added to that or takes the state's place.
pub(super) fn fine(graph: &Graph) -> Vec<Fine> {
    let mut all: Vec<Fine> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let frac = match &node.op {
            GraphOp::State { frac, .. } => *frac,
            op => node.inputs.iter().filter(|_| keeps_fraction(op)).filter_map(|&i| all[i].frac).max(),
        };
        let operands = node.inputs.iter().map(|&i| all[i].growth).max().unwrap_or(0);
        let shape = || graph.nodes[node.inputs[0]].shape.as_slice();
        let growth = match &node.op {
            GraphOp::Sum { dims, .. } => operands + log2(dims.iter().map(|&d| shape()[d]).product()),
            GraphOp::AvgPool2d { window, divisor: Some(1), .. } => {
                operands + log2(window.kernel.iter().product())
            }
            GraphOp::MulScalar { value } => operands.saturating_sub(leading(*value)),
            op if keeps_fraction(op) || matches!(op, GraphOp::Reshape | GraphOp::Expand) => operands,
            _ => 0,
        };
        all.push(Fine { frac, growth, summed: true });
    }
    for node in graph.nodes.iter().filter(|n| !matches!(n.op, GraphOp::Add | GraphOp::Sub)) {
        node.inputs.iter().for_each(|&i| all[i].summed = false);
    }
    graph.outputs.iter().for_each(|o| all[o.node].summed = false);
    graph.updates.iter().for_each(|u| all[u.node].summed = false);
    for update in &graph.updates {
        all[update.node].frac = all[update.node].frac.max(all[update.state].frac);
    }
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        if keeps_fraction(&node.op) {
            node.inputs.iter().for_each(|&i| all[i].frac = all[i].frac.max(all[id].frac));
        }
    }
    all
}

fn keeps_fraction(op: &GraphOp) -> bool {
    matches!(
        op,
        GraphOp::Add
            | GraphOp::Sub
            | GraphOp::Neg
            | GraphOp::AddScalar { .. }
            | GraphOp::MulScalar { .. }
            | GraphOp::Reshape
            | GraphOp::Permute { .. }
            | GraphOp::Slice { .. }
            | GraphOp::Concat { .. }
            | GraphOp::Expand
    )
}

/// j >= 0 such that `|value| 2^j` is in [1, 2), or 0 where it is larger anyway.
pub(super) fn leading(value: f64) -> u32 {
    match halvings(value) {
        Some(j) => j,
        None if value == 0.0 => 0,
        None => (-value.abs().log2()).ceil().max(0.0) as u32,
    }
}

fn log2(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

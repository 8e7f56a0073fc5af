//! Which values have the rows of a batch one behind the other along dimension 0.

use crate::graph::{Graph, GraphOp};
use crate::lower::rebatch::keeps_batch;

/// For every node whether block r of dimension 0 belongs to row r alone. Of one row everything does.
pub(super) fn rowed(graph: &Graph) -> Vec<bool> {
    let mut all: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let blocks = node.shape.first().is_some_and(|n| n % graph.batch == 0);
        let follows: Vec<bool> = node.inputs.iter().map(|&i| all[i]).collect();
        all.push(match &node.op {
            _ if graph.batch == 1 => true,
            _ if !blocks => false,
            GraphOp::Input { .. } => node.shape[0] == graph.batch,
            // elements keep their order
            GraphOp::Reshape => follows[0],
            _ if !follows.contains(&true) => false,
            _ => {
                let shapes: Vec<&[usize]> =
                    node.inputs.iter().map(|&i| graph.nodes[i].shape.as_slice()).collect();
                keeps_batch(node, &shapes, &follows, graph.batch).is_ok()
            }
        });
    }
    all
}

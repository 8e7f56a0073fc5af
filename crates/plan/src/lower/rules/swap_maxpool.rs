use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::Draft;

/// `maxpool(f(x)) = f(maxpool(x))` for increasing f: the activation then runs on fewer elements, and the
/// maximum is taken in the small ring before the activation widens.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::MaxPool2d { .. } = node.op else { return graph.keep(node) };
        let activation = graph.nodes[node.inputs[0]].clone();
        let increasing = match activation.op {
            GraphOp::Relu | GraphOp::Clamp { .. } => true,
            GraphOp::LeakyRelu { slope } => slope >= 0.0,
            _ => false,
        };
        if !increasing || !graph.used_once(node.inputs[0]) {
            return graph.keep(node);
        }
        let x = activation.inputs[0];
        let range = graph.nodes[x].range;
        let pooled = graph.push(GraphNode { inputs: vec![x], range, ..node.clone() });
        graph.push(GraphNode {
            inputs: vec![pooled],
            shape: node.shape.clone(),
            range: node.range,
            ..activation
        })
    });
}

use crate::graph::GraphOp;
use crate::lower::draft::{Draft, affine_range, relu_range};

/// `leaky(x) = slope * x + (1 - slope) * relu(x)`.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::LeakyRelu { slope } = node.op else { return graph.keep(node) };
        let x = node.inputs[0];
        let (shape, range) = (&node.shape, graph.nodes[x].range);
        let positive = relu_range(range);
        let relu = graph.add(node, GraphOp::Relu, vec![x], shape.clone(), positive);
        let scaled = |value| GraphOp::MulScalar { value };
        let line = graph.add(node, scaled(slope), vec![x], shape.clone(), affine_range(range, slope, 0.0));
        let rest = affine_range(positive, 1.0 - slope, 0.0);
        let rest = graph.add(node, scaled(1.0 - slope), vec![relu], shape.clone(), rest);
        graph.add(node, GraphOp::Add, vec![line, rest], shape.clone(), node.range)
    });
}

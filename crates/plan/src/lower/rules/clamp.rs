use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite, affine_range, relu_range};

/// `clamp(x, lo, hi) = lo + relu(x - lo) - relu(x - hi)`; with one bound `lo + relu(x - lo)` or
/// `x - relu(x - hi)`. `ReLU6` is `relu(x) - relu(x - 6)`.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::Clamp { lo, hi } = node.op else { return graph.keep(node) };
        let x = node.inputs[0];
        let below = lo.map(|lo| {
            let above_lo = relu_above(graph, node, x, lo);
            shifted(graph, node, above_lo, lo)
        });
        let start = below.unwrap_or(x);
        let Some(hi) = hi else { return start };
        let excess = relu_above(graph, node, x, hi);
        graph.add(node, GraphOp::Sub, vec![start, excess], node.shape.clone(), node.range)
    });
}

/// `relu(x - bound)`.
fn relu_above(graph: &mut Rewrite<'_>, like: &GraphNode, x: usize, bound: f64) -> usize {
    let moved = shifted(graph, like, x, -bound);
    let range = relu_range(graph.nodes[moved].range);
    graph.add(like, GraphOp::Relu, vec![moved], like.shape.clone(), range)
}

/// `x + by`.
fn shifted(graph: &mut Rewrite<'_>, like: &GraphNode, x: usize, by: f64) -> usize {
    if by == 0.0 {
        return x;
    }
    let range = affine_range(graph.nodes[x].range, 1.0, by);
    graph.add(like, GraphOp::AddScalar { value: by }, vec![x], like.shape.clone(), range)
}

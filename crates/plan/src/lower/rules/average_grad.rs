use super::average::{count, divided, divided_by_window};
use super::images::{placed, stretched};
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};
use privet_ring::Pool2d;

/// The gradient of an average pool: g over the windows' counts goes to all elements of its window, which is the sum over
/// windows of stride 1 of g with zeros between and around.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| match node.op {
        GraphOp::AvgPool2dGrad { window, count_include_pad, divisor } => {
            let g = shares(graph, node, &window, count_include_pad, divisor);
            spread(graph, node, g, &window)
        }
        _ => graph.keep(node),
    });
}

/// g over what its window was divided by.
fn shares(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    window: &Pool2d,
    count_include_pad: bool,
    divisor: Option<usize>,
) -> usize {
    let g = node.inputs[0];
    let like = GraphNode { shape: graph.nodes[g].shape.clone(), range: None, ..node.clone() };
    let counts = |axis: usize| {
        let outputs = 0..like.shape[2 + axis];
        let of = |o| count(window, axis, o, node.shape[2 + axis], count_include_pad);
        outputs.map(of).collect::<Vec<_>>()
    };
    match divisor {
        Some(n) => divided(graph, &like, g, n),
        None => divided_by_window(graph, &like, g, &counts(0), &counts(1)),
    }
}

fn spread(graph: &mut Rewrite<'_>, node: &GraphNode, mut g: usize, window: &Pool2d) -> usize {
    for axis in 0..2 {
        let (dim, reach) = (2 + axis, window.dilation[axis] * (window.kernel[axis] - 1));
        g = stretched(graph, node, g, dim, window.stride[axis]);
        let before = reach as isize - window.padding[axis] as isize;
        let extent = node.shape[dim] + reach;
        g = placed(graph, node, g, dim, before, extent).expect("every window has an element of the image");
    }
    let window = Pool2d { stride: [1, 1], padding: [0, 0], ceil_mode: false, ..*window };
    let op = GraphOp::AvgPool2d { window, count_include_pad: true, divisor: Some(1) };
    graph.add(node, op, vec![g], node.shape.clone(), node.range)
}

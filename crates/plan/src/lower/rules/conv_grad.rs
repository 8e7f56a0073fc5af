use super::images::{permute, placed, reshape, shape, slice, stretched};
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};

/// Stride, padding, dilation, groups.
type Attributes = ([usize; 2], [usize; 2], [usize; 2], usize);

/// The gradients of a convolution as convolutions of layouts of its operands.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| match node.op {
        GraphOp::Conv2dInputGrad { stride, padding, dilation, groups } => {
            input(graph, node, (stride, padding, dilation, groups))
        }
        GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups } => {
            weight(graph, node, (stride, padding, dilation, groups))
        }
        _ => graph.keep(node),
    });
}

/// `dx[i] = sum over o, j with o s + j d - p = i of g[o] w[j]`: g with `s - 1` zeros between neighbours and `d (K - 1) - p` before
/// it, convolved with w whose taps are reversed and whose channels have changed places. As many zeros before g as behind it are the
/// convolution's padding, which families need not multiply.
fn input(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    (stride, padding, dilation, groups): Attributes,
) -> usize {
    let (w, mut g) = (node.inputs[0], node.inputs[1]);
    let [co, per, kh, kw] = shape(graph, w)[..] else { unreachable!("shapes are checked") };
    let mut around = [0; 2];
    for (axis, kernel) in [kh, kw].into_iter().enumerate() {
        let (dim, reach) = (2 + axis, dilation[axis] * (kernel - 1));
        g = stretched(graph, node, g, dim, stride[axis]);
        let before = reach as isize - padding[axis] as isize;
        let extent = node.shape[dim] + reach;
        let after = extent as isize - before - graph.nodes[g].shape[dim] as isize;
        around[axis] = usize::try_from(before.min(after)).unwrap_or(0);
        let (before, extent) = (before - around[axis] as isize, extent - 2 * around[axis]);
        g = placed(graph, node, g, dim, before, extent).unwrap_or_else(|| {
            // nothing of the image is seen by a kernel
            zeros(graph, node, g, dim, extent)
        });
    }
    let w = reshape(graph, node, w, &[groups, co / groups, per, kh, kw]);
    let w = permute(graph, node, w, &[0, 2, 1, 3, 4]);
    let flipped = vec![groups * per, co / groups, kh, kw];
    let w = reshape(graph, node, w, &flipped);
    let w = graph.add(node, GraphOp::Reverse { dims: vec![2, 3] }, vec![w], flipped, None);
    let op = GraphOp::Conv2d { stride: [1, 1], padding: around, dilation, groups };
    graph.add(node, op, vec![g, w], node.shape.clone(), node.range)
}

/// `dw[o, c, j] = sum over n, i of g[n, o, i] x[n, c, i s + j d - p]`: x convolved with g, batch and channels having changed
/// places, and stride and dilation.
fn weight(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    (stride, padding, dilation, groups): Attributes,
) -> usize {
    let (x, g) = (node.inputs[0], node.inputs[1]);
    let [n, ci, h, w] = shape(graph, x)[..] else { unreachable!("shapes are checked") };
    let [_, co, oh, ow] = shape(graph, g)[..] else { unreachable!("shapes are checked") };
    let (per, extents) = (ci / groups, [(h, oh), (w, ow)]);
    let x = reshape(graph, node, x, &[n, groups, per, h, w]);
    let x = permute(graph, node, x, &[2, 1, 0, 3, 4]);
    let x = reshape(graph, node, x, &[per, groups * n, h, w]);
    let g = permute(graph, node, g, &[1, 0, 2, 3]);
    // taps beyond the kernel, where the last windows did not reach the image's end
    let taps: Vec<usize> = (0..2)
        .map(|i| (extents[i].0 + 2 * padding[i] - stride[i] * (extents[i].1 - 1) - 1) / dilation[i] + 1)
        .collect();
    let op = GraphOp::Conv2d { stride: dilation, padding, dilation: stride, groups };
    let mut y = graph.add(node, op, vec![x, g], vec![per, co, taps[0], taps[1]], None);
    for dim in [2, 3] {
        y = slice(graph, node, y, dim, [0, node.shape[dim], 1]);
    }
    let y = permute(graph, node, y, &[1, 0, 2, 3]);
    graph.nodes[y].range = node.range;
    y
}

/// x times zero, with another extent at `dim`.
fn zeros(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, dim: usize, extent: usize) -> usize {
    let one = slice(graph, node, x, dim, [0, 1, 1]);
    let mut to = shape(graph, one);
    let none = graph.add(node, GraphOp::Sub, vec![one, one], to.clone(), None);
    to[dim] = extent;
    graph.add(node, GraphOp::Expand, vec![none], to, None)
}

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

/// `dx[i] = sum over o, j with o s + j d - p = i of g[o] w[j]`: where windows move by more than one, by [`phases`]. Else g with `s - 1` zeros between neighbours and `d (K - 1) - p` before
/// it, convolved with w whose taps are reversed and whose channels have changed places. As many zeros before g as behind it are the
/// convolution's padding, which families need not multiply.
fn input(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    (stride, padding, dilation, groups): Attributes,
) -> usize {
    if stride != [1, 1] && dilation == [1, 1] {
        return phases(graph, node, stride, padding, groups);
    }
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

/// `dx[s q + r - p] = sum over t of g[q - t] w[s t + r]`: each phase r of the image is a convolution of g by every s-th tap, so that no
/// zeros are multiplied. All phases are output channels of one convolution; then they are laid between each other. Of a window shorter
/// than s some phases have no taps, and are 0. Example: s = 2 and three taps give `dx[2q - p] = g[q] w[0] + g[q-1] w[2]` and
/// `dx[2q + 1 - p] = g[q] w[1]`. (Shi and others, *Real-Time Single Image and Video Super-Resolution*, CVPR 2016.)
fn phases(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    stride: [usize; 2],
    padding: [usize; 2],
    groups: usize,
) -> usize {
    let (mut w, g) = (node.inputs[0], node.inputs[1]);
    let [co, per, kh, kw] = shape(graph, w)[..] else { unreachable!("shapes are checked") };
    let [n, _, oh, ow] = shape(graph, g)[..] else { unreachable!("shapes are checked") };
    let (kernel, outputs, channels) = ([kh, kw], [oh, ow], groups * per);
    let count: [usize; 2] = [0, 1].map(|i| stride[i].min(kernel[i]));
    let taps = [0, 1].map(|i| kernel[i].div_ceil(stride[i]));
    let steps = [0, 1].map(|i| outputs[i] + taps[i] - 1);

    let padded = vec![co, per, taps[0] * count[0], taps[1] * count[1]];
    if padded[2..] != kernel {
        let amounts = vec![[0, 0], [0, 0], [0, padded[2] - kh], [0, padded[3] - kw]];
        w = graph.add(node, GraphOp::Pad { amounts }, vec![w], padded, None);
    }
    let w = reshape(graph, node, w, &[groups, co / groups, per, taps[0], count[0], taps[1], count[1]]);
    let w = permute(graph, node, w, &[0, 2, 4, 6, 1, 3, 5]);
    let turned = vec![channels * count[0] * count[1], co / groups, taps[0], taps[1]];
    let w = reshape(graph, node, w, &turned);
    let w = graph.add(node, GraphOp::Reverse { dims: vec![2, 3] }, vec![w], turned, None);
    let op = GraphOp::Conv2d { stride: [1, 1], padding: taps.map(|taps| taps - 1), dilation: [1, 1], groups };
    let all = vec![n, channels * count[0] * count[1], steps[0], steps[1]];
    let y = graph.add(node, op, vec![g, w], all, node.range);

    let y = reshape(graph, node, y, &[n, channels, count[0], count[1], steps[0], steps[1]]);
    let mut y = permute(graph, node, y, &[0, 1, 4, 2, 5, 3]);
    if count != stride {
        let apart = vec![n, channels, steps[0], stride[0], steps[1], stride[1]];
        let mut amounts = vec![[0, 0]; 6];
        (amounts[3], amounts[5]) = ([0, stride[0] - count[0]], [0, stride[1] - count[1]]);
        y = graph.add(node, GraphOp::Pad { amounts }, vec![y], apart, None);
    }
    let mut y = reshape(graph, node, y, &[n, channels, steps[0] * stride[0], steps[1] * stride[1]]);
    for (axis, &cut) in padding.iter().enumerate() {
        let (dim, extent) = (2 + axis, node.shape[2 + axis]);
        y = placed(graph, node, y, dim, -(cut as isize), extent)
            .unwrap_or_else(|| zeros(graph, node, y, dim, extent));
    }
    graph.nodes[y].range = node.range;
    y
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

//! Pieces of rules on images: layouts that cost nothing.

use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::Rewrite;

/// Shape of new node `x`.
pub(super) fn shape(graph: &Rewrite<'_>, x: usize) -> Vec<usize> {
    graph.nodes[x].shape.clone()
}

pub(super) fn reshape(graph: &mut Rewrite<'_>, like: &GraphNode, x: usize, to: &[usize]) -> usize {
    if graph.nodes[x].shape == to { x } else { graph.add(like, GraphOp::Reshape, vec![x], to.to_vec(), None) }
}

pub(super) fn permute(graph: &mut Rewrite<'_>, like: &GraphNode, x: usize, dims: &[usize]) -> usize {
    let to = dims.iter().map(|&d| graph.nodes[x].shape[d]).collect();
    graph.add(like, GraphOp::Permute { dims: dims.to_vec() }, vec![x], to, None)
}

/// `x[start:end:step]` along `dim`.
pub(super) fn slice(
    graph: &mut Rewrite<'_>,
    like: &GraphNode,
    x: usize,
    dim: usize,
    [start, end, step]: [usize; 3],
) -> usize {
    let mut to = shape(graph, x);
    if [start, end, step] == [0, to[dim], 1] {
        return x;
    }
    to[dim] = (end - start).div_ceil(step);
    graph.add(like, GraphOp::Slice { dim, start, end, step }, vec![x], to, None)
}

pub(super) fn concat(graph: &mut Rewrite<'_>, like: &GraphNode, parts: &[usize], dim: usize) -> usize {
    if let [only] = parts {
        return *only;
    }
    let mut to = shape(graph, parts[0]);
    to[dim] = parts.iter().map(|&p| graph.nodes[p].shape[dim]).sum();
    graph.add(like, GraphOp::Concat { dim }, parts.to_vec(), to, None)
}

/// An operation of two values of one shape.
pub(super) fn both(graph: &mut Rewrite<'_>, like: &GraphNode, op: GraphOp, x: usize, y: usize) -> usize {
    let to = shape(graph, y);
    graph.add(like, op, vec![x, y], to, None)
}

/// `step - 1` zeros between neighbours along `dim`: an extent of `(n - 1) step + 1`.
pub(super) fn stretched(
    graph: &mut Rewrite<'_>,
    like: &GraphNode,
    x: usize,
    dim: usize,
    step: usize,
) -> usize {
    let from = shape(graph, x);
    if step == 1 || from[dim] == 1 {
        return x;
    }
    let mut apart = from.clone();
    apart.insert(dim + 1, 1);
    let mut amounts = vec![[0, 0]; apart.len()];
    amounts[dim + 1] = [0, step - 1];
    let y = reshape(graph, like, x, &apart);
    apart[dim + 1] = step;
    let y = graph.add(like, GraphOp::Pad { amounts }, vec![y], apart, None);
    let mut wide = from;
    wide[dim] *= step;
    let y = reshape(graph, like, y, &wide);
    slice(graph, like, y, dim, [0, wide[dim] - step + 1, 1])
}

/// x with `before` zeros before it along `dim`, in an extent of `extent`: what is outside is cut off. `None` where nothing is
/// left.
pub(super) fn placed(
    graph: &mut Rewrite<'_>,
    like: &GraphNode,
    x: usize,
    dim: usize,
    before: isize,
    extent: usize,
) -> Option<usize> {
    let n = graph.nodes[x].shape[dim] as isize;
    let (first, last) = ((-before).max(0), n.min(extent as isize - before));
    if first >= last {
        return None;
    }
    let inside = slice(graph, like, x, dim, [first as usize, last as usize, 1]);
    let front = (before + first) as usize;
    let back = extent - front - (last - first) as usize;
    if front == 0 && back == 0 {
        return Some(inside);
    }
    let mut to = shape(graph, inside);
    let mut amounts = vec![[0, 0]; to.len()];
    amounts[dim] = [front, back];
    to[dim] = extent;
    Some(graph.add(like, GraphOp::Pad { amounts }, vec![inside], to, None))
}

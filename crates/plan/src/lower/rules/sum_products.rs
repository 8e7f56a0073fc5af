use super::images::{permute, reshape, shape};
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};
use std::collections::HashSet;

/// Products that are summed before they are truncated: their sum, too, is promised to be below 2^14.
const TOGETHER: usize = 16;
/// Fewest elements of a sum that is cut up.
const FEWEST: usize = 32;

/// In training, a sum of products (a variance, a gradient by a scale) as inner products of 16 elements and a sum of these, so that
/// one number is truncated in place of 16. Inner products of the whole sum would need no truncation but those of their
/// results; they could not be larger than one product may be.
pub(super) fn apply(draft: &mut Draft<'_>) {
    if draft.graph.updates.is_empty() {
        return;
    }
    let sums = long_sums(draft);
    let mut id = 0;
    draft.rewrite(|graph, node| {
        let here = id;
        id += 1;
        match &node.op {
            GraphOp::Sum { dims, .. } if sums.contains(&here) => cut(graph, node, dims),
            _ => graph.keep(node),
        }
    });
}

/// Sums of products that only sums read, by their old numbers.
fn long_sums(draft: &Draft<'_>) -> HashSet<usize> {
    let (nodes, uses) = (&draft.graph.nodes, draft.uses());
    let mut by_sums = vec![0; nodes.len()];
    let sums = || nodes.iter().enumerate().filter(|(_, n)| matches!(n.op, GraphOp::Sum { .. }));
    sums().for_each(|(_, n)| by_sums[n.inputs[0]] += 1);
    let of_product = |n: &GraphNode| {
        let product = &nodes[n.inputs[0]];
        let alike = || product.inputs.iter().all(|&i| nodes[i].shape == product.shape);
        let elements = product.shape.iter().product::<usize>() / n.shape.iter().product::<usize>();
        product.op == GraphOp::Mul
            && alike()
            && elements >= FEWEST
            && by_sums[n.inputs[0]] == uses[n.inputs[0]]
    };
    sums().filter(|(_, n)| of_product(n)).map(|(id, _)| id).collect()
}

fn cut(graph: &mut Rewrite<'_>, node: &GraphNode, dims: &[usize]) -> usize {
    let factors = graph.nodes[node.inputs[0]].inputs.clone();
    let from = shape(graph, node.inputs[0]);
    let kept = (0..from.len()).filter(|d| !dims.contains(d));
    let order: Vec<usize> = kept.chain(dims.iter().copied()).collect();
    let reduced: usize = dims.iter().map(|&d| from[d]).product();
    let (results, parts) = (node.shape.iter().product::<usize>(), reduced.div_ceil(TOGETHER));
    let mut lines = |x: usize, part: [usize; 2]| {
        let x = permute(graph, node, x, &order);
        let mut x = reshape(graph, node, x, &[results, reduced]);
        let missing = parts * TOGETHER - reduced;
        if missing > 0 {
            let to = vec![results, parts * TOGETHER];
            x = graph.add(node, GraphOp::Pad { amounts: vec![[0, 0], [0, missing]] }, vec![x], to, None);
        }
        reshape(graph, node, x, &[results * parts, part[0], part[1]])
    };
    let (x, y) = (lines(factors[0], [1, TOGETHER]), lines(factors[1], [TOGETHER, 1]));
    let products = graph.add(node, GraphOp::MatMul, vec![x, y], vec![results * parts, 1, 1], None);
    let products = reshape(graph, node, products, &[results, parts]);
    let sum = GraphOp::Sum { dims: vec![1], keepdim: false };
    let sum = graph.add(node, sum, vec![products], vec![results], node.range);
    reshape(graph, node, sum, &node.shape)
}

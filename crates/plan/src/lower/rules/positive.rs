use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};
use std::collections::{HashMap, HashSet};

/// One comparison for a ReLU and its gradient: `relu(x) > 0` is `x > 0`, equal bits are one node, and `relu(x)` is
/// `choose(x > 0, x)` where somebody else needs the bit.
pub(super) fn apply(draft: &mut Draft<'_>) {
    if !draft.graph.nodes.iter().any(|n| n.op == GraphOp::Positive) {
        return;
    }
    let wanted = relus_with_bits(draft);
    let mut bits = HashMap::new();
    let mut id = 0;
    draft.rewrite(|graph, node| {
        let here = id;
        id += 1;
        match node.op {
            GraphOp::Positive => bit(graph, node, node.inputs[0], &mut bits),
            GraphOp::Relu if wanted.contains(&here) => {
                let bit = bit(graph, node, node.inputs[0], &mut bits);
                graph.add(node, GraphOp::Choose, vec![bit, node.inputs[0]], node.shape.clone(), node.range)
            }
            _ => graph.keep(node),
        }
    });
}

/// The ReLUs, by their old numbers, of whose operand or result a bit is taken.
fn relus_with_bits(draft: &Draft<'_>) -> HashSet<usize> {
    let nodes = &draft.graph.nodes;
    let origin = |i: usize| if nodes[i].op == GraphOp::Relu { nodes[i].inputs[0] } else { i };
    let bits: HashSet<usize> =
        nodes.iter().filter(|n| n.op == GraphOp::Positive).map(|n| origin(n.inputs[0])).collect();
    let is = |n: &GraphNode| n.op == GraphOp::Relu && bits.contains(&n.inputs[0]);
    nodes.iter().enumerate().filter(|(_, n)| is(n)).map(|(id, _)| id).collect()
}

/// The bit `x > 0`, made once.
fn bit(graph: &mut Rewrite<'_>, like: &GraphNode, x: usize, bits: &mut HashMap<usize, usize>) -> usize {
    let x = origin(graph, x);
    if let Some(&bit) = bits.get(&x) {
        return bit;
    }
    let shape = graph.nodes[x].shape.clone();
    let bit = graph.add(like, GraphOp::Positive, vec![x], shape, None);
    bits.insert(x, bit);
    bit
}

/// The operand of a ReLU, in either form.
fn origin(graph: &Rewrite<'_>, x: usize) -> usize {
    let node = &graph.nodes[x];
    match node.op {
        GraphOp::Relu => node.inputs[0],
        GraphOp::Choose if graph.nodes[node.inputs[0]].op == GraphOp::Positive => {
            let chosen = node.inputs[1];
            if graph.nodes[node.inputs[0]].inputs[0] == chosen { chosen } else { x }
        }
        _ => x,
    }
}

use crate::graph::GraphOp;
use crate::lower::draft::Draft;

/// `concat(relu(a), relu(b)) = relu(concat(a, b))`: one truncation and one ReLU in a row of rounds instead of one a
/// branch, at the same number of comparisons.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::Concat { .. } = node.op else { return graph.keep(node) };
        let joinable = |&i: &usize| matches!(graph.nodes[i].op, GraphOp::Relu) && graph.used_once(i);
        if !node.inputs.iter().all(joinable) {
            return graph.keep(node);
        }
        let before: Vec<usize> = node.inputs.iter().map(|&i| graph.nodes[i].inputs[0]).collect();
        let ranges: Option<Vec<[f64; 2]>> = before.iter().map(|&i| graph.nodes[i].range).collect();
        let union = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a.min(c), b.max(d)];
        let range = ranges.and_then(|r| r.into_iter().reduce(union));
        let joined = graph.add(node, node.op.clone(), before, node.shape.clone(), range);
        graph.add(node, GraphOp::Relu, vec![joined], node.shape.clone(), node.range)
    });
}

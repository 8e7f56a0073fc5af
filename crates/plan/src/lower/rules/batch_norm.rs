use crate::functions::Function;
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};

/// Batch normalisation by statistics that training changes: `(x - mean) (gamma / sqrt(variance + eps)) + beta`, an inverse root
/// for every channel.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::BatchNorm { eps } = node.op else { return graph.keep(node) };
        let [x, gamma, beta, mean, variance] = node.inputs[..] else { return graph.keep(node) };
        let channels = [node.shape[1]];
        let above =
            graph.add(node, GraphOp::AddScalar { value: eps }, vec![variance], channels.to_vec(), None);
        let root = GraphOp::Smooth { function: Function::Rsqrt };
        let root = graph.add(node, root, vec![above], channels.to_vec(), None);
        let scale = graph.add(node, GraphOp::Mul, vec![gamma, root], channels.to_vec(), None);
        let [scale, beta, mean] = [scale, beta, mean].map(|p| over_channels(graph, node, p));
        let shape = || node.shape.clone();
        let centred = graph.add(node, GraphOp::Sub, vec![x, mean], shape(), None);
        let scaled = graph.add(node, GraphOp::Mul, vec![centred, scale], shape(), None);
        graph.add(node, GraphOp::Add, vec![scaled, beta], shape(), node.range)
    });
}

/// `[channels]` as it broadcasts along dimension 1.
fn over_channels(graph: &mut Rewrite<'_>, node: &GraphNode, p: usize) -> usize {
    let mut shape = vec![node.shape[1]];
    shape.resize(node.shape.len() - 1, 1);
    graph.add(node, GraphOp::Reshape, vec![p], shape, None)
}

use crate::float::FloatTensor;
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};

/// A scale and a shift of each feature (what ends a layer normalisation) go into the linear layers that read them:
/// `(gamma x + beta) W^T + b = x (gamma W)^T + (W beta + b)`. Another reader keeps them for itself.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| match node.op {
        GraphOp::Linear => fold(graph, node).unwrap_or_else(|| graph.keep(node)),
        _ => graph.keep(node),
    });
}

fn fold(graph: &mut Rewrite<'_>, node: &GraphNode) -> Option<usize> {
    let (w, bias) = (node.inputs[1], node.inputs.get(2).copied());
    let (rows, features) = match graph.parameter(w)?.shape[..] {
        [rows, features] => (rows, features),
        _ => return None,
    };
    let without = (node.inputs[0], vec![0.0; features]);
    let (before, beta) = by_feature(graph, node.inputs[0], &GraphOp::Add, features).unwrap_or(without);
    // a shift alone costs nothing where it is
    let (x, gamma) = by_feature(graph, before, &GraphOp::Mul, features)?;
    let old = match bias {
        Some(bias) => graph.parameter(bias)?.data.clone(),
        None => vec![0.0; rows],
    };
    let weight = graph.parameter(w)?;
    let rows_of = || weight.data.chunks(features);
    let scaled = rows_of().flat_map(|row| row.iter().zip(&gamma).map(|(w, g)| w * g)).collect();
    let shift = rows_of().map(|row| row.iter().zip(&beta).map(|(w, b)| w * b).sum::<f64>());
    let shifted =
        FloatTensor { shape: vec![rows], data: old.iter().zip(shift).map(|(b, s)| b + s).collect() };
    let weight = FloatTensor { shape: vec![rows, features], data: scaled };
    let name = graph.parameter_name(w);
    let bias_name = bias.map_or_else(|| format!("{}.bias", node.layer), |b| graph.parameter_name(b));
    let norm = graph.nodes[before].layer.clone();
    graph.notes.push(format!("scale and shift of {norm} are folded into {}", node.layer));
    let w = graph.add_parameter(node, format!("{name}.folded"), weight);
    let b = graph.add_parameter(node, format!("{bias_name}.folded"), shifted);
    Some(graph.add(node, GraphOp::Linear, vec![x, w, b], node.shape.clone(), node.range))
}

/// Where node `id` is `op` of a value of its own shape and of a parameter of one number a feature: the value and the numbers.
fn by_feature(graph: &Rewrite<'_>, id: usize, op: &GraphOp, features: usize) -> Option<(usize, Vec<f64>)> {
    let node = &graph.nodes[id];
    let &[first, second] = &node.inputs[..] else { return None };
    let of = |x: usize, p: usize| {
        let numbers = graph.parameter(p)?;
        let fits = numbers.data.len() == features && numbers.shape.last() == Some(&features);
        (fits && graph.nodes[x].shape == node.shape && graph.parameter(x).is_none())
            .then(|| (x, numbers.data.clone()))
    };
    if node.op == *op { of(first, second).or_else(|| of(second, first)) } else { None }
}

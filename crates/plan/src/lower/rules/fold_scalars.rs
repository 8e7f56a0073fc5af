use super::fold_batchnorm::fold_into;
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};

/// Public scalars move into what comes before them: two in a row become one, and one after a linear layer goes
/// into its weights and bias. Multiplying by 1 and adding 0 disappear.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| match node.op {
        GraphOp::MulScalar { value: 1.0 } | GraphOp::AddScalar { value: 0.0 } => node.inputs[0],
        GraphOp::MulScalar { .. } | GraphOp::AddScalar { .. } => {
            merge(graph, node).or_else(|| fold(graph, node)).unwrap_or_else(|| graph.keep(node))
        }
        _ => graph.keep(node),
    });
}

fn merge(graph: &mut Rewrite<'_>, node: &GraphNode) -> Option<usize> {
    let before = &graph.nodes[node.inputs[0]];
    let op = match (&before.op, &node.op) {
        (GraphOp::MulScalar { value: a }, GraphOp::MulScalar { value: b }) => {
            GraphOp::MulScalar { value: a * b }
        }
        (GraphOp::AddScalar { value: a }, GraphOp::AddScalar { value: b }) => {
            GraphOp::AddScalar { value: a + b }
        }
        _ => return None,
    };
    let inputs = before.inputs.clone();
    Some(graph.add(node, op, inputs, node.shape.clone(), node.range))
}

fn fold(graph: &mut Rewrite<'_>, node: &GraphNode) -> Option<usize> {
    let layer = graph.nodes[node.inputs[0]].clone();
    if !matches!(layer.op, GraphOp::Conv2d { .. } | GraphOp::Linear) || !graph.used_once(node.inputs[0]) {
        return None;
    }
    let (scale, shift) = match node.op {
        GraphOp::MulScalar { value } => (value, 0.0),
        GraphOp::AddScalar { value } => (1.0, value),
        _ => return None,
    };
    let (w, b) = (layer.inputs[1], layer.inputs.get(2).copied());
    let weight = graph.parameter(w)?;
    let channels = weight.shape[0];
    let bias = b.map(|b| graph.parameter(b));
    let (weight, bias) = fold_into(weight, bias, &vec![scale; channels], &vec![shift; channels])?;
    let name = graph.parameter_name(w);
    let w = graph.add_parameter(&layer, format!("{name}.scaled"), weight);
    let b = graph.add_parameter(&layer, format!("{}.bias.scaled", layer.layer), bias);
    Some(graph.add(&layer, layer.op.clone(), vec![layer.inputs[0], w, b], node.shape.clone(), node.range))
}

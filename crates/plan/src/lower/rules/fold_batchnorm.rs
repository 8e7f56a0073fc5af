use crate::float::FloatTensor;
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};

/// Evaluation-mode batch normalisation is `scale * x + shift` per channel. It goes into the convolution or linear
/// layer before it when nothing else reads that layer; otherwise it becomes a depthwise 1x1 convolution.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let GraphOp::BatchNorm { eps } = node.op else { return graph.keep(node) };
        let statistics: Option<Vec<&FloatTensor>> =
            node.inputs[1..].iter().map(|&i| graph.parameter(i)).collect();
        let Some((scale, shift)) = statistics.map(|p| scale_and_shift(&p, eps)) else {
            return graph.keep(node);
        };
        fold(graph, node, &scale, &shift).unwrap_or_else(|| depthwise(graph, node, scale, shift))
    });
}

/// `scale = gamma / sqrt(variance + eps)`, `shift = beta - mean * scale`.
fn scale_and_shift(p: &[&FloatTensor], eps: f64) -> (Vec<f64>, Vec<f64>) {
    let (gamma, beta, mean, variance) = (&p[0].data, &p[1].data, &p[2].data, &p[3].data);
    let scale: Vec<f64> = gamma.iter().zip(variance).map(|(g, v)| g / (v + eps).sqrt()).collect();
    let shift = (0..scale.len()).map(|c| beta[c] - mean[c] * scale[c]).collect();
    (scale, shift)
}

fn fold(graph: &mut Rewrite<'_>, node: &GraphNode, scale: &[f64], shift: &[f64]) -> Option<usize> {
    let layer = graph.nodes[node.inputs[0]].clone();
    let per_channel = match layer.op {
        GraphOp::Conv2d { .. } => true,
        // a linear layer's channel is its last dimension, batch normalisation's is dimension 1
        GraphOp::Linear => layer.shape.len() == 2,
        _ => false,
    };
    if !per_channel || !graph.used_once(node.inputs[0]) {
        return None;
    }
    let (w, b) = (layer.inputs[1], layer.inputs.get(2).copied());
    let (weight, bias) = fold_into(graph.parameter(w)?, b.map(|b| graph.parameter(b)), scale, shift)?;
    graph.notes.push(format!("batch normalisation {} is folded into {}", node.layer, layer.layer));
    let name = graph.parameter_name(w);
    let bias_name = b.map_or_else(|| format!("{}.bias", layer.layer), |b| graph.parameter_name(b));
    let w = graph.add_parameter(&layer, format!("{name}.folded"), weight);
    let b = graph.add_parameter(&layer, format!("{bias_name}.folded"), bias);
    Some(graph.add(&layer, layer.op.clone(), vec![layer.inputs[0], w, b], layer.shape.clone(), node.range))
}

/// Weights and bias of the layer followed by `scale * y + shift` per output channel.
pub(super) fn fold_into(
    weight: &FloatTensor,
    bias: Option<Option<&FloatTensor>>,
    scale: &[f64],
    shift: &[f64],
) -> Option<(FloatTensor, FloatTensor)> {
    let channels = scale.len();
    let row = weight.data.len() / channels;
    let scaled = weight.data.iter().enumerate().map(|(i, w)| w * scale[i / row]).collect();
    let old = match bias {
        None => vec![0.0; channels],
        Some(b) => b?.data.clone(),
    };
    let bias = (0..channels).map(|c| old[c] * scale[c] + shift[c]).collect();
    let weight = FloatTensor { shape: weight.shape.clone(), data: scaled };
    Some((weight, FloatTensor { shape: vec![channels], data: bias }))
}

fn depthwise(graph: &mut Rewrite<'_>, node: &GraphNode, scale: Vec<f64>, shift: Vec<f64>) -> usize {
    let channels = scale.len();
    let image = [node.shape[0], channels, node.shape[2..].iter().product(), 1];
    let layer = &node.layer;
    let weight = FloatTensor { shape: vec![channels, 1, 1, 1], data: scale };
    let w = graph.add_parameter(node, format!("{layer}.scale"), weight);
    let shift = FloatTensor { shape: vec![channels], data: shift };
    let b = graph.add_parameter(node, format!("{layer}.shift"), shift);
    let op = GraphOp::Conv2d { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: channels };
    if node.shape.len() == 4 {
        return graph.add(node, op, vec![node.inputs[0], w, b], node.shape.clone(), node.range);
    }
    let before = graph.nodes[node.inputs[0]].range;
    let x = graph.add(node, GraphOp::Reshape, vec![node.inputs[0]], image.to_vec(), before);
    let y = graph.add(node, op, vec![x, w, b], image.to_vec(), node.range);
    graph.add(node, GraphOp::Reshape, vec![y], node.shape.clone(), node.range)
}

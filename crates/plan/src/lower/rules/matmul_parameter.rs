use crate::float::FloatTensor;
use crate::graph::GraphOp;
use crate::lower::draft::Draft;

/// `x @ W` with a parameter matrix W is `Linear` with W transposed, so that weights stay masked for a session.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let transposed = match (&node.op, node.inputs.get(1).and_then(|&w| graph.parameter(w))) {
            (GraphOp::MatMul, Some(w)) if w.shape.len() == 2 => transpose(w),
            _ => return graph.keep(node),
        };
        let name = graph.parameter_name(node.inputs[1]);
        let w = graph.add_parameter(node, name, transposed);
        graph.add(node, GraphOp::Linear, vec![node.inputs[0], w], node.shape.clone(), node.range)
    });
}

fn transpose(w: &FloatTensor) -> FloatTensor {
    let (rows, columns) = (w.shape[0], w.shape[1]);
    let data = (0..rows * columns).map(|i| w.data[i % rows * columns + i / rows]).collect();
    FloatTensor { shape: vec![columns, rows], data }
}

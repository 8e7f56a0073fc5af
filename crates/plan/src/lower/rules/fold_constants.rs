use crate::float::FloatTensor;
use crate::graph::{GraphNode, GraphOp};
use crate::ir::{Op, Type};
use crate::local::{Affine, apply_local};
use crate::lower::draft::{Draft, Rewrite};
use crate::strided;

/// An operation on parameters alone is computed by the model owner before anything is shared.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| {
        let parameters: Option<Vec<&FloatTensor>> = node.inputs.iter().map(|&i| graph.parameter(i)).collect();
        match parameters.filter(|p| !p.is_empty()).and_then(|p| evaluate(node, &p)) {
            Some(data) => replace(graph, node, data),
            None => graph.keep(node),
        }
    });
}

fn replace(graph: &mut Rewrite<'_>, node: &GraphNode, data: Vec<f64>) -> usize {
    let name = graph.parameter_name(node.inputs[0]);
    graph.add_parameter(node, name, FloatTensor { shape: node.shape.clone(), data })
}

fn evaluate(node: &GraphNode, xs: &[&FloatTensor]) -> Option<Vec<f64>> {
    let x = xs[0];
    let map = |f: &dyn Fn(f64) -> f64| Some(x.data.iter().map(|&v| f(v)).collect());
    let zip = |f: fn(f64, f64) -> f64| {
        let wide = |t: &FloatTensor| {
            strided::gather(&t.data, &node.shape, &strided::broadcast_strides(&t.shape, &node.shape), 0)
        };
        Some(wide(x).into_iter().zip(wide(xs[1])).map(|(a, b)| f(a, b)).collect())
    };
    match &node.op {
        GraphOp::Neg => map(&|v| -v),
        GraphOp::Relu => map(&|v| v.max(0.0)),
        GraphOp::AddScalar { value } => map(&|v| v + value),
        GraphOp::MulScalar { value } => map(&|v| v * value),
        GraphOp::Smooth { function } => Some(function.of(&node.shape, &x.data)),
        GraphOp::Add => zip(|a, b| a + b),
        GraphOp::Sub => zip(|a, b| a - b),
        GraphOp::Mul => zip(|a, b| a * b),
        GraphOp::Reshape => moved(Op::Reshape, node, xs),
        GraphOp::Permute { dims } => moved(Op::Permute { dims: dims.clone() }, node, xs),
        &GraphOp::Slice { dim, start, end, step } => moved(Op::Slice { dim, start, end, step }, node, xs),
        GraphOp::Concat { dim } => moved(Op::Concat { dim: *dim }, node, xs),
        GraphOp::Pad { amounts } => moved(Op::Pad { amounts: amounts.clone() }, node, xs),
        GraphOp::Expand => moved(Op::Expand, node, xs),
        _ => None,
    }
}

fn moved(op: Op, node: &GraphNode, xs: &[&FloatTensor]) -> Option<Vec<f64>> {
    let ty = |shape: &[usize]| Type { shape: shape.to_vec(), bits: 64, frac: 0 };
    let types: Vec<Type> = xs.iter().map(|x| ty(&x.shape)).collect();
    let data: Vec<&[f64]> = xs.iter().map(|x| x.data.as_slice()).collect();
    Some(apply_local(&op, &types.iter().collect::<Vec<_>>(), &ty(&node.shape), &data, Affine::Full))
}

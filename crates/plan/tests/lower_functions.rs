//! Lowered smooth functions against the captured graph in double precision.

mod common;

use common::build::Model;
use common::lower;
use privet_plan::functions::Function;
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Plan};
use privet_plan::lower::Lowered;
use privet_plan::{
    FloatTensor, NoCoins, Precision, decode_outputs, encode_inputs, encode_weights, interpret, interpret_real,
};

fn difference(a: &FloatTensor, b: &FloatTensor) -> f64 {
    assert_eq!(a.shape, b.shape);
    a.data.iter().zip(&b.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Integer interpretation within `bound` of the reference, and the real one nearer; gives the plan.
fn agrees(model: &mut Model, output: usize, precision: &Precision, bound: f64) -> Plan {
    let want = model.finish(output);
    let Lowered { plan, parameters, .. } =
        lower(&model.graph, &model.params, precision).unwrap_or_else(|e| panic!("{e}"));
    let real = interpret_real(&plan, &model.inputs, &parameters).unwrap();
    assert!(difference(&real[0], &want) < bound / 4.0, "real: {}", difference(&real[0], &want));
    let inputs = encode_inputs(&plan, None, &model.inputs).unwrap();
    let weights = encode_weights(&plan, None, &parameters).unwrap();
    let got = decode_outputs(&plan, &interpret(&plan, &inputs, &weights, &mut NoCoins).unwrap());
    assert!(difference(&got[0], &want) < bound, "integer: {}", difference(&got[0], &want));
    plan
}

fn count(plan: &Plan, kind: fn(&Op) -> bool) -> usize {
    plan.nodes.iter().filter(|n| kind(&n.op)).count()
}

#[test]
fn smooth_functions_follow_linear_layers_and_feed_them() {
    use Function::*;
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for function in [Exp, Sigmoid, Tanh, Gelu, GeluTanh, Silu, Softmax { dim: 1 }, LogSoftmax { dim: 1 }] {
        let mut m = Model::new(3, 4);
        let x = m.input(&[4, 6]);
        let y = m.linear(x, 5);
        let y = m.map(GraphOp::Smooth { function }, y);
        let y = m.linear(y, 3);
        agrees(&mut m, y, &precision, 1e-5);
        // numbers chosen from the ranges
        let mut m = Model::new(3, 4);
        let x = m.input(&[4, 6]);
        let y = m.linear(x, 5);
        let y = m.map(GraphOp::Smooth { function }, y);
        let y = m.linear(y, 3);
        let plan = agrees(&mut m, y, &Precision::default(), 2e-3);
        assert_eq!(count(&plan, |op| matches!(op, Op::Approximates { .. })), 1);
    }
}

#[test]
fn functions_of_positive_values_are_lowered() {
    use Function::*;
    for function in [Log, Reciprocal, Rsqrt, Sqrt] {
        let mut m = Model::new(5, 2);
        let x = m.input(&[2, 6]);
        let y = m.linear(x, 5);
        let y = m.op(GraphOp::Mul, &[y, y], &[2, 5]);
        let y = m.map(GraphOp::AddScalar { value: 0.25 }, y);
        let y = m.map(GraphOp::Smooth { function }, y);
        agrees(&mut m, y, &Precision::default(), 2e-3);
    }
}

#[test]
fn functions_of_parameters_are_folded() {
    let mut m = Model::new(5, 2);
    let x = m.input(&[2, 6]);
    let w = m.param(&[6]);
    let w = m.map(GraphOp::Smooth { function: Function::Sigmoid }, w);
    let y = m.op(GraphOp::Mul, &[x, w], &[2, 6]);
    let plan = agrees(&mut m, y, &Precision::default(), 1e-3);
    assert_eq!(count(&plan, |op| matches!(op, Op::IsNegative)), 0);
}

#[test]
fn functions_are_written_as_the_front_end_writes_them() {
    for (function, json) in [
        (Function::GeluTanh, r#"{"kind":"smooth","function":"gelu_tanh"}"#),
        (Function::GeluTanhGrad, r#"{"kind":"smooth","function":"gelu_tanh_grad"}"#),
        (Function::Softmax { dim: 3 }, r#"{"kind":"smooth","function":{"softmax":{"dim":3}}}"#),
    ] {
        let op = GraphOp::Smooth { function };
        assert_eq!(serde_json::to_string(&op).unwrap(), json);
        assert_eq!(serde_json::from_str::<GraphOp>(json).unwrap(), op);
    }
}

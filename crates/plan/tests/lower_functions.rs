//! Lowered smooth functions against the captured graph in double precision.

mod common;

use common::build::Model;
use common::lower;
use privet_plan::functions::Function;
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Plan, Rounding};
use privet_plan::lower::{Lowered, RoundingMode};
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

/// A layer normalisation of a linear layer's results, with `eps` added and each of its parts as captured; another reader of the
/// centred values, if wanted. A number beside it keeps rows apart.
fn layer_norm(m: &mut Model, eps: f64, centred: bool, read_twice: bool) -> usize {
    let x = m.input(&[4, 6]);
    let x = m.linear(x, 24);
    let mean = |m: &mut Model, x| m.op(GraphOp::Mean { dims: vec![1], keepdim: true }, &[x], &[4, 1]);
    let d = match centred {
        true => {
            let mean = mean(m, x);
            m.op(GraphOp::Sub, &[x, mean], &[4, 24])
        }
        false => x,
    };
    let squares = m.op(GraphOp::Mul, &[d, d], &[4, 24]);
    let variance = mean(m, squares);
    let variance = m.map(GraphOp::AddScalar { value: eps }, variance);
    let root = m.map(GraphOp::Smooth { function: Function::Rsqrt }, variance);
    let y = m.op(GraphOp::Mul, &[d, root], &[4, 24]);
    let y = if read_twice { m.op(GraphOp::Add, &[y, d], &[4, 24]) } else { y };
    m.linear(y, 5)
}

#[test]
fn normalisations_are_one_function_of_their_lines() {
    let normalises = |op: &Op| matches!(op, Op::Approximates { function: Function::Normalise { .. } });
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for eps in [1e-5, 0.0, 3.0] {
        for (centred, read_twice) in [(true, false), (false, false), (true, true)] {
            let mut m = Model::new(11, 4);
            let y = layer_norm(&mut m, eps, centred, read_twice);
            let plan = agrees(&mut m, y, &precision, 3e-6);
            assert_eq!(count(&plan, normalises), 1);
            // sums of squares and roots as products left them, and what is normalised as well, where nothing else reads it; what is left
            // is the result
            let cut = count(&plan, rounds_exactly);
            assert_eq!(cut, 1 + 2 * usize::from(read_twice), "{eps} {centred} {read_twice}");
        }
    }
}

/// Where the sum of squares has no room, or the parts are read by others, they are what they are.
#[test]
fn normalisations_without_room_are_taken_apart() {
    let normalises = |op: &Op| matches!(op, Op::Approximates { function: Function::Normalise { .. } });
    let mut m = Model::new(11, 4);
    let y = layer_norm(&mut m, 1e-5, true, false);
    let small = Precision { bits: Some(40), fraction: Some(16), ..Precision::default() };
    let plan = agrees(&mut m, y, &small, 1e-3);
    assert_eq!(count(&plan, normalises), 0);
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

fn rounds_exactly(op: &Op) -> bool {
    matches!(op, Op::Truncate { rounding: Rounding::Floor, .. })
}

/// A function rounds the product that it alone reads, by coins and with bits to spare; what others read as well is the nearest for all, as is
/// what a jump is taken of. Other roundings stay what the user asked for.
#[test]
fn products_that_a_function_alone_reads_are_not_rounded_to_the_nearest() {
    use Function::*;
    let nearest = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    let one_ulp = Precision { rounding: RoundingMode::OneUlp, ..nearest.clone() };
    for function in [Exp, Sigmoid, Tanh, Erf] {
        let model = |read_twice: bool| {
            let mut m = Model::new(7, 4);
            let x = m.input(&[4, 6]);
            let x = m.linear(x, 5);
            let y = m.map(GraphOp::Smooth { function }, x);
            let y = if read_twice { m.op(GraphOp::Add, &[x, y], &[4, 5]) } else { y };
            (m, y)
        };
        let (mut m, y) = model(false);
        let plan = agrees(&mut m, y, &nearest, 3e-5);
        assert_eq!(count(&plan, rounds_exactly), 0, "{}", function.name());
        let approximated = plan.nodes.iter().find(|n| matches!(n.op, Op::Approximates { .. })).unwrap();
        assert_eq!(plan.nodes[approximated.inputs[0]].ty.frac, 26, "{}", function.name());
        let (mut m, y) = model(true);
        let plan = agrees(&mut m, y, &nearest, 3e-5);
        assert_eq!(count(&plan, rounds_exactly), 1, "{}", function.name());
        let (mut m, y) = model(false);
        let plan = agrees(&mut m, y, &one_ulp, 3e-5);
        let approximated = plan.nodes.iter().find(|n| matches!(n.op, Op::Approximates { .. })).unwrap();
        assert_eq!(plan.nodes[approximated.inputs[0]].ty.frac, 24, "{}", function.name());
    }
    let mut m = Model::new(7, 4);
    let x = m.input(&[4, 6]);
    let x = m.linear(x, 5);
    let y = m.map(GraphOp::Smooth { function: Floor }, x);
    let plan = agrees(&mut m, y, &nearest, 3e-5);
    assert!(count(&plan, rounds_exactly) > 0, "a jump");
}

/// Ramps of products, and what reads them: a layer with weights with more fraction bits, others with those of activations.
#[test]
fn ramps_of_products_are_lowered() {
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for function in [Function::Gelu, Function::GeluTanh, Function::Silu] {
        for then_linear in [true, false] {
            let mut m = Model::new(9, 4);
            let x = m.input(&[4, 6]);
            let x = m.linear(x, 8);
            let y = m.map(GraphOp::Smooth { function }, x);
            let y = if then_linear { m.linear(y, 5) } else { m.op(GraphOp::Mul, &[y, y], &[4, 8]) };
            let plan = agrees(&mut m, y, &precision, 2e-6);
            let ramp = plan.nodes.iter().find(|n| matches!(n.op, Op::Approximates { .. })).unwrap();
            // of the product itself
            assert_eq!(plan.nodes[ramp.inputs[0]].ty.frac, 48, "{}", function.name());
            assert_eq!(ramp.ty.frac, if then_linear { 27 } else { 24 }, "{}", function.name());
        }
    }
}

/// One head, with the softmax read once or twice.
#[test]
fn attention_is_lowered() {
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    for read_twice in [false, true] {
        let mut m = Model::new(13, 10);
        let x = m.input(&[10, 6]);
        let [q, k, v] = [0; 3].map(|_| m.linear(x, 4));
        let k = m.op(GraphOp::Permute { dims: vec![1, 0] }, &[k], &[4, 10]);
        let scores = m.op(GraphOp::MatMul, &[q, k], &[10, 10]);
        let weights = m.map(GraphOp::Smooth { function: Function::Softmax { dim: 1 } }, scores);
        let y = m.op(GraphOp::MatMul, &[weights, v], &[10, 4]);
        let y = match read_twice {
            true => {
                let other = m.op(GraphOp::MatMul, &[weights, x], &[10, 6]);
                let other = m.linear(other, 4);
                m.op(GraphOp::Add, &[y, other], &[10, 4])
            }
            false => y,
        };
        agrees(&mut m, y, &precision, 3e-5);
    }
}

//! Each rewrite rule leaves the shape of plan that it is there for. That meanings are kept is tested in `lower.rs`.

mod common;

use common::build::Model;
use common::lower;
use common::ty;
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Plan};
use privet_plan::lower::RoundingMode;
use privet_plan::{Precision, decode_outputs, encode_inputs, encode_weights, interpret};
use privet_ring::Pool2d;

fn plan(m: &mut Model, output: usize) -> Plan {
    m.finish(output);
    lower(&m.graph, &m.params, &Precision::default()).unwrap_or_else(|e| panic!("{e}")).plan
}

/// The operations in order, inputs and weights left out, by their JSON kind.
fn kinds(plan: &Plan) -> Vec<String> {
    let kind = |op: &Op| serde_json::to_value(op).unwrap()["kind"].as_str().unwrap().to_owned();
    plan.nodes.iter().map(|n| kind(&n.op)).filter(|k| k != "weight" && k != "input").collect()
}

fn window() -> Pool2d {
    Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false }
}

#[test]
fn maxpool_and_activation_change_places_only_when_nothing_else_reads_the_activation() {
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 1, 4, 4]);
    let r = m.map(GraphOp::Relu, x);
    let p = m.op(GraphOp::MaxPool2d { window: window() }, &[r], &[1, 1, 2, 2]);
    assert_eq!(kinds(&plan(&mut m, p)), ["reduce", "max_pool2d", "relu"]);
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 1, 4, 4]);
    let r = m.map(GraphOp::Relu, x);
    let p = m.op(GraphOp::MaxPool2d { window: window() }, &[r], &[1, 1, 2, 2]);
    m.finish(r);
    assert_eq!(kinds(&plan(&mut m, p)), ["reduce", "relu", "max_pool2d"]);
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 1, 4, 4]);
    let r = m.map(GraphOp::LeakyRelu { slope: -0.5 }, x);
    let p = m.op(GraphOp::MaxPool2d { window: window() }, &[r], &[1, 1, 2, 2]);
    assert_eq!(kinds(&plan(&mut m, p)).last().unwrap(), "max_pool2d", "a decreasing function stays before");
}

#[test]
fn batch_norm_is_folded_unless_the_layer_has_another_reader() {
    let mut m = Model::new(2, 1);
    let x = m.input(&[1, 2, 4, 4]);
    let c = m.conv(x, 3, 3, 1, 1, 1);
    let b = m.batch_norm(c);
    assert_eq!(kinds(&plan(&mut m, b)), ["conv2d"]);
    m.finish(c);
    let lowered = lower(&m.graph, &m.params, &Precision::default()).unwrap();
    assert_eq!(kinds(&lowered.plan).iter().filter(|k| *k == "conv2d").count(), 2);
    let mut m = Model::new(2, 4);
    let x = m.input(&[4, 5]);
    let l = m.linear(x, 3);
    let b = m.batch_norm(l);
    m.finish(b);
    let lowered = lower(&m.graph, &m.params, &Precision::default()).unwrap();
    assert_eq!(kinds(&lowered.plan), ["linear"]);
    assert!(lowered.notes.iter().any(|n| n.contains("folded")), "{:?}", lowered.notes);
    assert!(lowered.parameters.keys().all(|name| name.ends_with(".folded")));
}

#[test]
fn scalars_vanish_into_layers_and_into_each_other() {
    let mut m = Model::new(3, 1);
    let x = m.input(&[1, 4]);
    let mut y = m.linear(x, 4);
    for op in [
        GraphOp::MulScalar { value: 0.5 },
        GraphOp::AddScalar { value: 0.0 },
        GraphOp::MulScalar { value: 1.7 },
        GraphOp::AddScalar { value: 1.0 },
        GraphOp::AddScalar { value: 2.0 },
    ] {
        y = m.map(op, y);
    }
    assert_eq!(kinds(&plan(&mut m, y)), ["linear"]);
}

#[test]
fn relus_that_are_concatenated_become_one() {
    let mut m = Model::new(4, 1);
    let x = m.input(&[1, 2, 4, 4]);
    let (a, b) = (m.conv(x, 3, 1, 1, 0, 1), m.conv(x, 2, 3, 1, 1, 1));
    let (a, b) = (m.map(GraphOp::Relu, a), m.map(GraphOp::Relu, b));
    let c = m.op(GraphOp::Concat { dim: 1 }, &[a, b], &[1, 5, 4, 4]);
    assert_eq!(kinds(&plan(&mut m, c)), ["conv2d", "conv2d", "concat", "add_const", "truncate", "relu"]);
}

#[test]
fn a_pool_passes_relus_that_are_concatenated_and_concatenated_pools_pass_theirs() {
    let mut m = Model::new(4, 1);
    let x = m.input(&[1, 2, 4, 4]);
    let (a, b) = (m.conv(x, 3, 1, 1, 0, 1), m.conv(x, 2, 3, 1, 1, 1));
    let (a, b) = (m.map(GraphOp::Relu, a), m.map(GraphOp::Relu, b));
    let c = m.op(GraphOp::Concat { dim: 1 }, &[a, b], &[1, 5, 4, 4]);
    let p = m.op(GraphOp::MaxPool2d { window: window() }, &[c], &[1, 5, 2, 2]);
    let last = kinds(&plan(&mut m, p));
    assert_eq!(last[last.len() - 2..], ["max_pool2d", "relu"], "{last:?}");

    let mut m = Model::new(4, 1);
    let x = m.input(&[1, 2, 4, 4]);
    let (a, b) = (m.conv(x, 3, 1, 1, 0, 1), m.conv(x, 2, 3, 1, 1, 1));
    let pools = [(a, 3), (b, 2)].map(|(x, channels)| {
        let r = m.map(GraphOp::Relu, x);
        m.op(GraphOp::MaxPool2d { window: window() }, &[r], &[1, channels, 2, 2])
    });
    let c = m.op(GraphOp::Concat { dim: 1 }, &pools, &[1, 5, 2, 2]);
    let all = kinds(&plan(&mut m, c));
    assert_eq!(all.iter().filter(|kind| *kind == "relu").count(), 1, "{all:?}");
    assert_eq!(all.last().unwrap(), "relu");
}

#[test]
fn constants_are_computed_before_sharing_and_dead_nodes_go() {
    let mut m = Model::new(5, 1);
    let x = m.input(&[1, 4]);
    let (a, b) = (m.param(&[4]), m.param(&[1]));
    let s = m.op(GraphOp::Sub, &[a, b], &[4]);
    let s = m.map(GraphOp::MulScalar { value: 2.0 }, s);
    let y = m.op(GraphOp::Add, &[x, s], &[1, 4]);
    m.map(GraphOp::Relu, y);
    assert_eq!(kinds(&plan(&mut m, y)), ["expand", "add"]);
}

#[test]
fn average_pool_by_a_power_of_two_only_moves_the_point() {
    let mut m = Model::new(6, 1);
    let x = m.input(&[1, 2, 4, 4]);
    let c = m.conv(x, 2, 1, 1, 0, 1);
    let r = m.map(GraphOp::Relu, c);
    let p = m.op(
        GraphOp::AvgPool2d { window: window(), count_include_pad: true, divisor: None },
        &[r],
        &[1, 2, 2, 2],
    );
    let c = m.conv(p, 2, 1, 1, 0, 1);
    let plan = plan(&mut m, c);
    assert_eq!(kinds(&plan), ["conv2d", "add_const", "truncate", "relu", "sum_pool2d", "rescale", "conv2d"]);
}

#[test]
fn relu6_is_two_relus() {
    let mut m = Model::new(7, 1);
    let x = m.input(&[1, 4]);
    let y = m.map(GraphOp::Clamp { lo: Some(0.0), hi: Some(6.0) }, x);
    let plan = plan(&mut m, y);
    let relus: Vec<&[usize]> =
        plan.nodes.iter().filter(|n| n.op == Op::Relu).map(|n| n.ty.shape.as_slice()).collect();
    assert_eq!(relus, [[8]], "both in one gate");
}

#[test]
fn a_parameter_in_two_formats_is_two_weights() {
    let mut m = Model::new(8, 1);
    let x = m.input(&[4, 4]);
    m.graph.batch = 4;
    let w = m.param(&[4, 4]);
    let l = m.op(GraphOp::Linear, &[x, w], &[4, 4]);
    let r = m.map(GraphOp::Relu, l);
    let y = m.op(GraphOp::Add, &[r, w], &[4, 4]);
    m.finish(y);
    let lowered = lower(&m.graph, &m.params, &Precision::default()).unwrap();
    assert_eq!(lowered.parameters.len(), 2);
    assert!(lowered.parameters.values().all(|t| *t == m.params["p0"]));
}

#[test]
fn a_residual_chain_stays_narrow_and_widens_in_the_relu() {
    let mut m = Model::new(9, 1);
    let x = m.input(&[1, 4]);
    let a = m.linear(x, 4);
    let a = m.map(GraphOp::Relu, a);
    let b = m.linear(a, 4);
    let s = m.op(GraphOp::Add, &[b, a], &[1, 4]);
    let r = m.map(GraphOp::Relu, s);
    let y = m.linear(r, 4);
    let plan = plan(&mut m, y);
    assert!(!kinds(&plan).contains(&"extend".to_string()));
    for node in &plan.nodes {
        if let Op::Relu = node.op {
            assert!(node.ty.bits > plan.nodes[node.inputs[0]].ty.bits);
        }
    }
}

#[test]
fn stochastic_rounding_is_unbiased() {
    let mut m = Model::new(10, 1);
    let x = m.input(&[1, 6]);
    let l = m.linear(x, 64);
    let r = m.map(GraphOp::Relu, l);
    let want = m.finish(r);
    let precision = Precision {
        rounding: RoundingMode::Stochastic,
        bits: Some(32),
        fraction: Some(8),
        ..Precision::default()
    };
    let lowered = lower(&m.graph, &m.params, &precision).unwrap();
    let inputs = encode_inputs(&lowered.plan, None, &m.inputs).unwrap();
    let weights = encode_weights(&lowered.plan, None, &lowered.parameters).unwrap();
    let exact = privet_plan::interpret_real(
        &lowered.plan,
        &decoded(&lowered.plan, &inputs),
        &decoded(&lowered.plan, &weights),
    )
    .unwrap();
    let mut numbers = common::Numbers(1);
    let mut coins = |_: usize, n: usize, _: u32| numbers.words(n);
    let runs = 400;
    let mut sums = vec![0.0; 64];
    for _ in 0..runs {
        let out =
            decode_outputs(&lowered.plan, &interpret(&lowered.plan, &inputs, &weights, &mut coins).unwrap());
        sums.iter_mut().zip(&out[0].data).for_each(|(s, v)| *s += v);
    }
    // the mean of 400 roundings of one unit has a deviation of at most 1/40 unit; six of those are allowed
    let unit = 2f64.powi(-8);
    for ((sum, exact), want) in sums.iter().zip(&exact[0].data).zip(&want.data) {
        assert!((sum / runs as f64 - exact).abs() < unit * 0.15, "{sum} {exact}");
        assert!((exact - want).abs() < 0.1);
    }
    assert_eq!(lowered.plan.nodes[0].ty, ty(&[1, 6], 32, 8));
}

/// What the encoded tensors stand for.
fn decoded(
    plan: &Plan,
    tensors: &std::collections::BTreeMap<String, privet_ring::Tensor>,
) -> std::collections::BTreeMap<String, privet_plan::FloatTensor> {
    let find = |name: &str| {
        plan.nodes
            .iter()
            .find(|n| matches!(&n.op, Op::Input { name: m, .. } | Op::Weight { name: m, .. } if m == name))
            .unwrap()
    };
    tensors
        .iter()
        .map(|(name, t)| {
            let data = privet_plan::encode::fixed_point(find(name)).decode(t.data());
            (name.clone(), privet_plan::FloatTensor { shape: t.shape().to_vec(), data })
        })
        .collect()
}

//! Lowered plans against the captured graph in double precision.

mod common;

use common::build::Model;
use common::lower;
use privet_plan::cost::{Cost, Operation, Security};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Op, Plan, Rounding, Type};
use privet_plan::lower::{LayerPrecision, Lowered, RoundingMode};
use privet_plan::{
    FloatTensor, NoCoins, Precision, Prices, Refusal, Target, decode_outputs, encode_inputs, encode_weights,
    interpret, interpret_real,
};
use privet_ring::Pool2d;

fn lowered(model: &Model, precision: &Precision) -> Lowered {
    let lowered = lower(&model.graph, &model.params, precision).unwrap_or_else(|e| panic!("{e}"));
    lowered.plan.check().unwrap();
    lowered
}

fn largest_difference(a: &FloatTensor, b: &FloatTensor) -> f64 {
    assert_eq!(a.shape, b.shape);
    a.data.iter().zip(&b.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Real and integer interpretation of the lowered model stay near the reference; gives the plan.
fn agrees(model: &mut Model, output: usize, precision: &Precision, bound: f64) -> Plan {
    let want = model.finish(output);
    let Lowered { plan, parameters, .. } = lowered(model, precision);
    let real = interpret_real(&plan, &model.inputs, &parameters).unwrap();
    assert!(
        largest_difference(&real[0], &want) < bound / 4.0,
        "real: {}",
        largest_difference(&real[0], &want)
    );
    let inputs = encode_inputs(&plan, None, &model.inputs).unwrap();
    let weights = encode_weights(&plan, None, &parameters).unwrap();
    let got = decode_outputs(&plan, &interpret(&plan, &inputs, &weights, &mut NoCoins).unwrap());
    assert!(largest_difference(&got[0], &want) < bound, "integer: {}", largest_difference(&got[0], &want));
    plan
}

fn count(plan: &Plan, kind: fn(&Op) -> bool) -> usize {
    plan.nodes.iter().filter(|n| kind(&n.op)).count()
}

fn truncations(plan: &Plan) -> usize {
    count(plan, |op| matches!(op, Op::Truncate { .. }))
}

fn extensions(plan: &Plan) -> usize {
    count(plan, |op| matches!(op, Op::Extend))
}

fn pool(kernel: usize, stride: usize, padding: usize, ceil_mode: bool) -> Pool2d {
    Pool2d { kernel: [kernel; 2], stride: [stride; 2], padding: [padding; 2], dilation: [1; 2], ceil_mode }
}

#[test]
fn lenet_has_one_truncation_a_layer_and_none_at_the_end() {
    let mut m = Model::new(1, 2);
    let x = m.input(&[2, 1, 12, 12]);
    let c = m.conv(x, 4, 3, 1, 0, 1);
    let r = m.map(GraphOp::Relu, c);
    let p = m.op(GraphOp::MaxPool2d { window: pool(2, 2, 0, false) }, &[r], &[2, 4, 5, 5]);
    let f = m.flatten(p);
    let l = m.linear(f, 8);
    let r = m.map(GraphOp::Relu, l);
    let y = m.linear(r, 3);
    let plan = agrees(&mut m, y, &Precision::default(), 1e-2);
    assert_eq!((truncations(&plan), extensions(&plan)), (2, 0));
    let kinds: Vec<&Op> = plan.nodes.iter().map(|n| &n.op).collect();
    let pooled = kinds.iter().position(|op| matches!(op, Op::MaxPool2d { .. })).unwrap();
    let relu = kinds.iter().position(|op| matches!(op, Op::Relu)).unwrap();
    assert!(pooled < relu, "the pool comes before the activation");
    let (pooled, relu) = (&plan.nodes[pooled].ty, &plan.nodes[relu].ty);
    assert!(pooled.bits < relu.bits, "ReLU widens: {} to {} bits", pooled.bits, relu.bits);
    assert_eq!(plan.nodes[plan.outputs[0].value].ty.frac, 2 * relu.frac, "the logits stay untruncated");
}

#[test]
fn residual_network_with_batch_norm() {
    let mut m = Model::new(2, 1);
    let x = m.input(&[1, 3, 8, 8]);
    let c = m.conv(x, 4, 3, 1, 1, 1);
    let b = m.batch_norm(c);
    let r = m.map(GraphOp::Relu, b);
    let c = m.conv(r, 4, 3, 1, 1, 1);
    let b = m.batch_norm(c);
    let s = m.op(GraphOp::Add, &[b, r], &[1, 4, 8, 8]);
    let r = m.map(GraphOp::Relu, s);
    let a = m.op(GraphOp::AdaptiveAvgPool2d { output: [1, 1] }, &[r], &[1, 4, 1, 1]);
    let f = m.flatten(a);
    let y = m.linear(f, 5);
    let plan = agrees(&mut m, y, &Precision::default(), 1e-2);
    assert_eq!(count(&plan, |op| matches!(op, Op::Conv2d { .. })), 2, "batch normalisation is folded");
    assert!(truncations(&plan) <= 3, "{} truncations", truncations(&plan));
}

#[test]
fn two_convolutions_are_added_before_one_truncation() {
    let mut m = Model::new(3, 1);
    let x = m.input(&[1, 2, 5, 5]);
    let (a, b) = (m.conv(x, 3, 3, 1, 1, 1), m.conv(x, 3, 1, 1, 0, 1));
    let s = m.op(GraphOp::Add, &[a, b], &[1, 3, 5, 5]);
    let r = m.map(GraphOp::Relu, s);
    let plan = agrees(&mut m, r, &Precision::default(), 1e-3);
    assert_eq!(truncations(&plan), 1);
}

/// The scale and the shift behind a normalisation belong to whoever reads them; projections of one operand are one product.
#[test]
fn a_scale_and_projections_are_one_product() {
    for (seed, read_otherwise) in [(40, false), (41, true)] {
        let mut m = Model::new(seed, 1);
        let x = m.input(&[1, 4, 6]);
        let (gamma, beta) = (m.param(&[6]), m.param(&[6]));
        let scaled = m.op(GraphOp::Mul, &[x, gamma], &[1, 4, 6]);
        let shifted = m.op(GraphOp::Add, &[scaled, beta], &[1, 4, 6]);
        let (q, k, v) = (m.linear(shifted, 3), m.linear(shifted, 3), m.linear(shifted, 6));
        let sum = m.op(GraphOp::Add, &[q, k], &[1, 4, 3]);
        let all = match read_otherwise {
            true => m.op(GraphOp::Concat { dim: 2 }, &[sum, v, shifted], &[1, 4, 15]),
            false => m.op(GraphOp::Concat { dim: 2 }, &[sum, v], &[1, 4, 9]),
        };
        let plan = agrees(&mut m, all, &Precision::default(), 1e-3);
        assert_eq!(count(&plan, |op| *op == Op::Linear), 1);
        assert_eq!(count(&plan, |op| *op == Op::Mul), usize::from(read_otherwise));
    }
}

#[test]
fn batch_norm_that_cannot_be_folded_is_depthwise() {
    let mut m = Model::new(4, 2);
    let x = m.input(&[2, 3, 4, 4]);
    let b = m.batch_norm(x);
    let r = m.map(GraphOp::Relu, b);
    let f = m.flatten(r);
    let b = m.batch_norm(f);
    let plan = agrees(&mut m, b, &Precision::default(), 1e-3);
    assert_eq!(count(&plan, |op| matches!(op, Op::Conv2d { geometry } if geometry.groups > 1)), 2);
}

#[test]
fn activations() {
    let ops = [
        GraphOp::Clamp { lo: Some(0.0), hi: Some(1.0) },
        GraphOp::Clamp { lo: Some(-0.5), hi: Some(0.75) },
        GraphOp::Clamp { lo: Some(0.25), hi: None },
        GraphOp::Clamp { lo: None, hi: Some(-0.1) },
        GraphOp::LeakyRelu { slope: 0.01 },
        GraphOp::LeakyRelu { slope: 0.25 },
        GraphOp::LeakyRelu { slope: -0.3 },
        GraphOp::Relu,
        GraphOp::Neg,
        GraphOp::AddScalar { value: -1.3 },
        GraphOp::MulScalar { value: 3.0 },
        GraphOp::MulScalar { value: -0.125 },
        GraphOp::MulScalar { value: 0.3 },
        GraphOp::MulScalar { value: 0.0 },
    ];
    for (i, op) in ops.into_iter().enumerate() {
        let mut m = Model::new(10 + i as u64, 2);
        let x = m.input(&[2, 6]);
        let l = m.linear(x, 6);
        let a = m.map(op.clone(), l);
        // used twice, so that nothing can be folded away, and read by a linear layer
        let again = m.map(op, a);
        let s = m.op(GraphOp::Add, &[a, again], &[2, 6]);
        let y = m.linear(s, 4);
        agrees(&mut m, y, &Precision::default(), 5e-3);
    }
}

#[test]
fn pools() {
    let mut cases = Vec::new();
    for (kernel, stride, padding) in [(2, 2, 0), (3, 2, 1), (3, 1, 1), (3, 3, 0), (2, 3, 1)] {
        for ceil_mode in [false, true] {
            let window = pool(kernel, stride, padding, ceil_mode);
            cases.push(GraphOp::MaxPool2d { window });
            cases.push(GraphOp::AvgPool2d { window, count_include_pad: true, divisor: None });
            cases.push(GraphOp::AvgPool2d { window, count_include_pad: false, divisor: None });
            cases.push(GraphOp::AvgPool2d { window, count_include_pad: false, divisor: Some(5) });
        }
    }
    for output in [[1, 1], [7, 8], [3, 4], [2, 3], [5, 5], [7, 2]] {
        cases.push(GraphOp::AdaptiveAvgPool2d { output });
    }
    for (i, op) in cases.into_iter().enumerate() {
        let out = match &op {
            GraphOp::AdaptiveAvgPool2d { output } => *output,
            GraphOp::MaxPool2d { window } | GraphOp::AvgPool2d { window, .. } => window.output([7, 8]),
            _ => unreachable!(),
        };
        for through in [false, true] {
            let mut m = Model::new(100 + i as u64, 2);
            let mut x = m.input(&[2, 2, 7, 8]);
            if through {
                let c = m.conv(x, 2, 3, 1, 1, 1);
                x = m.map(GraphOp::Relu, c);
            }
            let p = m.op(op.clone(), &[x], &[2, 2, out[0], out[1]]);
            let y = if through { m.conv(p, 3, 1, 1, 0, 1) } else { p };
            agrees(&mut m, y, &Precision::default(), 5e-3);
        }
    }
}

#[test]
fn means_sums_products_and_matrix_products() {
    for (i, keepdim) in [false, true].into_iter().enumerate() {
        let mut m = Model::new(300 + i as u64, 2);
        let x = m.input(&[2, 3, 4]);
        let r = m.map(GraphOp::Relu, x);
        let shape: &[usize] = if keepdim { &[2, 1, 4] } else { &[2, 4] };
        let mean = m.op(GraphOp::Mean { dims: vec![1], keepdim }, &[r], shape);
        let sum = m.op(GraphOp::Sum { dims: vec![1], keepdim }, &[x], shape);
        let product = m.op(GraphOp::Mul, &[mean, sum], shape);
        let y = m.linear(product, 3);
        agrees(&mut m, y, &Precision::default(), 5e-3);
    }
    let mut m = Model::new(310, 2);
    let (x, z) = (m.input(&[2, 3, 4]), m.input(&[2, 4, 5]));
    let xy = m.op(GraphOp::MatMul, &[x, z], &[2, 3, 5]);
    let w = m.param(&[5]);
    let scaled = m.op(GraphOp::Mul, &[xy, w], &[2, 3, 5]);
    let shift = m.param(&[3, 1]);
    let y = m.op(GraphOp::Sub, &[scaled, shift], &[2, 3, 5]);
    agrees(&mut m, y, &Precision::default(), 5e-3);
    let mut m = Model::new(311, 2);
    let x = m.input(&[2, 4]);
    let w = m.param(&[3, 4]);
    let t = m.op(GraphOp::Permute { dims: vec![1, 0] }, &[w], &[4, 3]);
    let y = m.op(GraphOp::MatMul, &[x, t], &[2, 3]);
    let plan = agrees(&mut m, y, &Precision::default(), 1e-3);
    assert_eq!(
        count(&plan, |op| matches!(op, Op::Linear)),
        1,
        "a product with a parameter is a linear layer"
    );
}

#[test]
fn random_networks() {
    for seed in 0..60 {
        let mut m = Model::new(1000 + seed, 1 + seed as usize % 2);
        let batch = m.graph.batch;
        let mut x = m.input(&[batch, 2, 6, 6]);
        let mut skip = x;
        for _ in 0..6 {
            let shape = m.graph.nodes[x].shape.clone();
            let (c, h, w) = (shape[1], shape[2], shape[3]);
            x = match m.numbers.below(12) {
                0 => m.conv(x, 2, 3, 1, 1, 1),
                1 => m.conv(x, c, 1, 1, 0, c),
                2 => m.map(GraphOp::Relu, x),
                3 => m.batch_norm(x),
                4 => m.map(GraphOp::Clamp { lo: Some(0.0), hi: Some(1.5) }, x),
                5 => m.map(GraphOp::LeakyRelu { slope: 0.2 }, x),
                6 if m.graph.nodes[skip].shape == shape => m.op(GraphOp::Add, &[x, skip], &shape),
                7 => m.op(GraphOp::Concat { dim: 1 }, &[x, x], &[batch, 2 * c, h, w]),
                8 if c > 1 => {
                    m.op(GraphOp::Slice { dim: 1, start: 1, end: c, step: 1 }, &[x], &[batch, c - 1, h, w])
                }
                9 => m.map(GraphOp::MulScalar { value: 0.7 }, x),
                10 => m.op(GraphOp::MaxPool2d { window: pool(3, 1, 1, false) }, &[x], &shape),
                _ => {
                    skip = x;
                    m.op(
                        GraphOp::AvgPool2d {
                            window: pool(3, 1, 1, false),
                            count_include_pad: seed % 3 == 0,
                            divisor: None,
                        },
                        &[x],
                        &shape,
                    )
                }
            };
        }
        let a = m.op(
            GraphOp::AdaptiveAvgPool2d { output: [2, 3] },
            &[x],
            &[batch, m.graph.nodes[x].shape[1], 2, 3],
        );
        let f = m.flatten(a);
        let y = m.linear(f, 4);
        agrees(&mut m, y, &Precision::default(), 2e-2);
    }
}

#[test]
fn argmax_of_logits_needs_no_truncation() {
    let mut m = Model::new(5, 4);
    let x = m.input(&[4, 6]);
    let l = m.linear(x, 10);
    let y = m.op(GraphOp::Argmax { dim: 1, keepdim: false }, &[l], &[4]);
    let plan = agrees(&mut m, y, &Precision::default(), 0.5);
    assert_eq!(truncations(&plan), 0);
}

#[test]
fn rounding_modes_and_layer_exceptions() {
    let mut m = Model::new(6, 1);
    let x = m.input(&[1, 4]);
    let a = m.linear(x, 4);
    let r = m.map(GraphOp::Relu, a);
    let b = m.linear(r, 4);
    let r = m.map(GraphOp::Relu, b);
    let y = m.linear(r, 4);
    let layer = m.graph.nodes[b].layer.clone();
    let base = Precision { bits: Some(48), fraction: Some(14), ..Precision::default() };
    let plan = agrees(&mut m, y, &Precision { rounding: RoundingMode::Floor, ..base.clone() }, 1e-2);
    assert!(!plan.nodes.iter().any(|n| matches!(n.op, Op::AddConst { .. })));
    m.graph.outputs.clear();
    let stochastic = {
        m.finish(y);
        lowered(&m, &Precision { rounding: RoundingMode::Stochastic, ..base.clone() })
    };
    assert!(
        stochastic
            .plan
            .nodes
            .iter()
            .any(|n| matches!(n.op, Op::Truncate { rounding: Rounding::Stochastic, .. }))
    );
    m.graph.outputs.clear();
    let exception = LayerPrecision { bits: Some(60), fraction: Some(20) };
    let per_layer = [(layer.clone(), exception)].into_iter().collect();
    let plan = agrees(&mut m, y, &Precision { per_layer, ..base }, 1e-2);
    let linear = plan.nodes.iter().find(|n| n.layer == layer && matches!(n.op, Op::Linear)).unwrap();
    assert_eq!((linear.ty.bits, linear.ty.frac), (60, 40));
}

/// A family that charges for bits that a ring lacks.
struct WideIsCheap;

impl Prices for WideIsCheap {
    fn protocol(&self) -> &'static str {
        "test"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        Cost { rounds: 1000 * (64 - operation.result.bits as u64), ..Cost::default() }
    }

    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

impl Target for WideIsCheap {
    fn refusals(&self, _: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

#[test]
fn what_is_left_open_follows_the_prices_of_the_family() {
    let mut m = Model::new(21, 3);
    let x = m.input(&[3, 10]);
    let h = m.linear(x, 20);
    let r = m.map(GraphOp::Relu, h);
    let y = m.linear(r, 3);
    let want = m.finish(y);
    let precision = Precision { fraction: Some(12), ..Precision::default() };
    let wide = privet_plan::lower(&m.graph, &m.params, &precision, &WideIsCheap).unwrap();
    let most = |plan: &Plan| plan.nodes.iter().map(|n| n.ty.bits).max().unwrap();
    let least = most(&lowered(&m, &precision).plan);
    assert_eq!(most(&wide.plan), least + 12, "every spare bit is taken");
    let inputs = encode_inputs(&wide.plan, None, &m.inputs).unwrap();
    let weights = encode_weights(&wide.plan, None, &wide.parameters).unwrap();
    let got = decode_outputs(&wide.plan, &interpret(&wide.plan, &inputs, &weights, &mut NoCoins).unwrap());
    assert!(largest_difference(&got[0], &want) < 1e-2);
    // where everything is given, every family runs the same plan
    let given = Precision { bits: Some(40), ..precision };
    let same = privet_plan::lower(&m.graph, &m.params, &given, &WideIsCheap).unwrap();
    assert_eq!(same.plan.hash(), lowered(&m, &given).plan.hash());
}

/// A family that charges rounds for an operation of one kind, by the bits of its results, and for nothing else.
struct Dear(fn(&Op) -> bool);

impl Prices for Dear {
    fn protocol(&self) -> &'static str {
        "test"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let elements = operation.result.shape.iter().product::<usize>() as u64;
        let bits = elements * operation.result.bits as u64;
        Cost { rounds: if self.0(operation.op) { bits } else { 0 }, ..Cost::default() }
    }

    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

impl Target for Dear {
    fn refusals(&self, _: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

/// `t` for a truncation, `m` for maxima, in order.
fn truncations_and_maxima(plan: &Plan) -> String {
    let named = |op: &Op| match op {
        Op::Truncate { .. } => Some('t'),
        Op::MaxPool2d { .. } => Some('m'),
        _ => None,
    };
    plan.nodes.iter().filter_map(|n| named(&n.op)).collect()
}

/// Where truncations are dear there are fewer of them, behind the maximum. Both plans give the same integers.
#[test]
fn maxima_come_before_truncations_where_that_costs_less() {
    let mut m = Model::new(33, 2);
    let x = m.input(&[2, 1, 9, 9]);
    let c = m.conv(x, 3, 3, 1, 1, 1);
    let r = m.map(GraphOp::Relu, c);
    let p = m.op(GraphOp::MaxPool2d { window: pool(3, 2, 1, false) }, &[r], &[2, 3, 5, 5]);
    let f = m.flatten(p);
    let y = m.linear(f, 4);
    m.finish(y);
    for rounding in [RoundingMode::Nearest, RoundingMode::Stochastic] {
        let precision = Precision { bits: Some(48), fraction: Some(16), rounding, ..Precision::default() };
        let of = |family: &dyn Target| privet_plan::lower(&m.graph, &m.params, &precision, family).unwrap();
        let late = of(&Dear(|op| matches!(op, Op::Truncate { .. })));
        let early = of(&Dear(|op| matches!(op, Op::MaxPool2d { .. })));
        assert_eq!(truncations_and_maxima(&early.plan), "tm");
        assert_eq!(truncations_and_maxima(&late.plan), "mt");
        if rounding == RoundingMode::Stochastic {
            continue; // coins fall for other elements
        }
        let run = |of: &Lowered| {
            let inputs = encode_inputs(&of.plan, None, &m.inputs).unwrap();
            let weights = encode_weights(&of.plan, None, &of.parameters).unwrap();
            interpret(&of.plan, &inputs, &weights, &mut NoCoins).unwrap()
        };
        assert_eq!(run(&late), run(&early));
    }
}

/// A product that only just fits is no operand of a maximum: differences of two need a bit more.
#[test]
fn a_maximum_of_products_that_fill_the_ring_comes_after_the_truncation() {
    let mut m = Model::new(34, 2);
    let x = m.input(&[2, 1, 6, 6]);
    let c = m.conv(x, 3, 3, 1, 1, 1);
    let p = m.op(GraphOp::MaxPool2d { window: pool(2, 2, 0, false) }, &[c], &[2, 3, 3, 3]);
    m.finish(p);
    let largest = m.graph.nodes[c].range.unwrap().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let whole = largest.max(1.0).log2().floor() as u32 + 2; // sign included
    for (spare, want) in [(0, "tm"), (1, "m")] {
        let bits = Some(2 * 12 + whole + spare);
        let precision = Precision { bits, fraction: Some(12), headroom_bits: 0, ..Precision::default() };
        let lowered = privet_plan::lower(
            &m.graph,
            &m.params,
            &precision,
            &Dear(|op| matches!(op, Op::Truncate { .. })),
        );
        let Ok(Lowered { plan, .. }) = lowered else {
            assert_eq!(spare, 0, "refused only where nothing is left for a difference");
            continue;
        };
        assert_eq!(truncations_and_maxima(&plan), want, "{bits:?}");
    }
}

/// A unit of error that depends on shares stays inside: what an output shows is rounded to the nearest.
#[test]
fn what_an_output_shows_is_rounded_in_full() {
    let mut m = Model::new(3, 2);
    let x = m.input(&[2, 3]);
    let scaled = m.map(GraphOp::MulScalar { value: 0.3 }, x);
    let relu = m.map(GraphOp::Relu, scaled);
    let y = m.map(GraphOp::MulScalar { value: 0.7 }, relu);
    // read twice, so it is truncated before the sum, which is local
    let other = m.map(GraphOp::Relu, y);
    let shown = m.op(GraphOp::Add, &[y, other], &[2, 3]);
    m.finish(shown);
    let precision = |rounding| Precision { keep_ring: true, rounding, ..Precision::default() };
    let roundings = |rounding| {
        let plan = lowered(&m, &precision(rounding)).plan;
        assert_eq!(privet_plan::shown::inexact(&plan), [0; 0]);
        let found = plan.nodes.iter().filter_map(|n| match n.op {
            Op::Truncate { rounding, .. } => Some(rounding),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(roundings(RoundingMode::OneUlp), [Rounding::OneUlp, Rounding::Floor]);
    assert_eq!(roundings(RoundingMode::Nearest), [Rounding::Floor; 2]);
    let one_ulp = lowered(&m, &precision(RoundingMode::OneUlp)).plan;
    let last = one_ulp.nodes.iter().rposition(|n| matches!(n.op, Op::Truncate { .. })).unwrap();
    let half = &one_ulp.nodes[one_ulp.nodes[last].inputs[0]].op;
    assert!(matches!(half, Op::AddConst { .. }), "to the nearest: half a unit is added, not {half:?}");
}

/// A family without a comparison.
struct NoSigns;

impl Prices for NoSigns {
    fn protocol(&self) -> &'static str {
        "no-signs"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, _: &Operation<'_>) -> Cost {
        Cost::default()
    }

    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

impl Target for NoSigns {
    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let signs = (0..plan.nodes.len()).filter(|&id| plan.nodes[id].op == Op::Relu);
        signs.map(|id| Refusal::of(plan, id, "it has no sign", "use a square")).collect()
    }
}

#[test]
fn what_a_family_refuses_is_reported_with_its_source_line() {
    let mut m = Model::new(4, 2);
    let x = m.input(&[2, 3]);
    let first = m.map(GraphOp::Relu, x);
    let h = m.linear(first, 4);
    let second = m.map(GraphOp::Relu, h);
    m.finish(second);
    let report = privet_plan::lower(&m.graph, &m.params, &Precision::default(), &NoSigns).unwrap_err();
    assert_eq!(report.problems.len(), 2, "all of them: {report}");
    for (problem, relu) in report.problems.iter().zip([first, second]) {
        assert_eq!(problem.layer, format!("layer{relu}"));
        assert_eq!(problem.source, format!("model.py:{relu} in forward"));
        assert_eq!(problem.what, "protocol no-signs refuses it: it has no sign");
        assert_eq!(problem.remedy, "use a square");
    }
    let plan = lowered(&m, &Precision::default()).plan;
    let refused = privet_plan::admit(&plan, "net", &NoSigns).unwrap_err();
    assert_eq!(refused.refusals.len(), 2);
    assert!(refused.to_string().starts_with("protocol no-signs refuses plan net: node "), "{refused}");
    assert!(refused.to_string().contains(&format!("(layer{second}): it has no sign; use a square")));
}

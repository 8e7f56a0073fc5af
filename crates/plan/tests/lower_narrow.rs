//! Pools and ReLUs of training in fewer bits than the whole ring.

mod common;

use common::build::Model;
use common::training::{agrees_on, count, precision};
use privet_plan::cost::{Cost, Operation, Prices, Security};
use privet_plan::graph::{GraphOp, GraphOutput};
use privet_plan::ir::Op;
use privet_plan::lower::RoundingMode;
use privet_plan::suite::Toll;
use privet_plan::target::{Refusal, Target};
use privet_plan::{FloatTensor, Plan, Precision, lower};
use privet_ring::Pool2d;

/// Ring bits of what is compared and chosen.
const NARROW: u32 = 41;

/// A family in which truncations take nothing, or these rounds more, unless they widen.
struct Coins {
    rounds: u64,
}

impl Prices for Coins {
    fn protocol(&self) -> &'static str {
        "coins"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        match operation.op {
            Op::Truncate { shift, .. } if operation.result.bits == operation.types()[0].bits - shift => {
                Cost { rounds: self.rounds, ..Cost::default() }
            }
            _ => Toll.operation(operation),
        }
    }

    fn output(&self, ty: &privet_plan::ir::Type) -> Cost {
        Toll.output(ty)
    }
}

impl Target for Coins {
    fn refusals(&self, _: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

fn output(m: &mut Model, node: usize) {
    let name = format!("y{}", m.graph.outputs.len());
    m.graph.outputs.push(GraphOutput { node, name, to: None });
}

/// A product that is `values` themselves.
fn product(m: &mut Model, values: &[f64]) -> usize {
    let x = m.input(&[values.len(), 1]);
    let name = format!("x{}", m.inputs.len() - 1);
    m.inputs.get_mut(&name).unwrap().data = values.to_vec();
    let one = m.state_of(FloatTensor { shape: vec![1, 1], data: vec![1.0] }, None);
    m.op(GraphOp::Linear, &[x, one], &[values.len(), 1])
}

/// The larger one, as a pool's games make it.
fn maximum(m: &mut Model, left: usize, right: usize) -> usize {
    let shape = m.shape(left);
    let difference = m.op(GraphOp::Sub, &[right, left], &shape);
    let bit = m.map(GraphOp::Positive, difference);
    let gain = m.op(GraphOp::Choose, &[bit, difference], &shape);
    m.op(GraphOp::Add, &[left, gain], &shape)
}

/// Truncations of a plan: how many elements, from how many bits, into how many.
fn truncations(plan: &Plan) -> Vec<(usize, u32, u32)> {
    let of = |n: &privet_plan::ir::Node| (n.ty.len(), plan.nodes[n.inputs[0]].ty.bits, n.ty.bits);
    plan.nodes.iter().filter(|n| matches!(n.op, Op::Truncate { .. })).map(of).collect()
}

/// A convolution, its ReLU and its pool, with their gradients.
fn step() -> Model {
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let mut m = Model::new(3, 2);
    let x = m.input(&[2, 1, 8, 8]);
    let (w, l) = (m.state(&[3, 1, 3, 3], 0.5), m.state(&[5, 27], 0.5));
    let (stride, padding, dilation, groups) = ([1, 1], [0, 0], [1, 1], 1);
    let y = m.op(GraphOp::Conv2d { stride, padding, dilation, groups }, &[x, w], &[2, 3, 6, 6]);
    let r = m.map(GraphOp::Relu, y);
    let p = m.op(GraphOp::MaxPool2d { window }, &[r], &[2, 3, 3, 3]);
    let flat = m.flatten(p);
    let y = m.op(GraphOp::Linear, &[flat, l], &[2, 5]);
    let g = m.input(&[2, 3, 3, 3]);
    let g = m.op(GraphOp::MaxPool2dGrad { window }, &[r, g], &[2, 3, 6, 6]);
    let bit = m.map(GraphOp::Positive, r);
    let g = m.op(GraphOp::Choose, &[bit, g], &[2, 3, 6, 6]);
    let shape = m.shape(w);
    let dw = m.op(GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups }, &[x, g], &shape);
    let next = m.op(GraphOp::Sub, &[w, dw], &shape);
    output(&mut m, y);
    m.update(w, next);
    m
}

#[test]
fn a_pool_and_its_relu_run_in_fewer_bits() {
    let plan = agrees_on(&step(), 1e-5, &Coins { rounds: 0 });
    // all elements of the product, then those of the pool
    assert_eq!(truncations(&plan)[..2], [(2 * 3 * 6 * 6, 64, NARROW), (2 * 3 * 3 * 3, NARROW, 64)]);
    assert_eq!(count(&plan, "extend"), 0);
    for node in plan.nodes.iter().filter(|n| n.op == Op::IsNegative) {
        assert_eq!(plan.nodes[node.inputs[0]].ty.bits, NARROW);
    }
    let chosen: Vec<u32> = plan.nodes.iter().filter(|n| n.op == Op::Choose).map(|n| n.ty.bits).collect();
    assert_eq!(chosen, [NARROW, NARROW, NARROW, 64, 64, 64], "the forward pass, then gradients");
}

/// Where the truncation takes many rounds more the whole ring is kept, and under all roundings but by coins: two would be off by more than one.
#[test]
fn the_ring_is_kept_where_that_is_faster() {
    let narrow = |precision: &Precision, target: &Coins| {
        let m = step();
        let plan = lower(&m.graph, &m.params, precision, target).unwrap().plan;
        plan.nodes.iter().any(|n| n.ty.bits == NARROW)
    };
    assert!(narrow(&precision(), &Coins { rounds: 0 }));
    assert!(!narrow(&precision(), &Coins { rounds: 1000 }));
    for rounding in [RoundingMode::Nearest, RoundingMode::Floor, RoundingMode::OneUlp] {
        assert!(!narrow(&Precision { rounding, ..precision() }, &Coins { rounds: 0 }));
    }
    // with a fraction bit for weights alone there is none to keep
    let one = Precision { bits: Some(32), fraction: Some(8), weight_fraction: Some(1), ..precision() };
    assert!(!narrow(&one, &Coins { rounds: 0 }));
}

/// Values up to the promise of 2^14, and differences up to 2^15.
#[test]
fn the_largest_values_are_compared_and_chosen() {
    let (large, small) = (16383.5, 2f64.powi(-20));
    let left = [large, -large, large, -large, small, 0.0, -small, 1.0];
    let right = [-large, large, large, -large, 0.0, small, small, -large];
    let mut m = Model::new(5, 8);
    let (l, r) = (product(&mut m, &left), product(&mut m, &right));
    let most = maximum(&mut m, l, r);
    let bit = m.map(GraphOp::Positive, most);
    let relu = m.op(GraphOp::Choose, &[bit, most], &[8, 1]);
    let other = m.state(&[8, 1], 0.5);
    let sum = m.op(GraphOp::Sub, &[other, relu], &[8, 1]);
    output(&mut m, sum);
    let plan = agrees_on(&m, 1e-4, &Coins { rounds: 0 });
    assert_eq!(truncations(&plan), [(16, 64, NARROW), (8, NARROW, 64)], "both products in one gate");
}

/// What is wanted in the whole ring anyway is chosen there.
#[test]
fn what_is_wanted_whole_is_chosen_whole() {
    let mut m = Model::new(6, 4);
    let a = product(&mut m, &[1.0, -1.0, 0.5, 0.0]);
    let b = product(&mut m, &[3.0, -5.0, -7.0, 0.25]);
    let most = maximum(&mut m, a, b);
    let bit = m.map(GraphOp::Positive, most);
    let relu = m.op(GraphOp::Choose, &[bit, most], &[4, 1]);
    let rest = m.op(GraphOp::Sub, &[most, relu], &[4, 1]);
    output(&mut m, rest);
    let plan = agrees_on(&m, 1e-5, &Coins { rounds: 0 });
    let chosen: Vec<u32> = plan.nodes.iter().filter(|n| n.op == Op::Choose).map(|n| n.ty.bits).collect();
    assert_eq!(chosen, [NARROW, 64], "of a maximum, of what is taken off it");
}

/// Sums and differences that something else reads may be larger than the narrow ring promises.
#[test]
fn other_sums_and_differences_are_of_the_whole_ring() {
    let large = 8000.0;
    let choose = |m: &mut Model, of: usize, x: usize| {
        let bit = m.map(GraphOp::Positive, of);
        m.op(GraphOp::Choose, &[bit, x], &[4, 1])
    };
    let sub = |m: &mut Model, a: usize, b: usize| m.op(GraphOp::Sub, &[a, b], &[4, 1]);
    let add = |m: &mut Model, a: usize, b: usize| m.op(GraphOp::Add, &[a, b], &[4, 1]);
    type End = Box<dyn Fn(&mut Model, usize, usize) -> usize>;
    let ends: Vec<End> = vec![
        // a sum of two
        Box::new(move |m, a, b| {
            let (a, b) = (choose(m, a, a), choose(m, b, b));
            add(m, a, b)
        }),
        // a difference that is given out, chosen or not
        Box::new(move |m, a, b| {
            let (a, b) = (choose(m, a, a), choose(m, b, b));
            let d = sub(m, a, b);
            choose(m, d, d)
        }),
        Box::new(move |m, a, b| sub(m, a, b)),
        // not the larger one: another left side, another bit
        Box::new(move |m, a, b| {
            let d = sub(m, b, a);
            let gain = choose(m, d, d);
            let sum = add(m, b, gain);
            choose(m, sum, sum)
        }),
        Box::new(move |m, a, b| {
            let d = sub(m, b, a);
            let gain = choose(m, b, d);
            let sum = add(m, a, gain);
            choose(m, sum, sum)
        }),
        // the larger one, and more
        Box::new(move |m, a, b| {
            let d = sub(m, b, a);
            let gain = choose(m, d, d);
            let most = add(m, a, gain);
            add(m, most, most)
        }),
    ];
    for (i, end) in ends.iter().enumerate() {
        let mut m = Model::new(7, 4);
        let a = product(&mut m, &[large, -large, -large, 3.0]);
        let b = product(&mut m, &[large, large, -large, -large]);
        let y = end(&mut m, a, b);
        output(&mut m, y);
        let plan = agrees_on(&m, 1e-4, &Coins { rounds: 0 });
        let sums = plan.nodes.iter().rfind(|n| matches!(n.op, Op::Add | Op::Sub));
        assert_eq!(sums.map(|n| n.ty.bits), Some(64), "case {i}");
    }
}

//! Plans that together exercise every gate and every kind of message, small enough to be attacked message by message.

use super::World;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type, Update};
use privet_plan::suite::{Case, cases, gate, training_cases};
use privet_prg::{Domain, Seed};
use privet_rep3::Security;
use privet_ring::Ring;

/// Elements of a vector whose three parts, each dealt by another party, are all there.
const N: usize = 130;

fn one(name: &str, op: Op, inputs: usize, from: u32, to: u32) -> Case {
    Case { name: format!("{name}, {from} to {to} bits"), plan: gate(op, inputs, N, from, to) }
}

/// The cases of the suite with these names.
fn from_suite(names: &[&str]) -> impl Iterator<Item = Case> {
    let mut all: Vec<Case> = cases().into_iter().chain(training_cases()).collect();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.into_iter().map(move |name| {
        let place = all.iter().position(|case| case.name == name);
        all.swap_remove(place.unwrap_or_else(|| panic!("the suite has no case `{name}`")))
    })
}

/// One gate each.
pub fn gates() -> Vec<Case> {
    let truncate = |rounding| Op::Truncate { shift: 5, rounding };
    let mut all = vec![
        one("relu", Op::Relu, 1, 9, 9),
        one("widening relu", Op::Relu, 1, 8, 12),
        one("sign", Op::IsNegative, 1, 9, 5),
        one("max", Op::Max, 2, 9, 9),
        one("equal", Op::Equal, 2, 9, 7),
        one("mul", Op::Mul, 2, 13, 13),
        one("truncate", truncate(Rounding::Floor), 1, 12, 7),
        one("truncate stochastically", truncate(Rounding::Stochastic), 1, 12, 7),
        one("extend", Op::Extend, 1, 7, 12),
    ];
    all.extend(from_suite(&[
        "linear with bias, 37 bits",
        "batched product of two secrets",
        "convolution, 24 bits, 2 groups",
        "max pool [3, 1] stride [1, 2] padding [1, 0]",
        "argmax over 7",
        "select by a sign, then reuse",
        "relu of 37 bits cut by 12, into 37, 300 elements",
        "relu of 8 bits cut by 3, into 5, 70 elements",
    ]));
    all.extend([
        // of whatever values: their promise decides what comes out, and not what is proved
        one("truncate and keep", truncate(Rounding::Floor), 1, 12, 12),
        one("truncate stochastically and keep", truncate(Rounding::Stochastic), 1, 64, 64),
        one("truncate within one unit and keep", truncate(Rounding::OneUlp), 1, 12, 9),
        one("sign bit", Op::IsNegative, 1, 9, 1),
    ]);
    all.extend(from_suite(&[
        "choose by a sign, 40 bits, 300 elements",
        "choose by several bits, 13 bits, 100 elements",
        "look-up in 3 tables of 4 bits to 20, 130 elements",
        "quadratics on 3 and 0 bits to 40, 70 elements",
    ]));
    all
}

/// Several gates one after the other. The first has every operation of training, the last all others.
pub fn networks() -> Vec<Case> {
    let mut all = vec![training()];
    all.extend(from_suite(&[
        "local operations around a product",
        "what follows an inexact truncation",
        "local operations on bits",
        "small network",
    ]));
    all
}

/// A step that reads two states and a public number, with products behind what is local.
fn training() -> Case {
    let node = |op, inputs: &[usize], bits, frac| {
        let layer = format!("{op:?}").chars().take_while(char::is_ascii_alphanumeric).collect();
        Node { op, inputs: inputs.to_vec(), ty: Type { shape: vec![N], bits, frac }, layer, form: None }
    };
    let state = |name: &str| Op::State { name: name.into(), owner: "model-owner".into() };
    let mut nodes = vec![
        node(Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 }, &[], 16, 0),
        node(state("w"), &[], 16, 0),
        node(state("v"), &[], 16, 0),
        node(Op::Public { name: "rate".into(), limit: 1.0 }, &[], 16, 0),
        node(Op::Mul, &[0, 1], 16, 0),
        node(Op::Dropout { stream: 3, keep: 1 << 31 }, &[4], 16, 0),
        node(Op::Mul, &[5, 2], 16, 0),
        node(Op::Rescale, &[6], 16, 5),
        node(Op::Truncate { shift: 5, rounding: Rounding::Stochastic }, &[7], 16, 0),
        node(Op::IsNegative, &[8], 1, 0),
        node(Op::AddConst { value: 1 }, &[9], 1, 0),
        node(Op::Choose, &[10, 8], 16, 0),
        node(Op::Scale, &[11, 3], 16, 0),
        node(Op::Mul, &[12, 0], 16, 0),
        node(Op::Sub, &[1, 13], 16, 0),
        node(Op::Reshape, &[0], 16, 0),
        node(Op::Reshape, &[1], 16, 0),
        node(Op::Linear, &[15, 16], 16, 0),
    ];
    nodes[3].ty.shape.clear();
    for (v, shape) in [(15, [10, 13]), (16, [10, 13]), (17, [10, 10])] {
        nodes[v].ty.shape = shape.into();
    }
    let plan = Plan {
        version: PLAN_VERSION,
        name: "a step of training".into(),
        batch: N,
        nodes,
        outputs: [13, 17]
            .map(|value| Output { value, name: format!("y{value}"), to: "receiver".into() })
            .into(),
        updates: vec![Update { state: 1, value: 14 }, Update { state: 2, value: 11 }],
    };
    plan.check().unwrap();
    Case { name: plan.name.clone(), plan }
}

/// A run of a case: operands, shares and keys all follow from `seed`. What large layers do, small ones do here.
pub fn world(case: &Case, security: Security, seed: &Seed) -> World {
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    World { ahead: Some(0), ..World::new(&case.plan, security, &operands, seed) }
}

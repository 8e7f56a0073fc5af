//! Functions as they are made for a malicious run: their truncations are within one unit in the last place, so results are not the
//! interpreter's integers, but near the function.

mod common;

use common::World;
use privet_plan::functions::{Build, Function, emit};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_plan::{Network, cost};
use privet_prg::Seed;
use privet_rep3::{Rep3, Security};
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;
use std::collections::BTreeMap;

fn plan(function: Function, n: usize, bits: u32) -> Plan {
    let op = Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 };
    let ty = Type { shape: vec![n], bits, frac: 24 };
    let nodes = vec![Node { op, inputs: vec![], ty, layer: "f".into(), form: None }];
    let (version, name) = (PLAN_VERSION, "f".into());
    let mut plan = Plan { version, name, batch: n, nodes, outputs: vec![], updates: vec![] };
    let prices = Rep3 { security: cost::Security::Malicious };
    let mut build = Build::new(&mut plan, "f").priced(&prices, Network::LAN);
    let x = build.value(0);
    let value = emit(&mut build, function, x, 64, 24).unwrap().id;
    plan.outputs.push(Output { value, name: "y".into(), to: "receiver".into() });
    plan.check().unwrap();
    plan
}

/// Numbers all over the range and beyond, knots of pieces and their neighbours.
fn operands(bits: u32) -> Vec<i64> {
    let unit = 1i64 << 24;
    let mut all: Vec<i64> = (-160..160).flat_map(|i| [-1, 0, 1].map(|d| i * unit / 8 + d)).collect();
    let mut next = Seed::from_bytes([6; 16]).stream();
    all.extend((0..3000).map(|i| {
        let small = Ring::new(20 + i % (bits - 20));
        small.signed(next.elements(small, 1)[0])
    }));
    all
}

#[test]
fn few_pieces_are_near_whatever_the_truncations() {
    for (function, bits) in [
        (Function::Gelu, 64),
        (Function::Gelu, 40),
        (Function::Sigmoid, 40),
        (Function::Tanh, 40),
        (Function::Silu, 64),
        (Function::GeluGrad, 40),
    ] {
        let x = operands(bits);
        let plan = plan(function, x.len(), bits);
        assert!(
            plan.nodes.iter().any(|node| matches!(node.op, Op::Lookup { .. })),
            "{function:?} by few pieces"
        );
        let data = x.iter().map(|&x| Ring::new(bits).wrap(x as u64)).collect();
        let inputs = BTreeMap::from([("x".to_string(), Tensor::new(vec![x.len()], data).unwrap())]);
        let world = World::new(&plan, Security::Malicious, &[inputs, BTreeMap::new()], &Seed::random());
        let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
        let y = &world.outputs(outcomes.each_ref())[0];
        let unit = 2f64.powi(24);
        let mut worst = (0.0, 0.0);
        for (&x, &y) in x.iter().zip(y) {
            let exact = function.at(x as f64 / unit) * unit;
            let error = (Ring::R64.signed(y) as f64 - exact).abs() / f64::max(2.0, exact.abs() / 65536.0);
            if error > worst.0 {
                worst = (error, x as f64 / unit);
            }
        }
        println!("{function:?} of {bits} bits: {:.3} of the bound, at {}", worst.0, worst.1);
        assert!(worst.0 <= 1.0, "{function:?} of {bits} bits: {} of the bound, at {}", worst.0, worst.1);
    }
}

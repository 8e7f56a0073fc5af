//! The cost table of docs/functions.md is what the plans cost.

use privet_fss::Fss;
use privet_plan::cost::{Aim, choose_forms};
use privet_plan::functions::{Build, Function, emit};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_plan::{Network, Rates, estimate};

const DOCUMENT: &str = include_str!("../../../docs/functions.md");
const ELEMENTS: usize = 4096;

/// One row of the table: comparisons, products and key bytes an element (of an evaluator on average), rounds.
fn row(name: &str, function: Function, shape: &[usize], bits: u32) -> String {
    let mut plan = Plan {
        version: PLAN_VERSION,
        name: "f".into(),
        batch: 1,
        nodes: vec![],
        outputs: vec![],
        updates: vec![],
    };
    let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let ty = Type { shape: shape.to_vec(), bits, frac: 24 };
    plan.nodes.push(Node { op, inputs: vec![], ty, layer: String::new(), form: None });
    let mut build = Build::new(&mut plan, "f").priced(&Fss, privet_plan::Network::LAN);
    let x = build.value(0);
    let y = emit(&mut build, function, x, bits, 24).unwrap();
    plan.outputs.push(Output { value: y.id, name: "y".into(), to: "receiver".into() });
    choose_forms(&mut plan, &Fss, &Aim::default()).expect("keys are not capped");
    let estimate = estimate(&plan, &Fss, &Rates::default(), &Network::LAN);
    let layer = estimate.nodes.iter().filter(|n| n.op != "input" && n.op != "output");
    let (mut comparisons, mut keys, mut rounds) = (0, 0, 0);
    for node in layer {
        comparisons += node.cost.comparisons;
        keys += (node.cost.key_bytes.most() + node.cost.key_bytes.least()) / 2;
        rounds += node.cost.rounds;
    }
    let products: usize =
        plan.nodes.iter().filter(|n| matches!(n.op, Op::Mul | Op::MatMul)).map(|n| n.ty.len()).sum();
    let each = |n: u64| (n as f64 / ELEMENTS as f64).round();
    format!(
        "| {name} | {bits} | {} | {} | {rounds} | {} |",
        each(comparisons),
        each(products as u64),
        each(keys)
    )
}

#[test]
fn the_document_states_what_functions_cost() {
    let one = [ELEMENTS];
    let functions = [
        ("exp", Function::Exp, &one[..]),
        ("log", Function::Log, &one),
        ("reciprocal", Function::Reciprocal, &one),
        ("sqrt", Function::Sqrt, &one),
        ("rsqrt", Function::Rsqrt, &one),
        ("sigmoid", Function::Sigmoid, &one),
        ("tanh", Function::Tanh, &one),
        ("GELU", Function::Gelu, &one),
        ("SiLU", Function::Silu, &one),
        ("GELU'", Function::GeluGrad, &one),
        ("SiLU'", Function::SiluGrad, &one),
        ("softmax of 16", Function::Softmax { dim: 1 }, &[ELEMENTS / 16, 16]),
        ("softmax of 1024", Function::Softmax { dim: 1 }, &[ELEMENTS / 1024, 1024]),
    ];
    let mut missing = Vec::new();
    for (name, function, shape) in functions {
        for bits in [40, 64] {
            let row = row(name, function, shape, bits);
            if !DOCUMENT.contains(&row) {
                missing.push(row);
            }
        }
    }
    assert!(missing.is_empty(), "docs/functions.md lacks:\n{}", missing.join("\n"));
}

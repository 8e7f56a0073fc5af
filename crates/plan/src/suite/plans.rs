//! Small plans and operands for tests of single gates.

use super::Operands;
use crate::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_ring::{Ring, Tensor};

/// The same word in every element of every operand.
pub fn constant(plan: &Plan, word: impl Fn(Ring) -> u64) -> [Operands; 2] {
    let mut operands = [Operands::new(), Operands::new()];
    for node in &plan.nodes {
        let (which, name) = match &node.op {
            Op::Input { name, .. } | Op::Public { name, .. } => (0, name),
            Op::Weight { name, .. } | Op::State { name, .. } => (1, name),
            _ => continue,
        };
        let ring = Ring::new(node.ty.bits);
        let data = vec![ring.wrap(word(ring)); node.ty.len()];
        operands[which].insert(name.clone(), Tensor::new(node.ty.shape.clone(), data).unwrap_or_default());
    }
    operands
}

/// A plan of one gate over `inputs` vectors of `n` elements of `from` bits.
pub fn gate(op: Op, inputs: usize, n: usize, from: u32, to: u32) -> Plan {
    let ty = |bits: u32| Type { shape: vec![n], bits, frac: 0 };
    let node = |op, inputs, ty, layer: String| Node { op, inputs, ty, layer, form: None };
    let mut nodes: Vec<Node> = (0..inputs)
        .map(|i| {
            let op = Op::Input { name: format!("x{i}"), owner: "data_owner".into(), limit: 1.0 };
            node(op, vec![], ty(from), format!("node{i}"))
        })
        .collect();
    if let Op::Truncate { shift, .. } = op {
        nodes[0].ty.frac = shift;
    }
    nodes.push(node(op, (0..inputs).collect(), ty(to), format!("node{inputs}")));
    let outputs = vec![Output { value: inputs, name: "y".into(), to: "receiver".into() }];
    let plan =
        Plan { version: PLAN_VERSION, name: "one gate".into(), batch: n, nodes, outputs, updates: vec![] };
    assert!(plan.check().is_ok(), "a test's plan must be sound");
    plan
}

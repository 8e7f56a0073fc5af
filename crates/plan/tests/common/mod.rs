//! Helpers for building small plans and reproducible numbers in tests.
#![allow(dead_code)]

pub mod build;
pub mod gradients;
pub mod reference;
pub mod training;
pub mod ways;

pub use privet_plan::suite::Numbers;

use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type};
use privet_plan::lower::CheckReport;
use privet_plan::suite::Toll;
use privet_plan::{FloatTensor, Graph, Lowered, Plan, Precision};
use privet_ring::Tensor;
use std::collections::BTreeMap;

/// Lowered for no family in particular.
pub fn lower(
    graph: &Graph,
    params: &BTreeMap<String, FloatTensor>,
    precision: &Precision,
) -> Result<Lowered, CheckReport> {
    privet_plan::lower(graph, params, precision, &Toll)
}

pub fn ty(shape: &[usize], bits: u32, frac: u32) -> Type {
    Type { shape: shape.to_vec(), bits, frac }
}

/// A plan whose inputs are `x0`, `x1`, ... and whose only other node is `op`.
pub fn single(op: Op, operands: &[Type], result: Type) -> Plan {
    let mut nodes: Vec<Node> = operands
        .iter()
        .enumerate()
        .map(|(i, ty)| Node {
            op: Op::Input { name: format!("x{i}"), owner: "data".into(), limit: 1e6 },
            inputs: vec![],
            ty: ty.clone(),
            layer: String::new(),
            form: None,
        })
        .collect();
    let n = nodes.len();
    nodes.push(Node { op, inputs: (0..n).collect(), ty: result, layer: "layer".into(), form: None });
    let outputs = vec![Output { value: n, name: "y".into(), to: "receiver".into() }];
    Plan { version: PLAN_VERSION, name: "test".into(), batch: 1, nodes, outputs, updates: vec![] }
}

pub fn tensors(plan: &Plan, values: &[&[i64]]) -> BTreeMap<String, Tensor> {
    values
        .iter()
        .enumerate()
        .map(|(i, v)| {
            let data = v.iter().map(|&x| x as u64).collect();
            (format!("x{i}"), Tensor::new(plan.nodes[i].ty.shape.clone(), data).unwrap())
        })
        .collect()
}

/// Run a [`single`] plan and read its result as signed numbers.
pub fn run(op: Op, operands: &[Type], result: Type, values: &[&[i64]]) -> Vec<i64> {
    let ring = privet_ring::Ring::new(result.bits);
    let plan = single(op, operands, result);
    let out =
        privet_plan::interpret(&plan, &tensors(&plan, values), &BTreeMap::new(), &mut privet_plan::NoCoins);
    out.unwrap()[0].data().iter().map(|&v| ring.signed(v)).collect()
}

//! Helpers for building small plans and reproducible numbers in tests.
#![allow(dead_code)]

pub mod build;
pub mod gradients;
pub mod reference;
pub mod training;
pub mod workload;

use privet_plan::Plan;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type};
use privet_ring::Tensor;
use std::collections::BTreeMap;

/// SplitMix64: test data only.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Uniform in [-1, 1).
    pub fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn words(&mut self, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.next()).collect()
    }
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
        })
        .collect();
    let n = nodes.len();
    nodes.push(Node { op, inputs: (0..n).collect(), ty: result, layer: "layer".into() });
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

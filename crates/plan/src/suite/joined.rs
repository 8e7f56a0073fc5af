//! Plans whose independent gates lowering joins: a case twice, and linear layers of one operand.

use super::{Builder, Case, batched_matmul, binary, network, select, unary};
use crate::ir::{Op, Plan, Rounding};
use crate::lower::joined;

/// Plans before gates are joined, and after it. Operands have the same names and outputs the same order.
pub fn joined_cases() -> Vec<[Case; 2]> {
    let truncate = Op::Truncate { shift: 12, rounding: Rounding::Floor };
    let gates = [
        unary("relu", Op::Relu, 70, 20, 40),
        unary("sign", Op::IsNegative, 70, 33, 1),
        unary("truncate", truncate, 70, 40, 28),
        binary("max", Op::Max, 70, 24, 24),
        binary("mul", Op::Mul, 70, 64, 64),
        select(),
        batched_matmul(),
        network(),
    ];
    let mut before: Vec<Case> = gates.into_iter().map(twice).collect();
    before.push(projections());
    let after = |case: Case| {
        let name = format!("{}, joined", case.name);
        let plan = joined(Plan { name: name.clone(), ..case.plan.clone() });
        [case, Case { name, plan }]
    };
    before.into_iter().map(after).collect()
}

/// The same operations on other operands as well.
fn twice(case: Case) -> Case {
    let mut plan = case.plan;
    let (nodes, outputs) = (plan.nodes.clone(), plan.outputs.clone());
    for mut node in nodes.iter().cloned() {
        node.inputs.iter_mut().for_each(|i| *i += nodes.len());
        if let Op::Input { name, .. } | Op::Weight { name, .. } = &mut node.op {
            name.push_str(" again");
        }
        node.layer.push_str(" again");
        plan.nodes.push(node);
    }
    for mut output in outputs {
        output.value += nodes.len();
        output.name.push_str(" again");
        plan.outputs.push(output);
    }
    plan.name = format!("{}, twice", case.name);
    Case { name: plan.name.clone(), plan }
}

/// Queries, keys and values of one operand; values are not read by what reads the other two.
fn projections() -> Case {
    let mut b = Builder::new("three linear layers of one operand");
    let x = b.input(&[5, 6], 64);
    let truncate = Op::Truncate { shift: 24, rounding: Rounding::Floor };
    let mut layer = |rows: usize| {
        let (w, bias) = (b.weight(&[rows, 6], 64), b.weight(&[rows], 64));
        let y = b.add(Op::Linear, &[x, w, bias], &[5, rows], 64);
        b.frac(y, 24);
        b.add(truncate.clone(), &[y], &[5, rows], 40)
    };
    let (q, k, v) = (layer(4), layer(4), layer(7));
    let sum = b.add(Op::Add, &[q, k], &[5, 4], 40);
    let relu = b.add(Op::Relu, &[sum], &[5, 4], 40);
    b.done(&[relu, v])
}

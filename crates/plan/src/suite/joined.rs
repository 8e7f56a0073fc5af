//! Plans whose independent gates lowering joins: a case twice, and linear layers of one operand.

use super::{Builder, Case, batched_matmul, binary, network, select, unary};
use crate::ir::{Op, Plan, Rounding};
use crate::lower::{joined, joined_readers};
use privet_ring::Conv2d;

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
    let after = |case: Case, joined: fn(Plan) -> Plan| {
        let name = format!("{}, joined", case.name);
        let plan = joined(Plan { name: name.clone(), ..case.plan.clone() });
        [case, Case { name, plan }]
    };
    let of_one_value = convolutions().into_iter().map(|case| after(case, |plan| joined_readers(plan, 3)));
    before.into_iter().map(|case| after(case, joined)).chain(of_one_value).collect()
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
    b.frac(x, 24);
    let truncate = Op::Truncate { shift: 24, rounding: Rounding::Floor };
    let mut layer = |rows: usize| {
        let (w, bias) = (b.weight(&[rows, 6], 64), b.weight(&[rows], 64));
        b.frac(bias, 24);
        let y = b.add(Op::Linear, &[x, w, bias], &[5, rows], 64);
        b.frac(y, 24);
        b.add(truncate.clone(), &[y], &[5, rows], 40)
    };
    let (q, k, v) = (layer(4), layer(4), layer(7));
    let sum = b.add(Op::Add, &[q, k], &[5, 4], 40);
    let relu = b.add(Op::Relu, &[sum], &[5, 4], 40);
    b.done(&[relu, v])
}

/// Convolutions of one value: windows of different sizes and paddings; one that moves by two, with one that no other one fits; and three,
/// of which nobody has a bias.
fn convolutions() -> Vec<Case> {
    let conv = |out_channels, kernel, stride, padding| Conv2d {
        batch: 2,
        in_channels: 3,
        input: [5, 6],
        out_channels,
        kernel,
        stride,
        padding,
        dilation: [1; 2],
        groups: 1,
    };
    let fire = [conv(4, [1, 1], [1, 1], [0; 4]), conv(5, [3, 3], [1, 1], [1; 4])];
    let down = [
        conv(4, [1, 1], [1, 1], [0; 4]),
        conv(6, [1, 1], [2, 2], [0; 4]),
        conv(2, [2, 3], [2, 3], [0, 0, 1, 0]),
    ];
    let three = [
        conv(2, [2, 3], [1, 1], [1, 0, 2, 0]),
        conv(3, [3, 2], [1, 1], [0, 2, 1, 0]),
        conv(1, [2, 2], [2, 1], [1, 1, 0, 1]),
    ];
    let case = |name: &str, all: &[Conv2d], biased: bool| {
        let mut b = Builder::new(name);
        let x = b.input(&[2, 3, 5, 6], 40);
        b.frac(x, 8);
        let ends: Vec<usize> = all
            .iter()
            .map(|g| {
                let [rows, columns] = g.output();
                let w = b.weight(&[g.out_channels, 3, g.kernel[0], g.kernel[1]], 40);
                b.frac(w, 8);
                let mut inputs = vec![x, w];
                if biased {
                    let bias = b.weight(&[g.out_channels], 40);
                    b.frac(bias, 16);
                    inputs.push(bias);
                }
                let y = b.add(Op::Conv2d { geometry: *g }, &inputs, &[2, g.out_channels, rows, columns], 40);
                b.frac(y, 16);
                y
            })
            .collect();
        b.done(&ends)
    };
    vec![
        case("windows of 1 x 1 and 3 x 3 of one value", &fire, true),
        case("convolutions of one value that move by one and by two", &down, true),
        case("three convolutions of one value", &three, false),
    ]
}

//! What functions make of the products that they alone read: ramps, attention and normalisations, against double precision.

mod common;

use common::ways::{Drawn, Having, lines_of_classes, off_by, operands, run, run_all, words};
use privet_plan::cost::Prices;
use privet_plan::functions::{
    Build, Function, INSIDE, Lines, Value, Weighted, attention, emit_of_product, normalised,
};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::{FloatTensor, interpret_real};
use std::collections::BTreeMap;

const COINS: [Drawn; 8] = [
    Drawn::None,
    Drawn::Least,
    Drawn::Most,
    Drawn::Random(9),
    Drawn::Ends(1),
    Drawn::Ends(2),
    Drawn::Ends(3),
    Drawn::Ends(4),
];

/// A plan of inputs of these types, `x0` and on, by these prices.
fn plan_of(
    prices: &dyn Prices,
    inputs: &[(&[usize], [u32; 2])],
    make: impl Fn(&mut Build<'_>, &[Value]) -> Value,
) -> Plan {
    let input = |(i, (shape, [bits, frac])): (usize, &(&[usize], [u32; 2]))| Node {
        op: Op::Input { name: format!("x{i}"), owner: "data_owner".into(), limit: 1.0 },
        inputs: vec![],
        ty: Type { shape: shape.to_vec(), bits: *bits, frac: *frac },
        layer: "f".into(),
        form: None,
    };
    let nodes = inputs.iter().enumerate().map(input).collect();
    let (name, batch) = ("f".into(), inputs[0].0[0]);
    let mut plan = Plan { version: PLAN_VERSION, name, batch, nodes, outputs: vec![], updates: vec![] };
    let mut build = Build::new(&mut plan, "f").priced(prices, privet_plan::Network::LAN);
    let operands: Vec<Value> = (0..inputs.len()).map(|id| build.value(id)).collect();
    let value = make(&mut build, &operands);
    plan.outputs.push(Output { value: value.id, name: "y".into(), to: "receiver".into() });
    plan.check().unwrap();
    plan
}

fn compares(plan: &Plan) -> bool {
    plan.nodes.iter().any(|n| matches!(n.op, Op::Truncate { rounding: Rounding::Floor, .. }))
}

/// The ways of families in which a truncation to the nearest is dear, with truncations within one unit off by one where there are such.
fn dear(having: Having, make: impl Fn(&Having) -> Plan) -> Vec<Plan> {
    let [coins, near] = [false, true].map(|near| Having { inexact: true, few: true, near, ..having });
    let near = make(&near);
    vec![make(&coins), off_by(near.clone(), -1), off_by(near.clone(), 1), near]
}

#[test]
fn ramps_of_products_keep_the_bound_of_the_function_of_the_product() {
    let default = Having::default();
    let all = [
        Having { waves: true, ..default },
        Having { tables: true, ..default },
        Having { tables: true, polynomials: true, ..default },
        Having { tables: true, cubic: true, ..default },
    ];
    for ([bits, product, frac], whole) in [([64, 48, 24], 16), ([64, 40, 16], 24), ([37, 24, 12], 13)] {
        for (function, having) in [Function::Gelu, Function::GeluTanh, Function::Silu]
            .into_iter()
            .flat_map(|function| all.map(|having| (function, having)))
        {
            if having.cubic && frac > 17 {
                continue;
            }
            // at most a quarter of the ring
            let mut numbers = operands(bits - 1, product, 6_000, 5);
            numbers.retain(|x| x.abs() < (1 << (bits - 2)) - (1 << (product - frac)));
            for out in [frac, frac + INSIDE] {
                let plans = dear(having, |prices| {
                    plan_of(prices, &[(&[numbers.len()], [bits, product])], |b, x| {
                        emit_of_product(b, function, (x[0], whole), [bits, frac, out]).unwrap()
                    })
                });
                if having.waves {
                    assert!(
                        plans.iter().all(|plan| !compares(plan)),
                        "rounded by coins: {}",
                        function.name()
                    );
                }
                let unit = [product, frac, out].map(|f| 2f64.powi(f as i32));
                let least = f64::max(2.0, unit[1] * 2f64.powi(-23));
                for (plan, coins) in plans.iter().flat_map(|plan| COINS.map(|coins| (plan, coins))) {
                    for (x, y) in numbers.iter().zip(run(plan, &numbers, coins)) {
                        let exact = function.at(*x as f64 / unit[0]) * unit[1];
                        let error = (y as f64 / unit[2] * unit[1] - exact).abs()
                            / f64::max(least, exact.abs() / 65536.0);
                        assert!(
                            error <= 1.0,
                            "{} {bits} {frac} {out} {having:?}: {error} of the bound at {x}",
                            function.name()
                        );
                    }
                }
            }
        }
    }
}

/// Values and the weights of exact softmaxes, line by line.
fn weighted(x: &[f64], classes: usize, values: &[f64], n: usize) -> Vec<f64> {
    let line = |x: &[f64]| {
        let largest = x.iter().copied().fold(f64::MIN, f64::max);
        let powers: Vec<f64> = x.iter().map(|v| (v - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        (0..n)
            .map(|j| powers.iter().zip(values.chunks_exact(n)).map(|(p, v)| p / sum * v[j]).sum())
            .collect::<Vec<f64>>()
    };
    x.chunks_exact(classes).flat_map(line).collect()
}

/// The largest value that attention weighs.
const LARGEST: f64 = 15.9;

#[test]
fn attention_divided_at_the_end_is_as_near_as_one_by_softmaxes() {
    let whole = 5;
    let default = Having { sized: true, ..Having::default() };
    for classes in [2usize, 3, 10, 128, 1000] {
        let (rows, n) = (if classes > 500 { 80 } else { 320 }, 3.min(classes - 1));
        let lines = lines_of_classes(rows, classes, 60.0);
        // values of fewer fraction bits leave room for exponentials of more
        let frac = if classes > 500 { 20u32 } else { 24 };
        let fixed = |v: f64, frac: u32| (v * 2f64.powi(frac as i32)) as i64;
        let x: Vec<i64> = lines.iter().map(|v| fixed(*v, 24)).collect();
        let mut next = words(classes as u64);
        // the largest that fit, and any
        let value = |i: usize, word: u64| match i % 4 {
            0 => LARGEST,
            1 => -LARGEST,
            _ => (word as f64 / 2f64.powi(63) - 1.0) * LARGEST,
        };
        let values: Vec<i64> = (0..classes * n).map(|i| fixed(value(i, next()), frac)).collect();
        let exact_of =
            |v: &[i64], frac: u32| v.iter().map(|v| *v as f64 / 2f64.powi(frac as i32)).collect::<Vec<f64>>();
        let (x_real, values_real) = (exact_of(&x, 24), exact_of(&values, frac));
        let exact = weighted(&x_real, classes, &values_real, n);
        for having in [default, Having { waves: true, ..default }] {
            let plans = dear(having, |prices| {
                let shapes: [(&[usize], [u32; 2]); 2] =
                    [(&[rows, classes], [40, 24]), (&[classes, n], [64, frac])];
                plan_of(prices, &shapes, |b, given| {
                    attention(b, given[0], Weighted { values: given[1], whole }, 24)
                })
            });
            for (way, plan) in plans.iter().enumerate() {
                let softmax =
                    |n: &Node| matches!(n.op, Op::Approximates { function: Function::Softmax { .. } });
                assert!(!plan.nodes.iter().any(softmax), "divided at the end");
                let inputs = [("x0", &x_real, vec![rows, classes]), ("x1", &values_real, vec![classes, n])];
                let inputs = inputs
                    .map(|(name, data, shape)| (name.to_string(), FloatTensor { shape, data: data.clone() }));
                let real = interpret_real(plan, &BTreeMap::from(inputs), &BTreeMap::new()).unwrap();
                let off = real[0].data.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 2f64.powi(-24), "{classes} classes over real numbers: {off}");
                let found_unit = 2f64.powi(plan.nodes[plan.outputs[0].value].ty.frac as i32);
                for coins in COINS {
                    let found = run_all(plan, &[&x, &values], coins);
                    let worst = found
                        .iter()
                        .zip(&exact)
                        .map(|(y, e)| (*y as f64 / found_unit - e).abs())
                        .fold(0.0, f64::max);
                    println!("{classes} classes: 2^{:.2} of the largest", (worst / LARGEST).log2());
                    // exponentials that are rounded the same way, by a unit and a half at most, where their sum is the least possible: equal
                    // ones to the nearest, or all, which is as unlikely as e^(-classes / 2)
                    let alike = match (way, coins) {
                        (0 | 3, Drawn::Random(_)) => 0.0,
                        _ => 1.5 * classes as f64 * std::f64::consts::E * 2f64.powi(-22),
                    };
                    // the reciprocal of a sum is within a relative 2^-17, and a result as far from a mean of values
                    let bound = LARGEST * (2f64.powi(-17) + alike);
                    assert!(worst <= bound, "{classes} classes {having:?}: {worst}");
                }
            }
        }
    }
}

/// Lines that differ in size, with one large number, with a mean far from 0, and of a thousandth of a unit, normalised by squares of as
/// many bits and of fewer.
#[test]
fn normalisations_of_products_are_near_however_few_bits_are_squared() {
    let (n, frac, bits) = (64usize, 26u32, 64u32);
    let mut next = words(3);
    let mut real = || next() as f64 / 2f64.powi(63) - 1.0;
    let mut x = Vec::new();
    let sizes: Vec<f64> = (0..40).map(|i| 2f64.powi(2 - i / 2)).collect();
    for (row, size) in sizes.iter().enumerate() {
        let mean = if row % 3 == 0 { real() } else { 0.0 };
        x.extend((0..n).map(|i| {
            ((mean + if row % 4 == 1 && i == 7 { 8.0 * size } else { real() * size }) * 2f64.powi(26)) as i64
        }));
    }
    for (coarse, eps) in [0, 2, 4].into_iter().flat_map(|coarse| [1e-5, 1e-3, 1.0].map(|eps| (coarse, eps))) {
        let lines = Lines { count: sizes.len(), n, eps, centred: Some(30), coarse };
        for waves in [false, true] {
            let plans = dear(Having { waves, ..Having::default() }, |prices| {
                plan_of(prices, &[(&[sizes.len(), n], [bits, frac])], |b, x| normalised(b, x[0], lines, 48))
            });
            for (plan, coins) in plans.iter().flat_map(|plan| COINS.map(|coins| (plan, coins))) {
                let unit = 2f64.powi(plan.nodes[plan.outputs[0].value].ty.frac as i32);
                let found = run(plan, &x, coins);
                for (row, (x, y)) in x.chunks_exact(n).zip(found.chunks_exact(n)).enumerate() {
                    let x: Vec<f64> = x.iter().map(|v| *v as f64 / 2f64.powi(26)).collect();
                    let mean = x.iter().sum::<f64>() / n as f64;
                    let root = (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64 + eps).sqrt();
                    for (x, y) in x.iter().zip(y) {
                        let exact = (x - mean) / root;
                        // the mean and a square's factor are off by 1.5 of their units at most
                        let [off, squared] =
                            [2f64.powi(-26), 2f64.powi(coarse as i32 - 26)].map(|unit| 1.5 * unit / root);
                        let bound = off + exact.abs() * (2f64.powi(-16) + squared + off);
                        let error = (*y as f64 / unit - exact).abs();
                        assert!(
                            error <= bound,
                            "{coarse} {eps} {waves}, line {row}: off by {error}, at most {bound}"
                        );
                    }
                }
            }
        }
    }
}

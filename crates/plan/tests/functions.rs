//! Smooth functions against double precision, within the bounds that docs/functions.md states.

mod common;

use common::ways::{Drawn, Having, lines_of_classes, off_by, operands, run, words};
use privet_plan::cost::Prices;
use privet_plan::functions::{Build, Function, emit};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use std::collections::BTreeMap;

/// A plan of `function` on an input of the given shape and type, `[bits, frac]`, of what every family has.
fn plan(function: Function, shape: &[usize], x: [u32; 2], y: [u32; 2]) -> Result<Plan, String> {
    plan_with(&Having::default(), function, shape, x, y)
}

/// All ways in which functions are made, with every truncation within one unit off by as much as it may be.
fn ways(function: Function, shape: &[usize], x: [u32; 2], y: [u32; 2]) -> Vec<Plan> {
    let has = |waves, few, near| Having { waves, few, near, ..Having::default() };
    let made = |has| plan_with(&has, function, shape, x, y).unwrap();
    let mut all: Vec<Plan> =
        [has(false, false, false), has(true, false, false), has(false, true, false)].map(made).into();
    let default = Having::default();
    let sextic = Having { tables: true, polynomials: true, ..default };
    all.extend(
        [Having { tables: true, ..default }, Having { polynomials: true, ..default }, sextic].map(made),
    );
    all.push(made(Having { twice: true, ..default }));
    let narrow = matches!(function, Function::Gelu | Function::GeluTanh | Function::Silu) && y[1] <= 17;
    for unit in [-1, 1] {
        all.push(off_by(made(sextic), unit));
        if narrow {
            all.push(off_by(made(Having { cubic: true, ..default }), unit));
        }
        all.push(off_by(made(has(true, true, true)), unit));
        all.push(off_by(made(has(false, false, true)), unit));
    }
    all
}

/// The same of what is there.
fn plan_with(
    prices: &dyn Prices,
    function: Function,
    shape: &[usize],
    x: [u32; 2],
    y: [u32; 2],
) -> Result<Plan, String> {
    let mut plan = Plan {
        version: PLAN_VERSION,
        name: "f".into(),
        batch: 1,
        nodes: vec![],
        outputs: vec![],
        updates: vec![],
    };
    let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let ty = Type { shape: shape.to_vec(), bits: x[0], frac: x[1] };
    plan.nodes.push(Node { op, inputs: vec![], ty, layer: "f".into(), form: None });
    let mut build = Build::new(&mut plan, "f").priced(prices, privet_plan::Network::LAN);
    let operand = build.value(0);
    let value = emit(&mut build, function, operand, y[0], y[1])?;
    plan.outputs.push(Output { value: value.id, name: "y".into(), to: "receiver".into() });
    plan.batch = shape[0];
    plan.check().map_err(|e| e.to_string())?;
    Ok(plan)
}

/// The largest error in units of the bound: the largest of two units in the last place, 2^-23, and 2^-16 of the result.
fn worst(function: Function, x: [u32; 2], y: [u32; 2], random: usize, coins: Drawn) -> (f64, f64) {
    let all = operands(x[0], x[1], random, if random > 50_000 { 1 } else { 31 });
    let found = ways(function, &[all.len()], x, y);
    let errors = found.iter().map(|plan| worst_of(function, plan, &all, x, y, coins));
    errors.fold((0.0, 0.0), |worst, found| if found.0 > worst.0 { found } else { worst })
}

fn worst_of(
    function: Function,
    plan: &Plan,
    all: &[i64],
    x: [u32; 2],
    y: [u32; 2],
    coins: Drawn,
) -> (f64, f64) {
    let [unit_x, unit_y] = [x[1], y[1]].map(|f| 2f64.powi(f as i32));
    let (low, high) = (-(2f64.powi(y[0] as i32 - 1)), 2f64.powi(y[0] as i32 - 1) - 1.0);
    let two = f64::max(2.0, unit_y * 2f64.powi(-23));
    let mut worst = (0f64, 0f64);
    for (&x, y) in all.iter().zip(run(plan, all, coins)) {
        let exact = function.at(x as f64 / unit_x) * unit_y;
        if !exact.is_finite() || !(low..=high).contains(&exact) {
            continue;
        }
        let error = (y as f64 - exact).abs() / f64::max(two, exact.abs() / 65536.0);
        if error > worst.0 {
            worst = (error, x as f64 / unit_x);
        }
    }
    worst
}

const ALL: [Function; 14] = [
    Function::Exp,
    Function::Log,
    Function::Reciprocal,
    Function::Sqrt,
    Function::Rsqrt,
    Function::Sigmoid,
    Function::Tanh,
    Function::Erf,
    Function::Gelu,
    Function::GeluTanh,
    Function::Silu,
    Function::GeluGrad,
    Function::GeluTanhGrad,
    Function::SiluGrad,
];

#[test]
fn bounds_hold_at_64_bits_with_24_fraction_bits() {
    for function in ALL {
        let (error, at) = worst(function, [64, 24], [64, 24], 200_000, Drawn::None);
        println!("{} {error:.3} of the bound, at {at}", function.name());
        assert!(error <= 1.0, "{}: {error} of the bound at {at}", function.name());
    }
}

#[test]
fn bounds_hold_whatever_the_coins() {
    for coins in [Drawn::Least, Drawn::Most, Drawn::Random(2), Drawn::Random(3)] {
        for function in ALL {
            let (error, at) = worst(function, [64, 24], [64, 24], 20_000, coins);
            println!("{} {error:.3} of the bound, at {at}", function.name());
            assert!(error <= 1.0, "{}: {error} of the bound at {at}", function.name());
        }
    }
}

/// Every number of 24 bits, 20 of them of the fraction.
#[test]
fn bounds_hold_for_every_input() {
    if std::env::var_os("PRIVET_NIGHTLY").is_none() {
        return;
    }
    let (x, y) = ([40, 20], [40, 20]);
    let (pieces, few, near) = (Having::default(), true, true);
    let waves = Having { waves: true, few, near, ..pieces };
    for having in [pieces, waves, Having { polynomials: true, ..pieces }] {
        for block in 0..64 {
            let all: Vec<i64> = (0..1 << 18).map(|i| (block << 18 | i) - (1 << 23)).collect();
            let plan = plan_with(&having, Function::Gelu, &[all.len()], x, y).unwrap();
            let (error, at) = worst_of(Function::Gelu, &plan, &all, x, y, Drawn::Random(block as u64));
            assert!(error <= 1.0, "{having:?}: {error} of the bound at {at}");
        }
    }
}

#[test]
fn bounds_hold_in_other_types() {
    let types = [
        ([40, 24], [40, 24]),
        ([40, 16], [48, 16]),
        ([31, 12], [24, 12]),
        ([64, 30], [64, 30]),
        ([33, 17], [64, 24]),
    ];
    for (x, y) in types {
        for function in ALL {
            if y[0] < y[1] + function.before_fraction(x[0] - x[1]) {
                assert!(plan(function, &[4], x, y).unwrap_err().contains("needs"));
                continue;
            }
            let (error, at) = worst(function, x, y, 5_000, Drawn::Random(1));
            println!("{} {x:?} {y:?} {error:.3} of the bound, at {at}", function.name());
            assert!(error <= 1.0, "{} {x:?} {y:?}: {error} of the bound at {at}", function.name());
        }
    }
}

/// Types of angles that are right throughout: at most 35 ring bits.
const ANGLES: [([u32; 2], [u32; 2]); 4] =
    [([35, 24], [64, 24]), ([24, 16], [40, 16]), ([31, 12], [24, 12]), ([35, 30], [64, 30])];

#[test]
fn angles_are_right_for_every_number_of_their_ring() {
    for (x, y) in ANGLES {
        for function in [Function::Sin, Function::Cos] {
            for coins in [Drawn::None, Drawn::Least, Drawn::Most, Drawn::Random(4)] {
                let (error, at) = worst(function, x, y, 5_000, coins);
                assert!(error <= 1.0, "{} {x:?} {y:?}: {error} of the bound at {at}", function.name());
            }
        }
    }
}

/// Of larger rings the factor has fewer bits behind the point than an angle may have before it.
#[test]
fn angles_of_large_rings_are_off_by_what_their_size_says() {
    for (x, y) in [([40, 16], [40, 16]), ([48, 24], [64, 24]), ([64, 24], [64, 24])] {
        let all = operands(x[0], x[1], 2_000, 31);
        for function in [Function::Sin, Function::Cos] {
            let plan = plan(function, &[all.len()], x, y).unwrap();
            for (v, found) in all.iter().zip(run(&plan, &all, Drawn::Random(5))) {
                let angle = *v as f64 * 2f64.powi(-(x[1] as i32));
                let exact = function.at(angle);
                let off = (found as f64 * 2f64.powi(-(y[1] as i32)) - exact).abs();
                let turns = (*v as f64).abs() * 2f64.powi(-64);
                let most =
                    2.0 * 2f64.powi(-(y[1] as i32)) + exact.abs() / 65536.0 + std::f64::consts::TAU * turns;
                assert!(off <= most, "{} of {angle}: off by {off}, at most {most}", function.name());
            }
        }
    }
}

#[test]
fn whole_numbers_below_are_exact() {
    for (x, y) in [([40, 16], [40, 16]), ([20, 4], [40, 16]), ([30, 24], [20, 12]), ([64, 24], [64, 24])] {
        let mut all: Vec<i64> =
            (-70..70).flat_map(|i| [i << (x[1] - 2), (i << x[1]) - 1, i << x[1], (i << x[1]) + 1]).collect();
        all.retain(|v| v >> (x[0] - 1) == v >> 63);
        let limit = 1i64 << (y[0] - y[1] - 1).min(39);
        all.retain(|v| (-limit..limit).contains(&(v >> x[1])));
        let plan = plan(Function::Floor, &[all.len()], x, y).unwrap();
        for (v, found) in all.iter().zip(run(&plan, &all, Drawn::None)) {
            assert_eq!(found, (v >> x[1]) << y[1], "{v} of {x:?}");
        }
    }
}

#[test]
fn softmax_is_within_2_to_the_minus_18_for_a_thousand_classes() {
    let (rows, unit) = (60, 2f64.powi(24));
    for classes in [1usize, 2, 3, 10, 999, 1000, 1024] {
        let mut next = words(classes as u64);
        let mut x = Vec::new();
        for row in 0..rows {
            // all equal, a few large ones, all just large enough to count together, anything
            for class in 0..classes {
                let u = next() as f64 / 2f64.powi(64) * 120.0 - 60.0;
                let v = match row % 6 {
                    0 => 60.0 - row as f64 * 2.0,
                    1 => {
                        if class % 100 == 7 {
                            60.0
                        } else {
                            -60.0
                        }
                    }
                    2 => {
                        if class == classes - 1 {
                            10.0
                        } else {
                            10.0 - row as f64 / 4.0 - 8.0
                        }
                    }
                    3 => u / 10.0,
                    4 => {
                        if class == 0 {
                            u / 60.0
                        } else {
                            -17.3 + u / 100.0
                        }
                    }
                    _ => u,
                };
                x.push((v * unit) as i64);
            }
        }
        for (function, bits, bound, coins) in [
            (Function::Softmax { dim: 1 }, 64, 2f64.powi(-18), Drawn::None),
            (Function::Softmax { dim: 1 }, 64, 2f64.powi(-18), Drawn::Random(1)),
            (Function::Softmax { dim: 1 }, 32, 2f64.powi(-18), Drawn::Random(2)),
            (Function::LogSoftmax { dim: 1 }, 32, 2f64.powi(-21), Drawn::Random(3)),
        ] {
            let plans = ways(function, &[rows, classes], [bits, 24], [64, 24]);
            let plan = &plans[0];
            let real = privet_plan::interpret_real(
                plan,
                &BTreeMap::from([(
                    "x".to_string(),
                    privet_plan::FloatTensor {
                        shape: vec![rows, classes],
                        data: x.iter().map(|&v| v as f64 / unit).collect(),
                    },
                )]),
                &BTreeMap::new(),
            )
            .unwrap();
            for plan in &plans {
                let found = run(plan, &x, coins);
                let errors =
                    found.iter().zip(&real[0].data).map(|(&y, exact)| (y as f64 / unit - exact).abs());
                let worst = errors.fold(0.0, f64::max);
                println!("{} {classes} classes: 2^{:.2}", function.name(), worst.log2());
                assert!(worst <= bound, "{} {classes}: {worst}", function.name());
            }
        }
    }
}

/// The largest error of a softmax in units in the last place.
fn worst_softmax(plan: &Plan, x: &[i64], [x_frac, frac]: [u32; 2], classes: usize, coins: Drawn) -> f64 {
    let [unit_x, unit] = [x_frac, frac].map(|f| 2f64.powi(f as i32));
    let found = run(plan, x, coins);
    let errors = x.chunks_exact(classes).zip(found.chunks_exact(classes)).flat_map(|(x, y)| {
        let largest = x.iter().copied().max().unwrap_or_default();
        let powers: Vec<f64> = x.iter().map(|v| ((v - largest) as f64 / unit_x).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().zip(y).map(move |(p, y)| (*y as f64 - p / sum * unit).abs()).collect::<Vec<_>>()
    });
    errors.fold(0.0, f64::max)
}

/// Exponentials of numbers with hardly a whole part have windows that hold all of them.
#[test]
fn softmaxes_of_small_rings_are_right() {
    for whole in 3..=6 {
        for ([bits, frac], y, bound) in
            [([whole + 24, 24], [64, 24], 64.0), ([whole + 12, 12], [37, 12], 2.0)]
        {
            // differences stay within the ring
            let most = 1i64 << (bits - 2);
            let numbers: Vec<i64> =
                operands(bits - 1, frac, 3_000, 7).into_iter().cycle().take(6_000).collect();
            let numbers: Vec<i64> = numbers.iter().map(|x| (x / 2).clamp(-most, most - 1)).collect();
            for plan in ways(Function::Softmax { dim: 1 }, &[numbers.len() / 3, 3], [bits, frac], y) {
                for coins in [Drawn::None, Drawn::Least, Drawn::Most, Drawn::Random(8)] {
                    let worst = worst_softmax(&plan, &numbers, [frac, y[1]], 3, coins);
                    assert!(worst <= bound, "{bits} bits: {worst} units");
                }
            }
        }
    }
}

/// Of results of few fraction bits, every part in a narrow ring: two units in the last place, with a polynomial or by parts.
#[test]
fn a_softmax_of_few_fraction_bits_is_within_two_units() {
    let polynomial = Having { cubic: true, tables: true, ..Having::default() };
    narrow_softmaxes(&polynomial, None);
    narrow_softmaxes(&Having { tables: false, few: true, ..polynomial }, Some(0));
    narrow_softmaxes(&Having { tables: false, few: true, twice: true, ..polynomial }, Some(1));
}

/// By parts, of x or of half of it, or with a polynomial.
fn narrow_softmaxes(having: &Having, by_parts: Option<u32>) {
    let types = [
        ([23, 12], [37, 12]),
        ([37, 24], [37, 12]),
        ([20, 8], [24, 14]),
        ([64, 30], [64, 13]),
        ([16, 3], [40, 6]),
        ([12, 4], [20, 2]),
    ];
    for (x, y) in types {
        for classes in [2usize, 3, 10, 128, 1000, 1024] {
            let rows = if classes > 500 { 160 } else { 800 };
            let most = f64::min(60.0, 2f64.powi((x[0] - x[1]) as i32 - 3));
            let lines = lines_of_classes(rows, classes, most);
            let numbers: Vec<i64> = lines.iter().map(|v| (v * 2f64.powi(x[1] as i32)) as i64).collect();
            let made = plan_with(having, Function::Softmax { dim: 1 }, &[rows, classes], x, y).unwrap();
            let narrow = |node: &Node| match node.op {
                Op::Exponential { scale, .. } if node.ty.bits < 64 => Some(scale),
                _ => None,
            };
            assert_eq!(made.nodes.iter().find_map(narrow), by_parts, "the narrow way");
            let mut worst = 0f64;
            for unit in [-1, 0, 1] {
                let plan = off_by(made.clone(), unit);
                for coins in [Drawn::None, Drawn::Least, Drawn::Most, Drawn::Random(6)] {
                    worst = worst.max(worst_softmax(&plan, &numbers, [x[1], y[1]], classes, coins));
                }
            }
            println!("{x:?} {y:?} {classes} classes: {worst:.3} units, by parts {by_parts:?}");
            assert!(worst <= 2.0, "{x:?} {y:?} {classes} classes: {worst} units");
        }
    }
}

#[test]
fn results_outside_the_type_are_those_documented() {
    let count = ways(Function::Exp, &[1], [64, 24], [64, 24]).len();
    assert_eq!(count, 13);
    (0..count).for_each(outside_of_types);
}

/// What [`results_outside_the_type_are_those_documented`] says, of one of [`ways`].
fn outside_of_types(way: usize) {
    // the result for one number, in units of a result of the given type
    let at = |function, x, from, to| run(&ways(function, &[1], from, to)[way], &[x], Drawn::None)[0];
    let (t, unit) = ([64, 24], 1i64 << 24);
    let most = i64::MAX;
    let near_most = |y: i64, bits: u32| {
        let most = ((1u64 << (bits - 1)) - 1) as i64;
        y <= most && (most - y) as f64 <= most as f64 / 65536.0
    };
    // e^x saturates, and vanishes
    for x in [28 * unit, 29 * unit, 1000 * unit, most] {
        assert!(near_most(at(Function::Exp, x, t, t), 64), "{x}");
    }
    for x in [-19 * unit, -47 * unit, -1000 * unit, -most, -most - 1] {
        assert_eq!(at(Function::Exp, x, t, t), 0, "{x}");
    }
    assert!(near_most(at(Function::Exp, 5 * unit, t, [27, 24]), 27));
    // 1 / 0 as for one unit, and what does not fit saturates
    assert_eq!(at(Function::Reciprocal, 0, t, t), at(Function::Reciprocal, 1, t, t));
    for sign in [1, -1] {
        let error = at(Function::Reciprocal, sign, t, t) - sign * (1 << 48);
        assert!(error.abs() <= 1 << 32, "{sign}: {error}");
    }
    for x in [0, 1, 2, 511] {
        assert!(near_most(at(Function::Reciprocal, x, t, [40, 24]), 40), "{x}");
        assert!(near_most(-at(Function::Reciprocal, -x.max(1), t, [40, 24]), 40), "{x}");
    }
    // no logarithm or root of what is not positive
    for x in [0, -1, -unit, -most, -most - 1] {
        assert_eq!(at(Function::Log, x, t, t), at(Function::Log, 1, t, t), "{x}");
        let root = at(Function::Rsqrt, x, t, t) - (1 << 36);
        assert!(root.abs() <= 1 << 20, "{x}: {root}");
        assert_eq!(at(Function::Sqrt, x, t, t), 0, "{x}");
    }
    assert!(near_most(-at(Function::Log, 1, t, [28, 24]), 28));
}

#[test]
fn types_outside_the_limits_are_refused() {
    for (x, y) in [
        ([64, 1], [64, 24]),
        ([64, 31], [64, 24]),
        ([26, 24], [64, 24]),
        ([64, 24], [64, 31]),
        ([64, 24], [26, 24]),
    ] {
        assert!(plan(Function::Exp, &[3], x, y).unwrap_err().contains("fraction bits"), "{x:?} {y:?}");
    }
    assert!(plan(Function::Softmax { dim: 2 }, &[3, 4], [40, 24], [40, 24]).is_err());
    assert!(plan(Function::Softmax { dim: 0 }, &[(1 << 16) + 1], [40, 24], [40, 24]).is_err());
    assert!(plan(Function::Gelu, &[3], [40, 16], [32, 16]).unwrap_err().contains("needs"));
}

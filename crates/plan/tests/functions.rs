//! Smooth functions against double precision, within the bounds that docs/functions.md states.

use privet_plan::cost::{Cost, Operation, Prices, Security};
use privet_plan::functions::{Build, Function, emit};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::{Coins, interpret};
use privet_ring::{Ring, Tensor};
use std::collections::BTreeMap;

/// A family by whose prices functions are made in one of their ways.
#[derive(Clone, Copy, Debug, Default)]
struct Having {
    /// Waves, and no pieces; else pieces, and no waves.
    waves: bool,
    /// Pieces alone: neither waves nor exponentials.
    tables: bool,
    /// Neither waves nor quadratic pieces: few pieces of degree 5, and with `tables` one polynomial of degree 6.
    quintic: bool,
    /// Neither waves nor quadratic pieces, nor six coefficients: pieces of degree 3 where results have few fraction bits.
    cubic: bool,
    /// Exponentials are of twice their operand.
    twice: bool,
    /// A gate costs something: few gates are best.
    few: bool,
    /// A truncation within one unit costs less than one by coins.
    near: bool,
}

impl Prices for Having {
    fn protocol(&self) -> &'static str {
        "none"
    }
    fn security(&self) -> Security {
        Security::SemiHonest
    }
    fn has(&self, op: &Op) -> bool {
        if let Op::Exponential { scale, .. } = op {
            return !self.tables && (*scale == 1) == self.twice;
        }
        match op.kind().as_str() {
            "waves" => self.waves,
            "piecewise" => !self.waves && !self.quintic && !self.cubic,
            "lookup" => !self.cubic || !matches!(op, Op::Lookup { tables } if tables.len() == 6),
            _ => true,
        }
    }
    fn operation(&self, of: &Operation<'_>) -> Cost {
        let dearer = self.near && matches!(of.op, Op::Dither { .. });
        Cost { rounds: u64::from(self.few) + u64::from(dearer), ..Cost::default() }
    }
    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

/// The plan with every truncation that may be off by a unit off by it.
fn off_by(plan: Plan, unit: i64) -> Plan {
    let (mut map, mut nodes) = (Vec::new(), Vec::new());
    for mut node in plan.nodes {
        node.inputs.iter_mut().for_each(|i| *i = map[*i]);
        let loose = matches!(node.op, Op::Truncate { rounding: Rounding::OneUlp, .. });
        let (ty, layer) = (node.ty.clone(), node.layer.clone());
        nodes.push(node);
        if loose {
            let (op, inputs) = (Op::AddConst { value: unit }, vec![nodes.len() - 1]);
            nodes.push(Node { op, inputs, ty, layer, form: None });
        }
        map.push(nodes.len() - 1);
    }
    let moved = |o: Output| Output { value: map[o.value], ..o };
    let outputs = plan.outputs.into_iter().map(moved).collect();
    Plan { nodes, outputs, ..plan }
}

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
    let sextic = Having { tables: true, quintic: true, ..default };
    all.extend([Having { tables: true, ..default }, Having { quintic: true, ..default }, sextic].map(made));
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

/// What coins a run may meet.
#[derive(Clone, Copy)]
enum Drawn {
    None,
    Least,
    Most,
    Random(u64),
}

impl Coins for Drawn {
    fn draw(&mut self, node: usize, count: usize, bits: u32) -> Option<Vec<u64>> {
        let mask = Ring::new(bits).mask();
        match self {
            Drawn::None => None,
            Drawn::Least => Some(vec![0; count]),
            Drawn::Most => Some(vec![mask; count]),
            Drawn::Random(seed) => {
                let mut next = words(*seed ^ (node as u64) << 32);
                Some((0..count).map(|_| next() & mask).collect())
            }
        }
    }
}

/// The signed integers that the plan makes of signed integers.
fn run(plan: &Plan, x: &[i64], mut coins: Drawn) -> Vec<i64> {
    let ty = &plan.nodes[0].ty;
    let ring = Ring::new(ty.bits);
    let data = x.iter().map(|&v| ring.wrap(v as u64)).collect();
    let inputs = BTreeMap::from([("x".to_string(), Tensor::new(ty.shape.clone(), data).unwrap())]);
    let out = interpret(plan, &inputs, &BTreeMap::new(), &mut coins).unwrap();
    let ring = Ring::new(plan.nodes[plan.outputs[0].value].ty.bits);
    out[0].data().iter().map(|&v| ring.signed(v)).collect()
}

/// A reproducible stream of words.
fn words(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Every binade and its edges, multiples of 2^-9 near zero (each `skip`-th of them) and their neighbours, the ends of the type, random numbers of
/// every size.
fn operands(bits: u32, frac: u32, random: usize, skip: usize) -> Vec<i64> {
    let ring = Ring::new(bits);
    let most = (ring.mask() >> 1) as i64;
    let mut all = vec![0, most, most - 1, -most, -most - 1];
    let both = |all: &mut Vec<i64>, v: i64| all.extend([v - 1, v, v + 1, 1 - v, -v, -v - 1]);
    for e in 0..bits - 1 {
        for quarter in 4..8 {
            both(&mut all, ((quarter as i128) << e >> 2) as i64);
        }
    }
    for knot in (0..40 * 512i64).step_by(skip) {
        both(&mut all, knot << frac >> 9);
    }
    // where sums of waves end
    for end in [5.6, 6.0, 16.8, 19.9] {
        let end = (end * 2f64.powi(frac as i32)).ceil() as i64;
        (end - 3..=end + 3).for_each(|v| both(&mut all, v));
    }
    let mut next = words(7);
    for i in 0..random {
        let size = 2 + i as u32 % (bits - 1);
        all.push(Ring::new(size).signed(Ring::new(size).wrap(next())));
    }
    all.into_iter().filter(|v| (-most - 1..=most).contains(v)).collect()
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
    for having in [pieces, waves, Having { quintic: true, ..pieces }] {
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

/// Lines of classes that a softmax may find hard: all equal, a few large ones, one beside many that count together or just do not, every unit
/// interval and its ends, anything.
fn lines_of_classes(rows: usize, classes: usize, most: f64) -> Vec<f64> {
    let mut next = words(classes as u64);
    let mut all = Vec::new();
    for row in 0..rows {
        let depth = (row / 8 % 20) as f64;
        let shift = (next() as f64 / 2f64.powi(64) - 0.5) * most;
        for class in 0..classes {
            let u = next() as f64 / 2f64.powi(64) * 2.0 - 1.0;
            let v = match row % 8 {
                0 => 0.0,
                1 if class % 100 == 7 => most / 2.0,
                1 => -most / 2.0,
                // one, and all others a given way below it
                2 if class == row % classes => 0.0,
                2 => -depth,
                3 if class == row % classes => 0.0,
                3 => -depth - 0.5 + u / 8.0,
                // two that share, in different parts of their unit intervals
                4 if class == 0 => 0.49,
                4 if class == 1 => u / 2.0,
                4 => -most / 4.0,
                5 => 4.0 * u,
                6 => -f64::min(class as f64, most) / 2.0,
                _ => u * most / 2.0,
            };
            all.push(v + if row % 3 == 0 { 0.0 } else { shift / 2.0 });
        }
    }
    all
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
    assert_eq!(count, 12);
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

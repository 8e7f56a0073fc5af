//! Stochastic rounding is exact whatever the operand's mask is made of: constants, copies, multiples, public zeros.
//!
//! Counts of n independent coins are off their mean by more than `t n` with probability at most `2 exp(-2 n t^2)`
//! (Hoeffding). t is chosen for 2^-60; there are fewer than 2^12 counts, so a false alarm has probability below 2^-48.

mod common;

use common::{NUMBER, World};
use privet_fss::{SessionMasks, mask_coins};
use privet_plan::interpret;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::suite::constant;
use privet_prg::Seed;
use privet_ring::Ring;
use privet_testkit::Mesh;

const N: usize = 8192;
const SHIFT: u32 = 4;

/// How the operand of the rounding is made of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Made {
    /// `factor x + c`, every element with a mask of its own.
    Multiple(i64),
    /// `x + x + c`.
    Twice,
    /// Copies of one element, plus c: all have the same mask.
    Copies,
    /// Padding, plus c: the mask is zero, and so is x.
    Padding,
}

/// `rounded` twice over one operand of `bits` bits.
fn plan(made: Made, c: i64, bits: u32, ops: [Op; 2], to: u32) -> Plan {
    let mut nodes: Vec<Node> = Vec::new();
    let mut add = |op, inputs: &[usize], n: usize, bits: u32, frac: u32| {
        let ty = Type { shape: vec![n], bits, frac };
        nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None });
        nodes.len() - 1
    };
    let given = if matches!(made, Made::Copies | Made::Padding) { 1 } else { N };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let x = add(input, &[], given, bits, SHIFT);
    let x = match made {
        Made::Multiple(value) => add(Op::MulConst { value }, &[x], N, bits, SHIFT),
        Made::Twice => add(Op::Add, &[x, x], N, bits, SHIFT),
        Made::Copies => add(Op::Expand, &[x], N, bits, SHIFT),
        Made::Padding => add(Op::Pad { amounts: vec![[N - 1, 0]] }, &[x], N, bits, SHIFT),
    };
    let x = add(Op::AddConst { value: c }, &[x], N, bits, SHIFT);
    let ys = ops.map(|op| add(op, &[x], N, to, 0));
    let output = |value| Output { value, name: format!("y{value}"), to: "receiver".into() };
    let outputs = ys.map(output).to_vec();
    let plan = Plan {
        version: PLAN_VERSION,
        name: "rounding".into(),
        batch: given,
        nodes,
        outputs,
        updates: vec![],
    };
    plan.check().unwrap();
    plan
}

/// Rounded results of one run, both as integers.
fn run(plan: &Plan, x: u64) -> [Vec<i64>; 2] {
    let (found, ring) = (checked(plan, x), Ring::new(plan.nodes[plan.outputs[0].value].ty.bits));
    [0, 1].map(|i| found[i].iter().map(|&y| ring.signed(y)).collect())
}

/// Results of one run, checked against the interpreter with the protocol's coins.
fn checked(plan: &Plan, x: u64) -> Vec<Vec<u64>> {
    let operands = constant(plan, |_| x);
    let (session, record) = (Seed::random(), Seed::random());
    let (world, mut keys) = World::new(plan, &operands, &session, &record);
    let masks = SessionMasks::new(plan, world.device.as_ref(), &session);
    let mut coins = |v, _, _| mask_coins(plan, &masks, NUMBER, &record, v).unwrap();
    let truth = interpret(plan, &operands[0], &operands[1], &mut coins).unwrap();
    let [k0, k1] = &mut keys;
    let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
    let found = world.outputs([&y0, &y1]);
    for (found, truth) in found.iter().zip(&truth) {
        assert!(found == truth.data(), "not what the interpreter says with the record's coins");
    }
    found
}

/// `ones` of `n` independent coins of probability `p`.
#[track_caller]
fn fair(ones: usize, n: usize, p: f64, what: &str) {
    if p == 0.0 || p == 1.0 {
        return assert_eq!(ones as f64, p * n as f64, "{what}");
    }
    let most = (61.0 * 2f64.ln() / (2.0 * n as f64)).sqrt();
    let off = (ones as f64 / n as f64 - p).abs();
    assert!(off < most, "{what}: {ones} of {n} where {p} of all are due");
}

fn rounds_exactly(made: Made, c: i64, x: u64, bits: u32, to: u32) {
    let ops = [Op::Truncate { shift: SHIFT, rounding: Rounding::Stochastic }, Op::Dither { shift: SHIFT }];
    let plan = plan(made, c, bits, ops, to);
    let results = run(&plan, x);
    let value = match made {
        Made::Multiple(factor) => factor * x as i64 + c,
        Made::Twice => 2 * x as i64 + c,
        Made::Copies => x as i64 + c,
        Made::Padding => c,
    };
    let (floor, p) = (value >> SHIFT, (value & 15) as f64 / 16.0);
    let what = format!("{made:?} of {x} + {c}, {bits} to {to} bits");
    // the last element of the padding is x itself
    let elements = if made == Made::Padding { N - 1 } else { N };
    let ups = results.map(|ys| ys[..elements].iter().map(|y| y - floor).collect::<Vec<i64>>());
    for ups in &ups {
        assert!(ups.iter().all(|up| (0..=1).contains(up)), "{what}: neither down nor up");
        let up = ups.iter().filter(|&&up| up == 1).count();
        fair(up, elements, p, &what);
        // neighbours are independent, copies included
        let both = ups.chunks_exact(2).filter(|pair| pair == &[1, 1]).count();
        fair(both, elements / 2, p * p, &format!("{what}: neighbours"));
    }
    // and so are two roundings of one value
    let both = ups[0].iter().zip(&ups[1]).filter(|(a, b)| **a == 1 && **b == 1).count();
    fair(both, elements, p * p, &format!("{what}: two roundings"));
}

#[test]
fn constants_multiples_copies_and_zeros_round_as_said() {
    for (bits, to) in [(20, 16), (20, 20)] {
        for c in 0..16 {
            rounds_exactly(Made::Multiple(16), c, 5, bits, to);
            rounds_exactly(Made::Padding, c, 5, bits, to);
        }
        for made in [
            Made::Multiple(1),
            Made::Multiple(2),
            Made::Multiple(-8),
            Made::Multiple(3),
            Made::Twice,
            Made::Copies,
        ] {
            for c in [0, 1, 7, 15, -1, 1000] {
                rounds_exactly(made, c, 13, bits, to);
            }
        }
    }
}

/// The largest and smallest values that a rounding which keeps its ring takes.
#[test]
fn the_ends_of_the_range_round_as_well() {
    let end = 1i64 << 18;
    for (x, c) in [(0, end - 1), (0, -end), (0, end - 15), (16, end - 257), (16, 15 - end)] {
        rounds_exactly(Made::Multiple(16), c, x, 20, 20);
    }
}

/// Products read the mask of a rounded value, of which the evaluators were dealt shares: in several frames, of two nodes, in rings of
/// one word and of less.
#[test]
fn products_of_rounded_values_are_exact() {
    const SIDE: usize = 192;
    for bits in [36, 64] {
        let mut nodes: Vec<Node> = Vec::new();
        let mut add = |op, inputs: &[usize], shape: &[usize], bits: u32, frac: u32| {
            let ty = Type { shape: shape.to_vec(), bits, frac };
            nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None });
            nodes.len() - 1
        };
        let mut input = |name: &str, bits, frac| {
            let op = Op::Input { name: name.into(), owner: "data_owner".into(), limit: 1.0 };
            add(op, &[], &[SIDE, SIDE], bits, frac)
        };
        let [x, w] = [input("x", bits, SHIFT), input("w", bits - SHIFT, 0)];
        let rounded = || Op::Truncate { shift: SHIFT, rounding: Rounding::Stochastic };
        let [y, z] = [(); 2].map(|()| add(rounded(), &[x], &[SIDE, SIDE], bits - SHIFT, 0));
        let values = [[y, w], [w, z], [y, z]].map(|x| add(Op::MatMul, &x, &[SIDE, SIDE], bits - SHIFT, 0));
        let output = |value| Output { value, name: format!("y{value}"), to: "receiver".into() };
        let outputs = values.map(output).to_vec();
        let version = PLAN_VERSION;
        let plan = Plan { version, name: "product".into(), batch: SIDE, nodes, outputs, updates: vec![] };
        plan.check().unwrap();
        checked(&plan, 0x0123_4567_89ab_cdef);
    }
}

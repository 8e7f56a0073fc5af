//! Functions made in one way or another, and what a plan of one makes of integers under coins of every kind.

use privet_plan::cost::{Cost, Operation, PerParty, Prices, Security};
use privet_plan::ir::{Node, Op, Output, Plan, Rounding, Type};
use privet_plan::{Coins, interpret};
use privet_ring::{Ring, Tensor};
use std::collections::BTreeMap;

/// A family by whose prices functions are made in one of their ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Having {
    /// Waves, and no pieces; else pieces, and no waves.
    pub waves: bool,
    /// Pieces alone: neither waves nor exponentials.
    pub tables: bool,
    /// Neither waves nor quadratic pieces: few pieces of a higher degree, and with `tables` one polynomial of degree 6.
    pub polynomials: bool,
    /// Neither waves nor quadratic pieces, nor six coefficients: pieces of degree 3 where results have few fraction bits.
    pub cubic: bool,
    /// Exponentials are of twice their operand.
    pub twice: bool,
    /// A gate costs something: few gates are best.
    pub few: bool,
    /// A truncation within one unit costs less than one by coins.
    pub near: bool,
    /// A truncation to the nearest costs more than anything else.
    pub inexact: bool,
    /// Products of many elements cost more than those of few.
    pub sized: bool,
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
            "piecewise" => !self.waves && !self.polynomials && !self.cubic,
            "lookup" => !self.cubic || !matches!(op, Op::Lookup { tables } if tables.len() >= 6),
            _ => true,
        }
    }
    fn operation(&self, of: &Operation<'_>) -> Cost {
        let dearer = self.near && matches!(of.op, Op::Dither { .. });
        let exact = self.inexact && matches!(of.op, Op::Truncate { rounding: Rounding::Floor, .. });
        let rounds = u64::from(self.few) + u64::from(dearer) + 1000 * u64::from(exact);
        let sized = self.sized && *of.op == Op::Mul;
        let wire_bytes = if sized { 1_000_000 * of.elements() } else { 0 };
        Cost { rounds, wire_bytes: PerParty::alike(wire_bytes), ..Cost::default() }
    }
    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

/// The plan with every truncation that may be off by a unit off by it.
pub fn off_by(plan: Plan, unit: i64) -> Plan {
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

/// What coins a run may meet.
#[derive(Clone, Copy)]
pub enum Drawn {
    None,
    Least,
    Most,
    /// The least for some nodes and the most for others.
    Ends(u64),
    Random(u64),
}

impl Coins for Drawn {
    fn draw(&mut self, node: usize, count: usize, bits: u32) -> Option<Vec<u64>> {
        let mask = Ring::new(bits).mask();
        match self {
            Drawn::None => None,
            Drawn::Least => Some(vec![0; count]),
            Drawn::Most => Some(vec![mask; count]),
            Drawn::Ends(seed) => {
                let most = words(*seed ^ (node as u64) << 32)() % 2 == 1;
                Some(vec![if most { mask } else { 0 }; count])
            }
            Drawn::Random(seed) => {
                let mut next = words(*seed ^ (node as u64) << 32);
                Some((0..count).map(|_| next() & mask).collect())
            }
        }
    }
}

/// The signed integers that the plan makes of those of its input.
pub fn run(plan: &Plan, x: &[i64], coins: Drawn) -> Vec<i64> {
    run_all(plan, &[x], coins)
}

/// The signed integers that the plan makes of those of its inputs, which are its first nodes.
pub fn run_all(plan: &Plan, all: &[&[i64]], mut coins: Drawn) -> Vec<i64> {
    let input = |(node, numbers): (&Node, &&[i64])| {
        let Op::Input { name, .. } = &node.op else { panic!("{:?} is no input", node.op) };
        let ring = Ring::new(node.ty.bits);
        let data = numbers.iter().map(|&v| ring.wrap(v as u64)).collect();
        (name.clone(), Tensor::new(node.ty.shape.clone(), data).unwrap())
    };
    let inputs: BTreeMap<_, _> = plan.nodes.iter().zip(all).map(input).collect();
    let out = interpret(plan, &inputs, &BTreeMap::new(), &mut coins).unwrap();
    let ring = Ring::new(plan.nodes[plan.outputs[0].value].ty.bits);
    out[0].data().iter().map(|&v| ring.signed(v)).collect()
}

/// A reproducible stream of words.
pub fn words(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Every binade and its edges, multiples of 2^-9 near zero (each `skip`-th of them) and their neighbours, the ends of the type, random numbers of
/// every size.
pub fn operands(bits: u32, frac: u32, random: usize, skip: usize) -> Vec<i64> {
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

/// Lines of classes that a softmax may find hard: all equal, a few large ones, one beside many that count together or just do not, every unit
/// interval and its ends, anything.
pub fn lines_of_classes(rows: usize, classes: usize, most: f64) -> Vec<f64> {
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

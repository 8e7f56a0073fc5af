//! What one evaluator sees is uniform *given what it holds*: its own seeds stay as they are, the other evaluator's and the
//! dealer's are drawn anew, and whatever reaches it must be new as well.
//!
//! A view is one row of bits: masked inputs and weights, key frames, and every opened value (what is received is the opened
//! value minus what this evaluator sends, which follows from the rest). For every gate and either evaluator:
//!
//! - *No affine relation.* With R rows of N uniform bits, the probability that any of the 2^(N+1) affine combinations of
//!   columns is the same in all rows is below `2^(N + 1 - R)`; R is at least `N + 1 + SURE`. This finds known, missing and
//!   repeated masks, in one bit or as the difference of ring elements (whose lowest bits add up).
//! - *No correlation.* Every bit is balanced, and so is the parity of any two or three of some chosen ones: each of P
//!   parities is off by more than `t R / 2` with probability at most `2 exp(-R t^2 / 2)` (Hoeffding), and t is chosen so
//!   that all of them together stay below `2^-SURE`. A product of two bits (correlation 1/2) is far beyond t.
//!
//! `SURE` is 60 and there are fewer than 2^8 tests: a false alarm has probability below 2^-52.

mod common;

use common::{World, in_form};
use privet_family::{Class, Forecast, When};
use privet_fss::{Fss, PartyId, PartySeed, RecordSeeds, SessionSeeds};
use privet_plan::Form;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type, Update};
use privet_plan::suite::{Operands, constant};
use privet_prg::{HashKeys, Seed};
use privet_ring::{Conv2d, Pool2d, Ring, unpack};
use privet_testkit::Mesh;

/// -log2 of the probability of a false alarm of one test.
const SURE: usize = 60;
/// Rows at least, so that a correlation of 1/2 stands out.
const ROWS: usize = 800;
/// Bits of which parities are tested.
const PROBES: usize = 48;

/// A part of a view: so many bits, called so.
struct Part {
    name: String,
    bits: usize,
}

/// One row, and the names of its parts.
#[derive(Default)]
struct View {
    parts: Vec<Part>,
    bits: Vec<bool>,
    /// Columns worth a closer look: first and last bits of ring elements and of key blocks.
    probes: Vec<usize>,
    /// Columns that may fill up a frame's last byte: zeros, which tell nothing.
    padding: Vec<usize>,
}

impl View {
    fn elements(&mut self, name: String, ring: Ring, words: &[u64]) {
        let k = ring.bits() as usize;
        self.parts.push(Part { name, bits: k * words.len() });
        for w in words {
            self.probes.extend([self.bits.len(), self.bits.len() + k - 1]);
            self.bits.extend((0..k).map(|j| w >> j & 1 == 1));
        }
    }

    fn bytes(&mut self, name: String, bytes: &[u8]) {
        self.parts.push(Part { name, bits: 8 * bytes.len() });
        for (i, b) in bytes.iter().enumerate() {
            if i % 8 == 0 {
                self.probes.push(self.bits.len());
            }
            self.bits.extend((0..8).map(|j| b >> j & 1 == 1));
        }
        self.padding.extend(self.bits.len() - 7..self.bits.len());
    }

    fn name(&self, mut column: usize) -> String {
        for part in &self.parts {
            if column < part.bits {
                return format!("bit {column} of {}", part.name);
            }
            column -= part.bits;
        }
        "nothing".into()
    }
}

/// What evaluator `b` holds whatever the others draw.
struct Held {
    record: Seed,
    session: Seed,
    hash: HashKeys,
    state: Seed,
}

impl Held {
    fn random() -> Held {
        let hash = HashKeys::from_seed(&Seed::random());
        Held { record: Seed::random(), session: Seed::random(), hash, state: Seed::random() }
    }
}

/// One run in which all but `held` is new.
fn view(plan: &Plan, operands: &[Operands; 2], b: usize, held: &Held) -> View {
    let seeds = |own: &Seed| {
        let of = |party: PartyId| if party.index() == b { own.clone() } else { Seed::random() };
        PartyId::BOTH.map(|party| PartySeed::new(party, of(party)))
    };
    let session = SessionSeeds { parties: seeds(&held.session), hash: held.hash };
    let record = RecordSeeds { parties: seeds(&held.record), dealer: Seed::random() };
    let states = |_: usize| held.state.clone();
    let (world, mut keys) = World::with(plan, [&operands[0], &operands[1]], session, record, &states);
    let mut view = View::default();
    for (v, node) in plan.nodes.iter().enumerate() {
        let masked = match &node.op {
            Op::Weight { name, .. } => world.weights.get(name),
            _ => world.inputs.get(&v),
        };
        if let Some(masked) = masked {
            view.elements(format!("masked operand {v}"), Ring::new(node.ty.bits), masked);
        }
    }
    for (i, frame) in keys[b].frames().enumerate() {
        view.bytes(format!("key frame {i}"), frame);
    }
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let [k0, k1] = &mut keys;
    let _ = world.run([k0, k1], mesh).map(Result::unwrap);
    let sent = |party| log.of(party).into_iter().filter(|m| !m.bytes.is_empty());
    let mut openings = sent(0).zip(sent(1));
    for planned in Fss.openings(plan) {
        let run = planned.when == When::Run && planned.class == Class::Masked;
        if !run || planned.node.is_some_and(|v| matches!(plan.nodes[v].op, Op::Input { .. })) {
            continue;
        }
        let (x, y) = openings.next().expect("an opening that was planned");
        let (n, ring) = (planned.elements as usize, Ring::new((planned.bits / planned.elements) as u32));
        let [x, y] = [x, y].map(|m| unpack(ring, &m.bytes, n).unwrap());
        view.elements(format!("opened `{}`", planned.what), ring, &common::add(ring, &x, &y));
    }
    assert!(openings.next().is_none(), "an opening that was not planned");
    view
}

/// Columns as packed bits, row by row.
struct Columns(Vec<Vec<u64>>);

impl Columns {
    fn new(rows: &[View]) -> Columns {
        let mut columns = vec![vec![0u64; rows.len().div_ceil(64)]; rows[0].bits.len()];
        for (r, row) in rows.iter().enumerate() {
            assert_eq!(row.bits.len(), columns.len(), "what is sent has another length");
            for (column, &bit) in columns.iter_mut().zip(&row.bits) {
                column[r / 64] |= u64::from(bit) << (r % 64);
            }
        }
        Columns(columns)
    }

    /// The first column that is an affine function of earlier ones, in every row.
    fn dependent(&self, rows: usize, padding: &[usize]) -> Option<usize> {
        let ones: Vec<u64> = (0..rows.div_ceil(64))
            .map(|w| if rows - 64 * w >= 64 { u64::MAX } else { (1 << (rows % 64)) - 1 })
            .collect();
        let mut basis: Vec<(usize, Vec<u64>)> = vec![(0, ones)];
        for (c, column) in self.0.iter().enumerate() {
            if padding.contains(&c) && column.iter().all(|w| *w == 0) {
                continue;
            }
            let mut rest = column.clone();
            for (pivot, b) in &basis {
                if rest[pivot / 64] >> (pivot % 64) & 1 == 1 {
                    rest.iter_mut().zip(b).for_each(|(r, b)| *r ^= b);
                }
            }
            match rest.iter().position(|w| *w != 0) {
                Some(w) => basis.push((64 * w + rest[w].trailing_zeros() as usize, rest)),
                None => return Some(c),
            }
        }
        None
    }

    /// Ones of the parity of some columns.
    fn parity(&self, columns: &[usize]) -> usize {
        let words = self.0[0].len();
        let word = |w: usize| columns.iter().fold(0, |sum, &c| sum ^ self.0[c][w]);
        (0..words).map(|w| word(w).count_ones() as usize).sum()
    }
}

/// At most `PROBES` of them, evenly spread.
fn probes(all: &[usize]) -> Vec<usize> {
    let mut some: Vec<usize> = match all.len() <= PROBES {
        true => all.to_vec(),
        false => (0..PROBES).map(|i| all[i * all.len() / PROBES]).collect(),
    };
    some.dedup();
    some
}

/// All subsets of one, two or three.
fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (i, &a) in of.iter().enumerate() {
        all.push(vec![a]);
        for (j, &b) in of.iter().enumerate().skip(i + 1) {
            all.push(vec![a, b]);
            all.extend(of[j + 1..].iter().map(|&c| vec![a, b, c]));
        }
    }
    all
}

/// What is wrong with the view, if anything is.
fn found(plan: &Plan, operands: &[Operands; 2], b: usize) -> Result<(), String> {
    let held = Held::random();
    let first = view(plan, operands, b, &held);
    let rows = (first.bits.len() + 1 + SURE).max(ROWS);
    let mut views = vec![first];
    views.extend((1..rows).map(|_| view(plan, operands, b, &held)));
    let columns = Columns::new(&views);
    let name = |c: usize| views[0].name(c);
    if let Some(c) = columns.dependent(rows, &views[0].padding) {
        return Err(format!("{} follows from what is seen before it", name(c)));
    }
    let mut parities = subsets(&probes(&views[0].probes));
    // and every bit by itself: what is 1 more often than not, or less, need not follow from anything
    parities.extend((0..columns.0.len()).filter(|c| !views[0].padding.contains(c)).map(|c| vec![c]));
    let sure = ((2 * parities.len()) as f64).ln() + SURE as f64 * 2f64.ln();
    let most = (2.0 * sure / rows as f64).sqrt();
    assert!(most < 0.42, "too few rows to find a correlation of 1/2");
    for parity in parities {
        let correlation = 2.0 * columns.parity(&parity) as f64 / rows as f64 - 1.0;
        if correlation.abs() > most {
            let names: Vec<String> = parity.iter().map(|&c| name(c)).collect();
            return Err(format!("correlation {correlation:.2} of {}", names.join(" and ")));
        }
    }
    Ok(())
}

/// Writes a small plan.
struct Write(Plan);

impl Write {
    fn new(name: &str) -> Write {
        let (nodes, outputs, updates) = (vec![], vec![], vec![]);
        Write(Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs, updates })
    }

    fn add(&mut self, op: Op, inputs: &[usize], shape: &[usize], [bits, frac]: [u32; 2]) -> usize {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        let layer = format!("node{}", self.0.nodes.len());
        self.0.nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer, form: None });
        self.0.nodes.len() - 1
    }

    fn input(&mut self, shape: &[usize], ty: [u32; 2]) -> usize {
        let name = format!("x{}", self.0.nodes.len());
        self.add(Op::Input { name, owner: "data_owner".into(), limit: 1.0 }, &[], shape, ty)
    }

    fn weight(&mut self, shape: &[usize], bits: u32) -> usize {
        let name = format!("w{}", self.0.nodes.len());
        self.add(Op::Weight { name, owner: "model_owner".into() }, &[], shape, [bits, 0])
    }

    fn done(mut self, output: usize) -> Plan {
        self.0.batch = self.0.nodes[0].ty.shape.first().copied().unwrap_or(1);
        self.0.outputs = vec![Output { value: output, name: "y".into(), to: "receiver".into() }];
        self.0.check().unwrap_or_else(|e| panic!("{}: {e}", self.0.name));
        self.0
    }
}

/// One operation of one operand.
fn unary(name: &str, op: Op, from: [u32; 2], to: [u32; 2]) -> Plan {
    let mut w = Write::new(name);
    let x = w.input(&[2], from);
    let y = w.add(op, &[x], &[2], to);
    w.done(y)
}

/// One operation of two operands of the same type.
fn binary(name: &str, op: Op, from: u32, to: u32) -> Plan {
    let mut w = Write::new(name);
    let (x, y) = (w.input(&[2], [from, 0]), w.input(&[2], [from, 0]));
    let z = w.add(op, &[x, y], &[2], [to, 0]);
    w.done(z)
}

fn truncation(name: &str, rounding: Rounding, to: u32) -> Plan {
    unary(name, Op::Truncate { shift: 3, rounding }, [7, 3], [to, 0])
}

fn pool(name: &str) -> Plan {
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0; 2], dilation: [1; 2], ceil_mode: false };
    let mut w = Write::new(name);
    let x = w.input(&[1, 1, 2, 2], [6, 0]);
    let y = w.add(Op::MaxPool2d { window }, &[x], &[1, 1, 1, 1], [6, 0]);
    w.done(y)
}

fn argmax() -> Plan {
    let mut w = Write::new("argmax");
    let x = w.input(&[1, 4], [6, 0]);
    let y = w.add(Op::Argmax { dim: 1 }, &[x], &[1], [4, 0]);
    w.done(y)
}

fn select() -> Plan {
    let mut w = Write::new("select");
    let [c, x, y] = [0; 3].map(|_| w.input(&[2], [6, 0]));
    let s = w.add(Op::Select, &[c, x, y], &[2], [6, 0]);
    w.done(s)
}

fn choose() -> Plan {
    let mut w = Write::new("choose, twice by one bit");
    let (b, x) = (w.input(&[2], [1, 0]), w.input(&[2], [6, 0]));
    let y = w.add(Op::Choose, &[b, x], &[2], [6, 0]);
    w.add(Op::Choose, &[b, x], &[2], [6, 0]);
    w.done(y)
}

fn scale() -> Plan {
    let mut w = Write::new("scale");
    let x = w.input(&[3], [9, 0]);
    let p = w.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], [9, 0]);
    let y = w.add(Op::Scale, &[x, p], &[3], [9, 0]);
    w.done(y)
}

fn dropout() -> Plan {
    let mut w = Write::new("dropout, then a product");
    let x = w.input(&[8], [9, 0]);
    let y = w.add(Op::Dropout { stream: 0, keep: 1 << 31 }, &[x], &[8], [9, 0]);
    let z = w.add(Op::Mul, &[y, x], &[8], [9, 0]);
    w.done(z)
}

fn table(name: &str, op: Op, from: [u32; 2], rows: Option<usize>) -> Plan {
    let mut w = Write::new(name);
    let x = w.input(&[2], from);
    let shape: Vec<usize> = rows.into_iter().chain([2]).collect();
    let y = w.add(op, &[x], &shape, [64, 0]);
    w.done(y)
}

fn linear() -> Plan {
    let mut w = Write::new("linear, then a product of secrets");
    let (x, a, bias) = (w.input(&[1, 2], [9, 0]), w.weight(&[2, 2], 9), w.weight(&[2], 9));
    let y = w.add(Op::Linear, &[x, a, bias], &[1, 2], [9, 0]);
    let turned = w.add(Op::Permute { dims: vec![1, 0] }, &[y], &[2, 1], [9, 0]);
    let z = w.add(Op::MatMul, &[turned, y], &[2, 2], [9, 0]);
    w.done(z)
}

fn convolution() -> Plan {
    let geometry = Conv2d {
        batch: 1,
        in_channels: 1,
        input: [2, 2],
        out_channels: 2,
        kernel: [2, 1],
        stride: [1; 2],
        padding: [0; 4],
        dilation: [1; 2],
        groups: 1,
    };
    let mut w = Write::new("convolution");
    let (x, f, bias) = (w.input(&[1, 1, 2, 2], [9, 0]), w.weight(&[2, 1, 2, 1], 9), w.weight(&[2], 9));
    let y = w.add(Op::Conv2d { geometry }, &[x, f, bias], &[1, 2, 1, 2], [9, 0]);
    w.done(y)
}

fn states() -> Plan {
    let mut w = Write::new("two states, one updated");
    let state = |name: &str| Op::State { name: name.into(), owner: "model_owner".into() };
    let (a, b) = (w.add(state("a"), &[], &[3], [9, 0]), w.add(state("b"), &[], &[3], [9, 0]));
    let y = w.add(Op::Mul, &[a, b], &[3], [9, 0]);
    w.0.updates = vec![Update { state: a, value: y }];
    w.done(y)
}

/// A plan for every operation that opens or deals anything.
fn plans() -> Vec<Plan> {
    let pieces = vec![[3, -2, 1], [40, 5, -1]];
    let tables = vec![vec![1, -5, 7, 9], vec![3, 2, 1, 0]];
    vec![
        unary("relu", Op::Relu, [6, 0], [6, 0]),
        unary("relu with a level", Op::Relu, [9, 0], [9, 0]),
        unary("relu into a larger ring", Op::Relu, [6, 0], [9, 0]),
        unary("sign", Op::IsNegative, [6, 0], [5, 0]),
        unary("sign bit", Op::IsNegative, [6, 0], [1, 0]),
        unary("extend", Op::Extend, [6, 0], [9, 0]),
        truncation("truncate, down", Rounding::Floor, 4),
        truncation("truncate, down, kept", Rounding::Floor, 7),
        truncation("truncate, one unit", Rounding::OneUlp, 4),
        truncation("truncate, stochastic", Rounding::Stochastic, 4),
        truncation("truncate, stochastic, kept", Rounding::Stochastic, 7),
        unary("dither", Op::Dither { shift: 3 }, [7, 3], [4, 0]),
        binary("equal", Op::Equal, 6, 4),
        binary("product", Op::Mul, 6, 6),
        binary("maximum", Op::Max, 6, 6),
        pool("pool"),
        argmax(),
        select(),
        choose(),
        scale(),
        dropout(),
        table("look-up", Op::Lookup { tables }, [2, 0], Some(2)),
        table("quadratics", Op::Piecewise { shift: 3, pieces }, [4, 0], None),
        table("exponential", Op::Exponential { first: 20, rows: vec![(-1, 20)] }, [9, 8], Some(1)),
        unary("waves", Op::Waves { step: 1, digits: 4, waves: vec![[9, -5], [2, 3]] }, [6, 0], [9, 0]),
        linear(),
        convolution(),
        states(),
    ]
}

/// Comparisons by chunks: every gate in one form of two levels, and one gate in forms of none, one and three.
fn chunked() -> Vec<Plan> {
    let formed = |mut plan: Plan, width: u8, fan: u8| {
        let form = Form::Chunks { width, fan };
        plan.name = format!("{}, {form}", plan.name);
        in_form(&plan, form).into_iter().map(move |formed| Plan { name: plan.name.clone(), ..formed })
    };
    let mut all: Vec<Plan> = plans().into_iter().flat_map(|plan| formed(plan, 2, 2)).collect();
    for (width, fan) in [(8, 2), (3, 9), (1, 2)] {
        all.extend(formed(unary("relu", Op::Relu, [6, 0], [6, 0]), width, fan));
        all.extend(formed(binary("equal", Op::Equal, 6, 4), width, fan));
    }
    all
}

/// The same small value in all elements: within the range of every operation.
fn operands(plan: &Plan) -> [Operands; 2] {
    constant(plan, |ring| 1 << ring.bits().saturating_sub(4))
}

fn nothing_is_found_by(b: usize) {
    for plan in plans().into_iter().chain(chunked()) {
        if let Err(what) = found(&plan, &operands(&plan), b) {
            panic!("{}: evaluator {b} learns something: {what}", plan.name);
        }
    }
}

#[test]
fn evaluator_0_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found_by(0);
}

#[test]
fn evaluator_1_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found_by(1);
}

/// Every operation that opens something is in a plan.
#[test]
fn no_gate_is_left_out() {
    let tested: std::collections::BTreeSet<String> =
        plans().iter().flat_map(|plan| plan.nodes.iter().map(|node| node.op.kind())).collect();
    use privet_plan::suite::{cases, optional_cases, training_cases};
    for case in cases().into_iter().chain(training_cases()).chain(optional_cases()) {
        for node in &case.plan.nodes {
            let opens = Fss.openings(&case.plan).iter().any(|o| {
                o.class == Class::Masked
                    && o.node.is_some_and(|v| case.plan.nodes[v].op.kind() == node.op.kind())
            });
            assert!(!opens || tested.contains(&node.op.kind()), "`{}` is in no plan here", node.op.kind());
        }
    }
}

//! The plans that every protocol family must run exactly as the interpreter does: one list, no copies.
//!
//! Behind the feature `suite`; a family's test draws operands with [`Case::operands`], runs the protocol, and
//! compares with [`crate::interpret`] ([`Case::compare`]). A new operation gets all families' tests by being added to
//! [`cases`]. Here is also what tests of secrecy share: fixed inputs, and what judges whether messages are uniform.

mod chi;
mod cuts;
mod joined;
mod lowered;
mod numbers;
mod plans;
mod small;
mod tally;
mod toll;
mod view;
pub mod workload;

pub use chi::{ChiSquare, LIMIT};
pub use joined::joined_cases;
pub use lowered::{LoweredStep, lowered_step, lowered_steps};
pub use numbers::Numbers;
pub use plans::{constant, gate};
pub use small::{in_form, small_chunked, small_operands, small_plans};
pub use tally::{Fill, Tally, fixed_inputs};
pub use toll::Toll;
pub use view::{View, unseen};

use crate::cost::{Cost, Network, Operation, Prices, Security};
use crate::functions::{Build, Function, emit};
use crate::ir::{MOST_CHOSEN_BY, Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type, Update};
pub use crate::lower::overlapped;
use crate::waves::MOST_COEFFICIENT;
use privet_ring::{Conv2d, Pool2d, Ring, Tensor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The repository, two folders above the crate that cargo runs. It is known when a test runs and not before: what was built in one
/// checkout may run in another.
///
/// # Panics
/// Where neither cargo nor a script that says as much (`scripts/test-rust.sh`, `scripts/mutations.sh`) runs the program.
pub fn repository() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo or scripts/test-rust.sh runs tests");
    Path::new(&here).join("../..")
}

/// One plan of the suite.
pub struct Case {
    /// What it exercises.
    pub name: String,
    /// The plan.
    pub plan: Plan,
}

/// Operands by name.
pub type Operands = BTreeMap<String, Tensor>;

impl Case {
    /// Inputs with public numbers, and weights with states: a mix of uniform elements and the edges of the ring. `random` gives uniform words.
    pub fn operands(&self, random: &mut dyn FnMut() -> u64) -> [Operands; 2] {
        let mut operands = [Operands::new(), Operands::new()];
        for node in &self.plan.nodes {
            let (which, name) = match &node.op {
                Op::Input { name, .. } => (0, name),
                Op::Weight { name, .. } | Op::State { name, .. } => (1, name),
                Op::Public { name, .. } => (0, name),
                _ => continue,
            };
            let data = (0..node.ty.len()).map(|_| element(Ring::new(node.ty.bits), random)).collect();
            let tensor = Tensor::new(node.ty.shape.clone(), data).unwrap_or_default();
            operands[which].insert(name.clone(), tensor);
        }
        operands
    }
}

impl Case {
    /// Fails unless a protocol's outputs are the interpreter's, or as near as the plan allows ([`crate::slack()`]).
    #[track_caller]
    pub fn compare(&self, found: &[Vec<u64>], truth: &[Tensor]) {
        self.compare_within(1, found, truth);
    }

    /// The same for a family whose truncations within a unit may be off by `units` ([`crate::slack_within`]).
    #[track_caller]
    pub fn compare_within(&self, units: u64, found: &[Vec<u64>], truth: &[Tensor]) {
        let slack = crate::slack_within(&self.plan, units);
        assert_eq!(found.len(), truth.len(), "{}: number of outputs", self.name);
        for (i, (found, truth)) in found.iter().zip(truth).enumerate() {
            let value = self.plan.outputs[i].value;
            let ring = Ring::new(self.plan.nodes[value].ty.bits);
            let distance = |(a, b): (&u64, &u64)| ring.signed(a.wrapping_sub(*b)).unsigned_abs();
            let most = found.iter().zip(truth.data()).map(distance).max().unwrap_or(0);
            assert_eq!(found.len(), truth.len(), "{}: elements of output {i}", self.name);
            let Some(slack) = slack[value] else { panic!("{}: output {i} is not determined", self.name) };
            assert!(most <= slack, "{}: output {i} is off by {most}, and {slack} is allowed", self.name);
        }
    }
}

/// Uniform half of the time; else near zero, near the middle of the ring, or of small magnitude.
fn element(ring: Ring, random: &mut dyn FnMut() -> u64) -> u64 {
    let (choice, r) = (random() % 8, random());
    let near = (r % 5).wrapping_sub(2);
    let middle = 1u64 << (ring.bits() - 1);
    ring.wrap(match choice {
        0 => near,
        1 => middle.wrapping_add(near),
        2 => (r as i64 >> (64 - ring.bits() / 2)) as u64,
        3 => 1u64 << (r % ring.bits() as u64),
        _ => r,
    })
}

/// Builds a plan node by node.
struct Builder(Plan);

impl Builder {
    fn new(name: &str) -> Builder {
        Builder(Plan {
            version: PLAN_VERSION,
            name: name.into(),
            batch: 1,
            nodes: vec![],
            outputs: vec![],
            updates: vec![],
        })
    }

    fn add(&mut self, op: Op, inputs: &[usize], shape: &[usize], bits: u32) -> usize {
        let ty = Type { shape: shape.to_vec(), bits, frac: 0 };
        let layer = format!("node{}", self.0.nodes.len());
        self.0.nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer, form: None });
        self.0.nodes.len() - 1
    }

    fn input(&mut self, shape: &[usize], bits: u32) -> usize {
        let name = format!("x{}", self.0.nodes.len());
        self.add(Op::Input { name, owner: "data-owner".into(), limit: 1.0 }, &[], shape, bits)
    }

    fn weight(&mut self, shape: &[usize], bits: u32) -> usize {
        let name = format!("w{}", self.0.nodes.len());
        self.add(Op::Weight { name, owner: "model-owner".into() }, &[], shape, bits)
    }

    /// Read node `v` with `frac` fraction bits.
    fn frac(&mut self, v: usize, frac: u32) {
        self.0.nodes[v].ty.frac = frac;
    }

    fn done(mut self, outputs: &[usize]) -> Case {
        for (i, &value) in outputs.iter().enumerate() {
            self.0.outputs.push(Output { value, name: format!("y{i}"), to: "receiver".into() });
        }
        self.0.batch = self.0.nodes.iter().find_map(|n| n.ty.shape.first().copied()).unwrap_or(1);
        Case { name: self.0.name.clone(), plan: self.0 }
    }
}

fn unary(name: &str, op: Op, n: usize, from: u32, to: u32) -> Case {
    let mut b = Builder::new(&format!("{name} {from} to {to} bits, {n} elements"));
    let x = b.input(&[n], from);
    if let Op::Truncate { shift, .. } = op {
        b.frac(x, shift);
    }
    let y = b.add(op, &[x], &[n], to);
    b.done(&[y])
}

/// Every case.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (k, n) in [(2, 100), (8, 70), (9, 64), (13, 1), (32, 65), (40, 200), (63, 33), (64, 3000)] {
        all.push(unary("relu", Op::Relu, n, k, k));
        all.push(unary("sign", Op::IsNegative, n, k, k));
        all.push(unary("sign", Op::IsNegative, n, k, 5));
        all.push(binary("max", Op::Max, n, k, k));
        all.push(binary("equal", Op::Equal, n, k, 7));
        all.push(binary("mul", Op::Mul, n, k, k));
    }
    for (k, to, n) in [(2, 3, 50), (8, 16, 70), (20, 64, 130), (40, 64, 1000), (63, 64, 80), (31, 32, 64)] {
        all.push(unary("relu", Op::Relu, n, k, to));
        all.push(unary("extend", Op::Extend, n, k, to));
    }
    for (k, shift, n) in
        [(8, 1, 60), (9, 7, 60), (16, 12, 100), (32, 6, 65), (64, 24, 2000), (64, 63, 40), (64, 1, 10)]
    {
        for rounding in [Rounding::Floor, Rounding::Stochastic] {
            let op = Op::Truncate { shift, rounding };
            all.push(unary(&format!("truncate by {shift} {rounding:?}"), op, n, k, k - shift));
        }
    }
    all.extend([linear(64), linear(37), batched_matmul(), convolution(64, 1), convolution(24, 2)]);
    all.extend([max_pool([2, 2], [2, 2], [0, 0], false), max_pool([3, 3], [2, 2], [1, 1], true)]);
    all.extend([
        max_pool([3, 1], [1, 2], [1, 0], false),
        argmax(10),
        argmax(7),
        argmax(1),
        select(),
        local_ops(),
    ]);
    all.push(network());
    // Equal rings are allowed: nothing is gained, and nothing may overflow.
    for (k, n) in [(2, 8), (20, 70), (64, 70)] {
        all.push(unary("extend", Op::Extend, n, k, k));
    }
    for (k, shift, n) in [(8, 1, 70), (16, 12, 100), (64, 24, 500), (64, 63, 40)] {
        let op = Op::Truncate { shift, rounding: Rounding::OneUlp };
        all.push(unary(&format!("truncate by {shift} within one unit"), op, n, k, k - shift));
    }
    all.push(inexact());
    all.extend([
        smooth(Function::Exp, &[40], [64, 24], [64, 24]),
        smooth(Function::Exp, &[9], [28, 20], [30, 12]),
        smooth(Function::Reciprocal, &[40], [64, 24], [64, 24]),
        smooth(Function::Reciprocal, &[33], [30, 12], [24, 12]),
        smooth(Function::Log, &[30], [40, 24], [40, 24]),
        smooth(Function::Rsqrt, &[30], [48, 24], [40, 24]),
        smooth(Function::Sqrt, &[30], [33, 15], [40, 20]),
        smooth(Function::Sigmoid, &[30], [40, 24], [40, 24]),
        smooth(Function::Tanh, &[30], [40, 16], [64, 16]),
        smooth(Function::Erf, &[30], [24, 16], [40, 16]),
        smooth(Function::Sin, &[30], [24, 16], [40, 16]),
        smooth(Function::Floor, &[30], [24, 16], [40, 16]),
        smooth(Function::Gelu, &[30], [40, 24], [40, 24]),
        smooth(Function::Softmax { dim: 1 }, &[3, 7, 2], [40, 24], [40, 24]),
        smooth(Function::LogSoftmax { dim: 1 }, &[4, 5], [32, 16], [40, 16]),
    ]);
    for (k, shift, to, n) in
        [(8, 3, 5, 70), (64, 30, 34, 300), (9, 7, 9, 60), (40, 12, 64, 130), (64, 30, 64, 2000)]
    {
        all.push(dither(k, shift, to, n));
    }
    all.extend([lookup(2, 1, 64, 70), lookup(4, 3, 20, 130), lookup(8, 2, 64, 300)]);
    all.extend([piecewise(3, 0, 40, 70), piecewise(1, 5, 64, 64), piecewise(7, 20, 64, 300)]);
    all.extend([
        exponential([29, 24], 25, &[(-30, 34)], 0, 300),
        exponential([15, 9], 18, &[(-32, 29), (10, 5)], 0, 70),
        exponential([17, 13], 14, &[(-14, 24)], 1, 100),
    ]);
    all.extend(cuts::cuts());
    let sums = [(100, 2, 2), (70, 8, 8), (65, 32, 32), (3000, 64, 64), (70, 64, 40), (200, 33, 2)];
    all.extend(sums.map(|(n, bits, to)| sum_of_products(n, bits, to)));
    all
}

/// The cases of operations that a family may lack ([`Prices::has`]): it refuses their plans then.
pub fn optional_cases() -> Vec<Case> {
    let function = |function, shape: &[usize], from, to| {
        let mut case = smooth_with(Some(&OfWaves), function, shape, from, to);
        case.name.push_str(" of waves");
        case
    };
    vec![
        waves(32, 1, 8, 64, 300),
        waves(28, 5, 3, 40, 130),
        waves(5, 3, 64, 64, 70),
        waves(2, 1, 1, 7, 1),
        function(Function::Gelu, &[70], [40, 24], [40, 24]),
        function(Function::Tanh, &[30], [64, 24], [64, 24]),
    ]
}

fn waves(bits: u32, step: u32, count: usize, to: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("{count} waves of step {step}, {bits} bits to {to}, {n} elements"));
    let waves = (0..count as i64).map(|i| [(i - 2) * 0x123_4567, MOST_COEFFICIENT >> i.min(20)]).collect();
    let x = b.input(&[n], bits);
    let y = b.add(Op::Waves { step, digits: 29, waves }, &[x], &[n], to);
    b.done(&[y])
}

/// A family that has sums of waves and no pieces; all is free.
struct OfWaves;

impl Prices for OfWaves {
    fn protocol(&self) -> &'static str {
        "none"
    }
    fn security(&self) -> Security {
        Security::SemiHonest
    }
    fn has(&self, op: &Op) -> bool {
        op.kind() != "piecewise"
    }
    fn operation(&self, _: &Operation<'_>) -> Cost {
        Cost::default()
    }
    fn output(&self, _: &Type) -> Cost {
        Cost::default()
    }
}

/// Truncation by coins that are the family's own; where the ring is kept the operand is small.
fn dither(k: u32, shift: u32, to: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("dither {k} bits by {shift} to {to}, {n} elements"));
    let wide = to > k - shift;
    let x = b.input(&[n], if wide { k - 1 } else { k });
    b.frac(x, shift);
    let x = match wide {
        true => b.add(Op::Extend, &[x], &[n], k),
        false => x,
    };
    b.frac(x, shift);
    let y = b.add(Op::Dither { shift }, &[x], &[n], to);
    b.done(&[y])
}

fn lookup(bits: u32, tables: usize, to: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("look-up in {tables} tables of {bits} bits to {to}, {n} elements"));
    let entry = |t: usize, i: i64| (i * i - 5 * i).wrapping_mul(0x1234_5678_9abc + t as i64);
    let tables: Vec<Vec<i64>> =
        (0..tables).map(|t| (0..1i64 << bits).map(|i| entry(t, i)).collect()).collect();
    let shape = [tables.len(), n];
    let x = b.input(&[n], bits);
    let y = b.add(Op::Lookup { tables }, &[x], &shape, to);
    b.done(&[y])
}

fn piecewise(index: u32, shift: u32, to: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("quadratics on {index} and {shift} bits to {to}, {n} elements"));
    let pieces = (0..1i64 << index).map(|i| [i * 0x1_0000_0001, -i * 0x1_0001, 3 - i]).collect();
    let x = b.input(&[n], index + shift);
    let y = b.add(Op::Piecewise { shift, pieces }, &[x], &[n], to);
    b.done(&[y])
}

fn exponential([k, frac]: [u32; 2], first: u32, rows: &[(i32, u32)], scale: u32, n: usize) -> Case {
    let what = if scale == 0 { "exponentials" } else { "exponentials of twice x" };
    let mut b = Builder::new(&format!("{what} in {} rows of {k} bits, {n} elements", rows.len()));
    let x = b.input(&[n], k);
    b.frac(x, frac);
    let op = Op::Exponential { first, rows: rows.to_vec(), scale };
    let y = b.add(op, &[x], &[rows.len(), n], 64);
    b.done(&[y])
}

/// The cases of training's operations.
pub fn training_cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (k, n) in [(2, 100), (9, 64), (40, 200), (64, 700)] {
        all.push(unary("sign bit", Op::IsNegative, n, k, 1));
    }
    for (k, shift, to, n) in
        [(8, 1, 8, 60), (9, 7, 9, 60), (40, 12, 30, 100), (64, 24, 64, 1000), (64, 62, 64, 40)]
    {
        for rounding in [Rounding::Floor, Rounding::Stochastic] {
            all.push(widening_truncation(k, shift, to, rounding, n));
        }
    }
    all.push(widening_truncation(40, 8, 64, Rounding::OneUlp, 100));
    all.extend([
        choose(2, 70),
        choose(40, 300),
        choose(64, 1000),
        choose_every(13, 100),
        choose_every(64, 65),
        bits(),
        reverse(),
        scale(),
        dropout(),
        states(),
    ]);
    all
}

/// The operand is extended from a bit less, so that it keeps the promise.
fn widening_truncation(k: u32, shift: u32, to: u32, rounding: Rounding, n: usize) -> Case {
    let mut b = Builder::new(&format!("truncate {k} bits by {shift} {rounding:?} to {to}, {n} elements"));
    let x = b.input(&[n], k - 1);
    let wide = b.add(Op::Extend, &[x], &[n], k);
    b.frac(x, shift);
    b.frac(wide, shift);
    let y = b.add(Op::Truncate { shift, rounding }, &[wide], &[n], to);
    b.done(&[y])
}

/// One sign bit, chosen by twice: ReLU and its gradient.
fn choose(k: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("choose by a sign, {k} bits, {n} elements"));
    let (x, g) = (b.input(&[n], k), b.input(&[n], k));
    let before = b.add(Op::AddConst { value: -1 }, &[x], &[n], k);
    let negative = b.add(Op::IsNegative, &[before], &[n], 1);
    let positive = b.add(Op::AddConst { value: 1 }, &[negative], &[n], 1);
    let y = b.add(Op::Choose, &[positive, x], &[n], k);
    let gradient = b.add(Op::Choose, &[positive, g], &[n], k);
    let sum = b.add(Op::Add, &[y, gradient], &[n], k);
    b.done(&[y, gradient, sum])
}

/// By two to seven bits, most of which are 1; the last of them chosen by twice.
fn choose_every(k: u32, n: usize) -> Case {
    let mut b = Builder::new(&format!("choose by several bits, {k} bits, {n} elements"));
    let (x, y) = (b.input(&[n], k), b.input(&[n], k));
    let bits: Vec<_> = (0..MOST_CHOSEN_BY)
        .map(|_| {
            let (z, w) = (b.input(&[n], 9), b.input(&[n], 9));
            let [z, w] = [z, w].map(|v| b.add(Op::IsNegative, &[v], &[n], 1));
            let both = b.add(Op::Choose, &[z, w], &[n], 1);
            b.add(Op::AddConst { value: 1 }, &[both], &[n], 1)
        })
        .collect();
    let chosen = |b: &mut Builder, m: usize, x: usize| {
        let operands: Vec<_> = bits[..m].iter().copied().chain([x]).collect();
        b.add(Op::ChooseEvery, &operands, &[n], k)
    };
    let few = chosen(&mut b, 2, x);
    let [first, second] = [x, y].map(|v| chosen(&mut b, MOST_CHOSEN_BY, v));
    let sum = b.add(Op::Add, &[first, y], &[n], k);
    b.done(&[few, first, second, sum])
}

/// Local operations on bits, which are then used and revealed.
fn bits() -> Case {
    let mut b = Builder::new("local operations on bits");
    let (x, y, g) = (b.input(&[4, 5], 20), b.input(&[4, 5], 20), b.input(&[5, 8], 33));
    let p = b.add(Op::IsNegative, &[x], &[4, 5], 1);
    let q = b.add(Op::IsNegative, &[y], &[4, 5], 1);
    let xor = b.add(Op::Add, &[p, q], &[4, 5], 1);
    let not = b.add(Op::AddConst { value: 1 }, &[q], &[4, 5], 1);
    let both = b.add(Op::Concat { dim: 0 }, &[xor, not], &[8, 5], 1);
    let turned = b.add(Op::Permute { dims: vec![1, 0] }, &[both], &[5, 8], 1);
    let chosen = b.add(Op::Choose, &[turned, g], &[5, 8], 33);
    b.done(&[turned, chosen])
}

fn reverse() -> Case {
    let mut b = Builder::new("reverse, then multiply");
    let x = b.input(&[2, 3, 4], 50);
    let r = b.add(Op::Reverse { dims: vec![0, 2] }, &[x], &[2, 3, 4], 50);
    let p = b.add(Op::Mul, &[x, r], &[2, 3, 4], 50);
    b.done(&[r, p])
}

/// Two values and a weight, in rings of `bits` and more: a product, a square, and one that only the weight's owner knows a factor of.
fn sum_of_products(n: usize, bits: u32, to: u32) -> Case {
    let mut b = Builder::new(&format!("sum of products, {n} of {bits} to {to}"));
    let (x, y, w) = (b.input(&[n], bits), b.input(&[n], 64), b.weight(&[n], bits));
    let all = b.add(Op::Mul, &[x, y, x, x, w, y], &[n], to);
    let two = b.add(Op::Mul, &[y, w, all, all], &[n], to);
    b.done(&[all, two])
}

fn scale() -> Case {
    let mut b = Builder::new("scale by public numbers");
    let (x, y) = (b.input(&[7, 30], 64), b.input(&[20], 24));
    let rate = b.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], 64);
    let other = b.add(Op::Public { name: "other".into(), limit: 1.0 }, &[], &[], 24);
    let s = b.add(Op::Scale, &[x, rate], &[7, 30], 64);
    let t = b.add(Op::Scale, &[y, other], &[20], 24);
    let p = b.add(Op::Mul, &[s, s], &[7, 30], 64);
    b.done(&[s, t, p])
}

/// The same coins twice, others once.
fn dropout() -> Case {
    let mut b = Builder::new("dropout");
    let (x, g) = (b.input(&[10, 30], 40), b.input(&[10, 30], 64));
    let kept = b.add(Op::Dropout { stream: 0, keep: 1 << 31 }, &[x], &[10, 30], 40);
    let gradient = b.add(Op::Dropout { stream: 0, keep: 1 << 31 }, &[g], &[10, 30], 64);
    let other = b.add(Op::Dropout { stream: 7, keep: u32::MAX }, &[x], &[10, 30], 40);
    let p = b.add(Op::Mul, &[kept, other], &[10, 30], 40);
    b.done(&[kept, gradient, p])
}

/// A step of linear regression: two states, one update that needs a gate, and one state that stays.
fn states() -> Case {
    let mut b = Builder::new("a step that updates states");
    let x = b.input(&[6, 5], 64);
    let w = b.add(Op::State { name: "w".into(), owner: "model-owner".into() }, &[], &[3, 5], 64);
    let v = b.add(Op::State { name: "v".into(), owner: "model-owner".into() }, &[], &[3, 5], 40);
    let still = b.add(Op::State { name: "still".into(), owner: "model-owner".into() }, &[], &[3], 64);
    let rate = b.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], 64);
    let y = b.add(Op::Linear, &[x, w, still], &[6, 3], 64);
    let turned = b.add(Op::Permute { dims: vec![1, 0] }, &[y], &[3, 6], 64);
    let gradient = b.add(Op::MatMul, &[turned, x], &[3, 5], 64);
    let step = b.add(Op::Scale, &[gradient, rate], &[3, 5], 64);
    let next = b.add(Op::Sub, &[w, step], &[3, 5], 64);
    let positive = b.add(Op::Relu, &[v], &[3, 5], 40);
    b.0.updates = vec![Update { state: w, value: next }, Update { state: v, value: positive }];
    b.done(&[y])
}

fn binary(name: &str, op: Op, n: usize, k: u32, to: u32) -> Case {
    let mut b = Builder::new(&format!("{name} {k} to {to} bits, {n} elements"));
    let (x, y) = (b.input(&[n], k), b.input(&[n], k));
    // Equal elements must occur: every third of y is x's.
    let third = n / 3;
    let y = match third {
        0 => y,
        _ => {
            let head = b.add(Op::Slice { dim: 0, start: 0, end: third, step: 1 }, &[x], &[third], k);
            let tail = b.add(Op::Slice { dim: 0, start: third, end: n, step: 1 }, &[y], &[n - third], k);
            b.add(Op::Concat { dim: 0 }, &[head, tail], &[n], k)
        }
    };
    let z = b.add(op, &[x, y], &[n], to);
    b.done(&[z])
}

fn linear(k: u32) -> Case {
    let mut b = Builder::new(&format!("linear with bias, {k} bits"));
    let (x, w, bias) = (b.input(&[5, 33], k), b.weight(&[17, 33], k), b.weight(&[17], k));
    let y = b.add(Op::Linear, &[x, w, bias], &[5, 17], k);
    let w2 = b.weight(&[3, 17], k);
    let z = b.add(Op::Linear, &[y, w2], &[5, 3], k);
    b.done(&[y, z])
}

fn batched_matmul() -> Case {
    let mut b = Builder::new("batched product of two secrets");
    let (x, y) = (b.input(&[2, 3, 4, 5], 64), b.input(&[2, 3, 5, 7], 64));
    let z = b.add(Op::MatMul, &[x, y], &[2, 3, 4, 7], 64);
    b.done(&[z])
}

fn convolution(k: u32, groups: usize) -> Case {
    let geometry = Conv2d {
        batch: 2,
        in_channels: 4,
        input: [9, 8],
        out_channels: 6,
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 1, 0, 1],
        dilation: [1, 2],
        groups,
    };
    let [h, w] = geometry.output();
    let mut b = Builder::new(&format!("convolution, {k} bits, {groups} groups"));
    let (x, f, bias) = (b.input(&[2, 4, 9, 8], k), b.weight(&[6, 4 / groups, 3, 2], k), b.weight(&[6], k));
    let y = b.add(Op::Conv2d { geometry }, &[x, f, bias], &[2, 6, h, w], k);
    b.done(&[y])
}

fn max_pool(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], ceil_mode: bool) -> Case {
    let window = Pool2d { kernel, stride, padding, dilation: [1, 1], ceil_mode };
    let [h, w] = window.output([7, 6]);
    let mut b = Builder::new(&format!("max pool {kernel:?} stride {stride:?} padding {padding:?}"));
    let x = b.input(&[2, 3, 7, 6], 40);
    let y = b.add(Op::MaxPool2d { window }, &[x], &[2, 3, h, w], 40);
    // The mask of a pool's result is made of several wires': using it must agree as well.
    let z = b.add(Op::Relu, &[y], &[2, 3, h, w], 64);
    b.done(&[y, z])
}

fn argmax(extent: usize) -> Case {
    let mut b = Builder::new(&format!("argmax over {extent}"));
    let x = b.input(&[6, extent, 2], 24);
    let y = b.add(Op::Argmax { dim: 1 }, &[x], &[6, 2], 16);
    let z = b.add(Op::Add, &[y, y], &[6, 2], 16);
    b.done(&[y, z])
}

fn select() -> Case {
    let mut b = Builder::new("select by a sign, then reuse");
    let (x, y, z) = (b.input(&[90], 32), b.input(&[90], 48), b.input(&[90], 48));
    let c = b.add(Op::IsNegative, &[x], &[90], 48);
    let s = b.add(Op::Select, &[c, y, z], &[90], 48);
    let p = b.add(Op::Mul, &[s, s], &[90], 48);
    b.done(&[s, p])
}

fn local_ops() -> Case {
    let mut b = Builder::new("local operations around a product");
    let (x, y) = (b.input(&[2, 3, 4, 4], 50), b.input(&[2, 3, 4, 4], 50));
    let shape = [2, 3, 4, 4];
    let s = b.add(Op::Sub, &[x, y], &shape, 50);
    let s = b.add(Op::AddConst { value: -12345 }, &[s], &shape, 50);
    let s = b.add(Op::MulConst { value: -7 }, &[s], &shape, 50);
    let n = b.add(Op::Neg, &[s], &shape, 50);
    let c = b.add(Op::Concat { dim: 1 }, &[n, x], &[2, 6, 4, 4], 50);
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let p = b.add(Op::SumPool2d { window }, &[c], &[2, 6, 2, 2], 50);
    let t = b.add(Op::Permute { dims: vec![0, 2, 3, 1] }, &[p], &[2, 2, 2, 6], 50);
    let r = b.add(Op::Reshape, &[t], &[8, 6], 50);
    let w = b.weight(&[4, 6], 50);
    let z = b.add(Op::Linear, &[r, w], &[8, 4], 50);
    let q = b.add(Op::Reduce, &[z], &[8, 4], 30);
    let m = b.add(Op::Relu, &[q], &[8, 4], 30);
    let e = b.add(Op::Slice { dim: 0, start: 1, end: 8, step: 3 }, &[m], &[3, 4], 30);
    let e = b.add(Op::Pad { amounts: vec![[1, 0], [0, 2]] }, &[e], &[4, 6], 30);
    let e = b.add(Op::Sum { dims: vec![0] }, &[e], &[6], 30);
    b.done(&[z, m, e])
}

/// Local operations and a maximum of inexact values, far from the ends of the ring.
fn inexact() -> Case {
    let mut b = Builder::new("what follows an inexact truncation");
    let (x, y) = (b.input(&[80], 32), b.input(&[80], 32));
    let one = Rounding::OneUlp;
    let small = |b: &mut Builder, v: usize| {
        let wide = b.add(Op::Extend, &[v], &[80], 48);
        b.frac(v, 8);
        b.frac(wide, 8);
        b.add(Op::Truncate { shift: 8, rounding: one }, &[wide], &[80], 40)
    };
    let (s, t) = (small(&mut b, x), small(&mut b, y));
    let m = b.add(Op::Max, &[s, t], &[80], 40);
    let r = b.add(Op::Relu, &[m], &[80], 40);
    let d = b.add(Op::Sub, &[r, t], &[80], 40);
    let d = b.add(Op::MulConst { value: 3 }, &[d], &[80], 40);
    let sum = b.add(Op::Sum { dims: vec![0] }, &[d], &[1], 40);
    b.done(&[s, m, r, sum])
}

/// A small network: convolution, truncation, pool, widening ReLU, linear, truncation, argmax.
fn network() -> Case {
    let geometry = Conv2d {
        batch: 3,
        in_channels: 1,
        input: [8, 8],
        out_channels: 4,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let mut b = Builder::new("small network");
    let (x, f, bias) = (b.input(&[3, 1, 8, 8], 64), b.weight(&[4, 1, 3, 3], 64), b.weight(&[4], 64));
    for v in [x, bias] {
        b.frac(v, 24);
    }
    let c = b.add(Op::Conv2d { geometry }, &[x, f, bias], &[3, 4, 8, 8], 64);
    let half = b.add(Op::AddConst { value: 1 << 23 }, &[c], &[3, 4, 8, 8], 64);
    for v in [c, half] {
        b.frac(v, 24);
    }
    let t = b.add(Op::Truncate { shift: 24, rounding: Rounding::Floor }, &[half], &[3, 4, 8, 8], 40);
    let p = b.add(Op::MaxPool2d { window }, &[t], &[3, 4, 4, 4], 40);
    let r = b.add(Op::Relu, &[p], &[3, 4, 4, 4], 64);
    let flat = b.add(Op::Reshape, &[r], &[3, 64], 64);
    let w = b.weight(&[10, 64], 64);
    let l = b.add(Op::Linear, &[flat, w], &[3, 10], 64);
    for v in [w, l] {
        b.frac(v, 24);
    }
    let t = b.add(Op::Truncate { shift: 24, rounding: Rounding::Stochastic }, &[l], &[3, 10], 40);
    let y = b.add(Op::Argmax { dim: 1 }, &[t], &[3], 16);
    b.done(&[t, y])
}

/// Functions of exponentials, made of what these prices choose among and a family has.
pub fn exponential_cases(prices: &dyn Prices) -> Vec<Case> {
    let function = |function, shape: &[usize], from, to| {
        let mut case = smooth_with(Some(prices), function, shape, from, to);
        case.name.push_str(" as chosen");
        case
    };
    vec![
        function(Function::Exp, &[40], [64, 24], [64, 24]),
        function(Function::Exp, &[9], [28, 20], [30, 12]),
        function(Function::Softmax { dim: 1 }, &[3, 7, 2], [40, 24], [40, 24]),
        function(Function::LogSoftmax { dim: 1 }, &[4, 5], [32, 16], [40, 16]),
    ]
}

/// A smooth function, of a type in which all of its parts take part.
fn smooth(function: Function, shape: &[usize], from: [u32; 2], to: [u32; 2]) -> Case {
    smooth_with(None, function, shape, from, to)
}

/// The same with what these prices choose.
fn smooth_with(
    prices: Option<&dyn Prices>,
    function: Function,
    shape: &[usize],
    from: [u32; 2],
    to: [u32; 2],
) -> Case {
    let mut b = Builder::new(&format!("{} {from:?} to {to:?}, {shape:?}", function.name()));
    let x = b.input(shape, from[0]);
    b.frac(x, from[1]);
    let mut build = Build::new(&mut b.0, "function");
    if let Some(prices) = prices {
        build = build.priced(prices, Network::LAN);
    }
    let x = build.value(x);
    let y = emit(&mut build, function, x, to[0], to[1]).expect("the types are within the limits");
    // tests find a node by its layer
    for (id, node) in b.0.nodes.iter_mut().enumerate() {
        node.layer = format!("node{id}");
    }
    b.done(&[y.id])
}

//! Nanoseconds an element that gates take a dealer and an evaluator, beside what their AES calls alone take.
//!
//! `cargo run --release -p privet-fss --example fss_bench [ELEMENTS] [WORD OF THE NAME]`; one thread; the other evaluator
//! is a channel that answers zeros, so that nobody is waited for. The processor's time, fastest of five.
//!
//! `... --form 4,4` before all else: comparisons by chunks of 4 bits, 4 at a time, in all plans; else trees.
//!
//! `... --example fss_bench GRAPH.json`: milliseconds of a captured training step, by kind of operation; with `NODES` set in
//! the environment, of every node that takes over 5 ms as well.

use privet_family::NodeStats;
use privet_fss::keys::{KeyError, KeySink, KeySource};
use privet_fss::{
    Dealer, Eval, Evaluator, Fss, Given, MaskedWeights, PartyId, PartySeed, SessionMasks, States,
};
use privet_kernels::{Device, cpu};
use privet_net::{Channel, Meter, NetError, Step};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Rounding, Type, Update};
use privet_plan::lower::RoundingMode;
use privet_plan::{Form, Graph, Plan, Precision, lower};
use privet_prg::{HashKeys, Seed, TreeHash};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const REPEATS: usize = 5;

/// A peer whose shares are zero.
#[derive(Default)]
struct Zeros(Arc<Meter>);

impl Channel for Zeros {
    fn send(&mut self, _: &Step, _: Vec<u8>) -> Result<(), NetError> {
        Ok(())
    }
    fn recv(&mut self, _: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        Ok(vec![0; len])
    }
    fn recv_up_to(&mut self, _: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        Ok(vec![0; max])
    }
    fn peer(&self) -> &str {
        "nobody"
    }
    fn meter(&self) -> Arc<Meter> {
        self.0.clone()
    }
    fn abort(&mut self, _: &str) {}
    fn sever(&mut self) {}
}

/// Drops what is dealt.
struct Nowhere;

impl KeySink for Nowhere {
    fn put(&mut self, _: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        Ok(())
    }
}

/// Keys of any content, read through a buffer that no core's own cache holds.
struct AnyKeys {
    bytes: Vec<u8>,
    at: usize,
}

impl KeySource for AnyKeys {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        if self.at + len > self.bytes.len() {
            self.at = 0;
        }
        self.at += len;
        Ok(&self.bytes[self.at - len..self.at])
    }
}

/// A plan under construction.
struct Build(Plan);

impl Build {
    fn new(name: &str) -> Build {
        let (nodes, outputs, updates) = (vec![], vec![], vec![]);
        Build(Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs, updates })
    }

    fn add(&mut self, op: Op, inputs: &[usize], shape: &[usize], bits: u32, frac: u32) -> usize {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        self.0.nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer: "layer".into(), form: None });
        self.0.nodes.len() - 1
    }

    fn input(&mut self, shape: &[usize], bits: u32, frac: u32) -> usize {
        let name = format!("x{}", self.0.nodes.len());
        self.add(Op::Input { name, owner: "owner".into(), limit: 1.0 }, &[], shape, bits, frac)
    }

    fn done(mut self, output: Option<usize>) -> Plan {
        let name = "y".into();
        self.0.outputs =
            output.map(|value| Output { value, name, to: "receiver".into() }).into_iter().collect();
        self.0.check().expect("the plan is sound");
        self.0
    }
}

fn unary(name: &str, op: Op, n: usize, [from, to]: [u32; 2], [f, g]: [u32; 2]) -> Plan {
    let mut b = Build::new(name);
    let x = b.input(&[n], from, f);
    let y = b.add(op, &[x], &[n], to, g);
    b.done(Some(y))
}

fn choose(n: usize) -> Plan {
    let mut b = Build::new("choose, 64 bits");
    let (bit, x) = (b.input(&[n], 1, 0), b.input(&[n], 64, 24));
    let y = b.add(Op::Choose, &[bit, x], &[n], 64, 24);
    b.done(Some(y))
}

fn states(n: usize) -> Plan {
    let mut b = Build::new("state, scaled and put back");
    let w = b.add(Op::State { name: "w".into(), owner: "owner".into() }, &[], &[n], 64, 24);
    let rate = b.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], 64, 0);
    let step = b.add(Op::Scale, &[w, rate], &[n], 64, 24);
    let next = b.add(Op::Sub, &[w, step], &[n], 64, 24);
    b.0.updates = vec![Update { state: w, value: next }];
    b.done(None)
}

/// A value turned, padded and joined `depth` times, multiplied by itself after every turn.
fn chain(n: usize, depth: usize) -> Plan {
    let mut b = Build::new("local chain, a product at each of 8 links");
    let (rows, columns) = (n / 64, 64);
    let mut x = b.input(&[rows, columns], 64, 0);
    let mut shape = [rows, columns];
    for _ in 0..depth {
        shape.reverse();
        let turned = b.add(Op::Permute { dims: vec![1, 0] }, &[x], &shape, 64, 0);
        let sum = b.add(Op::Add, &[turned, turned], &shape, 64, 0);
        b.add(Op::Mul, &[sum, turned], &shape, 64, 0);
        x = sum;
    }
    b.done(Some(x))
}

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    let form = args.next_if(|a| a == "--form").map(|_| form(&args.next().expect("W,F")));
    if let Some(path) = args.next_if(|a| a.ends_with(".json")) {
        return step(&path, form);
    }
    let n = args.next().map_or(1 << 20, |n| n.parse().expect("a number of elements"));
    let word = args.next().unwrap_or_default();
    let device = cpu(1);
    let aes = aes_ns();
    println!(
        "{:44} {:>6} {:>16} {:>16}",
        format!("{n} elements, {aes:.2} ns an AES call"),
        "AES",
        "dealer",
        "evaluator"
    );
    let truncate = |rounding| Op::Truncate { shift: 24, rounding };
    let plans = [
        unary("truncate 64 by 24 to 40, floor", truncate(Rounding::Floor), n, [64, 40], [48, 24]),
        unary("truncate 64 by 24 to 64, stochastic", truncate(Rounding::Stochastic), n, [64, 64], [48, 24]),
        unary("sign bit of 40 bits", Op::IsNegative, n, [40, 1], [24, 0]),
        unary("relu, 64 bits", Op::Relu, n, [64, 64], [24, 24]),
        unary("relu, 40 bits", Op::Relu, n, [40, 40], [24, 24]),
        unary("dropout, 64 bits", Op::Dropout { stream: 0, keep: 1 << 31 }, n, [64, 64], [24, 24]),
        choose(n),
        states(n),
        chain(n, 8),
    ];
    for mut plan in plans.into_iter().filter(|p| p.name.contains(&word)) {
        compare_by(&mut plan, form);
        let mut best = [f64::INFINITY; 2];
        let mut calls = 0.0;
        for _ in 0..REPEATS {
            let (seconds, _, stats) = measure(&plan, device.as_ref());
            best = [best[0].min(seconds[0]), best[1].min(seconds[1])];
            calls = stats.aes_calls as f64 / n as f64;
        }
        let [deal, eval] = best.map(|s| s * 1e9 / n as f64);
        // the dealer makes twice an evaluator's calls: one for each
        let ratio = |ns: f64, calls: f64| match calls > 0.0 {
            true => format!("({:3.0} %)", 100.0 * calls * aes / ns),
            false => String::new(),
        };
        let (dealer, evaluator) = (ratio(deal, 2.0 * calls), ratio(eval, calls));
        println!("{:44} {calls:6.0} {deal:8.1} {dealer:>7} {eval:8.1} {evaluator:>7}", plan.name);
    }
}

/// `W,F`.
fn form(text: &str) -> Form {
    let (width, fan) = text.split_once(',').expect("W,F");
    let form = Form::Chunks { width: width.parse().expect("bits"), fan: fan.parse().expect("a number") };
    form.check().expect("a form");
    form
}

/// All comparisons in this form.
fn compare_by(plan: &mut Plan, form: Option<Form>) {
    plan.nodes.iter_mut().filter(|node| Form::applies(&node.op)).for_each(|node| node.form = form);
}

/// A captured training step, by kind of operation.
fn step(path: &str, form: Option<Form>) {
    let graph = Graph::from_json(&std::fs::read(path).expect("a readable file")).expect("a graph");
    let rounding = RoundingMode::Stochastic;
    let precision = Precision { keep_ring: true, rounding, ..Precision::default() };
    let mut plan = lower(&graph, &BTreeMap::new(), &precision, &Fss).expect("a step of training").plan;
    compare_by(&mut plan, form);
    let mut kinds: BTreeMap<String, [f64; 4]> = BTreeMap::new();
    let (_, [dealer, evaluator], _) = measure(&plan, cpu(1).as_ref());
    for (v, node) in plan.nodes.iter().enumerate() {
        if std::env::var_os("NODES").is_some() && dealer[v].max(evaluator[v]) > 5e-3 {
            println!(
                "{v:6} {:20} {:?} {:.1} {:.1}",
                node.op.kind(),
                node.ty.shape,
                dealer[v] * 1e3,
                evaluator[v] * 1e3
            );
        }
        let sum = kinds.entry(node.op.kind()).or_default();
        let row = [1.0, node.ty.len() as f64, dealer[v] * 1e3, evaluator[v] * 1e3];
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    let mut kinds: Vec<(String, [f64; 4])> = kinds.into_iter().collect();
    kinds.sort_by(|a, b| (b.1[2] + b.1[3]).total_cmp(&(a.1[2] + a.1[3])));
    println!("{:20} {:>6} {:>12} {:>12} {:>12}", "", "nodes", "elements", "dealer ms", "evaluator ms");
    for (kind, [nodes, elements, dealer, evaluator]) in &kinds {
        println!("{kind:20} {nodes:6} {elements:12} {dealer:12.1} {evaluator:12.1}");
    }
    let total = |i: usize| kinds.iter().map(|(_, row)| row[i]).sum::<f64>();
    println!("{:20} {:6} {:12} {:12.1} {:12.1}", "all", total(0), total(1), total(2), total(3));
}

/// Seconds of the dealer and of evaluator 0, in all and by node, and what the latter counted.
fn measure(plan: &Plan, device: &dyn Device) -> ([f64; 2], [Vec<f64>; 2], NodeStats) {
    let masks = SessionMasks::new(plan, device, &Seed::random());
    let (dealer, record) = (Dealer::new(plan, device, &masks), Seed::random());
    let mut dealt = vec![cpu_seconds()];
    dealer.deal(0, &record, &mut Nowhere, &mut |_| dealt.push(cpu_seconds())).expect("nothing can fail");

    let mut keys = AnyKeys { bytes: vec![0x5A; 32 << 20], at: 0 };
    let (mut inputs, mut publics, mut states) = (HashMap::new(), BTreeMap::new(), States::new());
    for (v, node) in plan.nodes.iter().enumerate() {
        let any = || vec![5u64 & (u64::MAX >> (64 - node.ty.bits)); node.ty.len()];
        match &node.op {
            Op::Input { .. } => drop(inputs.insert(v, any())),
            Op::State { name, .. } => states.insert(name, any()),
            Op::Public { name, .. } => drop(publics.insert(name.clone(), 3)),
            _ => {}
        }
    }
    let [seed, _] = Dealer::record_seeds(&record);
    let of_weights = PartySeed::new(PartyId::P0, seed.clone());
    let weights = MaskedWeights::new(plan, device, of_weights, BTreeMap::new()).expect("there are none");
    let mut channel = Zeros::default();
    let mut cx = Eval::new(PartyId::P0, device, masks.hash_keys(), 0, seed, &mut keys, &mut channel);
    let given = Given { inputs, publics, states: &states };
    let mut evaluated = vec![cpu_seconds()];
    let done = Evaluator::new(plan, &weights)
        .run(&mut cx, given, &mut |_| evaluated.push(cpu_seconds()))
        .expect("zeros are well formed");
    // what comes after the last node belongs to it: outputs and updates
    evaluated[plan.nodes.len()] = cpu_seconds();
    let mut total = NodeStats::default();
    done.nodes.iter().for_each(|node| total.add(node));
    let between = |at: &Vec<f64>| at.windows(2).map(|w| w[1] - w[0]).collect::<Vec<f64>>();
    let nodes = [&dealt, &evaluated].map(between);
    (nodes.each_ref().map(|n| n.iter().sum()), nodes, total)
}

/// What this thread has had of a processor: on a machine that others use as well, elapsed time says little.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.expect("nanoseconds come first") * 1e-9
}

/// Nanoseconds of one call of the tree's hash, from the first-level cache.
fn aes_ns() -> f64 {
    let hash = TreeHash::new(HashKeys::from_seed(&Seed::random()));
    let mut blocks = vec![7u128; 1024];
    let time = |_| {
        let start = cpu_seconds();
        (0..20_000).for_each(|_| hash.inner(&mut blocks));
        (cpu_seconds() - start) * 1e9 / (20_000 * 1024) as f64
    };
    (0..4).map(time).fold(f64::INFINITY, f64::min)
}

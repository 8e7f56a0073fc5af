//! All three parties in one process over in-memory channels: where the time of a run goes, without sockets and TLS.
//!
//! `cargo run --release -p privet-rep3 --example three_parties -- relu 1000000 64 semi-honest`
//! `cargo run --release -p privet-rep3 --example three_parties -- truncate 1000000 64 semi-honest`
//! `cargo run --release -p privet-rep3 --example three_parties -- function gelu 1 100000 malicious`
//! `cargo run --release -p privet-rep3 --example three_parties -- network benches/workloads/lenet.graph.json 128 64 24 malicious`
//!
//! Prints seconds of every layer at party 0, bytes of the busiest party, rounds, and the processor time of all three parties
//! by element, with the allocator told to keep what it has (as `privet` tells it: MALLOC_TOP_PAD_=67108864
//! MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=2147483647) much less. Weights and inputs are random. `truncate` is stochastic, by 24 bits, and keeps the ring.

use privet_family::NodeStats;
use privet_kernels::cpu;
use privet_net::{Channel, mem};
use privet_plan::functions::{Build, Function, emit};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type};
use privet_plan::shown::make_exact;
use privet_plan::{FloatTensor, Graph, Network, Precision, lower};
use privet_prg::Seed;
use privet_rep3::{
    Evaluator, Given, Keys, Outcome, Party, PartyId, Portion, Rep3, Security, Share, SharedWeights,
};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

const USAGE: &str = "three_parties relu|truncate|choose|sign ELEMENTS BITS SECURITY | function exp|gelu|softmax ROWS COLUMNS SECURITY | network GRAPH BATCH BITS FRACTION SECURITY";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (plan, security) = match args[..] {
        [gate @ ("relu" | "truncate" | "choose" | "sign"), n, bits, security] => {
            (one(gate, n.parse()?, bits.parse()?), security)
        }
        ["function", function, rows, columns, security] => {
            let target = Rep3::new(parsed(security)?);
            (function_of(function, [rows.parse()?, columns.parse()?], &target)?, security)
        }
        ["network", graph, batch, bits, fraction, security] => {
            (network(graph, batch.parse()?, bits.parse()?, fraction.parse()?)?, security)
        }
        _ => return Err(USAGE.into()),
    };
    let security = parsed(security)?;
    for _ in 0..3 {
        let (seconds, processor, outcomes) = run(&plan, security);
        report(&plan, seconds, &outcomes);
        if let Some(processor) = processor {
            let elements = plan.nodes.first().map_or(1, |x| x.ty.len());
            println!(
                "{:.3} s of processors, {:.1} ns an element",
                processor,
                1e9 * processor / elements as f64
            );
        }
    }
    Ok(())
}

fn parsed(security: &str) -> Result<Security, String> {
    match security {
        "semi-honest" => Ok(Security::SemiHonest),
        "malicious" => Ok(Security::Malicious),
        _ => Err(USAGE.into()),
    }
}

/// A function of rows of numbers of 64 bits, 24 of them a fraction, as it is made for parties of that security.
fn function_of(name: &str, shape: [usize; 2], target: &Rep3) -> Result<Plan, String> {
    let function = match name {
        "exp" => Function::Exp,
        "gelu" => Function::Gelu,
        "softmax" => Function::Softmax { dim: 1 },
        _ => return Err(USAGE.into()),
    };
    let (bits, frac) = (64, 24);
    let op = Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 };
    let ty = Type { shape: shape.to_vec(), bits, frac };
    let input = Node { op, inputs: vec![], ty, layer: "input".into(), form: None };
    let output = |value| Output { value, name: "y".into(), to: "receiver".into() };
    let mut plan = Plan {
        version: PLAN_VERSION,
        name: name.into(),
        batch: shape[0],
        nodes: vec![input],
        outputs: vec![output(0)],
        updates: vec![],
    };
    let mut build = Build::new(&mut plan, name).priced(target, Network::LAN);
    let x = build.value(0);
    plan.outputs[0].value = emit(&mut build, function, x, bits, frac)?.id;
    make_exact(&mut plan);
    Ok(plan)
}

/// One gate.
fn one(gate: &str, n: usize, bits: u32) -> Plan {
    let node = |op, inputs: &[usize], bits, layer: &str| {
        let ty = Type { shape: vec![n], bits, frac: 0 };
        Node { op, inputs: inputs.to_vec(), ty, layer: layer.into(), form: None }
    };
    let input = |name: &str| Op::Input { name: name.into(), owner: "data-owner".into(), limit: 1.0 };
    let mut nodes = vec![node(input("x"), &[], bits, "input")];
    match gate {
        "truncate" => {
            nodes[0].ty.frac = 24;
            let op = Op::Truncate { shift: 24, rounding: Rounding::Stochastic };
            nodes.push(node(op, &[0], bits, gate));
        }
        "choose" => {
            nodes.push(node(input("b"), &[], 1, "input"));
            nodes.push(node(Op::Choose, &[1, 0], bits, gate));
        }
        "sign" => nodes.push(node(Op::IsNegative, &[0], 1, gate)),
        _ => nodes.push(node(Op::Relu, &[0], bits, gate)),
    }
    // little of it is an output, which has a price of its own
    let last = nodes.len() - 1;
    nodes.push(node(Op::Slice { dim: 0, start: 0, end: 1, step: 1 }, &[last], nodes[last].ty.bits, "output"));
    nodes[last + 1].ty.shape = vec![1];
    let outputs = vec![Output { value: last + 1, name: "y".into(), to: "receiver".into() }];
    Plan { version: PLAN_VERSION, name: gate.into(), batch: n, nodes, outputs, updates: vec![] }
}

fn network(graph: &str, batch: usize, bits: u32, fraction: u32) -> Result<Plan, Box<dyn std::error::Error>> {
    let graph = Graph::from_json(&std::fs::read(graph)?)?.with_batch(batch)?;
    let parameters = graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Parameter { name } => {
            let data = vec![0.5; node.shape.iter().product()];
            Some((name.clone(), FloatTensor { shape: node.shape.clone(), data }))
        }
        _ => None,
    });
    let precision = Precision { bits: Some(bits), fraction: Some(fraction), ..Precision::default() };
    lower(&graph, &parameters.collect(), &precision, &Rep3::default())
        .map(|lowered| lowered.plan)
        .map_err(|e| e.to_string().into())
}

/// Random shares, keys and channels, then the run: from shared inputs to shares of the outputs.
/// Seconds of the slowest party, and of processors by all three where the system tells.
fn run(plan: &Plan, security: Security) -> (f64, Option<f64>, [Outcome; 3]) {
    let mut inputs: [HashMap<usize, Share>; 3] = Default::default();
    let mut weights: [BTreeMap<String, Share>; 3] = Default::default();
    for (v, node) in plan.nodes.iter().enumerate() {
        let (Op::Input { name, .. } | Op::Weight { name, .. }) = &node.op else { continue };
        let ring = Ring::new(node.ty.bits);
        let values = Seed::random().stream().elements(ring, node.ty.len());
        for (i, portion) in Portion::of(ring, &values).into_iter().enumerate() {
            let share = portion.expand(ring, values.len());
            match node.op {
                Op::Input { .. } => drop(inputs[i].insert(v, share)),
                _ => drop(weights[i].insert(name.clone(), share)),
            }
        }
    }
    let pairs: [_; 3] = std::array::from_fn(|_| mem::pair());
    let [(a0, a1), (b1, b2), (c2, c0)] = pairs;
    let ends = [(c0, a0), (a1, b1), (b2, c2)];
    let ready = std::sync::Barrier::new(3);
    let done: Vec<(f64, Option<f64>, Outcome)> = std::thread::scope(|scope| {
        let threads: Vec<_> = PartyId::ALL
            .into_iter()
            .zip(ends)
            .zip(inputs.into_iter().zip(weights))
            .map(|((id, (mut prev, mut next)), (inputs, weights))| {
                let ready = &ready;
                scope.spawn(move || {
                    let device = cpu(1);
                    let (prev, next): (&mut dyn Channel, &mut dyn Channel) = (&mut prev, &mut next);
                    let keys = Keys::agree(id, prev, next).expect("keys");
                    let mut cx = Party::new(id, security, device.as_ref(), keys.derive(1), prev, next);
                    let weights = SharedWeights::new(&mut cx, plan, weights).expect("weights");
                    let mut cx = Party::new(id, security, device.as_ref(), keys.derive(0), prev, next);
                    ready.wait();
                    let (start, processor) = (Instant::now(), processor());
                    let given = Given { inputs, ..Given::default() };
                    let outcome =
                        Evaluator::new(plan, &weights).run(&mut cx, given, &mut |_| {}).expect("run");
                    let used = crate::processor().zip(processor).map(|(now, before)| now - before);
                    (start.elapsed().as_secs_f64(), used, outcome)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("a party panicked")).collect()
    });
    let seconds = done.iter().map(|(seconds, ..)| *seconds).fold(0.0, f64::max);
    let processor = done.iter().map(|(_, used, _)| *used).sum();
    let outcomes: Vec<Outcome> = done.into_iter().map(|(.., outcome)| outcome).collect();
    (seconds, processor, outcomes.try_into().unwrap_or_else(|_| unreachable!("three parties")))
}

/// Seconds that this thread has had a processor.
fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? as f64 * 1e-9)
}

fn report(plan: &Plan, seconds: f64, outcomes: &[Outcome; 3]) {
    let sum = |outcome: &Outcome| {
        let mut total = outcome.checks;
        outcome.nodes.iter().for_each(|node| total.add(node));
        total
    };
    let total = outcomes.iter().map(sum).fold(NodeStats::default(), |a, b| a.larger(&b));
    for (node, stats) in plan.nodes.iter().zip(&outcomes[0].nodes) {
        if stats.seconds > 0.005 {
            println!("  {:8.1} ms  {:12}  {}", 1e3 * stats.seconds, node.op.kind(), node.layer);
        }
    }
    println!(
        "  {:8.1} ms  verification, {} bytes",
        1e3 * outcomes[0].checks.seconds,
        outcomes[0].checks.sent_bytes
    );
    println!("{seconds:.3} s, {} bytes of the busiest party, {} rounds", total.sent_bytes, total.rounds);
}

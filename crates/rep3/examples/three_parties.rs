//! All three parties in one process over in-memory channels: where the time of a run goes, without sockets and TLS.
//!
//! `cargo run --release -p privet-rep3 --example three_parties -- relu 1000000 64 semi-honest`
//! `cargo run --release -p privet-rep3 --example three_parties -- network benches/workloads/lenet.graph.json 128 64 24 malicious`
//!
//! Prints seconds of every layer at party 0, bytes of the busiest party and rounds. Weights and inputs are random.

use privet_family::NodeStats;
use privet_kernels::cpu;
use privet_net::{Channel, mem};
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_plan::{FloatTensor, Graph, Precision, lower};
use privet_prg::Seed;
use privet_rep3::{Evaluator, Keys, Outcome, Party, PartyId, Portion, Security, Share, SharedWeights};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

const USAGE: &str = "three_parties relu ELEMENTS BITS SECURITY | network GRAPH BATCH BITS FRACTION SECURITY";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (plan, security) = match args[..] {
        ["relu", n, bits, security] => (relu(n.parse()?, bits.parse()?), security),
        ["network", graph, batch, bits, fraction, security] => {
            (network(graph, batch.parse()?, bits.parse()?, fraction.parse()?)?, security)
        }
        _ => return Err(USAGE.into()),
    };
    let security = match security {
        "semi-honest" => Security::SemiHonest,
        "malicious" => Security::Malicious,
        _ => return Err(USAGE.into()),
    };
    for _ in 0..3 {
        let (seconds, outcomes) = run(&plan, security);
        report(&plan, seconds, &outcomes);
    }
    Ok(())
}

fn relu(n: usize, bits: u32) -> Plan {
    let node = |op, inputs, layer: &str| Node {
        op,
        inputs,
        ty: Type { shape: vec![n], bits, frac: 0 },
        layer: layer.into(),
    };
    let input = Op::Input { name: "x".into(), owner: "data-owner".into(), limit: 1.0 };
    let nodes = vec![node(input, vec![], "input"), node(Op::Relu, vec![0], "relu")];
    let outputs = vec![Output { value: 1, name: "y".into(), to: "receiver".into() }];
    Plan { version: PLAN_VERSION, name: "relu".into(), batch: n, nodes, outputs }
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
    lower(&graph, &parameters.collect(), &precision)
        .map(|lowered| lowered.plan)
        .map_err(|e| e.to_string().into())
}

/// Random shares, keys and channels, then the run: from shared inputs to shares of the outputs.
fn run(plan: &Plan, security: Security) -> (f64, [Outcome; 3]) {
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
    let done: Vec<(f64, Outcome)> = std::thread::scope(|scope| {
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
                    let weights = SharedWeights::new(plan, device.as_ref(), id, weights).expect("weights");
                    let mut cx = Party::new(id, security, device.as_ref(), keys.derive(0), prev, next);
                    ready.wait();
                    let start = Instant::now();
                    let outcome =
                        Evaluator::new(plan, &weights).run(&mut cx, inputs, &mut |_| {}).expect("run");
                    (start.elapsed().as_secs_f64(), outcome)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("a party panicked")).collect()
    });
    let seconds = done.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    let outcomes: Vec<Outcome> = done.into_iter().map(|(_, outcome)| outcome).collect();
    (seconds, outcomes.try_into().unwrap_or_else(|_| unreachable!("three parties")))
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

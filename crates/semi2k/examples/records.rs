//! What preparing records of a network costs among parties who trust nobody: time, processors, bytes, and the slowest nodes.
//!
//! `cargo run --release -p privet-semi2k --example records -- GRAPH.json [BATCH [PARTIES [RECORDS [TRANSFERS]]]]`, with a graph of
//! benches/workloads. Parties are threads of this process, joined by channels in memory. A fifth argument says how transfers are
//! made: `softspoken` or `ferret`.

use privet_family::keys::MemoryKeys;
use privet_family::{NodeStats, Parameters};
use privet_net::Channel;
use privet_ot::Source;
use privet_plan::cost::{Aim, Network, Rates, estimate};
use privet_plan::form::named;
use privet_plan::graph::GraphOp;
use privet_plan::ir::Plan;
use privet_plan::lower::{Precision, lower_for};
use privet_plan::{FloatTensor, Graph};
use privet_prg::Seed;
use privet_semi2k::{JointSession, PartySeed, Semi2k, TRANSFERS, source};
use privet_testkit::{Links, Mesh};
use std::collections::BTreeMap;
use std::time::Instant;

/// The network's plan, for parties that prepare among themselves.
fn plan(path: &str, batch: usize, parties: usize) -> Plan {
    let graph = Graph::from_json(&std::fs::read(path).expect("a file")).expect("a graph");
    let graph = graph.with_batch(batch).expect("a batch");
    let mut parameters = BTreeMap::new();
    for node in &graph.nodes {
        if let GraphOp::Parameter { name } = &node.op {
            let data = (0..node.shape.iter().product::<usize>()).map(|i| (i % 7) as f64 / 100.0).collect();
            parameters.insert(name.clone(), FloatTensor { shape: node.shape.clone(), data });
        }
    }
    let precision = Precision { bits: Some(64), fraction: Some(24), ..Precision::default() };
    let family = Semi2k::alone(parties);
    lower_for(&graph, &parameters, &precision, &family, &Aim::default()).expect("a plan").plan
}

/// CPU seconds of this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn channels(links: &mut Links) -> Vec<&mut dyn Channel> {
    links.others().map(|(_, channel)| channel).collect()
}

fn sent(links: &mut Links) -> u64 {
    links.others().map(|(_, channel)| channel.meter().total().sent).sum()
}

/// A party; gives bytes sent and the time after each phase, and what each node of the last record took.
fn party(
    plan: &Plan,
    records: usize,
    source: Option<Source>,
    links: &mut Links,
) -> (Vec<(&'static str, u64, f64)>, Vec<NodeStats>) {
    let (start, mut laps, mut stats) = (Instant::now(), Vec::new(), Vec::new());
    let own = PartySeed::new(links.me(), Seed::random());
    let public = Seed::from_bytes([1; 16]);
    let session = JointSession::start(plan, own, public, records, source, 1, channels(links));
    let mut session = session.expect("a session");
    laps.push(("start", sent(links), start.elapsed().as_secs_f64()));
    let numbers: Vec<u64> = (0..records as u64).collect();
    for numbers in numbers.chunks(session.at_once()) {
        let begun = session.begin(numbers, channels(links)).expect("records");
        laps.push(("products with weights", sent(links), start.elapsed().as_secs_f64()));
        for begun in begun {
            let mut keys = vec![MemoryKeys::default()];
            stats = session.record(begun, channels(links), &mut keys, &mut |_| {}).expect("a record");
        }
        laps.push(("everything else", sent(links), start.elapsed().as_secs_f64()));
    }
    (laps, stats)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: usize| arguments.get(i).map_or(default, |a| a.parse().expect("a number"));
    let (batch, parties, records) = (number(1, 1), number(2, 2), number(3, 1));
    let mut chosen = Parameters::default();
    if let Some(transfers) = arguments.get(4) {
        assert!(chosen.set(&TRANSFERS, TRANSFERS.word(transfers).expect("softspoken or ferret")));
    }
    let source = source(&chosen);
    let plan = plan(arguments.first().expect("a graph"), batch, parties);
    let before = cpu_seconds();
    let (laps, stats) = Mesh::new(parties).run(|links| party(&plan, records, source, links)).remove(0);
    let processors = cpu_seconds() - before;
    println!("{records} records of {}, batch {batch}, {parties} parties", plan.name);
    let (mut bytes, mut seconds) = (0, 0.0);
    for (what, sent, at) in laps {
        let mb = (sent - bytes) as f64 / 1e6;
        println!("{what:>22} {:7.3} s, {mb:8.3} MB from party 0", at - seconds);
        (bytes, seconds) = (sent, at);
    }
    let each = records as f64;
    println!("a record: {:.3} s of all processors, {:.3} MB", processors / each, bytes as f64 / 1e6 / each);
    let family = Semi2k { source, ..Semi2k::alone(parties) };
    let rates = Rates::default().together(parties);
    let predicted = estimate(&plan, &family, &rates, &Network::LAN);
    let (seconds, mb) = (predicted.offline_seconds, predicted.total.offline.wire_bytes as f64 / 1e6);
    println!("estimated: {seconds:.3} s of {parties} parties on two cores, {mb:.3} MB");
    let mut nodes: Vec<_> = stats.iter().zip(&plan.nodes).collect();
    nodes.sort_by(|a, b| b.0.seconds.total_cmp(&a.0.seconds));
    for (stats, node) in nodes.iter().take(8) {
        println!("{:9.4} s  {} {:?}", stats.seconds, named(node), node.ty.shape);
    }
}

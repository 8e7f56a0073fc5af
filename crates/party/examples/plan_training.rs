//! Lower a captured training step and print what it costs, by kind of operation.
//!
//! `cargo run --release -p privet-party --example plan_training -- GRAPH.json`

use privet_fss::Fss;
use privet_plan::cost::{Operation, Prices, Security, known};
use privet_plan::{Graph, Network, Precision, Rates, estimate, lower};
use privet_rep3::Rep3;
use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a graph file")?;
    let graph = Graph::from_json(&std::fs::read(path)?)?;
    let plan = lower(
        &graph,
        &BTreeMap::new(),
        &Precision {
            keep_ring: true,
            rounding: privet_plan::lower::RoundingMode::Stochastic,
            ..Precision::default()
        },
        &Fss,
    )?
    .plan;
    for node in plan.nodes.iter().filter(|n| !n.op.is_local()) {
        println!(
            "  {:24} {:20} {:?} {}/{}",
            node.layer,
            node.op.kind(),
            node.ty.shape,
            node.ty.bits,
            node.ty.frac
        );
    }
    let mut kinds: BTreeMap<String, (u64, u64, u64, u64)> = BTreeMap::new();
    let known = known(&plan);
    for (id, node) in plan.nodes.iter().enumerate() {
        let cost = Fss.operation(&Operation::of(&plan, id, &known));
        let sum = kinds.entry(node.op.kind()).or_default();
        *sum = (
            sum.0 + 1,
            sum.1 + node.ty.len() as u64,
            sum.2 + cost.key_bytes.most(),
            sum.3 + cost.wire_bytes.most(),
        );
    }
    for (kind, (nodes, elements, keys, wire)) in kinds {
        println!("{kind:20} {nodes:6} nodes {elements:12} elements {keys:14} key bytes {wire:12} wire bytes");
    }
    let families: [(&str, &dyn Prices); 3] = [
        ("fss", &Fss),
        ("rep3 semi-honest", &Rep3 { security: Security::SemiHonest }),
        ("rep3 malicious", &Rep3 { security: Security::Malicious }),
    ];
    for (name, prices) in families {
        let e = estimate(&plan, prices, &Rates::default(), &Network::LAN);
        println!("{name}: {:?}, memory {} MB, {:.3} s", e.total, e.memory_bytes >> 20, e.seconds);
    }
    Ok(())
}

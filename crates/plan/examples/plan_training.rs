//! Lower a captured training step and print what it costs, by kind of operation.
//!
//! `cargo run --release -p privet-plan --example plan_training -- GRAPH.json`

use privet_plan::cost::{Fss, GateCost, Rep3, Security};
use privet_plan::{Graph, Network, Precision, Rates, estimate, lower};
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
    for node in &plan.nodes {
        let operands: Vec<_> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
        let cost = Fss.operation(&node.op, &operands, &node.ty);
        let sum = kinds.entry(node.op.kind()).or_default();
        *sum = (sum.0 + 1, sum.1 + node.ty.len() as u64, sum.2 + cost.key_bytes, sum.3 + cost.wire_bytes);
    }
    for (kind, (nodes, elements, keys, wire)) in kinds {
        println!("{kind:20} {nodes:6} nodes {elements:12} elements {keys:14} key bytes {wire:12} wire bytes");
    }
    let families: [(&str, &dyn GateCost); 3] = [
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

//! Lower a captured graph with made-up weights, print what it costs, and interpret it once.
//!
//! `cargo run --release -p privet-party --example plan_workload -- GRAPH.json [BATCH] [BITS FRACTION]`

use privet_fss::Fss;
use privet_plan::graph::GraphOp;
use privet_plan::{
    FloatTensor, Graph, Network, NoCoins, Precision, Rates, decode_outputs, encode_inputs, encode_weights,
    estimate, interpret, interpret_real, lower,
};
use std::collections::BTreeMap;
use std::time::Instant;

/// Weyl sequence: weights for a timing, nothing more.
fn made_up(shape: &[usize], scale: f64, at: &mut u64) -> FloatTensor {
    let n: usize = shape.iter().product();
    let data = (0..n)
        .map(|_| {
            *at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            ((*at >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * scale
        })
        .collect();
    FloatTensor { shape: shape.to_vec(), data }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut graph = Graph::from_json(&std::fs::read(args.first().ok_or("name a graph file")?)?)?;
    if let Some(batch) = args.get(1) {
        graph = graph.with_batch(batch.parse()?)?;
    }
    let number = |i: usize| args.get(i).map(|a| a.parse()).transpose();
    let precision = Precision { bits: number(2)?, fraction: number(3)?, ..Precision::default() };
    let (mut params, mut inputs, mut at) = (BTreeMap::new(), BTreeMap::new(), 1);
    for node in &graph.nodes {
        let fan_in: usize = node.shape.iter().skip(1).product();
        match &node.op {
            GraphOp::Parameter { name } if node.shape.len() == 1 => {
                let mut t = made_up(&node.shape, 0.1, &mut at);
                t.data.iter_mut().for_each(|v| *v = v.abs() + 0.5);
                params.insert(name.clone(), t);
            }
            GraphOp::Parameter { name } => {
                params.insert(name.clone(), made_up(&node.shape, 1.0 / (fan_in as f64).sqrt(), &mut at));
            }
            GraphOp::Input { name, .. } => {
                inputs.insert(name.clone(), made_up(&node.shape, 1.0, &mut at));
            }
            _ => {}
        }
    }
    let start = Instant::now();
    let lowered = lower(&graph, &params, &precision, &Fss)?;
    println!("lowered in {:?}; {} nodes", start.elapsed(), lowered.plan.nodes.len());
    for node in &lowered.plan.nodes {
        let kind = serde_json::to_value(&node.op)?["kind"].clone();
        println!("  {:24} {kind:20} {:?} {}/{}", node.layer, node.ty.shape, node.ty.bits, node.ty.frac);
    }
    for network in ["lan", "wan"] {
        let e = estimate(&lowered.plan, &Fss, &Rates::default(), &network.parse::<Network>()?);
        println!("{network}: {:?}\n  memory {} MB, {:.3} s", e.total, e.memory_bytes >> 20, e.seconds);
    }
    let encoded = encode_inputs(&lowered.plan, None, &inputs)?;
    let weights = encode_weights(&lowered.plan, None, &lowered.parameters)?;
    let start = Instant::now();
    let out = interpret(&lowered.plan, &encoded, &weights, &mut NoCoins)?;
    println!("interpreted in {:?}", start.elapsed());
    let (got, want) =
        (decode_outputs(&lowered.plan, &out), interpret_real(&lowered.plan, &inputs, &lowered.parameters)?);
    let error = got[0].data.iter().zip(&want[0].data).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("largest error {error:e}, outputs in {:?}", want[0].range());
    Ok(())
}

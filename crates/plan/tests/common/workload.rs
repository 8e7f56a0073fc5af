//! The benchmark's captured networks with made-up weights.

use super::Numbers;
use privet_plan::graph::GraphOp;
use privet_plan::{FloatTensor, Graph};
use std::collections::BTreeMap;

/// The graph of `privet bench NAME` for `batch` rows, and parameters within the ranges that it states.
pub fn workload(name: &str, batch: usize) -> (Graph, BTreeMap<String, FloatTensor>) {
    let path = format!("{}/../../benches/workloads/{name}.graph.json", env!("CARGO_MANIFEST_DIR"));
    let json = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let graph = Graph::from_json(&json).unwrap().with_batch(batch).unwrap();
    let mut numbers = Numbers(name.len() as u64);
    let params = graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Parameter { name } => Some((name.clone(), uniform(&node.shape, node.range, &mut numbers))),
        _ => None,
    });
    let params = params.collect();
    (graph, params)
}

/// Inputs of a workload, uniform in their ranges.
pub fn inputs(graph: &Graph) -> BTreeMap<String, FloatTensor> {
    let mut numbers = Numbers(1);
    let inputs = graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Input { name } => Some((name.clone(), uniform(&node.shape, node.range, &mut numbers))),
        _ => None,
    });
    inputs.collect()
}

fn uniform(shape: &[usize], range: Option<[f64; 2]>, numbers: &mut Numbers) -> FloatTensor {
    let [low, high] = range.unwrap();
    let middle = (low + high) / 2.0;
    let data = (0..shape.iter().product()).map(|_| middle + (high - middle) * numbers.real()).collect();
    FloatTensor { shape: shape.to_vec(), data }
}

//! The benchmark's captured networks with made-up weights.

use super::Numbers;
use crate::graph::GraphOp;
use crate::{FloatTensor, Graph};
use std::collections::BTreeMap;

/// The graph of `privet bench NAME` for `batch` rows, and parameters within the ranges that it states.
pub fn workload(name: &str, batch: usize) -> (Graph, BTreeMap<String, FloatTensor>) {
    let mut numbers = Numbers(name.len() as u64);
    with_parameters(name, batch, |shape, range| uniform(shape, range, &mut numbers))
}

/// The same with parameters that are all one number: for what depends on their shapes only.
pub fn shapes(name: &str, batch: usize) -> (Graph, BTreeMap<String, FloatTensor>) {
    with_parameters(name, batch, |shape, _| FloatTensor {
        shape: shape.to_vec(),
        data: vec![1.0; shape.iter().product()],
    })
}

fn with_parameters(
    name: &str,
    batch: usize,
    mut tensor: impl FnMut(&[usize], Option<[f64; 2]>) -> FloatTensor,
) -> (Graph, BTreeMap<String, FloatTensor>) {
    let path = super::repository().join(format!("benches/workloads/{name}.graph.json"));
    let json = std::fs::read(&path);
    let path = path.display();
    let json = json.unwrap_or_else(|e| panic!("{path}: {e}"));
    let graph = Graph::from_json(&json).and_then(|graph| graph.with_batch(batch));
    let graph = graph.unwrap_or_else(|e| panic!("{path}: {e}"));
    let params = graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Parameter { name } => Some((name.clone(), tensor(&node.shape, node.range))),
        _ => None,
    });
    let params = params.collect();
    (graph, params)
}

/// Inputs of a workload, uniform in their ranges.
pub fn inputs(graph: &Graph) -> BTreeMap<String, FloatTensor> {
    let mut numbers = Numbers(1);
    let inputs = graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Input { name, .. } => Some((name.clone(), uniform(&node.shape, node.range, &mut numbers))),
        _ => None,
    });
    inputs.collect()
}

fn uniform(shape: &[usize], range: Option<[f64; 2]>, numbers: &mut Numbers) -> FloatTensor {
    let [low, high] = range.unwrap_or([-1.0, 1.0]);
    let middle = (low + high) / 2.0;
    let data = (0..shape.iter().product()).map(|_| middle + (high - middle) * numbers.real()).collect();
    FloatTensor { shape: shape.to_vec(), data }
}

//! Plans and graphs, as JSON.

use crate::Target;
use privet_fss::Fss;
use privet_plan::graph::GraphOp;
use privet_plan::ir::Op;
use privet_plan::{
    FloatTensor, Graph, Network, NoCoins, Plan, Precision, Program, Rates, estimate, interpret, lower,
};
use privet_ring::Tensor;
use std::collections::BTreeMap;

/// Elements of one value up to which a plan is interpreted, and nodes.
const SMALL: (usize, usize) = (512, 64);

const WORDS: &[&str] = &[
    "\"kind\":",
    "\"nodes\":",
    "\"inputs\":",
    "\"shape\":",
    "\"bits\":",
    "\"frac\":",
    "\"ty\":",
    "\"window\":",
    "\"geometry\":",
    "\"dims\":",
    "\"dim\":",
    "\"range\":",
    "\"linear\"",
    "\"mat_mul\"",
    "\"conv2d\"",
    "\"relu\"",
    "\"max_pool2d\"",
    "\"argmax\"",
    "\"truncate\"",
    "\"stochastic\"",
    "\"floor\"",
    "\"sum_pool2d\"",
    "\"expand\"",
    "\"permute\"",
    "\"slice\"",
    "\"concat\"",
    "\"pad\"",
    "\"select\"",
    "\"equal\"",
    "\"mul\"",
    "[]",
    "{}",
    "null",
    "-1",
    "0",
    "18446744073709551615",
    "4294967295",
    "1e308",
];

/// A captured model: read, checked, written, lowered.
pub const GRAPH: Target = Target { name: "graph", run: graph, seeds: graph_seeds, words: WORDS };

fn graph(data: &[u8]) {
    let Ok(graph) = Graph::from_json(data) else { return };
    assert_eq!(Graph::from_json(&graph.to_json()), Ok(graph.clone()));
    let sizes = graph.nodes.iter().map(|n| n.shape.iter().try_fold(1usize, |a, &d| a.checked_mul(d)));
    let Some(total) = sizes.clone().try_fold(0usize, |a, n| a.checked_add(n?)) else { return };
    if total > 1 << 14 {
        return;
    }
    let zeros = |shape: &[usize]| FloatTensor::new(shape.to_vec(), vec![0.25; shape.iter().product()]);
    let params: BTreeMap<_, _> =
        parameters(&graph).filter_map(|(name, shape)| Some((name, zeros(&shape)?))).collect();
    if let Ok(lowered) = lower(&graph, &params, &Precision::default(), &Fss) {
        assert_eq!(lowered.plan.check(), Ok(()));
    }
}

fn parameters(graph: &Graph) -> impl Iterator<Item = (String, Vec<usize>)> + '_ {
    graph.nodes.iter().filter_map(|node| match &node.op {
        GraphOp::Parameter { name } => Some((name.clone(), node.shape.clone())),
        _ => None,
    })
}

fn graph_seeds() -> Vec<Vec<u8>> {
    ["lenet", "mlp", "squeezenet"]
        .iter()
        .filter_map(|name| std::fs::read(format!("benches/workloads/{name}.graph.json")).ok())
        .chain([TINY_GRAPH.as_bytes().to_vec()])
        .collect()
}

const TINY_GRAPH: &str = r#"{"version":1,"name":"t","batch":1,"nodes":[{"op":{"kind":"input","name":"x"},"inputs":[],"shape":[1,2],"layer":"","source":"","range":[-1,1]},{"op":{"kind":"relu"},"inputs":[0],"shape":[1,2],"layer":"a","source":"","range":[0,1]}],"outputs":[{"node":1,"name":"y"}]}"#;

/// A plan: read, checked, written, priced, and interpreted when it is small.
pub const PLAN: Target = Target { name: "plan", run: plan, seeds: plan_seeds, words: WORDS };

fn plan(data: &[u8]) {
    let Ok(plan) = Plan::from_json(data) else { return };
    assert_eq!(Plan::from_json(&plan.to_json()), Ok(plan.clone()));
    let _ = plan.hash();
    let _ = estimate(&plan, &Fss, &Rates::default(), &Network::LAN);
    if plan.nodes.len() > SMALL.1 || plan.nodes.iter().any(|n| n.ty.len() > SMALL.0) {
        return;
    }
    let (mut inputs, mut weights) = (BTreeMap::new(), BTreeMap::new());
    for node in &plan.nodes {
        let (map, name) = match &node.op {
            Op::Input { name, .. } => (&mut inputs, name),
            Op::Weight { name, .. } => (&mut weights, name),
            _ => continue,
        };
        // Alternating edges of the ring; the interpreter wraps them into it.
        let data =
            (0..node.ty.len() as u64).map(|i| if i % 2 == 0 { u64::MAX / 2 } else { u64::MAX }).collect();
        let Ok(tensor) = Tensor::new(node.ty.shape.clone(), data) else { return };
        map.insert(name.clone(), tensor);
    }
    let _ = interpret(&plan, &inputs, &weights, &mut NoCoins);
}

fn plan_seeds() -> Vec<Vec<u8>> {
    [SMALL_PLAN, POOL_PLAN].iter().map(|s| s.as_bytes().to_vec()).collect()
}

/// A program: read, checked, written; its states known.
pub const PROGRAM: Target =
    Target { name: "program", run: program, seeds: program_seeds, words: PROGRAM_WORDS };

const PROGRAM_WORDS: &[&str] = &[
    "\"version\":1",
    "\"name\":",
    "\"plans\":",
    "\"plan\":",
    "\"kind\":\"state\"",
    "\"owner\":",
    "\"updates\":",
    "\"outputs\":",
    "\"nodes\":",
    "[]",
    "{}",
    "null",
    "0",
    "18446744073709551615",
];

fn program(data: &[u8]) {
    let Ok(program) = Program::from_json(data) else { return };
    assert_eq!(Program::from_json(&program.to_json()), Ok(program.clone()));
    assert_eq!(program.bare().map(Plan::hash).unwrap_or(program.hash()), program.hash());
    for state in program.states().values() {
        assert!(program.plans.iter().any(|p| p.plan.nodes.iter().any(|n| n.ty == state.ty)));
    }
}

fn program_seeds() -> Vec<Vec<u8>> {
    vec![STATES_PROGRAM.as_bytes().to_vec(), SMALL_PLAN.as_bytes().to_vec()]
}

const STATES_PROGRAM: &str = r#"{"version":1,"name":"t","plans":[{"name":"train","plan":{"version":1,"name":"t","batch":1,"nodes":[{"op":{"kind":"state","name":"w","owner":"model_owner"},"inputs":[],"ty":{"shape":[3],"bits":32,"frac":8},"layer":"w"},{"op":{"kind":"input","name":"x","owner":"data_owner","limit":4.0},"inputs":[],"ty":{"shape":[3],"bits":32,"frac":8},"layer":""},{"op":{"kind":"sub"},"inputs":[0,1],"ty":{"shape":[3],"bits":32,"frac":8},"layer":"w"}],"outputs":[],"updates":[{"state":0,"value":2}]}},{"name":"reveal","plan":{"version":1,"name":"t","batch":1,"nodes":[{"op":{"kind":"state","name":"w","owner":"model_owner"},"inputs":[],"ty":{"shape":[3],"bits":32,"frac":8},"layer":"w"}],"outputs":[{"value":0,"name":"w","to":"model_owner"}]}}]}"#;

const SMALL_PLAN: &str = r#"{"version":1,"name":"t","batch":1,"nodes":[{"op":{"kind":"input","name":"x","owner":"data_owner","limit":4.0},"inputs":[],"ty":{"shape":[1,3],"bits":32,"frac":8},"layer":""},{"op":{"kind":"weight","name":"w","owner":"model_owner"},"inputs":[],"ty":{"shape":[2,3],"bits":32,"frac":8},"layer":"a"},{"op":{"kind":"linear"},"inputs":[0,1],"ty":{"shape":[1,2],"bits":32,"frac":16},"layer":"a"},{"op":{"kind":"truncate","shift":8,"rounding":"floor"},"inputs":[2],"ty":{"shape":[1,2],"bits":24,"frac":8},"layer":"a"},{"op":{"kind":"relu"},"inputs":[3],"ty":{"shape":[1,2],"bits":32,"frac":8},"layer":"r"},{"op":{"kind":"argmax","dim":1},"inputs":[4],"ty":{"shape":[1],"bits":32,"frac":0},"layer":""}],"outputs":[{"value":5,"name":"y","to":"receiver"}]}"#;

const POOL_PLAN: &str = r#"{"version":1,"name":"t","batch":1,"nodes":[{"op":{"kind":"input","name":"x","owner":"data_owner","limit":4.0},"inputs":[],"ty":{"shape":[1,1,4,4],"bits":64,"frac":8},"layer":""},{"op":{"kind":"permute","dims":[0,1,3,2]},"inputs":[0],"ty":{"shape":[1,1,4,4],"bits":64,"frac":8},"layer":""},{"op":{"kind":"slice","dim":2,"start":0,"end":4,"step":2},"inputs":[1],"ty":{"shape":[1,1,2,4],"bits":64,"frac":8},"layer":""},{"op":{"kind":"concat","dim":2},"inputs":[2,2],"ty":{"shape":[1,1,4,4],"bits":64,"frac":8},"layer":""},{"op":{"kind":"max"},"inputs":[3,0],"ty":{"shape":[1,1,4,4],"bits":64,"frac":8},"layer":""},{"op":{"kind":"is_negative"},"inputs":[4],"ty":{"shape":[1,1,4,4],"bits":64,"frac":0},"layer":""},{"op":{"kind":"sum","dims":[3]},"inputs":[5],"ty":{"shape":[1,1,4],"bits":64,"frac":0},"layer":""}],"outputs":[{"value":6,"name":"y","to":"receiver"}]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        assert!(plan_seeds().iter().all(|s| Plan::from_json(s).is_ok()));
        assert!(program_seeds().iter().all(|s| Program::from_json(s).is_ok()));
        assert!(graph_seeds().iter().all(|s| Graph::from_json(s).is_ok()));
    }
}

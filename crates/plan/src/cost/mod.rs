//! What a plan will cost before anything is run: bytes, rounds, key bytes, AES calls, memory, seconds.
//!
//! A protocol family declares the price of one operation through [`GateCost`]; everything else here is addition.

mod fss;
mod network;
mod rep3;

pub use fss::Fss;
pub use network::{Network, NetworkError};
pub use rep3::{Claims, Rep3, Security, Talk, proofs};

use crate::ir::{Op, Plan, Type};
use serde::Serialize;
use std::ops::AddAssign;

/// The price of something. Bytes and calls are those of one party; where parties differ, of the one with more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Multiplications of the cleartext linear algebra (a party does a small multiple of them).
    pub macs: u64,
    /// Comparisons.
    pub comparisons: u64,
    /// AES calls of the online phase, one party.
    pub aes: u64,
    /// Key bytes of the party with more of them.
    pub key_bytes: u64,
    /// Key bytes of the party with fewer.
    pub key_bytes_other: u64,
    /// Bytes that one party sends to the others, all of them together.
    pub wire_bytes: u64,
    /// Bytes that an owner sends to share, or that one party sends a receiver.
    pub client_bytes: u64,
    /// Message rounds.
    pub rounds: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.macs += other.macs;
        self.comparisons += other.comparisons;
        self.aes += other.aes;
        self.key_bytes += other.key_bytes;
        self.key_bytes_other += other.key_bytes_other;
        self.wire_bytes += other.wire_bytes;
        self.client_bytes += other.client_bytes;
        self.rounds += other.rounds;
    }
}

/// The prices of a protocol family.
pub trait GateCost {
    /// Its user-facing name.
    fn protocol(&self) -> &'static str;
    /// What it withstands.
    fn security(&self) -> Security;
    /// One operation. Local operations are free in every family and not asked for.
    fn operation(&self, op: &Op, operands: &[&Type], result: &Type) -> Cost;
    /// Revealing a value to a receiver outside the parties.
    fn output(&self, ty: &Type) -> Cost;
    /// Sharing the first value of a state, once a training. As a weight, unless a family says otherwise.
    fn state(&self, ty: &Type) -> Cost {
        self.operation(&Op::Weight { name: String::new(), owner: String::new() }, &[], ty)
    }
    /// What a run costs beside its nodes and outputs, for example for verifying all of it at once.
    fn run(&self, _plan: &Plan) -> Cost {
        Cost::default()
    }
}

/// What a machine does in a second, for [`estimate`]'s prediction. `Default` is a two-core server with AMX and VAES.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Cleartext ring multiplications of a private linear layer.
    pub macs: f64,
    /// AES calls.
    pub aes: f64,
    /// Key bytes read from memory or disk.
    pub key_bytes: f64,
    /// Elements of all else: local operations, tables, packing.
    pub elements: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Rates { macs: 10e9, aes: 0.9e9, key_bytes: 1.5e9, elements: 0.2e9 }
    }
}

/// The cost of one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeCost {
    /// The node.
    pub node: usize,
    /// Its layer.
    pub layer: String,
    /// Its operation's JSON kind.
    pub op: String,
    /// Its price.
    pub cost: Cost,
    /// Predicted seconds.
    pub seconds: f64,
}

/// The cost of all nodes of one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerCost {
    /// The layer.
    pub layer: String,
    /// Its price.
    pub cost: Cost,
    /// Predicted seconds.
    pub seconds: f64,
}

/// The cost of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The protocol family.
    pub protocol: String,
    /// What it withstands.
    pub security: Security,
    /// The plan's batch.
    pub batch: usize,
    /// Every node that is not free.
    pub nodes: Vec<NodeCost>,
    /// Summed by layer, in order of first appearance.
    pub layers: Vec<LayerCost>,
    /// One run (in training, one step), weights left out.
    pub total: Cost,
    /// What of it belongs to no node: [`GateCost::run`].
    pub whole_run: Cost,
    /// Sharing the weights, once a session, and the first values of states, once a training.
    pub session: Cost,
    /// Peak memory of one party, roughly: values alive at once, weights and one node's keys.
    pub memory_bytes: u64,
    /// Predicted seconds of one run.
    pub seconds: f64,
}

/// Estimate one run of a checked plan.
pub fn estimate(plan: &Plan, prices: &dyn GateCost, rates: &Rates, network: &Network) -> Estimate {
    let mut out = Estimate {
        protocol: prices.protocol().into(),
        security: prices.security(),
        batch: plan.batch,
        nodes: Vec::new(),
        layers: Vec::new(),
        total: Cost::default(),
        whole_run: prices.run(plan),
        session: Cost::default(),
        memory_bytes: memory(plan, prices),
        seconds: 0.0,
    };
    for (id, node) in plan.nodes.iter().enumerate() {
        let operands: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
        let cost = if node.op.is_local() {
            Cost::default()
        } else {
            prices.operation(&node.op, &operands, &node.ty)
        };
        if let Op::Weight { .. } = node.op {
            out.session += cost;
            continue;
        }
        if let Op::State { .. } = node.op {
            out.session += prices.state(&node.ty);
        }
        let seconds = seconds(&cost, node.ty.len(), rates, network);
        out.add(id, &node.layer, node.op.kind(), cost, seconds);
    }
    for output in &plan.outputs {
        let ty = &plan.nodes[output.value].ty;
        let cost = prices.output(ty);
        let seconds = seconds(&cost, ty.len(), rates, network);
        out.add(output.value, &plan.nodes[output.value].layer, "output".into(), cost, seconds);
    }
    out.total += out.whole_run;
    out.seconds += seconds(&out.whole_run, 0, rates, network);
    out
}

impl Estimate {
    fn add(&mut self, node: usize, layer: &str, op: String, cost: Cost, seconds: f64) {
        self.total += cost;
        self.seconds += seconds;
        match self.layers.iter_mut().find(|l| l.layer == layer) {
            Some(l) => {
                l.cost += cost;
                l.seconds += seconds;
            }
            None => self.layers.push(LayerCost { layer: layer.into(), cost, seconds }),
        }
        if cost != Cost::default() {
            self.nodes.push(NodeCost { node, layer: layer.into(), op, cost, seconds });
        }
    }
}

fn seconds(cost: &Cost, elements: usize, rates: &Rates, network: &Network) -> f64 {
    let compute = cost.macs as f64 / rates.macs
        + cost.aes as f64 / rates.aes
        + cost.key_bytes as f64 / rates.key_bytes
        + elements as f64 / rates.elements;
    compute + network.seconds(cost.rounds, cost.wire_bytes + cost.client_bytes)
}

/// Values are kept as two 8-byte words: a masked value and a share of its mask, or two components of a share. Weights and
/// states stay during the whole run, and so does what replaces states from when it is there.
fn memory(plan: &Plan, prices: &dyn GateCost) -> u64 {
    const WORD: u64 = 8;
    let mut last: Vec<usize> = (0..plan.nodes.len()).collect();
    for (id, node) in plan.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|&i| last[i] = id);
    }
    let mut stays: Vec<bool> =
        plan.nodes.iter().map(|n| matches!(n.op, Op::Weight { .. } | Op::State { .. })).collect();
    plan.outputs.iter().for_each(|o| stays[o.value] = true);
    plan.updates.iter().for_each(|u| stays[u.value] = true);
    let (mut alive, mut weights, mut peak) = (0u64, 0u64, 0u64);
    for (id, node) in plan.nodes.iter().enumerate() {
        let bytes = 2 * WORD * node.ty.len() as u64;
        if matches!(node.op, Op::Weight { .. } | Op::State { .. }) {
            weights += bytes;
            continue;
        }
        alive += bytes;
        let operands: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
        let keys = match node.op.is_local() {
            true => 0,
            false => prices.operation(&node.op, &operands, &node.ty).key_bytes,
        };
        peak = peak.max(alive + keys);
        let mut operands = node.inputs.clone();
        operands.sort_unstable();
        operands.dedup();
        for i in operands {
            if last[i] == id && !stays[i] {
                alive -= 2 * WORD * plan.nodes[i].ty.len() as u64;
            }
        }
    }
    peak + weights
}

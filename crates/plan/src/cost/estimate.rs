//! The cost of a plan: prices of its nodes, added up.

use super::{
    Alternative, Cost, Known, Network, Offline, OnTheWay, Operation, PerParty, Preparation, PreparationUnits,
    Prices, Rates, Security, Units, alternatives, known, preparations,
};
use crate::ir::{Op, Plan};
use serde::Serialize;

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
    /// What of it belongs to no node: [`Prices::run`].
    pub whole_run: Cost,
    /// Sharing the weights and [`Prices::session`], once a session, and the first values of states, once a training.
    pub session: Cost,
    /// Peak memory of one party, roughly: values alive at once, weights and one node's keys.
    pub memory_bytes: u64,
    /// Predicted seconds of one run.
    pub seconds: f64,
    /// What a party does in a run, in the units of [`Rates`].
    pub work: Units,
    /// Predicted seconds in which the parties prepare a run among themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub offline_seconds: f64,
    /// Where the rates are from that seconds follow from; empty where the caller has not said ([`Estimate::by`]).
    #[serde(skip_serializing_if = "str::is_empty")]
    pub rates_from: &'static str,
    /// What other networks would choose ([`Estimate::with_alternatives`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// What other ways of preparing a run would cost ([`Estimate::with_alternatives`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preparations: Vec<Preparation>,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Estimate one run of a checked plan.
pub fn estimate(plan: &Plan, prices: &dyn Prices, rates: &Rates, network: &Network) -> Estimate {
    let there = prices.on(network);
    let prices = there.as_ref().map_or(prices, |(_, prices)| &**prices);
    let mut out = Estimate {
        protocol: prices.protocol().into(),
        security: prices.security(),
        batch: plan.batch,
        nodes: Vec::new(),
        layers: Vec::new(),
        total: Cost::default(),
        whole_run: prices.run(plan),
        session: prices.session(plan),
        memory_bytes: memory(plan, prices),
        seconds: 0.0,
        work: Units::default(),
        offline_seconds: 0.0,
        rates_from: "",
        alternatives: Vec::new(),
        preparations: Vec::new(),
    };
    let known = known(plan);
    let mut costs: Vec<Cost> = (0..plan.nodes.len()).map(|id| price(plan, id, &known, prices)).collect();
    if prices.overlaps() {
        let mut sent = OnTheWay::default();
        for (id, (node, cost)) in plan.nodes.iter().zip(&mut costs).enumerate() {
            cost.rounds = sent.pass(id, node, cost.rounds);
        }
    }
    let keys: PerParty = costs.iter().map(|cost| cost.key_bytes).sum();
    let rates = rates.for_keys(keys.most());
    for (id, (node, cost)) in plan.nodes.iter().zip(costs).enumerate() {
        if let Op::Weight { .. } = node.op {
            out.session += cost;
            continue;
        }
        if let Op::State { .. } = node.op {
            out.session += prices.state(&node.ty);
        }
        let work = Units::of(&Operation::of(plan, id, &known), &cost);
        out.work = out.work.and(work);
        out.add(id, &node.layer, node.op.kind(), cost, seconds(&cost, &work, &rates, network));
    }
    for output in &plan.outputs {
        let ty = &plan.nodes[output.value].ty;
        let cost = prices.output(ty);
        // to a receiver, who is no party: of a run it is not counted as work
        let seconds = seconds(&cost, &Units::default(), &rates, network);
        out.add(output.value, &plan.nodes[output.value].layer, "output".into(), cost, seconds);
    }
    out.total += out.whole_run;
    let work = Units::of_cost(&out.whole_run);
    out.work = out.work.and(work);
    out.seconds += seconds(&out.whole_run, &work, &rates, network);
    if let Some(rounds) = prices.rounds_before(plan) {
        out.total.offline.rounds = rounds;
    }
    out.offline_seconds = offline_seconds(&out.total.offline, &rates, network);
    out
}

/// The price of a node; nothing where it is local.
pub(super) fn price<'a>(plan: &'a Plan, id: usize, known: &[Known<'a>], prices: &dyn Prices) -> Cost {
    match plan.nodes[id].op.is_local() {
        true => Cost::default(),
        false => prices.operation(&Operation::of(plan, id, known)),
    }
}

impl Estimate {
    /// With what other networks would choose for `plan`, of which it is the estimate, and other ways of preparing it.
    pub fn with_alternatives(self, plan: &Plan, prices: &dyn Prices, rates: &Rates) -> Estimate {
        Estimate {
            alternatives: alternatives(plan, prices, rates),
            preparations: preparations(plan, prices, rates),
            ..self
        }
    }

    /// With a word on where its rates are from.
    pub fn by(self, rates_from: &'static str) -> Estimate {
        Estimate { rates_from, ..self }
    }

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

pub(super) fn seconds(cost: &Cost, work: &Units, rates: &Rates, network: &Network) -> f64 {
    rates.seconds(work) + network.seconds(cost.rounds, cost.wire_bytes.most() + cost.client_bytes)
}

/// What parties take among themselves before a run, where nothing else is done meanwhile.
pub(super) fn offline_seconds(offline: &Offline, rates: &Rates, network: &Network) -> f64 {
    let computing = rates.seconds_before(&PreparationUnits::of(offline));
    computing + network.seconds(offline.rounds, offline.wire_bytes)
}

/// Weights and states stay during the whole run, and so does what replaces states from when it is there.
fn memory(plan: &Plan, prices: &dyn Prices) -> u64 {
    let known = known(plan);
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
        let bytes = prices.held_bytes(&node.ty);
        if matches!(node.op, Op::Weight { .. } | Op::State { .. }) {
            weights += bytes;
            continue;
        }
        alive += bytes;
        let keys = price(plan, id, &known, prices).key_bytes.most();
        peak = peak.max(alive + keys);
        let mut operands = node.inputs.clone();
        operands.sort_unstable();
        operands.dedup();
        for i in operands {
            if last[i] == id && !stays[i] {
                alive -= prices.held_bytes(&plan.nodes[i].ty);
            }
        }
    }
    peak + weights
}

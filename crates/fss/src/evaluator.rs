//! An evaluator runs the plan on masked values.

use crate::gate::{At, Kind, kind};
use crate::gates::linear::Operand;
use crate::gates::local;
use crate::masks::{Mask, MaskCache, Masks, owned};
use crate::mutation;
use crate::public::Public;
use crate::seeds::PartySeed;
use crate::{Eval, EvalError, PartyId, Wire};
use privet_family::{NodeStats, Products, Secret, States, is_static, last_use};
use privet_kernels::Device;
use privet_masked::unmask;
use privet_plan::Affine;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The masked weights of a session at one evaluator, opened once, with its share of their masks.
pub struct MaskedWeights {
    seed: PartySeed,
    /// Masked values of static values that are read other than as a linear layer's second operand.
    values: HashMap<ValueId, Arc<Vec<u64>>>,
    operands: HashMap<ValueId, Operand>,
}

impl MaskedWeights {
    /// `masked` holds `w + r_w` for every weight node by name, in the ring of the node; `seed` is this evaluator's seed of
    /// the session.
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        seed: PartySeed,
        mut masked: BTreeMap<String, Vec<u64>>,
    ) -> Result<MaskedWeights, EvalError> {
        let mut weights = MaskedWeights { seed, values: HashMap::new(), operands: HashMap::new() };
        let (cache, last, lasts) = (MaskCache::new(plan), last_use(plan), read_in_runs(plan));
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, .. } = &node.op {
                let w = masked.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    EvalError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                weights.values.insert(v, Arc::new(w));
            } else if is_static(plan, v) {
                let at = At { plan, id: v };
                let value = local::apply(&at, Affine::Full, |i| weights.values[&node.inputs[i]].clone());
                weights.values.insert(v, Arc::new(value));
            }
            if let Some(products) = Products::of(plan, node)
                && let Some(w) = weights.values.get(&node.inputs[1])
            {
                let (ring, mask) = (Ring::new(node.ty.bits), owned(cache.of(&weights, node.inputs[1])));
                weights.operands.insert(v, Operand::new(device, ring, products, w, mask));
            }
            cache.done(v);
            // what is on the device is let go
            for i in node.inputs.iter().filter(|&&i| last[i] == v && !lasts[i]) {
                weights.values.remove(i);
            }
        }
        Ok(weights)
    }
}

/// Static values that a run reads itself: as outputs and updates, and other than as a linear layer's second operand.
fn read_in_runs(plan: &Plan) -> Vec<bool> {
    let mut read = vec![false; plan.nodes.len()];
    for (_, node) in plan.nodes.iter().enumerate().filter(|&(v, _)| !is_static(plan, v)) {
        let linear = Products::of(plan, node).is_some();
        for (i, &input) in node.inputs.iter().enumerate() {
            read[input] |= !(linear && i == 1);
        }
    }
    plan.outputs.iter().for_each(|o| read[o.value] = true);
    plan.updates.iter().for_each(|u| read[u.value] = true);
    read
}

impl Masks for MaskedWeights {
    fn fresh(&self, _: Wire, _: Ring, _: usize) -> Secret {
        unreachable!("a static value depends on weights alone")
    }

    fn public(&self) -> &Public {
        unreachable!("a static value depends on weights alone")
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.seed.weight_mask_share(node, ring, n)
    }
}

struct RecordMasks<'a, 'b>(&'a MaskedWeights, &'a Eval<'b>);

impl Masks for RecordMasks<'_, '_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.1.mask_share(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.0.weight(node, ring, n)
    }

    fn public(&self) -> &Public {
        self.1.public()
    }
}

/// What an evaluator is given for a run.
pub struct Given<'a> {
    /// Masked inputs by node.
    pub inputs: HashMap<ValueId, Vec<u64>>,
    /// Public numbers by name, each an element of its node's ring.
    pub publics: BTreeMap<String, u64>,
    /// Its shares of states, those of the plan among them.
    pub states: &'a States,
}

/// What a run gives an evaluator.
pub struct Done {
    /// Its additive share of every output, in the plan's order.
    pub outputs: Vec<Secret>,
    /// Its additive shares of the states that the plan updates.
    pub updates: States,
    /// The costs of every node. All states are opened in one round, which the first one's node counts.
    pub nodes: Vec<NodeStats>,
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("updates", &self.updates).finish_non_exhaustive()
    }
}

/// Evaluates records of a plan within a session.
pub struct Evaluator<'a> {
    plan: &'a Plan,
    weights: &'a MaskedWeights,
}

impl<'a> Evaluator<'a> {
    /// For a checked plan.
    pub fn new(plan: &'a Plan, weights: &'a MaskedWeights) -> Evaluator<'a> {
        Evaluator { plan, weights }
    }

    /// Run one record; `progress(node)` is called after every node. States are opened first; those given stay as they
    /// are, and their updates are among what is given back.
    pub fn run(
        &self,
        cx: &mut Eval,
        given: Given,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Done, EvalError> {
        let Given { mut inputs, publics, states } = given;
        let publics = self.publics(&publics)?;
        let start = Instant::now();
        let mut opened = cx.open_states(self.plan, states)?;
        // What all states cost together is counted at the first.
        let (rounds, seconds) = (!opened.is_empty() as u64, start.elapsed().as_secs_f64());
        let mut together = NodeStats { rounds, seconds, ..NodeStats::default() };
        let (last, cache) = (last_use(self.plan), MaskCache::new(self.plan));
        let mut values: Vec<Option<Arc<Vec<u64>>>> = vec![None; self.plan.nodes.len()];
        let mut stats = Vec::with_capacity(self.plan.nodes.len());
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let start = Instant::now();
            cx.enter(node);
            cx.stats = NodeStats::default();
            let value = match kind(&node.op) {
                _ if is_static(self.plan, v) => self.weights.values.get(&v).cloned(),
                Kind::Shared(_) => match opened.remove(&v) {
                    Some((w, sent_bytes)) => {
                        cx.stats = NodeStats { sent_bytes, ..std::mem::take(&mut together) };
                        Some(Arc::new(w))
                    }
                    None => Some(Arc::new(self.input(&mut inputs, v)?)),
                },
                Kind::Public => publics.get(&v).map(|&p| Arc::new(vec![p])),
                Kind::Gate(gate) => match gate.value_of() {
                    Some(operand) => values[node.inputs[operand]].clone(),
                    None => {
                        let at = At { plan: self.plan, id: v };
                        let operands = Held { at, weights: self.weights, cache: &cache, values: &values };
                        Some(Arc::new(gate.eval(cx, &operands)?))
                    }
                },
            };
            values[v] = value;
            cache.done(v);
            for &i in node.inputs.iter().filter(|&&i| last[i] == v) {
                values[i] = None;
            }
            cx.stats.seconds += start.elapsed().as_secs_f64();
            stats.push(cx.stats);
            progress(v);
        }
        let share = |v: ValueId| {
            let ring = Ring::new(self.plan.nodes[v].ty.bits);
            let yh = values[v].clone().unwrap_or_default();
            unmask(cx.leads(), ring, &yh, owned(cache.of(&RecordMasks(self.weights, cx), v)))
        };
        let outputs = self.plan.outputs.iter().map(|o| share(o.value)).collect();
        let mut updates = States::new();
        for update in &self.plan.updates {
            if let Op::State { name, .. } = &self.plan.nodes[update.state].op {
                updates.insert(name, share(update.value).expose());
            }
        }
        Ok(Done { outputs, updates, nodes: stats })
    }

    /// The masked input of node `v`.
    fn input(&self, given: &mut HashMap<ValueId, Vec<u64>>, v: ValueId) -> Result<Vec<u64>, EvalError> {
        let node = &self.plan.nodes[v];
        given.remove(&v).filter(|x| x.len() == node.ty.len()).ok_or_else(|| {
            let name = if let Op::Input { name, .. } = &node.op { name.as_str() } else { &node.layer };
            EvalError::Missing(format!("input `{name}` was not shared"))
        })
    }

    /// The plan's public numbers by node.
    fn publics(&self, given: &BTreeMap<String, u64>) -> Result<HashMap<ValueId, u64>, EvalError> {
        let mut publics = HashMap::new();
        for (v, node) in self.plan.nodes.iter().enumerate() {
            if let Op::Public { name, .. } = &node.op {
                let missing = || EvalError::Missing(format!("public number `{name}` was not given"));
                publics.insert(v, Ring::new(node.ty.bits).wrap(*given.get(name).ok_or_else(missing)?));
            }
        }
        Ok(publics)
    }
}

/// The operands of a node as an evaluator has them.
pub(crate) struct Held<'a> {
    pub at: At<'a>,
    weights: &'a MaskedWeights,
    cache: &'a MaskCache<'a>,
    values: &'a [Option<Arc<Vec<u64>>>],
}

impl Held<'_> {
    /// The masked value of operand i.
    pub fn value(&self, i: usize) -> Arc<Vec<u64>> {
        self.values[self.at.node().inputs[i]].clone().unwrap_or_default()
    }

    /// This evaluator's share of the mask of operand i.
    pub fn mask(&self, cx: &Eval, i: usize) -> Mask {
        self.cache.of(&RecordMasks(self.weights, cx), self.at.node().inputs[i])
    }

    /// A linear layer's static second operand.
    pub fn prepared(&self) -> Option<&Operand> {
        self.weights.operands.get(&self.at.id)
    }
}

impl PartyId {
    /// True for the evaluator that adds public constants to its share.
    pub fn leads(self) -> bool {
        if mutation::active("public-term-at-1") {
            return self == PartyId::P1;
        }
        self == PartyId::P0 || mutation::active("public-term-twice")
    }
}

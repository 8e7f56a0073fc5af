//! An evaluator runs the plan on masked values.

use crate::gates::{
    argmax, choose, dither, equal, exponential, extend, lookup, max, mul, relu, scale, sign, truncate,
};
use crate::linear::{self, Operand};
use crate::masks::{MaskCache, Masks, owned, unchanged};
use crate::mutation;
use crate::public::Public;
use crate::seeds::PartySeed;
use crate::states::{self, States};
use crate::{Eval, EvalError, PartyId, Wire};
use privet_family::{NodeStats, Products, is_static, last_use, spread_bias};
use privet_kernels::Device;
use privet_plan::ir::{Node, Op, Plan, Rounding, ValueId};
use privet_plan::tables::{Exponential, Pieces};
use privet_plan::{Affine, apply_local, tournament};
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
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, .. } = &node.op {
                let w = masked.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    EvalError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                weights.values.insert(v, Arc::new(w));
            } else if is_static(plan, v) {
                let value = local(plan, node, |i| weights.values[&i].clone());
                weights.values.insert(v, Arc::new(value));
            }
        }
        let cache = MaskCache::new(plan);
        let mut read_otherwise = vec![false; plan.nodes.len()];
        for (v, node) in plan.nodes.iter().enumerate() {
            let products = Products::of(plan, node);
            for (i, &input) in node.inputs.iter().enumerate() {
                if i == 1
                    && let (Some(products), true) = (products, is_static(plan, input))
                {
                    let (ring, mask) = (Ring::new(node.ty.bits), owned(cache.of(&weights, input)));
                    let operand = Operand::new(device, ring, products, &weights.values[&input], mask);
                    weights.operands.insert(v, operand);
                } else if !is_static(plan, v) {
                    read_otherwise[input] = true;
                }
            }
            cache.done(v);
        }
        plan.outputs.iter().for_each(|o| read_otherwise[o.value] = true);
        plan.updates.iter().for_each(|u| read_otherwise[u.value] = true);
        weights.values.retain(|&v, _| read_otherwise[v]);
        Ok(weights)
    }
}

impl Masks for MaskedWeights {
    fn fresh(&self, _: Wire, _: Ring, _: usize) -> Vec<u64> {
        unreachable!("a static value depends on weights alone")
    }

    fn public(&self) -> &Public {
        unreachable!("a static value depends on weights alone")
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Vec<u64> {
        self.seed.weight_mask_share(node, ring, n)
    }
}

struct RecordMasks<'a, 'b>(&'a MaskedWeights, &'a Eval<'b>);

impl Masks for RecordMasks<'_, '_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Vec<u64> {
        self.1.mask_share(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Vec<u64> {
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
    pub outputs: Vec<Vec<u64>>,
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
        let mut opened = states::open(cx, self.plan, states)?;
        // What all states cost together is counted at the first.
        let (rounds, seconds) = (!opened.is_empty() as u64, start.elapsed().as_secs_f64());
        let mut together = NodeStats { rounds, seconds, ..NodeStats::default() };
        let (last, cache) = (last_use(self.plan), MaskCache::new(self.plan));
        let mut values: Vec<Option<Arc<Vec<u64>>>> = vec![None; self.plan.nodes.len()];
        let mut stats = Vec::with_capacity(self.plan.nodes.len());
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let start = Instant::now();
            cx.enter(&node.layer);
            cx.stats = NodeStats::default();
            let value = if is_static(self.plan, v) {
                self.weights.values.get(&v).cloned()
            } else if let Op::Input { name, .. } = &node.op {
                let x = inputs.remove(&v).filter(|x| x.len() == node.ty.len());
                Some(Arc::new(x.ok_or_else(|| EvalError::Missing(format!("input `{name}` was not shared")))?))
            } else if let Some((w, sent_bytes)) = opened.remove(&v) {
                cx.stats = NodeStats { sent_bytes, ..std::mem::take(&mut together) };
                Some(Arc::new(w))
            } else if let Some(operand) = unchanged(&node.op) {
                values[node.inputs[operand]].clone()
            } else if let Some(&p) = publics.get(&v) {
                Some(Arc::new(vec![p]))
            } else {
                Some(Arc::new(self.node(cx, &cache, v, &values)?))
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
            states::unmask(cx.party, ring, &yh, owned(cache.of(&RecordMasks(self.weights, cx), v)))
        };
        let outputs = self.plan.outputs.iter().map(|o| share(o.value)).collect();
        let mut updates = States::new();
        for update in &self.plan.updates {
            if let Op::State { name, .. } = &self.plan.nodes[update.state].op {
                updates.insert(name, share(update.value));
            }
        }
        Ok(Done { outputs, updates, nodes: stats })
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

    fn node(
        &self,
        cx: &mut Eval,
        cache: &MaskCache,
        v: ValueId,
        values: &[Option<Arc<Vec<u64>>>],
    ) -> Result<Vec<u64>, EvalError> {
        let node = &self.plan.nodes[v];
        let (wire, to) = (Wire::node(v), Ring::new(node.ty.bits));
        let x = |i: usize| values[node.inputs[i]].clone().unwrap_or_default();
        let mask = |cx: &Eval, i: usize| cache.of(&RecordMasks(self.weights, cx), node.inputs[i]);
        let from = || Ring::new(self.plan.nodes[node.inputs[0]].ty.bits);
        let shape = || self.plan.nodes[node.inputs[0]].ty.shape.as_slice();
        match &node.op {
            Op::Dither { shift } | Op::Truncate { shift, rounding: Rounding::Stochastic } => {
                dither::eval(cx, wire, [from(), to], *shift, &x(0))
            }
            Op::Truncate { shift, rounding: Rounding::Floor | Rounding::OneUlp } => {
                truncate::eval(cx, wire, [from(), to], *shift, &x(0))
            }
            Op::Lookup { tables } => lookup::eval(cx, wire, [from(), to], tables, &x(0)),
            Op::Piecewise { shift, pieces } => {
                lookup::eval_pieces(cx, wire, to, &Pieces { shift: *shift, pieces }, &x(0))
            }
            Op::Exponential { first, rows } => {
                let ty = &self.plan.nodes[node.inputs[0]].ty;
                let e = Exponential::new(ty, *first, rows).map_err(EvalError::Missing)?;
                exponential::eval(cx, wire, to, &e, &x(0))
            }
            Op::Relu => relu::eval(cx, wire, from(), to, &x(0)),
            Op::Extend => extend::eval(cx, wire, from(), to, &x(0)),
            Op::IsNegative => sign::eval(cx, wire, from(), to, &x(0)),
            Op::Equal => equal::eval(cx, wire, from(), to, &max::difference(from(), &x(0), &x(1))),
            Op::Mul => {
                let (rx, ry) = (mask(cx, 0), mask(cx, 1));
                mul::eval(cx, wire, to, (&x(0), &rx), (&x(1), &ry))
            }
            Op::Scale => {
                let rx = mask(cx, 0);
                scale::eval(cx, wire, to, (&x(0), &rx), x(1)[0])
            }
            Op::Choose => choose::eval(cx, wire, to, &x(0), &x(1)),
            Op::Dropout { stream, keep } => Ok(cx.public().keep(*stream, *keep, &x(0))),
            Op::Select => {
                // y + c (x - y); the result's mask is y's plus the product's.
                let rc = mask(cx, 0);
                let rd = max::difference(to, &mask(cx, 1), &mask(cx, 2));
                let d = max::difference(to, &x(1), &x(2));
                let picked = mul::eval(cx, wire.inner(1), to, (&x(0), &rc), (&d, &rd))?;
                Ok(max::sum(to, &x(2), &picked))
            }
            Op::Max => max::eval(cx, wire, to, &x(0), &x(1)),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, shape());
                let best = max::eval_tournament(cx, wire, 1, to, &rows, x(0).to_vec())?;
                max::eval_tournament(cx, wire, 1 + rows.levels.len(), to, &columns, best)
            }
            Op::Argmax { dim } => {
                let positions = tournament::positions(shape(), *dim);
                let games = tournament::argmax(shape(), *dim);
                argmax::eval(cx, wire, from(), to, &games, x(0).to_vec(), positions)
            }
            _ => match Products::of(self.plan, node) {
                Some(products) => {
                    let start = self.bias_share(cx, cache, node, values);
                    let rx = owned(mask(cx, 0));
                    let fresh;
                    let w = match self.weights.operands.get(&v) {
                        Some(w) => w,
                        None => {
                            fresh = Operand::new(cx.device, to, products, &x(1), owned(mask(cx, 1)));
                            &fresh
                        }
                    };
                    linear::eval(cx, wire, to, products, (&x(0), rx), w, start)
                }
                None => Ok(local(self.plan, node, |i| values[i].clone().unwrap_or_default())),
            },
        }
    }

    /// This evaluator's additive share of the bias (the third operand), over the whole output.
    fn bias_share(
        &self,
        cx: &Eval,
        cache: &MaskCache,
        node: &Node,
        values: &[Option<Arc<Vec<u64>>>],
    ) -> Vec<u64> {
        let Some(&bias) = node.inputs.get(2) else { return vec![0; node.ty.len()] };
        let leads = cx.leads() as u64;
        let masked = values[bias].clone().unwrap_or_default();
        let mask = cache.of(&RecordMasks(self.weights, cx), bias);
        let share: Vec<u64> =
            masked.iter().zip(mask.iter()).map(|(b, r)| (leads * b).wrapping_sub(*r)).collect();
        spread_bias(node, &share)
    }
}

/// A local operation on masked values.
fn local(plan: &Plan, node: &Node, value: impl Fn(ValueId) -> Arc<Vec<u64>>) -> Vec<u64> {
    let operands: Vec<Arc<Vec<u64>>> = node.inputs.iter().map(|&i| value(i)).collect();
    let operands: Vec<&[u64]> = operands.iter().map(|x| x.as_slice()).collect();
    let types: Vec<_> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
    apply_local(&node.op, &types, &node.ty, &operands, Affine::Full)
}

impl PartyId {
    /// True for the evaluator that adds public constants to its share.
    pub fn leads(self) -> bool {
        if mutation::on("public-term-at-1") {
            return self == PartyId::P1;
        }
        self == PartyId::P0 || mutation::on("public-term-twice")
    }
}

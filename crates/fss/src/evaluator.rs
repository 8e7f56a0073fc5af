//! An evaluator runs the plan on masked values.

use crate::gate::{At, Kind, kind};
use crate::gates::linear::Factor;
use crate::masks::{Mask, MaskCache, Masks, owned};
use crate::mutation;
use crate::public::Public;
use crate::seeds::PartySeed;
use crate::{Eval, EvalError, Opened, PartyId, Wire};
use privet_family::{NodeStats, Secret, States};
use privet_kernels::Device;
use privet_masked::{Done, Given, Side, StaticValues, Values, unmask};
use privet_plan::ir::{Node, Plan, ValueId};
use privet_ring::Ring;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The masked weights of a session at one evaluator, opened once, with its share of their masks.
pub struct MaskedWeights {
    masks: WeightMasks,
    values: StaticValues<Factor>,
}

impl MaskedWeights {
    /// `masked` holds `w + r_w` for every weight node by name, in the ring of the node; `seed` is this evaluator's seed of
    /// the session.
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        seed: PartySeed,
        masked: BTreeMap<String, Vec<u64>>,
    ) -> Result<MaskedWeights, EvalError> {
        let (masks, cache) = (WeightMasks(seed), MaskCache::new(plan));
        let values = StaticValues::new(
            plan,
            masked,
            |v, products, w| {
                let node = &plan.nodes[v];
                let mask = owned(cache.of(&masks, node.inputs[1]));
                Factor::new(device, Ring::new(node.ty.bits), products, w, mask)
            },
            |v| cache.done(v),
        )?;
        Ok(MaskedWeights { masks, values })
    }
}

/// This evaluator's shares of the masks of weights alone.
struct WeightMasks(PartySeed);

impl Masks for WeightMasks {
    fn fresh(&self, _: Wire, _: Ring, _: usize) -> Secret {
        unreachable!("a static value depends on weights alone")
    }

    fn public(&self) -> &Public {
        unreachable!("a static value depends on weights alone")
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.0.weight_mask_share(node, ring, n)
    }
}

struct RecordMasks<'a, 'b>(&'a MaskedWeights, &'a Eval<'b>);

impl Masks for RecordMasks<'_, '_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.1.mask_share(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.0.masks.weight(node, ring, n)
    }

    fn public(&self) -> &Public {
        self.1.public()
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

    /// Run one record ([`privet_masked::run()`]).
    pub fn run(
        &self,
        cx: &mut Eval,
        given: Given,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Done, EvalError> {
        let Evaluator { plan, weights } = *self;
        let mut side = Running { plan, weights, cache: MaskCache::new(plan), cx };
        privet_masked::run(plan, &mut side, given, progress)
    }
}

/// An evaluator's side of one run.
struct Running<'a, 'b, 'c> {
    plan: &'a Plan,
    weights: &'a MaskedWeights,
    cache: MaskCache<'a>,
    cx: &'b mut Eval<'c>,
}

impl Side for Running<'_, '_, '_> {
    fn enter(&mut self, node: &Node) {
        self.cx.enter(node);
    }

    fn stats(&mut self) -> &mut NodeStats {
        &mut self.cx.stats
    }

    fn open_states(&mut self, states: &States) -> Result<BTreeMap<ValueId, (Vec<u64>, u64)>, EvalError> {
        self.cx.open_states(self.plan, states)
    }

    fn static_value(&self, v: ValueId) -> Option<Arc<Vec<u64>>> {
        self.weights.values.value(v)
    }

    fn value_of(&self, v: ValueId) -> Option<usize> {
        match kind(&self.plan.nodes[v].op) {
            Kind::Gate(gate) => gate.value_of(),
            Kind::Shared(_) | Kind::Public => None,
        }
    }

    fn eval(&mut self, v: ValueId, values: &Values) -> Result<Opened, EvalError> {
        let at = At { plan: self.plan, id: v };
        let held = Held { at, weights: self.weights, cache: &self.cache, values };
        match kind(&at.node().op) {
            Kind::Gate(gate) => gate.eval(self.cx, &held),
            Kind::Shared(_) | Kind::Public => unreachable!("nothing computes it"),
        }
    }

    fn receive(&mut self, value: Opened) -> Result<Vec<u64>, EvalError> {
        self.cx.receive(value)
    }

    fn share(&self, v: ValueId, ring: Ring, masked: &[u64]) -> Secret {
        let mask = owned(self.cache.of(&RecordMasks(self.weights, self.cx), v));
        unmask(self.cx.leads(), ring, masked, mask)
    }

    fn done(&mut self, v: ValueId) {
        self.cache.done(v);
    }
}

/// The operands of a node as an evaluator has them.
pub(crate) struct Held<'a> {
    pub at: At<'a>,
    weights: &'a MaskedWeights,
    cache: &'a MaskCache<'a>,
    values: &'a Values,
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

    /// This evaluator's share of the mask of the node's value was dealt: it is this.
    pub fn keep_mask(&self, share: Secret) {
        self.cache.keep(self.at.id, share);
    }

    /// A linear layer's static second operand.
    pub fn prepared(&self) -> Option<&Factor> {
        self.weights.values.operand(self.at.id)
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

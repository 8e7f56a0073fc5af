//! A party runs the plan on masked values.

use crate::gate::{At, Kind, kind};
use crate::gates::linear::Operand;
use crate::masks::{Mask, MaskCache, Masks};
use crate::prepare::Static;
use crate::seeds::{PartySeed, Public};
use crate::shares::{Seats, Words};
use crate::{Eval, EvalError, Opened};
use privet_family::{NodeStats, Secret, States, Wire};
use privet_kernels::Device;
use privet_masked::{Done, Given, Side, StaticValues, Values, unmask};
use privet_plan::ir::{Node, Plan, ValueId};
use privet_ring::Ring;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The masked weights of a session at one party, opened once, with its summands of their masks.
pub struct MaskedWeights {
    seed: PartySeed,
    values: StaticValues<Operand>,
}

impl MaskedWeights {
    /// `masked` holds `w + r_w` for every weight node by name, in the ring of the node; `seed` is this party's seed of
    /// the session.
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        seed: PartySeed,
        masked: BTreeMap<String, Vec<u64>>,
    ) -> Result<MaskedWeights, EvalError> {
        let (seats, seeds) = (Seats::one(seed.party()), [seed.clone()]);
        let (masks, cache) = (Static { seeds: &seeds, seats }, MaskCache::new(plan));
        let values = StaticValues::new(
            plan,
            masked,
            |v, products, w| {
                let node = &plan.nodes[v];
                let mask = cache.of(&masks, node.inputs[1]);
                let mask = seed.masks_weights().then(|| mask.own().as_slice());
                Operand::new(device, Ring::new(node.ty.bits), products, w, mask)
            },
            |v| cache.done(v),
        )?;
        Ok(MaskedWeights { seed, values })
    }
}

struct RecordMasks<'a, 'b>(&'a MaskedWeights, &'a Eval<'b>);

impl Masks for RecordMasks<'_, '_> {
    fn seats(&self) -> Seats {
        self.1.seats()
    }

    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        self.1.mask(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        Words::new(self.seats(), ring, vec![self.0.seed.weight_mask(node, ring, n)])
    }

    fn public(&self) -> &Public {
        self.1.public()
    }
}

/// Runs records of a plan within a session.
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

/// A party's side of one run.
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
            Kind::Gate(gate) => gate.value_of(&At { plan: self.plan, id: v }),
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
        let mask = self.cache.of(&RecordMasks(self.weights, self.cx), v).own().clone();
        unmask(self.cx.leads(), ring, masked, mask)
    }

    fn done(&mut self, v: ValueId) {
        self.cache.done(v);
    }
}

/// The operands of a node as a party has them.
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

    /// This party's summand of the mask of operand i.
    pub fn mask(&self, cx: &Eval, i: usize) -> Mask {
        self.cache.of(&RecordMasks(self.weights, cx), self.at.node().inputs[i])
    }

    /// A linear layer's static second operand.
    pub fn prepared(&self) -> Option<&Operand> {
        self.weights.values.operand(self.at.id)
    }
}

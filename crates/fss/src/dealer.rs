//! The dealer runs the plan on masks.

use crate::deal::{mask_difference, whole_mask};
use crate::gate::{At, Kind, kind};
use crate::keys::{KeyError, KeySink};
use crate::masks::{Mask, MaskCache, Masks};
use crate::mutation;
use crate::public::Public;
use crate::seeds::{PartySeed, RecordSeeds, SessionSeeds};
use crate::{Deal, Wire};
use privet_family::Secret;
use privet_family::{NodeStats, Prepared, Products, is_static};
use privet_kernels::Device;
use privet_plan::Form;
use privet_plan::ir::{Plan, ValueId};
use privet_prg::{HashKeys, Seed};
use privet_ring::Ring;
use std::collections::HashMap;
use std::time::Instant;

/// What the dealer keeps for a session: the hash keys, the seeds of the weights' masks, and of these masks the differences of both
/// evaluators' shares in the device's layout for every linear layer.
pub struct SessionMasks {
    seeds: SessionSeeds,
    prepared: HashMap<ValueId, Prepared>,
}

impl SessionMasks {
    /// From the session's secret seed, which only the dealer may know.
    pub fn new(plan: &Plan, device: &dyn Device, session: &Seed) -> SessionMasks {
        SessionMasks::with(plan, device, SessionSeeds::of(session))
    }

    /// The same from seeds that were drawn one by one.
    pub fn with(plan: &Plan, device: &dyn Device, seeds: SessionSeeds) -> SessionMasks {
        let mut masks = SessionMasks { seeds, prepared: HashMap::new() };
        let cache = MaskCache::new(plan);
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Some(products) = Products::of(plan, node)
                && is_static(plan, node.inputs[1])
            {
                let difference = cache.of(&WeightDifferences(&masks), node.inputs[1]);
                let prepared = products.prepare(device, Ring::new(node.ty.bits), &difference);
                masks.prepared.insert(v, prepared);
            }
            cache.done(v);
        }
        masks
    }

    /// The seeds that the evaluators must be given, one each, with the session.
    pub fn party_seeds(&self) -> &[PartySeed; 2] {
        &self.seeds.parties
    }

    /// The public keys that all public randomness of the session's records follows from.
    pub fn hash_keys(&self) -> &HashKeys {
        &self.seeds.hash
    }
}

impl Masks for SessionMasks {
    fn fresh(&self, _: Wire, _: Ring, _: usize) -> Secret {
        unreachable!("a static value depends on weights alone")
    }

    fn public(&self) -> &Public {
        unreachable!("a static value depends on weights alone")
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        whole_mask(&self.seeds.parties, mutation::weight_wire(Wire::node(node)), ring, n)
    }
}

/// Of weights' masks evaluator 0's share, less evaluator 1's: a linear function of the shares, as masks are.
struct WeightDifferences<'a>(&'a SessionMasks);

impl Masks for WeightDifferences<'_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.0.fresh(wire, ring, n)
    }

    fn public(&self) -> &Public {
        self.0.public()
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        mask_difference(&self.0.seeds.parties, mutation::weight_wire(Wire::node(node)), ring, n)
    }
}

/// Fresh masks only; for gates that need no weights.
impl Masks for Deal<'_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.fresh_mask(wire, ring, n)
    }

    fn weight(&self, _: ValueId, _: Ring, _: usize) -> Secret {
        unreachable!("gates take weights' masks from the session")
    }

    fn public(&self) -> &Public {
        Deal::public(self)
    }
}

struct RecordMasks<'a, 'b>(&'a SessionMasks, &'a Deal<'b>);

impl Masks for RecordMasks<'_, '_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.1.fresh_mask(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.0.weight(node, ring, n)
    }

    fn public(&self) -> &Public {
        self.1.public()
    }
}

/// Of all masks of a record evaluator 0's share, less evaluator 1's.
struct RecordDifferences<'a, 'b>(&'a SessionMasks, &'a Deal<'b>);

impl Masks for RecordDifferences<'_, '_> {
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.1.fresh_difference(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        WeightDifferences(self.0).weight(node, ring, n)
    }

    fn public(&self) -> &Public {
        self.1.public()
    }
}

/// Deals records of a plan within a session.
pub struct Dealer<'a> {
    plan: &'a Plan,
    device: &'a dyn Device,
    session: &'a SessionMasks,
}

impl<'a> Dealer<'a> {
    /// For a checked plan.
    pub fn new(plan: &'a Plan, device: &'a dyn Device, session: &'a SessionMasks) -> Dealer<'a> {
        Dealer { plan, device, session }
    }

    /// The seeds that a record gives its evaluators.
    pub fn record_seeds(record: &Seed) -> [Seed; 2] {
        RecordSeeds::of(record).parties.map(|party| party.seed().clone())
    }

    /// Deal record number `number` of the session into `sink`, its secret randomness all from the seed `record`;
    /// `progress(node)` is called after every node. Gives the costs of each node (key bytes: of the longer stream).
    pub fn deal(
        &self,
        number: u64,
        record: &Seed,
        sink: &mut dyn KeySink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        self.deal_with(number, &RecordSeeds::of(record), sink, progress)
    }

    /// The same from seeds that were drawn one by one.
    pub fn deal_with(
        &self,
        number: u64,
        record: &RecordSeeds,
        sink: &mut dyn KeySink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        let mut cx = Deal::new(self.device, self.session.hash_keys(), number, record, sink);
        let (cache, differences) = (MaskCache::new(self.plan), MaskCache::new(self.plan));
        let mut stats = Vec::with_capacity(self.plan.nodes.len());
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let (start, before) = (Instant::now(), cx.bytes());
            cx.stats = NodeStats::default();
            cx.form = node.form.unwrap_or(Form::Tree);
            if let Kind::Gate(gate) = kind(&node.op) {
                let at = At { plan: self.plan, id: v };
                gate.deal(
                    &mut cx,
                    &Dealt { at, session: self.session, cache: &cache, differences: &differences },
                )?;
            }
            cache.done(v);
            differences.done(v);
            cx.stats.seconds = start.elapsed().as_secs_f64();
            cx.stats.key_bytes = (0..2).map(|b| cx.bytes()[b] - before[b]).max().unwrap_or(0);
            stats.push(cx.stats);
            progress(v);
        }
        Ok(stats)
    }
}

/// The operands of a node as the dealer has them.
pub(crate) struct Dealt<'a> {
    pub at: At<'a>,
    session: &'a SessionMasks,
    cache: &'a MaskCache<'a>,
    differences: &'a MaskCache<'a>,
}

impl Dealt<'_> {
    /// The mask of operand i.
    pub fn mask(&self, cx: &Deal, i: usize) -> Mask {
        self.cache.of(&RecordMasks(self.session, cx), self.at.node().inputs[i])
    }

    /// Of the mask of operand i evaluator 0's share, less evaluator 1's.
    pub fn difference(&self, cx: &Deal, i: usize) -> Mask {
        self.differences.of(&RecordDifferences(self.session, cx), self.at.node().inputs[i])
    }

    /// Shares of the mask of the node's value were dealt: this is the difference.
    pub fn keep_difference(&self, difference: Secret) {
        self.differences.keep(self.at.id, difference);
    }

    /// [`Dealt::difference`] of a linear layer's static second operand, in the device's layout.
    pub fn prepared(&self) -> Option<&Prepared> {
        self.session.prepared.get(&self.at.id)
    }
}

/// The coins of record number `number` for node `v`, as the interpreter reads them, if its operation has any: those of
/// stochastic rounding, of piecewise quadratics and of exponentials. What the interpreter needs to agree with the protocol
/// integer by integer.
pub fn mask_coins(
    plan: &Plan,
    session: &SessionMasks,
    number: u64,
    record: &Seed,
    v: ValueId,
) -> Option<Vec<u64>> {
    let at = At { plan, id: v };
    let Kind::Gate(gate) = kind(&at.node().op) else { return None };
    let public = Public::new(session.hash_keys(), number);
    let masks = KnownMasks { session, seeds: RecordSeeds::of(record), public };
    gate.coins(&at, &masks.public, &|| MaskCache::new(plan).of(&masks, at.node().inputs[0]))
}

/// All masks of a record, from its seeds.
struct KnownMasks<'a> {
    session: &'a SessionMasks,
    seeds: RecordSeeds,
    public: Public,
}

impl Masks for KnownMasks<'_> {
    fn public(&self) -> &Public {
        &self.public
    }

    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        whole_mask(&self.seeds.parties, wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret {
        self.session.weight(node, ring, n)
    }
}

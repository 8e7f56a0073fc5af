//! The walk over a plan that prepares one record, whoever runs it.

use crate::gate::{At, Gate, Kind, kind};
use crate::masks::{Mask, MaskCache, Runners};
use crate::preprocess::{PrepareError, Preprocess, static_operand};
use crate::seeds::{PartySeed, Public};
use crate::shares::{Seats, Words};
use privet_family::{NodeStats, Products, Wire};
use privet_plan::ir::{Plan, ValueId};
use privet_ring::Ring;
use std::time::Instant;

/// Prepare one record of a checked plan; `progress(node)` is called after every node. Gives the costs of each node.
pub fn prepare(
    plan: &Plan,
    cx: &mut dyn Preprocess,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<NodeStats>, PrepareError> {
    let cache = MaskCache::new(plan);
    let mut stats = Vec::with_capacity(plan.nodes.len());
    for v in 0..plan.nodes.len() {
        stats.push(prepare_node(plan, v, cx, &cache)?);
        progress(v);
    }
    Ok(stats)
}

/// Prepare a node; gives its costs.
pub(crate) fn prepare_node(
    plan: &Plan,
    v: ValueId,
    cx: &mut dyn Preprocess,
    cache: &MaskCache<'_>,
) -> Result<NodeStats, PrepareError> {
    let (start, before) = (Instant::now(), cx.kept_bytes());
    if let Kind::Gate(gate) = kind(&plan.nodes[v].op) {
        gate.prepare(cx, &Given { at: At { plan, id: v }, cache })?;
    }
    cache.done(v);
    let (seconds, key_bytes) = (start.elapsed().as_secs_f64(), cx.kept_bytes() - before);
    Ok(NodeStats { seconds, key_bytes, ..NodeStats::default() })
}

/// The operands of a node as its preprocessing has them.
pub(crate) struct Given<'a> {
    pub at: At<'a>,
    cache: &'a MaskCache<'a>,
}

impl Given<'_> {
    /// Shares of the mask of operand i.
    pub fn mask(&self, cx: &dyn Preprocess, i: usize) -> Mask {
        self.cache.of(&Runners(cx), self.at.node().inputs[i])
    }
}

/// The masks of what linear layers read of a session, from parties' seeds of it: `each(node, products, mask)`.
pub fn static_masks(
    plan: &Plan,
    seeds: &[PartySeed],
    seats: Seats,
    mut each: impl FnMut(ValueId, Products, &Words),
) {
    let (masks, cache) = (Static { seeds, seats }, MaskCache::new(plan));
    for v in 0..plan.nodes.len() {
        if let Some((products, operand)) = static_operand(plan, v) {
            each(v, products, &cache.of(&masks, operand));
        }
        cache.done(v);
    }
}

/// The masks of weights.
pub(crate) struct Static<'a> {
    pub seeds: &'a [PartySeed],
    pub seats: Seats,
}

impl crate::masks::Masks for Static<'_> {
    fn seats(&self) -> Seats {
        self.seats
    }

    fn fresh(&self, _: Wire, _: Ring, _: usize) -> Words {
        unreachable!("a static value depends on weights alone")
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        Words::new(self.seats, ring, self.seeds.iter().map(|seed| seed.weight_mask(node, ring, n)).collect())
    }

    fn public(&self) -> &Public {
        unreachable!("a static value depends on weights alone")
    }
}

/// The masks of a record, from all parties' seeds.
struct All<'a> {
    session: &'a [PartySeed],
    record: &'a [PartySeed],
    public: &'a Public,
}

impl crate::masks::Masks for All<'_> {
    fn seats(&self) -> Seats {
        Seats::all(self.record.len())
    }

    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        Words::new(self.seats(), ring, self.record.iter().map(|seed| seed.mask(wire, ring, n)).collect())
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        let seeds = self.session.iter();
        Words::new(self.seats(), ring, seeds.map(|seed| seed.weight_mask(node, ring, n)).collect())
    }

    fn public(&self) -> &Public {
        self.public
    }
}

/// The coins of a record's node `v` as the interpreter reads them, from all parties' seeds of session and record; for tests that
/// compare integers.
pub fn mask_coins(
    plan: &Plan,
    [session, record]: [&[PartySeed]; 2],
    public: &Public,
    v: ValueId,
) -> Option<Vec<u64>> {
    let at = At { plan, id: v };
    let gate: Box<dyn Gate> = match kind(&at.node().op) {
        Kind::Gate(gate) => gate,
        Kind::Shared(_) | Kind::Public => return None,
    };
    let operand = || {
        let all = All { session, record, public };
        MaskCache::new(plan).of(&all, at.node().inputs[0]).as_ref().clone()
    };
    gate.coins(&at, record, &operand)
}

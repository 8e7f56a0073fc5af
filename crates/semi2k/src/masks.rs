//! Masks of a plan's values, made from seeds when they are needed, as shares of those held here: one recursion for the
//! preprocessing and for the run. [`privet_family::MaskCache`] keeps those that are read again.

use crate::Preprocess;
use crate::gate::{At, Kind, Source, kind};
use crate::seeds::Public;
use crate::shares::{Seats, Words};
use privet_family::{MaskFrom, Wire};
use privet_plan::ir::{Plan, ValueId};
use privet_ring::Ring;
use std::rc::Rc;

/// Shares of a mask.
pub(crate) type Mask = Rc<Words>;

/// Fresh masks, as shares of those held here.
pub(crate) trait Masks {
    /// Who is held.
    fn seats(&self) -> Seats;
    /// Of a wire of the record.
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Words;
    /// Of a weight of the session.
    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words;
    /// What all parties draw alike.
    fn public(&self) -> &Public;
}

/// Those of a runner.
pub(crate) struct Runners<'a>(pub &'a dyn Preprocess);

impl Masks for Runners<'_> {
    fn seats(&self) -> Seats {
        self.0.seats()
    }

    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        self.0.mask(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        self.0.weight(node, ring, n)
    }

    fn public(&self) -> &Public {
        self.0.public()
    }
}

/// Masks that were computed and will be read again.
pub(crate) struct MaskCache<'a> {
    plan: &'a Plan,
    cache: privet_family::MaskCache<'a, Words>,
}

impl<'a> MaskCache<'a> {
    /// Empty.
    pub fn new(plan: &'a Plan) -> MaskCache<'a> {
        let from = |id: ValueId| match kind(&plan.nodes[id].op) {
            Kind::Gate(gate) => gate.mask_from(&At { plan, id }),
            Kind::Shared(_) | Kind::Public => MaskFrom::Fresh,
        };
        MaskCache { plan, cache: privet_family::MaskCache::new(plan, from) }
    }

    /// Shares of the mask of value `v`.
    pub fn of(&self, masks: &dyn Masks, v: ValueId) -> Mask {
        self.cache.of(v, &|v| self.make(masks, v))
    }

    /// Node `v` is done: forget what no later one asks for.
    pub fn done(&self, v: ValueId) {
        self.cache.done(v);
    }

    fn make(&self, masks: &dyn Masks, v: ValueId) -> Words {
        let at = At { plan: self.plan, id: v };
        match kind(&at.node().op) {
            Kind::Shared(Source::Weight) => masks.weight(v, at.to(), at.len()),
            Kind::Shared(Source::Input | Source::State) => masks.fresh(at.wire(), at.to(), at.len()),
            Kind::Public => Words::zeros(masks.seats(), at.to(), at.len()),
            Kind::Gate(gate) => gate.mask(&at, masks, &|i| self.of(masks, at.node().inputs[i])),
        }
    }
}

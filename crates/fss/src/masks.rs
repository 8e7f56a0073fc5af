//! Masks of a plan's values, made from seeds when they are needed.
//!
//! Nearly every mask is a linear function of fresh, seeded masks, so one recursion serves the dealer, which gets the masks, and
//! each evaluator, which gets its additive share of them. [`privet_family::MaskCache`] keeps those that are read again.
//!
//! Where the dealer makes a mask of another one in a way that is not linear ([`crate::gates::dither`]), the keys hold the
//! evaluators' shares: they keep them when they read them ([`MaskCache::keep`]), and the recursion ends there.

use crate::Wire;
use crate::gate::{At, Kind, Source, kind};
use crate::public::Public;
use privet_family::{MaskFrom, Secret};
use privet_plan::ir::{Plan, ValueId};
use privet_ring::Ring;
use std::rc::Rc;

/// A mask, or one evaluator's share of it.
pub(crate) type Mask = Rc<Secret>;

/// Fresh masks, or one evaluator's shares of them.
pub(crate) trait Masks {
    /// Of a wire of the record.
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Secret;
    /// Of a weight of the session.
    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Secret;
    /// What the record's dealer and evaluators draw alike.
    fn public(&self) -> &Public;
}

/// Masks that were computed and will be read again.
pub(crate) struct MaskCache<'a> {
    plan: &'a Plan,
    cache: privet_family::MaskCache<'a, Secret>,
}

impl<'a> MaskCache<'a> {
    /// Empty.
    pub fn new(plan: &'a Plan) -> MaskCache<'a> {
        let from = |v: ValueId| match kind(&plan.nodes[v].op) {
            Kind::Gate(gate) => match gate.mask_of() {
                Some(operand) => MaskFrom::Operand(operand),
                None if gate.derives_mask(&At { plan, id: v }) => MaskFrom::Derived,
                None => MaskFrom::Fresh,
            },
            Kind::Shared(_) | Kind::Public => MaskFrom::Fresh,
        };
        MaskCache { plan, cache: privet_family::MaskCache::new(plan, from) }
    }

    /// The mask of value `v`, or one evaluator's share of it.
    pub fn of(&self, masks: &dyn Masks, v: ValueId) -> Mask {
        self.cache.of(v, &|v| self.make(masks, v))
    }

    /// An evaluator's share of the mask of value `v`, which was dealt.
    pub fn keep(&self, v: ValueId, share: Secret) {
        self.cache.keep(v, share);
    }

    /// Node `v` is done: forget what no later one asks for.
    pub fn done(&self, v: ValueId) {
        self.cache.done(v);
    }

    fn make(&self, masks: &dyn Masks, v: ValueId) -> Secret {
        let at = At { plan: self.plan, id: v };
        match kind(&at.node().op) {
            Kind::Shared(Source::Weight) => masks.weight(v, at.to(), at.len()),
            Kind::Shared(Source::Input | Source::State) => masks.fresh(at.wire(), at.to(), at.len()),
            Kind::Public => Secret::new(vec![0; at.len()]),
            Kind::Gate(gate) => gate.mask(&at, masks, &|i| self.of(masks, at.node().inputs[i])),
        }
    }
}

/// The vector itself, copied only where somebody else keeps it.
pub(crate) fn owned(mask: Mask) -> Secret {
    Rc::unwrap_or_clone(mask)
}

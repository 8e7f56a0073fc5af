//! Masks of a plan's values, made from seeds when they are needed.
//!
//! Every mask is a linear function of fresh, seeded masks, so one recursion serves the dealer, which gets the masks, and
//! each evaluator, which gets its additive share of them. Fresh masks are expanded again wherever they are read, which is
//! cheaper than to keep them. Those computed from others are kept while several values are made of them: plans are no
//! trees, and without that a sum of sums would take exponential time.

use crate::Wire;
use crate::gate::{At, Gate, Kind, Source, kind};
use crate::public::Public;
use crate::secret::Secret;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_ring::Ring;
use std::cell::RefCell;
use std::collections::BTreeMap;
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
    /// How often a value's mask may be asked for: by nodes, as an output or as an update. Where a node has the mask of its
    /// operand, whoever reads the node asks for the operand's.
    readers: Vec<usize>,
    /// The last node that may ask for a value's mask, itself or through local operations.
    needed: Vec<usize>,
    kept: RefCell<BTreeMap<ValueId, Mask>>,
}

impl<'a> MaskCache<'a> {
    /// Empty.
    pub fn new(plan: &'a Plan) -> MaskCache<'a> {
        let (mut readers, mut needed) = (vec![0; plan.nodes.len()], vec![0; plan.nodes.len()]);
        for v in plan.outputs.iter().map(|o| o.value).chain(plan.updates.iter().map(|u| u.value)) {
            readers[v] += 1;
            needed[v] = plan.nodes.len();
        }
        for (v, node) in plan.nodes.iter().enumerate().rev() {
            let asks = if derived(&node.op) { needed[v].max(v) } else { v };
            for (place, &i) in node.inputs.iter().enumerate() {
                readers[i] += if same(&node.op) == Some(place) { readers[v] } else { 1 };
                needed[i] = asks.max(needed[i]);
            }
        }
        MaskCache { plan, readers, needed, kept: RefCell::default() }
    }

    /// The mask of value `v`, or one evaluator's share of it.
    pub fn of(&self, masks: &dyn Masks, v: ValueId) -> Mask {
        let node = &self.plan.nodes[v];
        if let Some(operand) = same(&node.op) {
            return self.of(masks, node.inputs[operand]);
        }
        if let Some(mask) = self.kept.borrow().get(&v) {
            return mask.clone();
        }
        let mask = Rc::new(self.make(masks, v));
        if self.readers[v] > 1 && derived(&node.op) {
            self.kept.borrow_mut().insert(v, mask.clone());
        }
        mask
    }

    /// Node `v` is done: forget what no later one asks for.
    pub fn done(&self, v: ValueId) {
        self.kept.borrow_mut().retain(|&kept, _| self.needed[kept] > v);
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

/// What `ask` says of an operation's gate, if it is one.
fn of_gate<T: Default>(op: &Op, ask: impl Fn(&dyn Gate) -> T) -> T {
    match kind(op) {
        Kind::Gate(gate) => ask(gate.as_ref()),
        Kind::Shared(_) | Kind::Public => T::default(),
    }
}

/// Whether the mask of a result is computed from operands' or inner wires' masks.
fn derived(op: &Op) -> bool {
    of_gate(op, |gate| gate.derives_mask())
}

/// The operand whose mask is the result's.
fn same(op: &Op) -> Option<usize> {
    of_gate(op, |gate| gate.mask_of())
}

/// The vector itself, copied only where somebody else keeps it.
pub(crate) fn owned(mask: Mask) -> Secret {
    Rc::unwrap_or_clone(mask)
}

//! Masks of a plan's values, made from seeds when they are needed.
//!
//! Every mask is a linear function of fresh, seeded masks, so one recursion serves the dealer, which gets the masks, and
//! each evaluator, which gets its additive share of them. Fresh masks are expanded again wherever they are read, which is
//! cheaper than to keep them. Those computed from others are kept while several values are made of them: plans are no
//! trees, and without that a sum of sums would take exponential time.

use crate::Wire;
use crate::gates::{argmax, max};
use crate::public::Public;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::{Affine, apply_local, tournament};
use privet_ring::Ring;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Fresh masks, or one evaluator's shares of them.
pub(crate) trait Masks {
    /// Of a wire of the record.
    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Vec<u64>;
    /// Of a weight of the session.
    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Vec<u64>;
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
    kept: RefCell<BTreeMap<ValueId, Rc<Vec<u64>>>>,
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
    pub fn of(&self, masks: &dyn Masks, v: ValueId) -> Rc<Vec<u64>> {
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

    fn make(&self, masks: &dyn Masks, v: ValueId) -> Vec<u64> {
        let node = &self.plan.nodes[v];
        let (wire, ring, n) = (Wire::node(v), Ring::new(node.ty.bits), node.ty.len());
        let operand = |i: usize| self.of(masks, node.inputs[i]);
        let shape = || self.plan.nodes[node.inputs[0]].ty.shape.as_slice();
        match &node.op {
            Op::Weight { .. } => masks.weight(v, ring, n),
            Op::Select => {
                let picked = masks.fresh(wire.inner(1), ring, n);
                max::sum(ring, &operand(2), &picked)
            }
            Op::Max => max::mask(masks, wire, ring, &operand(1)),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, shape());
                let r = max::tournament_mask(masks, wire, 1, ring, &rows, owned(operand(0)));
                max::tournament_mask(masks, wire, 1 + rows.levels.len(), ring, &columns, r)
            }
            Op::Argmax { dim } => argmax::mask(masks, wire, ring, &tournament::argmax(shape(), *dim)),
            // What is dropped is a public zero: its mask is zero too.
            Op::Dropout { stream, keep } => masks.public().keep(*stream, *keep, &operand(0)),
            op if op.is_local() => {
                let operands: Vec<Rc<Vec<u64>>> = (0..node.inputs.len()).map(operand).collect();
                let operands: Vec<&[u64]> = operands.iter().map(|x| x.as_slice()).collect();
                let types: Vec<_> = node.inputs.iter().map(|&i| &self.plan.nodes[i].ty).collect();
                apply_local(op, &types, &node.ty, &operands, Affine::Linear)
            }
            _ => masks.fresh(wire, ring, n),
        }
    }
}

/// Whether the mask of a result is computed from operands' or inner wires' masks.
fn derived(op: &Op) -> bool {
    let gate = matches!(op, Op::Select | Op::Max | Op::MaxPool2d { .. } | Op::Argmax { .. });
    gate || op.is_local() || matches!(op, Op::Dropout { .. })
}

/// The operand whose elements a local operation gives, in their order.
pub(crate) fn unchanged(op: &Op) -> Option<usize> {
    match op {
        Op::Reshape | Op::Rescale => Some(0),
        Op::Approximates { .. } => Some(1),
        _ => None,
    }
}

/// The operand whose mask is the result's.
fn same(op: &Op) -> Option<usize> {
    if let Op::AddConst { .. } = op { Some(0) } else { unchanged(op) }
}

/// The vector itself, copied only where somebody else keeps it.
pub(crate) fn owned(mask: Rc<Vec<u64>>) -> Vec<u64> {
    Rc::unwrap_or_clone(mask)
}

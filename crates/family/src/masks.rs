//! Masks of a plan's values that were computed and will be read again, for families of masked wires.
//!
//! Every mask follows from fresh, seeded ones. Fresh masks are expanded again wherever they are read, which is cheaper than to
//! keep them. Those computed from others are kept while several values are made of them: plans are no trees, and without that
//! a sum of sums would take exponential time.

use privet_plan::ir::{Plan, ValueId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Where the mask of a node's value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaskFrom {
    /// It is fresh, or it stays for the session.
    #[default]
    Fresh,
    /// It is computed from masks of operands or of inner wires.
    Derived,
    /// It is this operand's, element by element.
    Operand(usize),
}

/// Masks, or shares of them, that will be read again.
pub struct MaskCache<'a, M> {
    plan: &'a Plan,
    from: Vec<MaskFrom>,
    /// How often a value's mask may be asked for: by nodes, as an output or as an update. Where a node has the mask of its
    /// operand, whoever reads the node asks for the operand's.
    readers: Vec<usize>,
    /// The last node that may ask for a value's mask, itself or through local operations.
    needed: Vec<usize>,
    kept: RefCell<BTreeMap<ValueId, Rc<M>>>,
}

impl<'a, M> MaskCache<'a, M> {
    /// Empty; `from` says of every node where its mask comes from.
    pub fn new(plan: &'a Plan, from: impl Fn(ValueId) -> MaskFrom) -> MaskCache<'a, M> {
        let from: Vec<MaskFrom> = (0..plan.nodes.len()).map(from).collect();
        let (mut readers, mut needed) = (vec![0; plan.nodes.len()], vec![0; plan.nodes.len()]);
        for v in plan.outputs.iter().map(|o| o.value).chain(plan.updates.iter().map(|u| u.value)) {
            readers[v] += 1;
            needed[v] = plan.nodes.len();
        }
        for (v, node) in plan.nodes.iter().enumerate().rev() {
            let asks = if from[v] == MaskFrom::Fresh { v } else { needed[v].max(v) };
            for (place, &i) in node.inputs.iter().enumerate() {
                readers[i] += if from[v] == MaskFrom::Operand(place) { readers[v] } else { 1 };
                needed[i] = asks.max(needed[i]);
            }
        }
        MaskCache { plan, from, readers, needed, kept: RefCell::default() }
    }

    /// The mask of value `v`; `make(w)` makes that of a value whose mask is no other's, by asking here for its operands'.
    pub fn of(&self, v: ValueId, make: &dyn Fn(ValueId) -> M) -> Rc<M> {
        if let MaskFrom::Operand(place) = self.from[v] {
            return self.of(self.plan.nodes[v].inputs[place], make);
        }
        if let Some(mask) = self.kept.borrow().get(&v) {
            return mask.clone();
        }
        let mask = Rc::new(make(v));
        if self.readers[v] > 1 && self.from[v] == MaskFrom::Derived {
            self.kept.borrow_mut().insert(v, mask.clone());
        }
        mask
    }

    /// The mask of value `v`, which nothing else makes: kept until the last node that asks for it is done.
    pub fn keep(&self, v: ValueId, mask: M) {
        self.kept.borrow_mut().insert(v, Rc::new(mask));
    }

    /// Node `v` is done: forget what no later one asks for.
    pub fn done(&self, v: ValueId) {
        self.kept.borrow_mut().retain(|&kept, _| self.needed[kept] > v);
    }
}

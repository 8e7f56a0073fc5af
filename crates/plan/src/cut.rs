//! Truncations that a ReLU alone reads: both may come from one comparison.

use crate::ir::{Op, Plan, Rounding, ValueId};

/// A ReLU of a value cut to fewer bits. What is cut off changes no sign, so a family may find the carry of the low bits and the sign by
/// one comparison of the value before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Ring bits before the truncation.
    pub bits: u32,
    /// How many of them are cut off; the ReLU reads all others.
    pub shift: u32,
    /// Whether the plan promises a value of a quarter of the ring at most: the truncation has more bits than are left.
    pub promised: bool,
}

impl Cut {
    /// The one that a node of a checked plan is part of.
    pub fn of(plan: &Plan, id: ValueId) -> Option<Cut> {
        let (truncation, relu) = match &plan.nodes[id].op {
            Op::Relu => (plan.nodes[id].inputs[0], id),
            Op::Truncate { .. } => (id, only_reader(plan, id).filter(|&v| plan.nodes[v].op == Op::Relu)?),
            _ => return None,
        };
        let Op::Truncate { shift, rounding: Rounding::Floor } = plan.nodes[truncation].op else {
            return None;
        };
        let bits = plan.nodes[plan.nodes[truncation].inputs[0]].ty.bits;
        let promised = plan.nodes[truncation].ty.bits + shift > bits;
        let cut = Cut { bits, shift, promised };
        let fits = plan.nodes[relu].ty.bits >= cut.chosen_bits() && cut.chosen_bits() > 1;
        (fits && only_reader(plan, truncation) == Some(relu)).then_some(cut)
    }

    /// Bits of the ring in which the ReLU's result is chosen: of a promised value one fewer than are left, as it is below a quarter of that.
    pub fn chosen_bits(&self) -> u32 {
        self.bits - self.shift - u32::from(self.promised)
    }
}

/// The node that reads a value, if nothing else does.
fn only_reader(plan: &Plan, id: ValueId) -> Option<ValueId> {
    let is_kept = plan.outputs.iter().map(|output| output.value).chain(plan.updates.iter().map(|u| u.value));
    let mut readers = (id + 1..plan.nodes.len()).filter(|&v| plan.nodes[v].inputs.contains(&id));
    let (first, second) = (readers.next(), readers.next());
    first.filter(|_| second.is_none() && !is_kept.into_iter().any(|value| value == id))
}

//! The shared weights of a session at one party.

use crate::linear::Operand;
use crate::price::tagged;
use crate::{Party, RunError, Share, local, mutation};
use privet_family::{Products, is_static, last_use};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

/// What depends on weights alone, computed once a session, second operands of linear layers on the device.
pub struct SharedWeights {
    /// Static values that are read other than as a linear layer's second operand.
    pub(crate) values: HashMap<ValueId, Share>,
    /// By the layer that reads them.
    pub(crate) operands: HashMap<ValueId, Operand>,
    /// Whether a run is under way, or has ended while somebody may have learnt something of the tags' keys.
    in_use: AtomicBool,
}

impl SharedWeights {
    /// At a party whose neighbours hold the same components ([`Party::compare`]), for a checked plan; `shares` holds every weight node's share
    /// by name, in the ring of the node. `cx` is of the sharing of weights alone.
    ///
    /// Where messages are proved the parties make tags of every linear layer's weights, a round each, and prove them. Each share is let go as soon as a
    /// layer has it on the device.
    pub fn new(
        cx: &mut Party,
        plan: &Plan,
        mut shares: BTreeMap<String, Share>,
    ) -> Result<SharedWeights, RunError> {
        let (last, lasts) = (last_use(plan), read_in_runs(plan));
        let limits = cx.limits;
        cx.limits = limits.preparing();
        let (mut values, mut operands) = (HashMap::new(), HashMap::new());
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, .. } = &node.op {
                let w = shares.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    RunError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                values.insert(v, w);
            } else if is_static(plan, v) {
                let value = local::apply(cx.id, plan, node, |i| values[&i].clone());
                values.insert(v, value);
            }
            if let Some(products) = tagged(plan, node)
                && let Some(w) = values.get(&node.inputs[1])
            {
                cx.enter(v, &node.layer);
                operands.insert(v, Operand::of_session(cx, Ring::new(node.ty.bits), products, w)?);
                cx.verify_if_large()?;
            }
            for i in node.inputs.iter().filter(|&&i| last[i] == v && !lasts[i]) {
                values.remove(i);
            }
        }
        cx.verify()?;
        cx.limits = limits;
        Ok(SharedWeights { values, operands, in_use: AtomicBool::new(false) })
    }

    /// Whether no run can be had of them any more, as one ended while it compared what tags say.
    pub fn are_spent(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    /// A run at a time. If somebody cheated, what the parties open of tags tells that one something of their keys. So a run that opened it has to end
    /// well, or it was the last one.
    pub(crate) fn used<T>(
        &self,
        cx: &mut Party,
        run: impl FnOnce(&mut Party) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        if self.in_use.swap(true, Ordering::AcqRel) {
            return Err(RunError::Spent);
        }
        let result = run(cx);
        let spent = result.is_err() && cx.opened_tags > 0 && !mutation::active("spent-forgotten");
        self.in_use.store(spent, Ordering::Release);
        result
    }
}

/// Static values that a run reads itself: as outputs and updates, and other than as the prepared operand of a linear layer.
fn read_in_runs(plan: &Plan) -> Vec<bool> {
    let mut read = vec![false; plan.nodes.len()];
    for (_, node) in plan.nodes.iter().enumerate().filter(|&(v, _)| !is_static(plan, v)) {
        let linear = Products::of(plan, node).is_some();
        for (i, &input) in node.inputs.iter().enumerate() {
            read[input] |= !(linear && i == 1);
        }
    }
    plan.outputs.iter().for_each(|o| read[o.value] = true);
    plan.updates.iter().for_each(|u| read[u.value] = true);
    read
}

//! The shared weights of a session at one party.

use crate::limits::Limits;
use crate::linear::Operand;
use crate::{PartyId, RunError, Security, Share, local};
use privet_family::{Products, is_static, last_use};
use privet_kernels::Device;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};

/// What depends on weights alone, computed once a session, second operands of linear layers on the device.
pub struct SharedWeights {
    /// Static values that are read other than as a linear layer's second operand.
    pub(crate) values: HashMap<ValueId, Share>,
    /// By the layer that reads them.
    pub(crate) operands: HashMap<ValueId, Operand>,
}

impl SharedWeights {
    /// At party `id`, for a checked plan; `shares` holds every weight node's share by name, in the ring of the node.
    ///
    /// Each share is let go as soon as a layer has it on the device, but where messages are proved: statements name shares. There
    /// a large model's are kept instead ([`Limits::prepares`]), and each run prepares a layer when it comes to it.
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        id: PartyId,
        security: Security,
        mut shares: BTreeMap<String, Share>,
    ) -> Result<SharedWeights, RunError> {
        let elements = shares.values().map(Share::len).sum();
        let (proves, prepares) = (security == Security::Malicious, Limits::prepares(security, elements));
        let (last, lasts) = (last_use(plan), read_in_runs(plan, prepares));
        let mut weights = SharedWeights { values: HashMap::new(), operands: HashMap::new() };
        for (v, node) in plan.nodes.iter().enumerate() {
            let values = &mut weights.values;
            if let Op::Weight { name, .. } = &node.op {
                let w = shares.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    RunError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                values.insert(v, w);
            } else if is_static(plan, v) {
                let value = local::apply(id, plan, node, |i| values[&i].clone());
                values.insert(v, value);
            }
            if prepares
                && let Some(products) = Products::of(plan, node)
                && let Some(w) = values.get(&node.inputs[1])
            {
                let mut operand = Operand::new(device, Ring::new(node.ty.bits), products, w);
                if !proves {
                    operand.share = Share::default();
                }
                weights.operands.insert(v, operand);
            }
            for i in node.inputs.iter().filter(|&&i| last[i] == v && !lasts[i]) {
                values.remove(i);
            }
        }
        Ok(weights)
    }
}

/// Static values that a run reads itself: as outputs and updates, and other than as the prepared operand of a linear layer.
fn read_in_runs(plan: &Plan, prepares: bool) -> Vec<bool> {
    let mut read = vec![false; plan.nodes.len()];
    for (_, node) in plan.nodes.iter().enumerate().filter(|&(v, _)| !is_static(plan, v)) {
        let linear = prepares && Products::of(plan, node).is_some();
        for (i, &input) in node.inputs.iter().enumerate() {
            read[input] |= !(linear && i == 1);
        }
    }
    plan.outputs.iter().for_each(|o| read[o.value] = true);
    plan.updates.iter().for_each(|u| read[u.value] = true);
    read
}

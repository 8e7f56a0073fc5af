//! The shared weights of a session at one party.

use crate::linear::Operand;
use crate::{PartyId, RunError, Share, local};
use privet_family::{Products, is_static};
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
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        id: PartyId,
        mut shares: BTreeMap<String, Share>,
    ) -> Result<SharedWeights, RunError> {
        let mut values: HashMap<ValueId, Share> = HashMap::new();
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, .. } = &node.op {
                let w = shares.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    RunError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                values.insert(v, w);
            } else if is_static(plan, v) {
                let value = local::apply(id, plan, node, |i| values[&i].clone());
                values.insert(v, value);
            }
        }
        let mut operands = HashMap::new();
        let mut read_otherwise = vec![false; plan.nodes.len()];
        for (v, node) in plan.nodes.iter().enumerate() {
            let products = Products::of(plan, node);
            for (i, &input) in node.inputs.iter().enumerate() {
                if i == 1
                    && let (Some(products), Some(w)) = (products, values.get(&input))
                {
                    operands.insert(v, Operand::new(device, Ring::new(node.ty.bits), products, w));
                } else if !is_static(plan, v) {
                    read_otherwise[input] = true;
                }
            }
        }
        plan.outputs.iter().for_each(|o| read_otherwise[o.value] = true);
        plan.updates.iter().for_each(|u| read_otherwise[u.value] = true);
        values.retain(|&v, _| read_otherwise[v]);
        Ok(SharedWeights { values, operands })
    }
}

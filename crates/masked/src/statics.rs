//! What follows from weights alone: computed once a session, on masked values.

use crate::exchange::EvalError;
use privet_family::{Products, is_static, last_use};
use privet_plan::ir::{Op, Plan, Type, ValueId};
use privet_plan::{Affine, apply_local};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The masked weights of a session at one party, opened once, and what follows from them alone. `O` is the second operand of a
/// bilinear node as the family keeps it, with its summand of the mask.
pub struct StaticValues<O> {
    /// Those that are read other than as a bilinear node's second operand.
    values: HashMap<ValueId, Arc<Vec<u64>>>,
    operands: HashMap<ValueId, O>,
}

impl<O> StaticValues<O> {
    /// `masked` holds `w + mask` for every weight node by name, in the ring of the node. `operand(v, products, w)` makes the second
    /// operand of node v from its masked value; `done(v)` is called after every node. An error names a weight that is missing or
    /// has another size.
    pub fn new(
        plan: &Plan,
        mut masked: BTreeMap<String, Vec<u64>>,
        mut operand: impl FnMut(ValueId, Products, &[u64]) -> O,
        mut done: impl FnMut(ValueId),
    ) -> Result<StaticValues<O>, EvalError> {
        let mut statics = StaticValues { values: HashMap::new(), operands: HashMap::new() };
        let (last, lasts) = (last_use(plan), read_in_runs(plan));
        for (v, node) in plan.nodes.iter().enumerate() {
            if let Op::Weight { name, .. } = &node.op {
                let w = masked.remove(name).filter(|w| w.len() == node.ty.len()).ok_or_else(|| {
                    EvalError::Missing(format!("weight `{name}` was not shared; share the model again"))
                })?;
                statics.values.insert(v, Arc::new(w));
            } else if is_static(plan, v) {
                let operands: Vec<&[u64]> = node.inputs.iter().map(|i| &statics.values[i][..]).collect();
                let types: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
                let value = apply_local(&node.op, &types, &node.ty, &operands, Affine::Full);
                statics.values.insert(v, Arc::new(value));
            }
            if let Some(products) = Products::of(plan, node)
                && let Some(w) = statics.values.get(&node.inputs[1])
            {
                statics.operands.insert(v, operand(v, products, w));
            }
            done(v);
            // what the family keeps in its own form is let go
            for i in node.inputs.iter().filter(|&&i| last[i] == v && !lasts[i]) {
                statics.values.remove(i);
            }
        }
        Ok(statics)
    }

    /// The masked value of node v, if a run reads it.
    pub fn value(&self, v: ValueId) -> Option<Arc<Vec<u64>>> {
        self.values.get(&v).cloned()
    }

    /// The second operand of a bilinear node, if it is static.
    pub fn operand(&self, v: ValueId) -> Option<&O> {
        self.operands.get(&v)
    }
}

/// Static values that a run reads itself: as outputs and updates, and other than as a bilinear node's second operand.
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

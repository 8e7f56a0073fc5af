//! What a server makes of its weights once, for all hints.

use crate::context::{RunError, Side};
use crate::gate::{At, Kind, kind};
use crate::gates::{linear, local};
use crate::hints::{LEAST_SPARE, hinted};
use crate::refusals;
use privet_family::{Secret, is_static, last_use};
use privet_he::torus::Filters;
use privet_plan::Plan;
use privet_plan::ir::{Node, Op, ValueId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What a server made of its weights, once: the filters of linear layers, and other values that depend on weights alone. Wiped on drop.
pub struct Weights {
    /// By layer.
    filters: BTreeMap<ValueId, Arc<Filters>>,
    /// Those that gates read.
    values: Values,
    /// Bits by which norms exceed their fraction.
    spare: u32,
}

type Values = HashMap<ValueId, Arc<Secret>>;

impl Weights {
    /// From weights by name in the rings of their nodes. Refuses what the family does not run.
    pub fn new(plan: &Plan, weights: BTreeMap<String, Vec<u64>>) -> Result<Weights, RunError> {
        // all that is not taken is wiped
        let mut weights: BTreeMap<String, Secret> =
            weights.into_iter().map(|(name, w)| (name, Secret::new(w))).collect();
        if let Some(first) = refusals(plan).first() {
            return Err(RunError::Refused(first.to_string()));
        }
        let mut values = statics(plan, &mut weights)?;
        let exceeds = |v: ValueId| {
            let at = At { plan, id: v };
            linear::norm_bits(&at, &values[&filters_of(plan, v)]).saturating_sub(at.operand(1).frac)
        };
        let spare = hinted(plan).map(exceeds).fold(LEAST_SPARE, u32::max);
        let (last, read) = (last_use(plan), read(plan));
        let mut filters = BTreeMap::new();
        for v in hinted(plan) {
            let (at, of) = (At { plan, id: v }, filters_of(plan, v));
            let w = Secret::new(linear::in_order(&at, &values[&of]));
            filters.insert(v, Arc::new(Filters::new(at.to(), at.operand(1).frac + spare, &w)));
            // one layer after the other: both forms of all weights together would take twice the room
            if last[of] == v && !read[of] {
                values.remove(&of);
            }
        }
        values.retain(|v, _| read[*v]);
        Ok(Weights { filters, values, spare })
    }

    /// The weights of a layer that has a hint.
    pub(crate) fn filters(&self, v: ValueId) -> Option<&Arc<Filters>> {
        self.filters.get(&v)
    }

    /// A value that gates read.
    pub(crate) fn value(&self, v: ValueId) -> Option<&Arc<Secret>> {
        self.values.get(&v)
    }

    pub(crate) fn spare(&self) -> u32 {
        self.spare
    }
}

/// The weights of a layer that has a hint.
fn filters_of(plan: &Plan, v: ValueId) -> ValueId {
    plan.nodes[v].inputs[1]
}

/// For each value, whether a run reads it. Filters are read by hints and not by runs.
fn read(plan: &Plan) -> Vec<bool> {
    let mut read = vec![false; plan.nodes.len()];
    for (id, node) in plan.nodes.iter().enumerate().filter(|(id, _)| !is_static(plan, *id)) {
        let has_filters = linear::has_hint(&At { plan, id });
        let operands = node.inputs.iter().enumerate().filter(|(i, _)| !(has_filters && *i == 1));
        operands.for_each(|(_, of)| read[*of] = true);
    }
    plan.outputs.iter().for_each(|o| read[o.value] = true);
    read
}

/// All values that depend on weights alone, but those that nothing but other ones follow from.
fn statics(plan: &Plan, weights: &mut BTreeMap<String, Secret>) -> Result<Values, RunError> {
    let mut statics = Values::new();
    let last = last_use(plan);
    for (v, node) in plan.nodes.iter().enumerate().filter(|(v, _)| is_static(plan, *v)) {
        let value = match kind(&node.op) {
            Kind::Weight { name, .. } => {
                let missing = || RunError::Missing(format!("weight `{name}` was not given"));
                let is_same =
                    |later: &Node| matches!(&later.op, Op::Weight { name: other, .. } if other == name);
                let w = match plan.nodes[v + 1..].iter().any(is_same) {
                    true => weights.get(name).cloned(),
                    false => weights.remove(name),
                };
                w.filter(|w| w.len() == node.ty.len()).ok_or_else(missing)?
            }
            Kind::Input { .. } | Kind::Public | Kind::Gate(_) | Kind::Lacks(_) => {
                let operands: Vec<_> = node.inputs.iter().map(|i| Arc::clone(&statics[i])).collect();
                Secret::new(local::map(&At { plan, id: v }, Side::Server, &operands))
            }
        };
        statics.insert(v, Arc::new(value));
        node.inputs.iter().filter(|i| last[**i] == v).for_each(|i| drop(statics.remove(i)));
    }
    Ok(statics)
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Weights")
    }
}

//! A party's walk over the plan.

use crate::context::{Cx, RunError};
use crate::gate::{At, Held, Kind, kind};
use crate::gates::linear::Prepared;
use crate::session::Session;
use crate::uses::Uses;
use privet_family::keys::KeySource;
use privet_family::{NodeStats, Secret, is_static, last_use};
use privet_plan::Plan;
use privet_plan::ir::{Node, ValueId};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// What a party is given for a run.
pub struct Given<'a> {
    /// Its additive shares of the inputs, by node.
    pub inputs: HashMap<ValueId, Vec<u64>>,
    /// Public numbers by name, as elements of their nodes' rings.
    pub publics: BTreeMap<String, u64>,
    /// The run's masks, as [`Session::make_masks`] gave them: read once.
    pub masks: &'a mut dyn KeySource,
}

/// What a run gave a party.
pub struct Outcome {
    /// Its additive share of every output, in the plan's order.
    pub outputs: Vec<Secret>,
    /// The costs of every node.
    pub nodes: Vec<NodeStats>,
    /// What every node used.
    pub used: Vec<Uses>,
}

/// Runs a checked plan once, on shares of its inputs; masks and material are used up. `progress(node)` is called after every node.
pub fn run(
    cx: &mut Cx,
    plan: &Plan,
    session: &Session,
    given: Given,
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome, RunError> {
    walk(cx, plan, session, given, &mut |v, _| progress(v))
}

/// The same; `watch` gets each node with this side's share of its value, if it has any.
pub(crate) fn walk(
    cx: &mut Cx,
    plan: &Plan,
    session: &Session,
    mut given: Given,
    watch: &mut dyn FnMut(ValueId, &[u64]),
) -> Result<Outcome, RunError> {
    if session.side() != cx.side {
        return Err(RunError::Missing("the session is of the other side".into()));
    }
    let last = last_use(plan);
    let mut values: Vec<Option<Arc<Secret>>> = vec![None; plan.nodes.len()];
    let (mut nodes, mut used) = (Vec::new(), Vec::new());
    for (v, node) in plan.nodes.iter().enumerate() {
        let start = Instant::now();
        cx.enter(&node.layer);
        values[v] = match kind(&node.op) {
            _ if is_static(plan, v) => Some(session.static_share(plan, v)),
            Kind::Input { name, .. } => {
                Some(Arc::new(Secret::new(input(given.inputs.remove(&v), node, name)?)))
            }
            Kind::Weight { name, .. } => {
                return Err(RunError::Missing(format!("weight `{name}` was not given")));
            }
            Kind::Public => None,
            Kind::Lacks(what) => return Err(RunError::Refused(format!("heot has no gate for {what}"))),
            Kind::Gate(gate) => {
                let layer = session.prepared(given.masks, v)?;
                cx.stats.key_bytes += layer.as_ref().map_or(0, Prepared::stored);
                let at = At { plan, id: v };
                let held = Held { at, values: &values, publics: &given.publics, layer: RefCell::new(layer) };
                let value = if node.ty.is_empty() { Vec::new() } else { gate.eval(cx, &held)? };
                Some(Arc::new(Secret::new(value)))
            }
        };
        watch(v, values[v].as_ref().map_or(&[], |value| value.as_slice()));
        for &i in node.inputs.iter().filter(|&&i| last[i] == v) {
            values[i] = None;
        }
        cx.stats.seconds = start.elapsed().as_secs_f64();
        nodes.push(cx.stats);
        used.push(std::mem::take(&mut cx.used));
    }
    let share = |v: ValueId| values[v].as_ref().map(|x| Secret::new(x.to_vec())).unwrap_or_default();
    let outputs = plan.outputs.iter().map(|o| share(o.value)).collect();
    Ok(Outcome { outputs, nodes, used })
}

/// This party's share of an input, if it is of that node.
fn input(share: Option<Vec<u64>>, node: &Node, name: &str) -> Result<Vec<u64>, RunError> {
    let share = share.filter(|x| x.len() == node.ty.len());
    share.ok_or_else(|| RunError::Missing(format!("input `{name}` was not shared")))
}

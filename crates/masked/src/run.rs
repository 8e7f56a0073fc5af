//! A run of a record, node by node, on masked values.

use crate::exchange::{EvalError, Opened};
use privet_family::{NodeStats, Secret, States, is_static, last_use};
use privet_plan::ir::{Node, Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// Masked values by node; none before a node is done, and once nothing reads it any more.
pub type Values = [Option<Arc<Vec<u64>>>];

/// What a party is given for a run.
pub struct Given<'a> {
    /// Masked inputs by node.
    pub inputs: HashMap<ValueId, Vec<u64>>,
    /// Public numbers by name, each an element of its node's ring.
    pub publics: BTreeMap<String, u64>,
    /// Its shares of states, those of the plan among them.
    pub states: &'a States,
}

/// What a run gives a party.
pub struct Done {
    /// Its additive share of every output, in the plan's order.
    pub outputs: Vec<Secret>,
    /// Its additive shares of the states that the plan updates.
    pub updates: States,
    /// The costs of every node. All states are opened in one round, which the first one's node counts.
    pub nodes: Vec<NodeStats>,
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Done").field("updates", &self.updates).finish_non_exhaustive()
    }
}

/// A party's side of one record: its masks, its frames and its gates.
pub trait Side {
    /// What comes next belongs to this node.
    fn enter(&mut self, node: &Node);
    /// What the node has cost so far.
    fn stats(&mut self) -> &mut NodeStats;
    /// All states under fresh masks, with the bytes sent for each ([`crate::open_states`]).
    fn open_states(&mut self, states: &States) -> Result<BTreeMap<ValueId, (Vec<u64>, u64)>, EvalError>;
    /// The masked value of a node that follows from weights alone.
    fn static_value(&self, v: ValueId) -> Option<Arc<Vec<u64>>>;
    /// The operand whose masked value is the result's, element by element.
    fn value_of(&self, v: ValueId) -> Option<usize>;
    /// The masked value of a node that is computed, from those of its operands: all its openings are begun, and all but the last are done.
    fn eval(&mut self, v: ValueId, values: &Values) -> Result<Opened, EvalError>;
    /// The masked value of which an opening was begun ([`crate::Exchange::receive`]).
    fn receive(&mut self, value: Opened) -> Result<Vec<u64>, EvalError>;
    /// This party's additive share of a value, from the masked one ([`crate::unmask`]).
    fn share(&self, v: ValueId, ring: Ring, masked: &[u64]) -> Secret;
    /// Node v is done: masks that no later one asks for may go.
    fn done(&mut self, v: ValueId);
}

/// Run one record of a checked plan; `progress(node)` is called after every node. States are opened first; those given stay as
/// they are, and their updates are among what is given back.
pub fn run(
    plan: &Plan,
    side: &mut impl Side,
    given: Given<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<Done, EvalError> {
    let Given { mut inputs, publics, states } = given;
    let publics = public_numbers(plan, &publics)?;
    let start = Instant::now();
    let mut opened = side.open_states(states)?;
    // What all states cost together is counted at the first.
    let (rounds, seconds) = (u64::from(!opened.is_empty()), start.elapsed().as_secs_f64());
    let mut together = NodeStats { rounds, seconds, ..NodeStats::default() };
    let last = last_use(plan);
    let mut values: Vec<Option<Arc<Vec<u64>>>> = vec![None; plan.nodes.len()];
    // openings that nobody has waited for
    let mut begun: BTreeMap<ValueId, Opened> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(plan.nodes.len());
    for (v, node) in plan.nodes.iter().enumerate() {
        let start = Instant::now();
        side.enter(node);
        *side.stats() = NodeStats::default();
        for i in &node.inputs {
            if let Some(value) = begun.remove(i) {
                values[*i] = Some(Arc::new(side.receive(value)?));
            }
        }
        values[v] = match &node.op {
            _ if is_static(plan, v) => side.static_value(v),
            Op::Input { name, .. } => Some(Arc::new(input(&mut inputs, v, name, node.ty.len())?)),
            Op::State { .. } => opened.remove(&v).map(|(w, sent_bytes)| {
                *side.stats() = NodeStats { sent_bytes, ..std::mem::take(&mut together) };
                Arc::new(w)
            }),
            Op::Public { .. } => publics.get(&v).map(|&p| Arc::new(vec![p])),
            // Whatever it is: the family's table of gates has no default.
            _ => match side.value_of(v) {
                Some(operand) => values[node.inputs[operand]].clone(),
                None => match side.eval(v, &values)? {
                    Opened::Here(value) => Some(Arc::new(value)),
                    sent => {
                        begun.insert(v, sent);
                        None
                    }
                },
            },
        };
        side.done(v);
        for &i in node.inputs.iter().filter(|&&i| last[i] == v) {
            values[i] = None;
        }
        side.stats().seconds += start.elapsed().as_secs_f64();
        nodes.push(*side.stats());
        progress(v);
    }
    for (v, value) in begun {
        values[v] = Some(Arc::new(side.receive(value)?));
    }
    let share = |v: ValueId| {
        let masked = values[v].clone().unwrap_or_default();
        side.share(v, Ring::new(plan.nodes[v].ty.bits), &masked)
    };
    let outputs = plan.outputs.iter().map(|o| share(o.value)).collect();
    let mut updates = States::new();
    for update in &plan.updates {
        if let Op::State { name, .. } = &plan.nodes[update.state].op {
            updates.insert(name, share(update.value).expose());
        }
    }
    Ok(Done { outputs, updates, nodes })
}

/// The masked input of node v.
fn input(
    given: &mut HashMap<ValueId, Vec<u64>>,
    v: ValueId,
    name: &str,
    len: usize,
) -> Result<Vec<u64>, EvalError> {
    let missing = || EvalError::Missing(format!("input `{name}` was not shared"));
    given.remove(&v).filter(|x| x.len() == len).ok_or_else(missing)
}

/// The plan's public numbers by node.
fn public_numbers(plan: &Plan, given: &BTreeMap<String, u64>) -> Result<HashMap<ValueId, u64>, EvalError> {
    let mut publics = HashMap::new();
    for (v, node) in plan.nodes.iter().enumerate() {
        if let Op::Public { name, .. } = &node.op {
            let missing = || EvalError::Missing(format!("public number `{name}` was not given"));
            publics.insert(v, Ring::new(node.ty.bits).wrap(*given.get(name).ok_or_else(missing)?));
        }
    }
    Ok(publics)
}

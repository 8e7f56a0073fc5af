//! A party runs the plan on its shares.

use crate::gate::{Held, Kind, kind};
use crate::local;
use crate::value::Value;
use crate::{Party, RunError, Share, SharedWeights, States, Wiping, mutation};
use privet_family::{NodeStats, is_static, last_use};
use privet_plan::ir::{Node, Op, Plan, ValueId};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// Evaluates records of a plan within a session.
pub struct Evaluator<'a> {
    plan: &'a Plan,
    weights: &'a SharedWeights,
    last: Vec<usize>,
}

/// What a party is given for one run.
#[derive(Default)]
pub struct Given {
    /// Its shares of the inputs, by node.
    pub inputs: HashMap<ValueId, Share>,
    /// Its shares of the states that the plan reads, by name; others may be there.
    pub states: States,
    /// The public numbers, by name, as elements of their nodes' rings ([`privet_plan::encode_publics`]): the same at every party.
    pub publics: BTreeMap<String, u64>,
}

/// What a run gave one party.
pub struct Outcome {
    /// Its shares of the outputs, in the plan's order, of fresh components: they say nothing but the outputs.
    pub outputs: Vec<Share>,
    /// Its shares of the states that the plan updates, by name: what takes the place of the old ones, at all parties or at
    /// none. Every message that they depend on has been verified.
    pub states: States,
    /// What every node cost.
    pub nodes: Vec<NodeStats>,
    /// What verification cost; nothing where every party is trusted to follow the protocol.
    pub checks: NodeStats,
    /// What is left of the last verification, while the outputs are on their way.
    pub wiping: Wiping,
}

impl<'a> Evaluator<'a> {
    /// For a checked plan.
    pub fn new(plan: &'a Plan, weights: &'a SharedWeights) -> Evaluator<'a> {
        Evaluator { plan, weights, last: last_use(plan) }
    }

    /// Run the plan once, on inputs whose copies the parties have compared ([`Party::compare`]). `progress(node)` is called after every node. When it returns, every message that the outputs and
    /// states depend on has been verified; after an error the states are what they were before.
    pub fn run(
        &self,
        cx: &mut Party,
        given: Given,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Outcome, RunError> {
        self.weights.used(cx, |cx| self.walk(cx, given, progress))
    }

    fn walk(
        &self,
        cx: &mut Party,
        mut given: Given,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Outcome, RunError> {
        cx.checks = NodeStats::default();
        let mut values: Vec<Option<Value>> = vec![None; self.plan.nodes.len()];
        let mut nodes = Vec::with_capacity(self.plan.nodes.len());
        if self.draws_coins() {
            cx.enter(0, "run");
            cx.toss()?;
        }
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let (start, verified) = (Instant::now(), cx.checks.seconds);
            cx.enter(v, &node.layer);
            cx.stats = NodeStats::default();
            values[v] = match self.reused(cx, v, &mut values) {
                Some(value) => Some(value),
                None => self.value(cx, v, &values, &mut given)?,
            };
            for &i in node.inputs.iter().filter(|&&i| self.last[i] == v) {
                values[i] = None;
            }
            // without what verification in the middle of a long operation took
            cx.stats.seconds = start.elapsed().as_secs_f64() - (cx.checks.seconds - verified);
            nodes.push(cx.stats);
            cx.verify_if_large()?;
            progress(v);
        }
        cx.verify()?;
        let value = |v: ValueId| values[v].as_ref().map(Value::elements).unwrap_or_default();
        let output = |(i, o): (usize, &privet_plan::ir::Output)| {
            let ring = Ring::new(self.plan.nodes[o.value].ty.bits);
            cx.refresh(i, ring, &value(o.value))
        };
        let outputs = self.plan.outputs.iter().enumerate().map(output).collect();
        let state = |u: &privet_plan::ir::Update| {
            let Op::State { name, .. } = &self.plan.nodes[u.state].op else { return None };
            Some((name.clone(), value(u.value)))
        };
        let states = self.plan.updates.iter().filter_map(state).collect();
        Ok(Outcome { outputs, states, nodes, checks: cx.checks, wiping: std::mem::take(&mut cx.wiping) })
    }

    /// The value of an elementwise local operation in the memory of its first operand, which nothing reads later.
    fn reused(&self, cx: &Party, v: ValueId, values: &mut [Option<Value>]) -> Option<Value> {
        let node = &self.plan.nodes[v];
        let (&first, others) = node.inputs.split_first()?;
        let again = self.last[first] != v || others.contains(&first) || is_static(self.plan, v);
        if again || !node.op.is_elementwise() || !matches!(values[first], Some(Value::Elements(_))) {
            return None;
        }
        let y = others.first().and_then(|&y| values[y].as_ref()).map(Value::elements);
        let x = values[first].take()?.elements();
        let made = local::over(cx.id, self.plan, node, x, y.as_ref());
        Some(Value::of(cx.device, Ring::new(node.ty.bits), made))
    }

    /// This party's share of a node's value. A public number has none: it is read by the gate that needs it.
    fn value(
        &self,
        cx: &mut Party,
        v: ValueId,
        values: &[Option<Value>],
        given: &mut Given,
    ) -> Result<Option<Value>, RunError> {
        let node = &self.plan.nodes[v];
        let ring = Ring::new(node.ty.bits);
        if is_static(self.plan, v) {
            let share = self.weights.values.get(&v).cloned();
            return Ok(share.map(|share| Value::of(cx.device, ring, share)));
        }
        let value = match kind(&node.op) {
            Kind::Weight { name, .. } => {
                // every weight is static
                return Err(RunError::Missing(format!(
                    "weight `{name}` was not shared; share the model again"
                )));
            }
            Kind::Public => return Ok(None),
            Kind::Input { name, .. } => taken(given.inputs.remove(&v), node, "input", name)?.into(),
            Kind::State { name, .. } => taken(given.states.remove(name), node, "state", name)?.into(),
            Kind::Gate(gate) => {
                let (plan, publics, weights) = (self.plan, &given.publics, self.weights);
                gate.eval(cx, &Held { plan, id: v, values, publics, weights })?
            }
        };
        Ok(Some(Value::of(cx.device, ring, value)))
    }

    /// Whether any gate draws coins that are public between the parties.
    fn draws_coins(&self) -> bool {
        self.plan.nodes.iter().any(|node| match kind(&node.op) {
            Kind::Gate(gate) => gate.draws_coins(),
            Kind::Weight { .. } | Kind::Input { .. } | Kind::State { .. } | Kind::Public => false,
        })
    }
}

/// This party's share of an input or state, if it is of that node.
fn taken(share: Option<Share>, node: &Node, what: &str, name: &str) -> Result<Share, RunError> {
    let share = share.filter(|x| x.len() == node.ty.len());
    share.ok_or_else(|| RunError::Missing(format!("{what} `{name}` was not shared")))
}

impl Party<'_> {
    /// Other components of the value of output `i`, drawn alike by all parties, so that a receiver, which sees all
    /// three, learns nothing from where they come from.
    fn refresh(&self, i: usize, ring: Ring, y: &Share) -> Share {
        let mut stream = self.output_masks(i);
        let (mut first, mut second) = (stream.elements(ring, y.len()), stream.elements(ring, y.len()));
        mutation::mask("outputs-not-refreshed", [&mut first, &mut second]);
        let add = |holder: crate::PartyId, y: &[u64]| -> Vec<u64> {
            let words = y.iter().zip(first.iter().zip(&second));
            let mask = |a: u64, b: u64| match holder.index() {
                0 => a,
                1 => b,
                _ => a.wrapping_add(b).wrapping_neg(),
            };
            words.map(|(y, (&a, &b))| ring.wrap(y.wrapping_add(mask(a, b)))).collect()
        };
        Share::new(add(self.id, &y.own), add(self.id.next(), &y.next))
    }
}

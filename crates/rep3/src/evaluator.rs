//! A party runs the plan on its shares.

use crate::gates::{argmax, choose, equal, extend, lookup, max, relu, sign, truncate};
use crate::linear::{self, Operand};
use crate::local::{self, difference, sum};
use crate::value::{Value, on_bits};
use crate::{Party, RunError, Share, SharedWeights, States, mutation};
use privet_family::{NodeStats, Products, is_static, last_use, spread_bias};
use privet_plan::ir::{Node, Op, Plan, Rounding, ValueId};
use privet_plan::tables::{Exponential, Pieces};
use privet_plan::tournament;
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
        mut given: Given,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Outcome, RunError> {
        let mut values: Vec<Option<Value>> = vec![None; self.plan.nodes.len()];
        let mut nodes = Vec::with_capacity(self.plan.nodes.len());
        if self.plan.nodes.iter().any(|node| draws_coins(&node.op)) {
            cx.enter(0, "run");
            cx.toss()?;
        }
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let (start, verified) = (Instant::now(), cx.checks.seconds);
            cx.enter(v, &node.layer);
            cx.stats = NodeStats::default();
            values[v] = match &node.op {
                _ if is_static(self.plan, v) => {
                    let share = self.weights.values.get(&v).cloned();
                    share.map(|share| Value::of(cx.device, Ring::new(node.ty.bits), share))
                }
                Op::Input { .. } | Op::State { .. } => Some(taken(cx, v, node, &mut given)?),
                // it is read where something is scaled
                Op::Public { .. } => None,
                _ => Some(self.node(cx, v, node, &values, &given.publics)?),
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
        let state = |u: &privet_plan::ir::Update| match &self.plan.nodes[u.state].op {
            Op::State { name, .. } => Some((name.clone(), value(u.value))),
            _ => None,
        };
        let states = self.plan.updates.iter().filter_map(state).collect();
        Ok(Outcome { outputs, states, nodes, checks: cx.checks })
    }

    fn node(
        &self,
        cx: &mut Party,
        v: ValueId,
        node: &Node,
        values: &[Option<Value>],
        publics: &BTreeMap<String, u64>,
    ) -> Result<Value, RunError> {
        let to = Ring::new(node.ty.bits);
        let value = |i: usize| values[node.inputs[i]].as_ref();
        let x = |i: usize| value(i).map(Value::elements).unwrap_or_default();
        let from = || Ring::new(self.plan.nodes[node.inputs[0]].ty.bits);
        let bits = match &node.op {
            Op::IsNegative if to.bits() == 1 => Some(sign::bits(cx, from(), &x(0))?),
            Op::Equal if to.bits() == 1 => Some(equal::bits(cx, from(), &difference(from(), &x(0), &x(1)))?),
            op if to.bits() == 1 => {
                let operands: Option<Vec<_>> =
                    (0..node.inputs.len()).map(|i| value(i).and_then(Value::bits)).collect();
                operands.and_then(|operands| on_bits(cx.id, op, &operands))
            }
            _ => None,
        };
        match bits {
            Some(bits) => Ok(Value::Bits(bits)),
            None => Ok(Value::of(cx.device, to, self.elements(cx, v, node, values, publics)?)),
        }
    }

    /// The value of a node that takes and gives one element a word.
    fn elements(
        &self,
        cx: &mut Party,
        v: ValueId,
        node: &Node,
        values: &[Option<Value>],
        publics: &BTreeMap<String, u64>,
    ) -> Result<Share, RunError> {
        let to = Ring::new(node.ty.bits);
        let operand = |v: ValueId| values[v].as_ref().map(Value::elements).unwrap_or_default();
        let x = |i: usize| operand(node.inputs[i]);
        let ty = |i: usize| &self.plan.nodes[node.inputs[i]].ty;
        let from = || Ring::new(ty(0).bits);
        match &node.op {
            Op::Truncate { shift, rounding } => truncate::eval(cx, (from(), to), *shift, *rounding, &x(0)),
            Op::Dither { shift } => truncate::eval(cx, (from(), to), *shift, Rounding::Stochastic, &x(0)),
            Op::Lookup { tables } => lookup::tables(cx, [from(), to], tables, &x(0)),
            Op::Piecewise { shift, pieces } => {
                lookup::piecewise(cx, [from(), to], &Pieces { shift: *shift, pieces }, &x(0))
            }
            Op::Exponential { first, rows } => {
                let e = Exponential::new(ty(0), *first, rows).map_err(RunError::Missing)?;
                lookup::exponential(cx, [from(), to], &e, &x(0))
            }
            Op::Relu => relu::eval(cx, from(), to, &x(0)),
            Op::Extend => extend::eval(cx, from(), to, &x(0)),
            Op::IsNegative => sign::eval(cx, from(), to, &x(0)),
            Op::Equal => equal::eval(cx, from(), to, &difference(from(), &x(0), &x(1))),
            Op::Max => max::eval(cx, to, &x(0), &x(1)),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, &ty(0).shape);
                let best = max::tournament(cx, to, &rows, x(0))?;
                max::tournament(cx, to, &columns, best)
            }
            Op::Argmax { dim } => {
                let positions = tournament::positions(&ty(0).shape, *dim);
                let games = tournament::argmax(&ty(0).shape, *dim);
                argmax::eval(cx, from(), to, &games, x(0), &positions)
            }
            Op::Mul => linear::mul(cx, to, &x(0), &x(1)),
            Op::Choose => {
                let bit = values[node.inputs[0]].as_ref().and_then(Value::bits);
                let bit = bit.ok_or_else(|| missing(v, "bit to choose by"))?;
                choose::eval(cx, to, bit, &x(1))
            }
            Op::Scale => match &self.plan.nodes[node.inputs[1]].op {
                Op::Public { name, .. } => {
                    let number = publics.get(name);
                    let number = number
                        .ok_or_else(|| RunError::Missing(format!("public number `{name}` was not given")))?;
                    Ok(local::scaled(to, &x(0), *number))
                }
                _ => Err(missing(v, "public number")),
            },
            Op::Dropout { stream, keep } => {
                let coins = cx.dropout(*stream, node.ty.len())?;
                Ok(local::kept(&x(0), &coins, *keep))
            }
            // y + c (x - y)
            Op::Select => {
                let picked = linear::mul(cx, to, &x(0), &difference(to, &x(1), &x(2)))?;
                Ok(sum(to, &x(2), &picked))
            }
            Op::Linear | Op::MatMul | Op::Conv2d { .. } => {
                let products = Products::of(self.plan, node).ok_or_else(|| missing(v, "product"))?;
                let start = match node.inputs.get(2).map(|&bias| operand(bias)) {
                    // the second component is for proofs alone
                    Some(bias) if cx.transcript.is_some() => {
                        Share::new(spread_bias(node, &bias.own), spread_bias(node, &bias.next))
                    }
                    Some(bias) => Share::new(spread_bias(node, &bias.own), vec![0; node.ty.len()]),
                    None => Share::new(vec![0; node.ty.len()], vec![0; node.ty.len()]),
                };
                let fresh;
                let w = match self.weights.operands.get(&v) {
                    Some(w) => w,
                    None => {
                        fresh = Operand::new(cx.device, to, products, &x(1));
                        &fresh
                    }
                };
                linear::products(cx, to, products, &x(0), w, start)
            }
            _ => Ok(local::apply(cx.id, self.plan, node, operand)),
        }
    }
}

/// Whether an operation draws coins that are public between the parties.
fn draws_coins(op: &Op) -> bool {
    match op {
        Op::Truncate { rounding, .. } => *rounding == Rounding::Stochastic,
        Op::Dither { .. } | Op::Piecewise { .. } | Op::Exponential { .. } | Op::Dropout { .. } => true,
        _ => false,
    }
}

/// This party's share of an input or state, which is used up.
fn taken(cx: &Party, v: ValueId, node: &Node, given: &mut Given) -> Result<Value, RunError> {
    let (share, what, name) = match &node.op {
        Op::State { name, .. } => (given.states.remove(name), "state", name),
        Op::Input { name, .. } => (given.inputs.remove(&v), "input", name),
        _ => return Err(missing(v, "share")),
    };
    let share = share.filter(|x| x.len() == node.ty.len());
    let share = share.ok_or_else(|| RunError::Missing(format!("{what} `{name}` was not shared")))?;
    Ok(Value::of(cx.device, Ring::new(node.ty.bits), share))
}

fn missing(v: ValueId, what: &str) -> RunError {
    RunError::Missing(format!("node {v} has no {what}; check the plan before it is run"))
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

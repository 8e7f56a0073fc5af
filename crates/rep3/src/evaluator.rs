//! A party runs the plan on its shares.

use crate::gates::{argmax, equal, extend, max, relu, sign, truncate};
use crate::linear::{self, Operand};
use crate::local::{self, difference, sum};
use crate::{Party, RunError, Share, SharedWeights};
use privet_family::{NodeStats, Products, is_static, last_use, spread_bias};
use privet_plan::ir::{Node, Op, Plan, Rounding, ValueId};
use privet_plan::tournament;
use privet_ring::Ring;
use std::collections::HashMap;
use std::time::Instant;

/// Evaluates records of a plan within a session.
pub struct Evaluator<'a> {
    plan: &'a Plan,
    weights: &'a SharedWeights,
    last: Vec<usize>,
}

/// What a run gave one party.
pub struct Outcome {
    /// Its shares of the outputs, in the plan's order, of fresh components: they say nothing but the outputs.
    pub outputs: Vec<Share>,
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

    /// Run the plan once. `inputs` holds this party's shares of the inputs by node; `progress(node)` is called after
    /// every node. When it returns, every message that the outputs depend on has been verified.
    pub fn run(
        &self,
        cx: &mut Party,
        mut inputs: HashMap<ValueId, Share>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Outcome, RunError> {
        let mut values: Vec<Option<Share>> = vec![None; self.plan.nodes.len()];
        let mut nodes = Vec::with_capacity(self.plan.nodes.len());
        let mut checks = NodeStats::default();
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let start = Instant::now();
            cx.enter(v, &node.layer);
            cx.stats = NodeStats::default();
            values[v] = if is_static(self.plan, v) {
                self.weights.values.get(&v).cloned()
            } else if let Op::Input { name, .. } = &node.op {
                let x = inputs.remove(&v).filter(|x| x.len() == node.ty.len());
                Some(x.ok_or_else(|| RunError::Missing(format!("input `{name}` was not shared")))?)
            } else {
                Some(self.node(cx, v, node, &values)?)
            };
            for &i in node.inputs.iter().filter(|&&i| self.last[i] == v) {
                values[i] = None;
            }
            cx.stats.seconds = start.elapsed().as_secs_f64();
            nodes.push(cx.stats);
            checks.add(&verified(cx, |cx| cx.verify_if_large())?);
            progress(v);
        }
        checks.add(&verified(cx, |cx| cx.verify())?);
        let output = |(i, o): (usize, &privet_plan::ir::Output)| {
            let ring = Ring::new(self.plan.nodes[o.value].ty.bits);
            let y = values[o.value].clone().unwrap_or_default();
            cx.refresh(i, ring, &y)
        };
        let outputs = self.plan.outputs.iter().enumerate().map(output).collect();
        Ok(Outcome { outputs, nodes, checks })
    }

    fn node(
        &self,
        cx: &mut Party,
        v: ValueId,
        node: &Node,
        values: &[Option<Share>],
    ) -> Result<Share, RunError> {
        let to = Ring::new(node.ty.bits);
        let operand = |v: ValueId| values[v].clone().unwrap_or_default();
        let x = |i: usize| operand(node.inputs[i]);
        let ty = |i: usize| &self.plan.nodes[node.inputs[i]].ty;
        let from = || Ring::new(ty(0).bits);
        match &node.op {
            Op::Truncate { shift, rounding: Rounding::OneUlp } => {
                Ok(local::truncate_within_one(cx.id, from(), *shift, &x(0)))
            }
            Op::Truncate { shift, rounding } => truncate::eval(cx, from(), *shift, *rounding, &x(0)),
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
            // y + c (x - y)
            Op::Select => {
                let picked = linear::mul(cx, to, &x(0), &difference(to, &x(1), &x(2)))?;
                Ok(sum(to, &x(2), &picked))
            }
            Op::Linear | Op::MatMul | Op::Conv2d { .. } => {
                let products = Products::of(self.plan, node).ok_or_else(|| {
                    RunError::Missing(format!("node {v} has no product; check the plan before it is run"))
                })?;
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

/// The cost of a step of verification.
fn verified(cx: &mut Party, step: fn(&mut Party) -> Result<(), RunError>) -> Result<NodeStats, RunError> {
    let start = Instant::now();
    cx.stats = NodeStats::default();
    step(cx)?;
    cx.stats.seconds = start.elapsed().as_secs_f64();
    Ok(cx.stats)
}

impl Party<'_> {
    /// Other components of the value of output `i`, drawn alike by all parties, so that a receiver, which sees all
    /// three, learns nothing from where they come from.
    fn refresh(&self, i: usize, ring: Ring, y: &Share) -> Share {
        let mut stream = self.output_masks(i);
        let (first, second) = (stream.elements(ring, y.len()), stream.elements(ring, y.len()));
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

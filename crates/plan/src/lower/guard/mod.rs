//! The guard: a plan that tells the receiver, in one bit a row, whether every value was what calibration promised.
//!
//! A watched value x in Z_2^k is compared with a limit T, as sums under signs ([`checks`]). The true value X is bounded by M,
//! which follows from the limits of what x is made of ([`bounds`]). Where `M + T < 2^(k-1)`, no X beyond T looks like
//! one within it, however often it wraps. So T is a bound for what is made of x, and so on through the plan. The argument is
//! in `docs/guard.md`.

#[deny(clippy::wildcard_enum_match_arm)]
mod bounds;
mod checks;
mod choose;
mod rows;

pub(super) use choose::{Watched, choose};

use super::forms::Emitter;
use super::precision::{op_name, range_bits};
use crate::graph::GraphOp;
use crate::ir::{Node, Op, Plan, Type, ValueId};
use bounds::{Bound, Bounds};
use checks::Checks;
use std::collections::{BTreeSet, HashMap};

/// Name of the result that says whether a row was in range, and the layer of what computes it.
pub const GUARD: &str = "guard";

/// Log2 of what a sum of c values under random signs may be more than `sqrt(c)` times the largest of them, but with
/// probability `2 e^-32`.
const DEVIATION_BITS: u32 = 3;
/// How far beyond its limit a bound may be before a product or function is watched, and any other value.
const LOOSE: [f64; 2] = [2.0, 4.0];

/// A plan with its guard.
pub(super) struct Guarded {
    pub plan: Plan,
    /// Values that are watched.
    pub watched: usize,
    /// Layers of which some value is not proven to be in range when the guard says so.
    pub unproven: BTreeSet<String>,
    /// Ring bits that are missing for a proof.
    pub short: Short,
}

/// Bits that would have to be there: of values in the rings of comparisons, and of products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Short {
    pub gates: u32,
    pub products: u32,
}

/// A value of the captured model as its operation made it.
#[derive(Clone, Copy)]
struct Native {
    limit: f64,
    loose: f64,
    rowed: bool,
}

/// Watch the values of an emitted plan that its ranges do not prove.
pub(super) fn guarded(e: &Emitter<'_>) -> Guarded {
    let mut guard = Guard::new(e);
    for id in 0..e.plan.nodes.len() {
        guard.node(id);
    }
    guard.finish()
}

struct Guard<'a, 'b> {
    e: &'a Emitter<'b>,
    natives: HashMap<ValueId, Native>,
    /// Where a node of the plan went.
    place: Vec<ValueId>,
    bounds: Bounds<'a>,
    checks: Checks,
    unproven: BTreeSet<String>,
    short: Short,
    watched: usize,
}

impl<'a, 'b> Guard<'a, 'b> {
    fn new(e: &'a Emitter<'b>) -> Guard<'a, 'b> {
        let plan = Plan { nodes: Vec::new(), outputs: Vec::new(), ..e.plan.clone() };
        Guard {
            e,
            natives: natives(e),
            place: Vec::with_capacity(e.plan.nodes.len()),
            bounds: Bounds::new(&e.plan, |name| e.tensor(name)),
            checks: Checks::new(plan, e.formats.headroom - DEVIATION_BITS.min(e.formats.headroom)),
            unproven: BTreeSet::new(),
            short: Short::default(),
            watched: 0,
        }
    }

    /// Take a node over, and watch its value where that has to be.
    fn node(&mut self, id: ValueId) {
        let node = &self.e.plan.nodes[id];
        let inputs = node.inputs.iter().map(|&i| self.place[i]).collect();
        self.place.push(self.checks.push(Node { inputs, ..node.clone() }));
        if self.e.is_inside(id) {
            self.bounds.skip();
            return;
        }
        for (operand, power) in relied_on(&self.e.plan, id) {
            self.require(operand, power, &node.layer);
        }
        let bound = self.bounds.of(id);
        let watched = self.natives.get(&id).copied().filter(|n| bound.most > n.loose * n.limit);
        let bound = match watched {
            Some(native) => self.watch(id, bound, native),
            None => bound,
        };
        self.bounds.push(bound);
    }

    /// Compare value `id` with its limit, which bounds it from then on.
    fn watch(&mut self, id: ValueId, bound: Bound, native: Native) -> Bound {
        let Node { ty, layer, .. } = &self.e.plan.nodes[id];
        let room = 2f64.powi(ty.bits as i32 - 1);
        let missing = missing(bound.most + native.limit, room);
        if missing > 0 {
            self.lacks(ty, missing, layer);
        }
        self.watched += 1;
        // a limit that the ring cannot hold is no limit
        let limit = native.limit.min(room / 2.0);
        self.checks.watch(self.place[id], limit as i64, native.rowed);
        Bound { most: limit.min(bound.most), line: bound.line }
    }

    /// Something takes `operand`, which is right below 2^power.
    fn require(&mut self, operand: ValueId, power: u32, layer: &str) {
        // that of a node inside a function is infinite, so nothing that reads one passes for proven
        let missing = missing(self.bounds.at(operand).most, 2f64.powi(power as i32));
        if missing > 0 {
            let ty = self.e.plan.nodes[operand].ty.clone();
            self.lacks(&ty, missing, layer);
        }
    }

    fn lacks(&mut self, ty: &Type, bits: u32, layer: &str) {
        let of_products = ty.bits == self.e.formats.of(layer).k;
        let short = if of_products { &mut self.short.products } else { &mut self.short.gates };
        *short = (*short).max(bits);
        self.unproven.insert(if layer.is_empty() { "the model".into() } else { layer.into() });
    }

    fn finish(mut self) -> Guarded {
        for output in &self.e.plan.outputs {
            let ty = &self.e.plan.nodes[output.value].ty;
            self.require(output.value, ty.bits - 1, &self.e.plan.nodes[output.value].layer);
        }
        let outputs = self.e.plan.outputs.iter().cloned().map(|mut o| {
            o.value = self.place[o.value];
            o
        });
        let outputs = outputs.collect();
        let plan = self.checks.finish(outputs);
        Guarded { plan, watched: self.watched, unproven: self.unproven, short: self.short }
    }
}

/// Bits that are missing for `most` to be below `room`.
fn missing(most: f64, room: f64) -> u32 {
    // a bound that is not known counts as one that no ring holds
    if most < room { 0 } else { ((most / room).log2().floor() + 1.0).min(64.0) as u32 }
}

/// The values of the captured model by the nodes of the plan that hold them. Where several share a node the least limit counts.
fn natives(e: &Emitter<'_>) -> HashMap<ValueId, Native> {
    let rowed = rows::rowed(&e.draft.graph);
    let mut found: HashMap<ValueId, Native> = HashMap::new();
    for (v, node) in e.draft.graph.nodes.iter().enumerate() {
        let (Some(form), Some(range)) = (e.forms[v].first(), node.range) else { continue };
        if matches!(node.op, GraphOp::Input { .. } | GraphOp::Argmax { .. }) || form.bits == 1 {
            continue;
        }
        let exact = !matches!(
            op_name(&node.op).as_str(),
            "conv2d" | "linear" | "mat_mul" | "mul" | "mul_scalar" | "softmax" | "log_softmax"
        ) && !matches!(node.op, GraphOp::Smooth { .. });
        let limit = 2f64.powi((form.frac + range_bits(range, e.formats.headroom)) as i32 - 1);
        let native = Native { limit, loose: LOOSE[usize::from(exact)], rowed: rowed[v] };
        found.entry(form.id).and_modify(|n| n.limit = n.limit.min(limit)).or_insert(native);
    }
    found
}

/// The operands that a node takes as signed numbers, with the power of two that they have to be below.
fn relied_on(plan: &Plan, id: ValueId) -> Vec<(ValueId, u32)> {
    let node = &plan.nodes[id];
    let bits = |i: usize| plan.nodes[node.inputs[i]].ty.bits;
    let first = |spare: u32| vec![(node.inputs[0], bits(0).saturating_sub(spare))];
    match &node.op {
        // below that many bits what is left is right for every value
        Op::Truncate { shift, .. } | Op::Dither { shift } => {
            if node.ty.bits > bits(0) - shift {
                first(2)
            } else {
                vec![]
            }
        }
        Op::Relu | Op::Extend | Op::IsNegative => first(1),
        Op::MaxPool2d { .. } | Op::Argmax { .. } => first(2),
        Op::Max | Op::Equal => node.inputs.iter().map(|&i| (i, plan.nodes[i].ty.bits - 2)).collect(),
        // the others of a function are inside it
        Op::Approximates { function } => first(1 + u32::from(function.dim().is_some())),
        _ => vec![],
    }
}

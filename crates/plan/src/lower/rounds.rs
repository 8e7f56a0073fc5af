//! Fewer rounds: gates of one kind that do not depend on each other become one gate, with one opening and one launch.
//!
//! A static schedule finds them. A node's *rank* is the number of gates on the longest path from it to an end of the plan. Of
//! the gates whose operands are there, the one of highest rank is next, and all others of its kind that are ready go with
//! it. So no path becomes longer, gates of one rank and kind always meet (what an optimiser does for different parameters),
//! and others join whoever is like them (the value's truncation those of query and key).
//!
//! Linear layers of one operand, whose weights are of the session, become one with the weights one below the other: a local
//! operation on what their owner shares, under the names that it has.

use super::share::renumbered;
use crate::ir::{Node, Op, Plan, Type};
use crate::ops;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Most elements of a gate that is joined: a larger one is worth its rounds, and copying it is not free.
const MOST: usize = 1 << 18;

/// The plan with such gates joined; all else keeps its order as far as that lets it.
pub(crate) fn joined(plan: Plan) -> Plan {
    let units = units(&plan);
    let order = order(&plan, &units);
    let mut out =
        Rebuilt { map: vec![usize::MAX; plan.nodes.len()], nodes: Vec::with_capacity(plan.nodes.len()) };
    for unit in order {
        match units.members[unit][..] {
            [only] => out.keep(&plan, only),
            ref members => out.join(&plan, members),
        }
    }
    let Rebuilt { map, nodes } = out;
    renumbered(Plan { nodes, ..plan }, &map)
}

/// Nodes that are done together.
struct Units {
    members: Vec<Vec<usize>>,
    /// The unit of every node.
    of: Vec<usize>,
}

fn units(plan: &Plan) -> Units {
    let mut ready = Ready::of(plan);
    let mut units = Units { members: Vec::new(), of: vec![usize::MAX; plan.nodes.len()] };
    while let Some(members) = ready.take() {
        for &id in &members {
            units.of[id] = units.members.len();
            ready.done(id);
        }
        units.members.push(members);
    }
    units
}

/// The schedule: nodes whose operands are there.
struct Ready {
    nodes: Vec<Pending>,
    /// By urgency: sources and local operations, then gates of high rank.
    next: BTreeSet<(Reverse<usize>, usize)>,
    by_kind: HashMap<String, BTreeSet<usize>>,
}

/// A node of the schedule.
struct Pending {
    urgency: usize,
    /// What it is joined by, if by anything.
    kind: Option<String>,
    /// Operands that are not there yet.
    waits: usize,
    readers: Vec<usize>,
}

impl Ready {
    fn of(plan: &Plan) -> Ready {
        let (ranks, fixed) = (ranks(plan), of_weights(plan));
        let pending = |(id, node): (usize, &Node)| Pending {
            urgency: if is_gate(&node.op) { ranks[id] } else { usize::MAX },
            kind: kind(plan, &fixed, node),
            waits: node.inputs.len(),
            readers: Vec::new(),
        };
        let nodes = plan.nodes.iter().enumerate().map(pending).collect();
        let mut ready = Ready { nodes, next: BTreeSet::new(), by_kind: HashMap::new() };
        for (id, node) in plan.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&i| ready.nodes[i].readers.push(id));
            if node.inputs.is_empty() {
                ready.enter(id);
            }
        }
        ready
    }

    fn enter(&mut self, id: usize) {
        self.next.insert((Reverse(self.nodes[id].urgency), id));
        if let Some(kind) = &self.nodes[id].kind {
            self.by_kind.entry(kind.clone()).or_default().insert(id);
        }
    }

    /// The most urgent node and all that go with it, in the plan's order.
    fn take(&mut self) -> Option<Vec<usize>> {
        let &(_, first) = self.next.first()?;
        let alike = self.nodes[first].kind.as_ref().and_then(|kind| self.by_kind.remove(kind));
        let members: Vec<usize> = alike.map_or_else(|| vec![first], |ids| ids.into_iter().collect());
        for &id in &members {
            self.next.remove(&(Reverse(self.nodes[id].urgency), id));
        }
        Some(members)
    }

    fn done(&mut self, id: usize) {
        for reader in std::mem::take(&mut self.nodes[id].readers) {
            self.nodes[reader].waits -= 1;
            if self.nodes[reader].waits == 0 {
                self.enter(reader);
            }
        }
    }
}

fn is_gate(op: &Op) -> bool {
    match op {
        ops!(source) | ops!(local) => false,
        ops!(gate) => true,
    }
}

/// Whether a value depends on weights alone.
pub(super) fn of_weights(plan: &Plan) -> Vec<bool> {
    let mut fixed: Vec<bool> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let local = node.op.is_local() && node.inputs.iter().all(|&i| fixed[i]);
        fixed.push(matches!(node.op, Op::Weight { .. }) || local);
    }
    fixed
}

fn ranks(plan: &Plan) -> Vec<usize> {
    let mut ranks = vec![0; plan.nodes.len()];
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        let after = ranks[id] + is_gate(&node.op) as usize;
        node.inputs.iter().for_each(|&i| ranks[i] = after.max(ranks[i]));
    }
    ranks
}

/// What gates that are joined have in common; `None` for what is not joined.
fn kind(plan: &Plan, fixed: &[bool], node: &Node) -> Option<String> {
    if node.ty.len() > MOST {
        return None;
    }
    let numbers = |ty: &Type| format!("{}.{}", ty.bits, ty.frac);
    let operand = |i: usize| &plan.nodes[node.inputs[i]].ty;
    let own = match &node.op {
        Op::Scale => format!("{}", node.inputs[1]),
        // a batch of products of one shape
        Op::MatMul if node.ty.shape.len() > 2 => {
            format!("{:?} {:?}", matrix(&operand(0).shape), matrix(&operand(1).shape))
        }
        // of one operand
        Op::Linear if node.inputs[1..].iter().all(|&i| fixed[i]) => format!("{}", node.inputs[0]),
        Op::Mul
        | Op::Truncate { .. }
        | Op::Relu
        | Op::Extend
        | Op::Max
        | Op::IsNegative
        | Op::Equal
        | Op::Choose
        | Op::ChooseEvery
        | Op::Select => String::new(),
        // products that are large; gates whose results depend on the order of elements
        Op::Linear | Op::MatMul | Op::Conv2d { .. } | ops!(table) => return None,
        Op::MaxPool2d { .. } | Op::Argmax { .. } => return None,
        // public coins, and coins of the family's own, go by the place of an element
        Op::Dropout { .. } | Op::Dither { .. } => return None,
        ops!(source) | ops!(local) => return None,
    };
    let operands: Vec<String> = (0..node.inputs.len()).map(|i| numbers(operand(i))).collect();
    Some(format!("{:?} {operands:?} {} {own}", node.op, numbers(&node.ty)))
}

/// The units after those that they need, else in the order of their first nodes.
fn order(plan: &Plan, units: &Units) -> Vec<usize> {
    let mut waits = vec![0usize; units.members.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); units.members.len()];
    for (id, node) in plan.nodes.iter().enumerate() {
        for &i in &node.inputs {
            readers[units.of[i]].push(units.of[id]);
            waits[units.of[id]] += 1;
        }
    }
    let ready = |unit: usize| Reverse((units.members[unit][0], unit));
    let mut heap: BinaryHeap<_> = (0..waits.len()).filter(|&u| waits[u] == 0).map(ready).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse((_, unit))) = heap.pop() {
        order.push(unit);
        for &reader in &readers[unit] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                heap.push(ready(reader));
            }
        }
    }
    debug_assert_eq!(order.len(), waits.len(), "gates of one rank do not depend on each other");
    order
}

struct Rebuilt {
    /// New numbers of the nodes so far.
    map: Vec<usize>,
    nodes: Vec<Node>,
}

impl Rebuilt {
    fn push(&mut self, op: Op, inputs: Vec<usize>, ty: Type, layer: &str) -> usize {
        self.nodes.push(Node { op, inputs, ty, layer: layer.into(), form: None });
        self.nodes.len() - 1
    }

    fn keep(&mut self, plan: &Plan, id: usize) {
        let node = &plan.nodes[id];
        let inputs = node.inputs.iter().map(|&i| self.map[i]).collect();
        self.map[id] = self.push(node.op.clone(), inputs, node.ty.clone(), &node.layer);
    }

    /// One gate over what the gates `members` are over, one after the other.
    fn join(&mut self, plan: &Plan, members: &[usize]) {
        let first = &plan.nodes[members[0]];
        let layer = common_layer(plan, members);
        let stacked = Stacked::of(&first.op);
        let mut inputs = Vec::new();
        for (i, &operand) in first.inputs.iter().enumerate() {
            if stacked.shares(i) {
                inputs.push(self.map[operand]);
                continue;
            }
            let parts = members.iter().map(|&id| plan.nodes[id].inputs[i]);
            let parts: Vec<usize> = parts
                .map(|from| self.reshaped(self.map[from], stacked.flat(&plan.nodes[from].ty), &layer))
                .collect();
            let total = parts.iter().map(|&p| self.nodes[p].ty.shape[0]).sum();
            let ty = with_extent(&stacked.flat(&plan.nodes[operand].ty), 0, total);
            inputs.push(self.push(Op::Concat { dim: 0 }, parts, ty, &layer));
        }
        let dim = stacked.results();
        let flat: Vec<Type> = members.iter().map(|&id| stacked.flat(&plan.nodes[id].ty)).collect();
        let total = flat.iter().map(|ty| ty.shape[dim]).sum();
        let all = self.push(first.op.clone(), inputs, with_extent(&flat[0], dim, total), &layer);
        let mut start = 0;
        for (&id, ty) in members.iter().zip(flat) {
            let node = &plan.nodes[id];
            let end = start + ty.shape[dim];
            let part = self.push(Op::Slice { dim, start, end, step: 1 }, vec![all], ty, &node.layer);
            self.map[id] = self.reshaped(part, node.ty.clone(), &node.layer);
            start = end;
        }
    }

    fn reshaped(&mut self, x: usize, ty: Type, layer: &str) -> usize {
        if self.nodes[x].ty.shape == ty.shape { x } else { self.push(Op::Reshape, vec![x], ty, layer) }
    }
}

/// How operands and results of gates that are joined lie in those of the one that they become.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stacked {
    /// One element behind the other.
    Elements,
    /// The same, but for the public number, which all share.
    Scaled,
    /// One matrix behind the other.
    Matrices,
    /// Of one operand, with weights and biases one below the other: results side by side.
    Columns,
}

impl Stacked {
    fn of(op: &Op) -> Stacked {
        match op {
            Op::MatMul => Stacked::Matrices,
            Op::Linear => Stacked::Columns,
            Op::Scale => Stacked::Scaled,
            ops!(source) | ops!(local) | ops!(rounding) | ops!(comparison) | ops!(table) => Stacked::Elements,
            Op::Conv2d { .. } | Op::Mul | Op::Dropout { .. } => Stacked::Elements,
        }
    }

    /// Whether all have the same operand `i`.
    fn shares(self, i: usize) -> bool {
        (self, i) == (Stacked::Columns, 0) || (self, i) == (Stacked::Scaled, 1)
    }

    /// The dimension along which results lie behind each other.
    fn results(self) -> usize {
        usize::from(self == Stacked::Columns)
    }

    /// An operand or a result in the shape in which it is stacked.
    fn flat(self, ty: &Type) -> Type {
        let shape = match self {
            Stacked::Columns => return ty.clone(),
            Stacked::Matrices => {
                let inner = matrix(&ty.shape);
                [&[ty.len() / inner.iter().product::<usize>().max(1)], inner].concat()
            }
            Stacked::Elements | Stacked::Scaled => vec![ty.len()],
        };
        Type { shape, ..ty.clone() }
    }
}

/// Rows and columns.
fn matrix(shape: &[usize]) -> &[usize] {
    &shape[shape.len().saturating_sub(2)..]
}

fn with_extent(ty: &Type, dim: usize, extent: usize) -> Type {
    let mut ty = ty.clone();
    ty.shape[dim] = extent;
    ty
}

/// The layer of all, or how many there are and the first of them.
pub(super) fn common_layer(plan: &Plan, members: &[usize]) -> String {
    let layers: BTreeSet<&str> = members.iter().map(|&id| plan.nodes[id].layer.as_str()).collect();
    let first = plan.nodes[members[0]].layer.clone();
    if layers.len() == 1 { first } else { format!("{first} and {} more", layers.len() - 1) }
}

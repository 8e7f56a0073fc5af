//! Fewer rounds: elementwise gates of one kind that do not depend on each other become one gate.
//!
//! An optimiser does the same for every parameter, one tensor after the other, and a step would have as many rounds as all of
//! them together. A node's *rank* is the number of gates on the longest path from it to an end of the plan. Gates of
//! one rank do not depend on each other, and joining them makes no path longer; what optimisers do for different parameters has
//! equal ranks, whenever their gradients were there.

use super::share::renumbered;
use crate::ir::{Node, Op, Plan, Type};
use crate::ops;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Most elements of a gate that is joined: a larger one is worth its rounds, and copying it is not free.
const MOST: usize = 1 << 18;

/// The plan with such gates joined; all else keeps its order as far as that lets it.
pub(super) fn joined(plan: Plan) -> Plan {
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
    let ranks = ranks(plan);
    let mut units = Units { members: Vec::new(), of: Vec::new() };
    let mut groups: HashMap<String, usize> = HashMap::new();
    for (id, node) in plan.nodes.iter().enumerate() {
        let fresh = units.members.len();
        let unit = match kind(plan, node) {
            Some(kind) => *groups.entry(format!("{} {kind}", ranks[id])).or_insert(fresh),
            None => fresh,
        };
        if unit == fresh {
            units.members.push(Vec::new());
        }
        units.members[unit].push(id);
        units.of.push(unit);
    }
    units
}

fn ranks(plan: &Plan) -> Vec<usize> {
    let mut ranks = vec![0; plan.nodes.len()];
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        let after = ranks[id] + !node.op.is_local() as usize;
        node.inputs.iter().for_each(|&i| ranks[i] = after.max(ranks[i]));
    }
    ranks
}

/// What gates that are joined have in common; `None` for what is not joined.
fn kind(plan: &Plan, node: &Node) -> Option<String> {
    if node.ty.len() > MOST {
        return None;
    }
    let numbers = |ty: &Type| format!("{}.{}", ty.bits, ty.frac);
    let operand = |i: usize| &plan.nodes[node.inputs[i]].ty;
    let own = match &node.op {
        Op::Scale => format!("{}", node.inputs[1]),
        // a batch of products of one shape
        Op::MatMul if node.ty.shape.len() == 3 => {
            format!("{:?} {:?}", &operand(0).shape[1..], &operand(1).shape[1..])
        }
        Op::Mul
        | Op::Truncate { .. }
        | Op::Relu
        | Op::Extend
        | Op::Max
        | Op::IsNegative
        | Op::Equal
        | Op::Choose
        | Op::Select => String::new(),
        // products that share an operand, or that are large; gates whose results depend on the order of elements
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
        // products of matrices are one behind the other, all else is flat
        let inner = |ty: &Type| if first.op == Op::MatMul { ty.shape[1..].to_vec() } else { vec![] };
        let rows = |ty: &Type| if first.op == Op::MatMul { ty.shape[0] } else { ty.len() };
        let flat = |ty: &Type, rows: usize| Type { shape: [&[rows], &inner(ty)[..]].concat(), ..ty.clone() };
        let mut inputs = Vec::new();
        for (i, &operand) in first.inputs.iter().enumerate() {
            if first.op == Op::Scale && i == 1 {
                inputs.push(self.map[operand]);
                continue;
            }
            let mut parts = Vec::new();
            for &id in members {
                let from = plan.nodes[id].inputs[i];
                let ty = &plan.nodes[from].ty;
                parts.push(self.reshaped(self.map[from], flat(ty, rows(ty)), &layer));
            }
            let total = parts.iter().map(|&p| self.nodes[p].ty.shape[0]).sum();
            let ty = flat(&plan.nodes[operand].ty, total);
            inputs.push(self.push(Op::Concat { dim: 0 }, parts, ty, &layer));
        }
        let total = members.iter().map(|&id| rows(&plan.nodes[id].ty)).sum();
        let all = self.push(first.op.clone(), inputs, flat(&first.ty, total), &layer);
        let mut start = 0;
        for &id in members {
            let node = &plan.nodes[id];
            let end = start + rows(&node.ty);
            let op = Op::Slice { dim: 0, start, end, step: 1 };
            let part = self.push(op, vec![all], flat(&node.ty, end - start), &node.layer);
            self.map[id] = self.reshaped(part, node.ty.clone(), &node.layer);
            start = end;
        }
    }

    fn reshaped(&mut self, x: usize, ty: Type, layer: &str) -> usize {
        if self.nodes[x].ty.shape == ty.shape { x } else { self.push(Op::Reshape, vec![x], ty, layer) }
    }
}

/// The layer of all, or how many there are and the first of them.
fn common_layer(plan: &Plan, members: &[usize]) -> String {
    let layers: BTreeSet<&str> = members.iter().map(|&id| plan.nodes[id].layer.as_str()).collect();
    let first = plan.nodes[members[0]].layer.clone();
    if layers.len() == 1 { first } else { format!("{first} and {} more", layers.len() - 1) }
}

//! Fewer rounds: an order of gates in which openings share a round ([`crate::cost::OnTheWay`]).
//!
//! Gates of different kinds cannot be joined, but what one sends may travel with what another one sends, if neither needs the
//! other. So the next gate is one that waits for nothing that is on its way, if there is any: of those, and else of all, one that most
//! rounds depend on, and of these one that opens least often: what it sent is there when one that opens twice has opened once.
//! Local operations stand before the first gate that needs them, as they would make a party wait.

use super::share::renumbered;
use crate::cost::{Operation, Prices, known, rounds_of};
use crate::ir::{Node, Plan, ValueId};
use crate::ops;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The plan in such an order, where that takes fewer rounds. A family whose parties wait for every opening keeps its own.
pub fn overlapped(plan: Plan, prices: &dyn Prices) -> Plan {
    if !prices.overlaps() {
        return plan;
    }
    let rounds = rounds(&plan, prices);
    let order = Order::of(&plan, &rounds).emit();
    let mut map = vec![usize::MAX; plan.nodes.len()];
    order.iter().enumerate().for_each(|(new, &old)| map[old] = new);
    let moved = |&old: &ValueId| {
        let node = &plan.nodes[old];
        Node { inputs: node.inputs.iter().map(|&i| map[i]).collect(), ..node.clone() }
    };
    let nodes: Vec<Node> = order.iter().map(moved).collect();
    let after: Vec<u64> = order.iter().map(|&old| rounds[old]).collect();
    match rounds_of(&nodes, &after) < rounds_of(&plan.nodes, &rounds) {
        true => renumbered(Plan { nodes, ..plan }, &map),
        false => plan,
    }
}

/// Rounds of every node, in its form.
fn rounds(plan: &Plan, prices: &dyn Prices) -> Vec<u64> {
    let known = known(plan);
    let of = |(v, node): (usize, &Node)| match node.op {
        ops!(source) | ops!(local) => 0,
        ops!(gate) => prices.operation(&Operation::of(plan, v, &known)).rounds,
    };
    plan.nodes.iter().enumerate().map(of).collect()
}

/// What is next first: rounds from a gate on to the end, its own, the gate.
type Urgency = (Reverse<u64>, u64, ValueId);

/// A plan on its way into an order.
struct Order<'a> {
    plan: &'a Plan,
    rounds: &'a [u64],
    /// The gates that a node needs, but for those that they need.
    needs: Vec<Vec<ValueId>>,
    /// Rounds from a gate on to the end of the plan.
    ranks: Vec<u64>,
    readers: Vec<Vec<ValueId>>,
    /// Gates that are not there yet, of those that a gate needs.
    missing: Vec<usize>,
    ready: BTreeSet<Urgency>,
    emitted: Vec<bool>,
    order: Vec<ValueId>,
}

impl<'a> Order<'a> {
    fn of(plan: &'a Plan, rounds: &'a [u64]) -> Order<'a> {
        let n = plan.nodes.len();
        let mut needs: Vec<Vec<ValueId>> = Vec::with_capacity(n);
        for node in &plan.nodes {
            let of = |&i: &ValueId| if rounds[i] > 0 { vec![i] } else { needs[i].clone() };
            let mut all: Vec<ValueId> = node.inputs.iter().flat_map(of).collect();
            all.sort_unstable();
            all.dedup();
            needs.push(all);
        }
        let (mut ranks, mut readers, mut missing) = (vec![0; n], vec![Vec::new(); n], vec![0; n]);
        let gates = || (0..n).filter(|&v| rounds[v] > 0);
        for v in gates().rev() {
            ranks[v] += rounds[v];
            missing[v] = needs[v].len();
            for &i in &needs[v] {
                ranks[i] = ranks[v].max(ranks[i]);
                readers[i].push(v);
            }
        }
        let ready = gates().filter(|&v| missing[v] == 0).map(|v| (Reverse(ranks[v]), rounds[v], v)).collect();
        let (emitted, order) = (vec![false; n], Vec::with_capacity(n));
        Order { plan, rounds, needs, ranks, readers, missing, ready, emitted, order }
    }

    /// All nodes.
    fn emit(mut self) -> Vec<ValueId> {
        let is_source = |v: &ValueId| matches!(self.plan.nodes[*v].op, ops!(source));
        (0..self.plan.nodes.len())
            .filter(is_source)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|v| self.add(v));
        let mut sent = Vec::new();
        while let Some(v) = self.next(&sent) {
            self.with_operands(v);
            if self.needs[v].iter().any(|i| sent.contains(i)) || self.rounds[v] > 1 {
                sent.clear();
            }
            sent.push(v);
            self.ready.remove(&self.urgency(v));
            for reader in std::mem::take(&mut self.readers[v]) {
                self.missing[reader] -= 1;
                if self.missing[reader] == 0 {
                    self.ready.insert(self.urgency(reader));
                }
            }
        }
        (0..self.plan.nodes.len()).for_each(|v| self.with_operands(v));
        self.order
    }

    fn urgency(&self, v: ValueId) -> Urgency {
        (Reverse(self.ranks[v]), self.rounds[v], v)
    }

    /// The next gate while the results of `sent` are on their way.
    fn next(&self, sent: &[ValueId]) -> Option<ValueId> {
        let free = |v: &ValueId| !self.needs[*v].iter().any(|i| sent.contains(i));
        let all = || self.ready.iter().map(|&(_, _, v)| v);
        all().find(free).or_else(|| all().next())
    }

    fn add(&mut self, v: ValueId) {
        if !std::mem::replace(&mut self.emitted[v], true) {
            self.order.push(v);
        }
    }

    /// A node after what it needs and is not there yet: local operations, as gates are.
    fn with_operands(&mut self, v: ValueId) {
        let mut open = vec![v];
        while let Some(&v) = open.last() {
            let plan = self.plan;
            match plan.nodes[v].inputs.iter().find(|&&i| !self.emitted[i]) {
                Some(&i) => open.push(i),
                None => {
                    self.add(v);
                    open.pop();
                }
            }
        }
    }
}

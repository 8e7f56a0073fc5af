//! In training: comparisons and choices before values get their whole ring again.
//!
//! A product of the whole ring is truncated with one fraction bit more than activations have, in the bits that are left. Pools and ReLUs run
//! there, in a ring of `k - g + 1` bits. Else they compare `k - g` bits, and choose among k. What is read by other operations is truncated by that one bit, back into k bits.
//! Under rounding by coins a family may have the first truncation for nothing, and of a pool's results there are fewer.
//!
//! ```text
//! product: 64 bits, 48 of them fraction   ->  41, 25: max pool, ReLU   ->  64, 24: the next product
//! ```
//!
//! *Nothing wraps.* Training promises products below 2^14, so that a truncation may keep the ring. Such a value has 39 bits and a sign here, which
//! is a quarter of the ring: so the second truncation may widen. Differences of two take a bit more, and are compared and chosen alone.

use super::forms::{Emitter, Form};
use super::precision::Format;
use crate::graph::{Graph, GraphOp};

/// What a value may be in the narrow ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Narrow {
    /// It is in the whole ring.
    No,
    /// As large as a product.
    Value,
    /// A difference of two values: it is compared, and chosen to be [`Narrow::Gain`].
    Difference,
    /// A difference where a bit is 1: it is added to what was taken off.
    Gain,
}

/// For every value of a graph what it is in the narrow ring: what gains by it.
pub(super) fn narrow(graph: &Graph) -> Vec<Narrow> {
    let mut found = Found::new(graph);
    // who reads a value may lose the narrow ring later than it did
    while (0..graph.nodes.len()).rev().filter(|&v| found.look_again(v)).count() > 0 {}
    found.kinds
}

/// Whether there is any such value.
pub(super) fn any(graph: &Graph) -> bool {
    narrow(graph).into_iter().any(|kind| kind != Narrow::No)
}

impl Format {
    /// Ring and fraction bits of narrow values.
    pub fn narrow(&self) -> (u32, u32) {
        (self.k - self.g + 1, self.f + 1)
    }
}

impl Emitter<'_> {
    /// Whether this form of `v` is in the narrow ring.
    pub fn is_narrow(&self, v: usize, x: Form) -> bool {
        self.narrow[v] != Narrow::No && (x.bits, x.frac) == self.format(v).narrow()
    }

    /// Whether `v` can be had in the narrow ring.
    pub fn may_be_narrow(&self, v: usize) -> bool {
        if self.narrow[v] == Narrow::No {
            return false;
        }
        let (Format { k, f, g, .. }, native) = (self.format(v), self.native(v));
        (native.bits, native.frac) == (k, f + g) || self.is_narrow(v, native)
    }

    /// `v` in the narrow ring.
    pub fn narrowed(&mut self, v: usize) -> Form {
        let (bits, frac) = self.format(v).narrow();
        if let Some(form) = self.find(v, bits, frac) {
            return form;
        }
        let native = self.native(v);
        let form = self.truncate_into(v, native, native.frac - frac, bits);
        self.forms[v].push(form);
        form
    }
}

struct Found<'a> {
    graph: &'a Graph,
    readers: Vec<Vec<usize>>,
    kinds: Vec<Narrow>,
}

impl<'a> Found<'a> {
    /// The most that may be.
    fn new(graph: &'a Graph) -> Found<'a> {
        let mut readers = vec![Vec::new(); graph.nodes.len()];
        let mut kinds = Vec::with_capacity(graph.nodes.len());
        for (v, node) in graph.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&i| readers[i].push(v));
            kinds.push(match node.op {
                GraphOp::Sub => Narrow::Difference,
                GraphOp::Choose if kinds[node.inputs[1]] == Narrow::Difference => Narrow::Gain,
                _ if is_product(&node.op) || moves(&node.op) => Narrow::Value,
                GraphOp::Choose | GraphOp::Add => Narrow::Value,
                _ => Narrow::No,
            });
        }
        for result in graph.outputs.iter().map(|o| o.node).chain(graph.updates.iter().map(|u| u.node)) {
            kinds[result] = Narrow::No;
        }
        Found { graph, readers, kinds }
    }

    /// Whether value `v` loses the narrow ring.
    fn look_again(&mut self, v: usize) -> bool {
        let loses = self.kinds[v] != Narrow::No && !self.may_be(v);
        if loses {
            self.kinds[v] = Narrow::No;
        }
        loses
    }

    fn may_be(&self, v: usize) -> bool {
        let node = &self.graph.nodes[v];
        let is = |i: usize, kind: Narrow| self.kinds[i] == kind;
        match (self.kinds[v], &node.op) {
            (Narrow::Value, GraphOp::Choose) => {
                is(node.inputs[1], Narrow::Value) && !self.is_wanted_whole(node.inputs[1])
            }
            (Narrow::Value, GraphOp::Add) => self.is_maximum(node.inputs[0], node.inputs[1]),
            (Narrow::Value, op) if is_product(op) => !self.is_wanted_whole(v),
            (Narrow::Value, _) => {
                node.inputs.iter().all(|&i| is(i, Narrow::Value)) && !self.is_wanted_whole(v)
            }
            (Narrow::Difference, _) => {
                let apt = |r: usize| self.compares(r) || is(r, Narrow::Gain);
                node.inputs.iter().all(|&i| is(i, Narrow::Value)) && self.readers[v].iter().all(|&r| apt(r))
            }
            (Narrow::Gain, _) => {
                let apt = |r: usize| is(r, Narrow::Value) && self.graph.nodes[r].op == GraphOp::Add;
                is(node.inputs[1], Narrow::Difference) && self.readers[v].iter().all(|&r| apt(r))
            }
            (Narrow::No, _) => false,
        }
    }

    /// Whether `left + gain` is the larger one of two values: `left + choose(right - left > 0, right - left)`.
    fn is_maximum(&self, left: usize, gain: usize) -> bool {
        if self.kinds[gain] != Narrow::Gain || self.kinds[left] != Narrow::Value {
            return false;
        }
        let [bit, difference] = [0, 1].map(|i| self.graph.nodes[gain].inputs[i]);
        self.compares(bit)
            && self.graph.nodes[bit].inputs[0] == difference
            && self.graph.nodes[difference].inputs[1] == left
    }

    /// Whether another operation than those in the narrow ring reads `v`, or nothing does.
    fn is_wanted_whole(&self, v: usize) -> bool {
        self.readers[v].is_empty() || !self.readers[v].iter().all(|&r| self.keeps(r))
    }

    fn keeps(&self, reader: usize) -> bool {
        self.compares(reader) || self.kinds[reader] != Narrow::No
    }

    fn compares(&self, reader: usize) -> bool {
        self.graph.nodes[reader].op == GraphOp::Positive
    }
}

fn is_product(op: &GraphOp) -> bool {
    matches!(op, GraphOp::Conv2d { .. } | GraphOp::Linear | GraphOp::MatMul)
}

/// Operations that move values and make none larger.
fn moves(op: &GraphOp) -> bool {
    matches!(
        op,
        GraphOp::Slice { .. }
            | GraphOp::Concat { .. }
            | GraphOp::Reshape
            | GraphOp::Permute { .. }
            | GraphOp::Pad { .. }
    )
}

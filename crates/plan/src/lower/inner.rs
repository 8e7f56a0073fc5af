//! Sums of products as inner products: a variance truncates one number a line in place of each square.

use super::emit::Emitted;
use super::forms::{Emitter, Form};
use super::precision::{Formats, range_bits};
use crate::graph::{Graph, GraphOp};
use crate::ir::Op;
use std::collections::BTreeMap;

/// A sum along the last dimensions that nothing but a mean reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    /// The product that it sums up, which nothing else reads.
    pub product: usize,
    /// Of the sum: that of the mean, times the number of elements.
    pub range: [f64; 2],
}

/// Sums that are inner products, by their nodes: those that fit into the ring before any truncation, headroom included.
/// In training ranges promise nothing, and another rule cuts sums up.
pub(super) fn inner(graph: &Graph, formats: &Formats, uses: &[usize]) -> BTreeMap<usize, Inner> {
    let mut all = BTreeMap::new();
    if formats.keep_ring {
        return all;
    }
    for node in &graph.nodes {
        let (GraphOp::MulScalar { value }, Some([lo, hi])) = (&node.op, node.range) else { continue };
        let id = node.inputs[0];
        let sum = &graph.nodes[id];
        let GraphOp::Sum { dims, .. } = &sum.op else { continue };
        let product = sum.inputs[0];
        let factors = &graph.nodes[product];
        let last = factors.shape.len() - dims.len()..factors.shape.len();
        let alike = factors.inputs.iter().all(|&i| graph.nodes[i].shape == factors.shape);
        let alone = uses[id] == 1 && uses[product] == 1;
        if factors.op != GraphOp::Mul || !alike || !alone || !last.eq(dims.iter().copied()) || *value <= 0.0 {
            continue;
        }
        let (format, range) = (formats.of(&sum.layer), [lo / value, hi / value]);
        if 2 * format.f + range_bits(range, formats.headroom) < format.k {
            all.insert(id, Inner { product, range });
        }
    }
    all
}

/// Sum `v` of products, in one gate.
pub(super) fn product(e: &mut Emitter<'_>, v: usize, inner: Inner) -> Emitted {
    let (n, format) = (e.node(v), e.format(v));
    let results = n.shape.iter().product::<usize>();
    let factors: [usize; 2] = [0, 1].map(|i| e.node(inner.product).inputs[i]);
    let elements = e.node(factors[0]).shape.iter().product::<usize>() / results.max(1);
    let mut line = |i: usize, shape: [usize; 3]| -> Form {
        let x = e.obtain(factors[i], format.k, format.f);
        e.push(v, Op::Reshape, vec![x.id], &shape, x.bits, x.frac)
    };
    let ids = vec![line(0, [results, 1, elements]).id, line(1, [results, elements, 1]).id];
    let y = e.push(v, Op::MatMul, ids, &[results, 1, 1], format.k, 2 * format.f);
    Ok(e.push(v, Op::Reshape, vec![y.id], &n.shape, y.bits, y.frac))
}

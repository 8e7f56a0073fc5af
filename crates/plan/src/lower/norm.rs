//! Normalisations as one function: `x * rsqrt(mean(x^2) + eps)`, whose mean of squares is wanted for nothing else.

use super::draft::affine_range;
use super::forms::{Emitter, Form};
use super::operand::{Dropped, FINER};
use super::precision::{Format, Formats, range_bits};
use crate::functions::{Function, Lines, normalised as emit};
use crate::graph::{Graph, GraphNode, GraphOp};
use std::collections::BTreeMap;

/// What a normalisation is of.
#[derive(Clone, Debug)]
pub(super) struct Norm {
    /// The value that is squared and divided, or what it is before its mean is taken off.
    x: usize,
    lines: Lines,
    /// What the root is taken of.
    shifted: usize,
    /// Operations that it is made of; nothing else reads them.
    pub parts: Vec<usize>,
}

/// Normalisations, by the products that end them: those whose sums of squares fit into the ring before any truncation, headroom
/// included. None where they are made of their parts ([`Formats::parts`]).
pub(super) fn norms(graph: &Graph, formats: &Formats, uses: &[usize]) -> BTreeMap<usize, Norm> {
    if formats.parts {
        return BTreeMap::new();
    }
    let parts = Parts { graph, formats, uses };
    let found = |v: usize| {
        let (norm, read) = (parts.norm(v)?, formats.of(&graph.nodes[v].layer).f);
        fits(graph, &norm, v, formats, read).then_some((v, norm))
    };
    (0..graph.nodes.len()).filter_map(found).collect()
}

/// A graph in which parts of normalisations are looked for.
#[derive(Clone, Copy)]
struct Parts<'a> {
    graph: &'a Graph,
    formats: &'a Formats,
    uses: &'a [usize],
}

impl<'a> Parts<'a> {
    /// The normalisation that product `v` ends.
    fn norm(self, v: usize) -> Option<Norm> {
        let node = &self.graph.nodes[v];
        let &[a, b] = &node.inputs[..] else { return None };
        if node.op != GraphOp::Mul {
            return None;
        }
        let norm = self.by_root([a, b]).or_else(|| self.by_root([b, a]))?;
        Some(self.centred(&norm, v).unwrap_or(norm))
    }

    /// The node of an operation that only one other reads.
    fn only(self, id: usize) -> Option<&'a GraphNode> {
        (self.uses[id] == 1).then(|| &self.graph.nodes[id])
    }

    /// A mean along the last dimensions: of what, elements of a line, and the operations that it is made of.
    fn mean(self, mean: usize) -> Option<(usize, usize, [usize; 2])> {
        let GraphOp::MulScalar { value } = self.only(mean)?.op else { return None };
        let sum = self.graph.nodes[mean].inputs[0];
        let GraphOp::Sum { dims, .. } = &self.only(sum)?.op else { return None };
        let x = self.graph.nodes[sum].inputs[0];
        let shape = &self.graph.nodes[x].shape;
        let first = shape.len().checked_sub(dims.len())?;
        let n = shape[first..].iter().product::<usize>();
        // one number for a line, where readers take it line by line
        let kept = self.graph.nodes[mean].shape.get(..first) == Some(&shape[..first])
            && self.graph.nodes[mean].shape.len() == shape.len();
        let is_mean = (value * n as f64 - 1.0).abs() < 1e-9 && n > 1;
        (kept && is_mean && (first..shape.len()).eq(dims.iter().copied())).then_some((x, n, [sum, mean]))
    }

    /// `x * root`, if root is the inverse root of the mean of x's squares.
    fn by_root(self, [x, root]: [usize; 2]) -> Option<Norm> {
        let GraphOp::Smooth { function: Function::Rsqrt } = self.only(root)?.op else { return None };
        let shifted = self.graph.nodes[root].inputs[0];
        let (eps, mean) = match self.only(shifted)?.op {
            GraphOp::AddScalar { value } => (value, self.graph.nodes[shifted].inputs[0]),
            _ => (0.0, shifted),
        };
        let (squares, n, [sum, mean]) = self.mean(mean)?;
        let product = self.only(squares)?;
        if product.op != GraphOp::Mul || product.inputs != [x, x] || eps < 0.0 {
            return None;
        }
        let count = self.graph.nodes[x].shape.iter().product::<usize>() / n;
        let lines = Lines { count, n, eps, centred: None, coarse: 0 };
        Some(Norm { x, lines, shifted, parts: vec![squares, sum, mean, shifted, root] })
    }

    /// The same with the mean that was taken off before, if nothing else reads what that left: of `1 / n` as many bits as a public
    /// factor has, or as there is room for.
    fn centred(self, norm: &Norm, v: usize) -> Option<Norm> {
        let node = &self.graph.nodes[norm.x];
        let &[y, mean] = &node.inputs[..] else { return None };
        // squares are two reads, the product that ends it is one
        if node.op != GraphOp::Sub || self.uses[norm.x] != 3 {
            return None;
        }
        let (of, n, [sum, mean]) = self.mean(mean)?;
        let format = self.formats.of(&self.graph.nodes[v].layer);
        let whole = range_bits(self.graph.nodes[mean].range?, self.formats.headroom) + 1;
        let leading = (n as f64).log2().ceil() as u32;
        let digits = (format.g + leading).min(format.k.checked_sub(format.f + whole)?);
        // in front of the sum's fraction as well
        let sums =
            range_bits(affine_range(self.graph.nodes[mean].range, n as f64, 0.0)?, self.formats.headroom);
        if of != y || n != norm.lines.n || digits < leading + LEAST_DIGITS || format.f + sums >= format.k {
            return None;
        }
        let lines = Lines { centred: Some(digits), ..norm.lines };
        let parts = norm.parts.iter().copied().chain([sum, mean, norm.x]).collect();
        Some(Norm { x: y, lines, parts, ..*norm })
    }
}

/// Bits of `1 / n` behind its leading one, at least.
const LEAST_DIGITS: u32 = 16;

/// Whether the sum of squares of lines with `read` fraction bits and the result have room, by their calibrated ranges.
fn fits(graph: &Graph, norm: &Norm, v: usize, formats: &Formats, read: u32) -> bool {
    let Format { k, f, g, .. } = formats.of(&graph.nodes[v].layer);
    let (Some([lo, hi]), Some(range)) = (graph.nodes[norm.shifted].range, graph.nodes[v].range) else {
        return false;
    };
    let sum = [lo * norm.lines.n as f64, hi * norm.lines.n as f64];
    let (squared, ring) = (2 * (read - norm.lines.coarse), k - norm.lines.coarse);
    let frac = norm.lines.frac(k, f + g);
    squared + range_bits(sum, formats.headroom) < ring
        && norm.lines.added(squared) < 2f64.powi(ring as i32 - 2)
        && norm.lines.suits(k, frac)
        && frac <= super::forms::MOST_FRACTION
        && frac + range_bits(range, formats.headroom) < k
}

/// The normalisation that product `v` ends, with the fraction bits of a product or more.
pub(super) fn normalised(e: &mut Emitter<'_>, v: usize, norm: &Norm) -> Form {
    let format = e.format(v);
    let (x, lines) = match nearer(e, v, norm) {
        Some((dropped, lines)) => (dropped.taken(e, v, format.k), lines),
        None => (e.obtain(norm.x, format.k, format.f), norm.lines),
    };
    let layer = e.node(v).layer.clone();
    let mut build = e.build(&layer);
    let operand = build.value(x.id);
    let y = emit(&mut build, operand, lines, format.f + format.g);
    Form { id: y.id, bits: y.bits, frac: y.frac }
}

/// What a normalisation drops of the product that it alone reads, and its lines: squares are of fewer bits, where so many have no room.
fn nearer(e: &Emitter<'_>, v: usize, norm: &Norm) -> Option<(Dropped, Lines)> {
    let format = e.format(v);
    // a mean and what it is taken off, or two factors of a square and one of the result
    let reads = if norm.lines.centred.is_some() { 2 } else { 3 };
    let dropped = Dropped::nearer(e, norm.x, format.f, reads)?;
    let read = format.f + FINER;
    let coarse = (0..=2 * FINER).step_by(2).find(|&coarse| {
        let lines = Lines { coarse, ..norm.lines };
        fits(&e.draft.graph, &Norm { lines, ..norm.clone() }, v, e.formats, read)
    })?;
    let apt = dropped.product.bits == format.k && e.may_keep(norm.x, dropped.product);
    apt.then_some((dropped, Lines { coarse, ..norm.lines }))
}

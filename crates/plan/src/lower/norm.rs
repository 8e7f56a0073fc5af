//! Normalisations as one function: `x * rsqrt(mean(x^2) + eps)`, whose mean of squares is wanted for nothing else.

use super::draft::affine_range;
use super::forms::{Emitter, Form};
use super::precision::{Formats, range_bits};
use crate::functions::{Build, Function, Lines, normalised as emit};
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
    let found = |v: usize| Some((v, parts.norm(v).filter(|norm| fits(graph, norm, v, formats))?));
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
        let lines = Lines { count, n, eps, centred: None };
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

/// Whether the sum of squares and the result have room, by their calibrated ranges.
fn fits(graph: &Graph, norm: &Norm, v: usize, formats: &Formats) -> bool {
    let format = formats.of(&graph.nodes[v].layer);
    let (Some([lo, hi]), Some(range)) = (graph.nodes[norm.shifted].range, graph.nodes[v].range) else {
        return false;
    };
    let sum = [lo * norm.lines.n as f64, hi * norm.lines.n as f64];
    let frac = norm.lines.frac(format.k, format.f + format.g);
    2 * format.f + range_bits(sum, formats.headroom) < format.k
        && norm.lines.added(2 * format.f) < 2f64.powi(format.k as i32 - 2)
        && norm.lines.suits(format.k, frac)
        && frac <= super::forms::MOST_FRACTION
        && frac + range_bits(range, formats.headroom) < format.k
}

/// The normalisation that product `v` ends, with the fraction bits of a product or more.
pub(super) fn normalised(e: &mut Emitter<'_>, v: usize, norm: &Norm) -> Form {
    let format = e.format(v);
    let x = e.obtain(norm.x, format.k, format.f);
    let layer = e.node(v).layer.clone();
    let mut build = Build::new(&mut e.plan, &layer).priced(e.prices, e.network);
    let operand = build.value(x.id);
    let y = emit(&mut build, operand, norm.lines, format.f + format.g);
    Form { id: y.id, bits: y.bits, frac: y.frac }
}

//! Matrix products and convolutions: one statement for every element of the result, combined row by row and column by
//! column into one inner product as long as the inner dimension.
//!
//! For a result with rows r and columns c, random coefficients a_r and b_c of the exceptional set, and
//! `x = sum over r of a_r X_r`, `w = sum over c of W_c b_c`, the combined statement about prover i is
//! `x_i w_i + x_i w_(i+1) + x_(i+1) w_i + sum over r, c of a_r b_c (start_i + F_i - F_(i+1) - z_i)_rc = 0`. The terms in the middle
//! join the other items after the first fold, the party before knows the first term, and the sums are the two verifiers'.

use super::column::Column;
use super::extension::Extension;
use super::galois::{Gr, combine, inner, reduced, shifted, times_bits};
use crate::{PartyId, Share};
use privet_family::Products;
use privet_kernels::{Device, LinearShape};
use privet_prg::Prg;
use privet_ring::{Conv2d, Ring};
use std::ops::Range;
use std::sync::Arc;

/// Statements about everybody's reshare of one node's products, as one party sees them.
pub(crate) struct ProductClaim {
    pub ring: Ring,
    pub products: Products,
    /// This party's share of the first operand, `products.count` times what the shape says.
    pub x: Share,
    /// Of the second operand.
    pub w: Share,
    /// `start + F - z` of the message of the party after this one; the party's own products are left out.
    pub before: Column,
    /// `-F` of the message of the party before this one.
    pub after: Column,
}

/// The two operands' components of one index.
type Pair = [Arc<Vec<u64>>; 2];

/// [`ProductClaim`] in the proof of one prover.
pub(super) struct Product {
    ring: Ring,
    products: Products,
    /// `X_i`, `W_i`: the prover's and the party before's.
    u: Option<Pair>,
    /// `X_(i+1)`, `W_(i+1)`: the prover's and the party after's.
    v: Option<Pair>,
    /// The verifiers'.
    s: Option<Column>,
}

impl ProductClaim {
    /// What party `id` knows in the proof of `prover`.
    pub(super) fn about(&self, id: PartyId, prover: PartyId) -> Product {
        let own = || Some([self.x.own.clone(), self.w.own.clone()]);
        let next = || Some([self.x.next.clone(), self.w.next.clone()]);
        let (u, v, s) = if id == prover {
            (own(), next(), None)
        } else if id.next() == prover {
            (next(), None, Some(self.before.clone()))
        } else {
            (None, own(), Some(self.after.clone()))
        };
        Product { ring: self.ring, products: self.products, u, v, s }
    }
}

/// The random coefficients of one product: rows (of a convolution: images and places) and columns (output channels).
pub(super) struct Coefficients {
    rows: Vec<u64>,
    columns: Vec<u64>,
}

/// What joins the folded words: the terms of the products, and this party's part of their claim.
pub(super) struct Joined<E> {
    pub u: Vec<E>,
    pub v: Vec<E>,
    pub claim: E,
}

impl<E: Extension> Joined<E> {
    pub fn nothing() -> Joined<E> {
        Joined { u: vec![], v: vec![], claim: E::ZERO }
    }
}

impl Product {
    /// The inner dimensions of all products.
    pub fn depth(&self) -> usize {
        self.products.count * depth(self.products.shape)
    }

    pub fn draw(&self, prg: &mut Prg) -> Vec<Coefficients> {
        let (rows, columns) = extent(self.products.shape);
        let one = |_| Coefficients {
            rows: prg.elements(Ring::R64, rows),
            columns: prg.elements(Ring::R64, columns),
        };
        (0..self.products.count).map(one).collect()
    }

    pub fn join(&self, device: &dyn Device, coefficients: &[Coefficients], to: &mut Joined<Gr>) {
        let (shape, ring) = (self.products.shape, self.ring);
        // sums as far as the ring's bits go; in all products one factor is shifted, or the product
        for (i, c) in coefficients.iter().enumerate() {
            let part = |len: usize| i * len..(i + 1) * len;
            let both = |[x, w]: &Pair| {
                let x = &x[part(shape.input_len())];
                let w = &w[part(shape.weight_len())];
                (first(device, ring, shape, x, &c.rows), second(device, ring, shape, w, &c.columns))
            };
            let mut known = Gr::ZERO;
            if let Some((x, w)) = self.u.as_ref().map(both) {
                if self.s.is_some() {
                    known = inner(device, &x, &w);
                }
                to.u.extend(x.iter().chain(&w).map(|a| shifted(a, ring)));
            }
            if let Some((x, w)) = self.v.as_ref().map(both) {
                to.v.extend(w.iter().chain(&x).map(|a| reduced(a, ring)));
            }
            if let Some(s) = &self.s {
                let s = &s[part(shape.output_len())];
                let sum = known.add(result(device, ring, shape, s, c));
                to.claim = to.claim.sub(shifted(&sum, ring));
            }
        }
    }
}

/// Rows and columns of the result as a matrix.
fn extent(shape: LinearShape) -> (usize, usize) {
    match shape {
        LinearShape::MatMulT { m, n, .. } | LinearShape::MatMul { m, n, .. } => (m, n),
        LinearShape::Conv2d(c) => (c.batch * c.output().iter().product::<usize>(), c.out_channels),
    }
}

/// The inner dimension, all groups of a convolution together.
fn depth(shape: LinearShape) -> usize {
    match shape {
        LinearShape::MatMulT { k, .. } | LinearShape::MatMul { k, .. } => k,
        LinearShape::Conv2d(c) => c.in_channels * c.kernel[0] * c.kernel[1],
    }
}

/// Row `rows.start` at `positions.start`, and so on, of the transpose of a matrix with `stride` words a row.
fn transposed(data: &[u64], stride: usize, rows: Range<usize>, positions: Range<usize>, out: &mut [u64]) {
    let n = positions.len();
    for (p, row) in positions.enumerate().map(|(i, p)| (i, &data[p * stride..])) {
        for (i, word) in row[rows.clone()].iter().enumerate() {
            out[i * n + p] = *word;
        }
    }
}

/// The first operand's rows combined.
fn first(device: &dyn Device, ring: Ring, shape: LinearShape, x: &[u64], bits: &[u64]) -> Vec<Gr> {
    match shape {
        LinearShape::MatMulT { k, .. } | LinearShape::MatMul { k, .. } => {
            combine(device, ring, k, bits, |rows, positions, out| transposed(x, k, rows, positions, out))
        }
        LinearShape::Conv2d(c) => combine(device, ring, depth(shape), bits, |rows, positions, out| {
            for (row, out) in rows.zip(out.chunks_mut(positions.len())) {
                patches(&c, x, row, positions.clone(), out);
            }
        }),
    }
}

/// What one weight of each output channel meets: input channel and place in the kernel `row`, for outputs `positions`.
fn patches(c: &Conv2d, x: &[u64], row: usize, positions: Range<usize>, out: &mut [u64]) {
    let ([height, width], [kh, kw]) = (c.output(), c.kernel);
    let (channel, ky, kx) = (row / (kh * kw), row / kw % kh, row % kw);
    let inside = |o: usize, axis: usize, k: usize| {
        let at = o * c.stride[axis] + k * c.dilation[axis];
        at.checked_sub(c.padding[2 * axis]).filter(|&i| i < c.input[axis])
    };
    let mut p = positions.start;
    let mut out = out;
    while p < positions.end {
        let (image, oy, ox) = (p / (height * width), p / width % height, p % width);
        let len = (width - ox).min(positions.end - p);
        let (line, rest) = out.split_at_mut(len);
        match inside(oy, 0, ky) {
            Some(y) => {
                let start = ((image * c.in_channels + channel) * c.input[0] + y) * c.input[1];
                for (i, out) in line.iter_mut().enumerate() {
                    *out = inside(ox + i, 1, kx).map_or(0, |x_at| x[start + x_at]);
                }
            }
            None => line.fill(0),
        }
        (p, out) = (p + len, rest);
    }
}

/// The second operand's columns combined.
fn second(device: &dyn Device, ring: Ring, shape: LinearShape, w: &[u64], bits: &[u64]) -> Vec<Gr> {
    match shape {
        LinearShape::MatMulT { k, .. } => {
            combine(device, ring, k, bits, |rows, positions, out| transposed(w, k, rows, positions, out))
        }
        LinearShape::MatMul { k, n, .. } => combine(device, ring, k, bits, |rows, positions, out| {
            for (row, out) in rows.zip(out.chunks_mut(positions.len())) {
                out.copy_from_slice(&w[row * n..][positions.clone()]);
            }
        }),
        LinearShape::Conv2d(c) => {
            let stride = depth(shape) / c.groups;
            let channels = c.out_channels / c.groups;
            let group = |(w, bits): (&[u64], &[u64])| {
                combine(device, ring, stride, bits, |rows, at, out| transposed(w, stride, rows, at, out))
            };
            w.chunks(stride * channels).zip(bits.chunks(channels)).flat_map(group).collect()
        }
    }
}

/// The result's elements combined.
fn result(device: &dyn Device, ring: Ring, shape: LinearShape, s: &[u64], c: &Coefficients) -> Gr {
    let columns = combine(device, ring, c.columns.len(), &c.rows, |rows, positions, out| match shape {
        LinearShape::MatMulT { n, .. } | LinearShape::MatMul { n, .. } => {
            transposed(s, n, rows, positions, out)
        }
        LinearShape::Conv2d(conv) => {
            let area = conv.output().iter().product::<usize>();
            for (channel, out) in rows.zip(out.chunks_mut(positions.len())) {
                for (p, out) in positions.clone().zip(out) {
                    *out = s[(p / area * conv.out_channels + channel) * area + p % area];
                }
            }
        }
    });
    let terms = columns.iter().zip(&c.columns).map(|(a, b)| times_bits(a, *b));
    terms.fold(Gr::ZERO, Gr::add)
}

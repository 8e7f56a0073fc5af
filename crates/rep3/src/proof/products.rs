//! Matrix products and convolutions: one statement for every element of the result, combined row by row and column by
//! column into one inner product as long as the inner dimension.
//!
//! For a result with rows r and columns c, random coefficients a_r and b_c of the exceptional set, and
//! `x = sum over r of a_r X_r`, `w = sum over c of W_c b_c`, the combined statement about prover i is
//! `x_i w_i + x_i w_(i+1) + x_(i+1) w_i + sum over r, c of a_r b_c (start_i + F_i - F_(i+1) - z_i)_rc = 0`. The terms in the middle
//! join the other items after the first fold, the party before knows the first term, and the sums are the two verifiers'.

use super::column::Column;
use super::extension::Extension;
use super::galois::{Gr, inner, reduce_to, shift};
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

/// Rows and positions of a convolution's first operand gathered at a time: 256 KiB.
const ROWS: usize = 512;
const POSITIONS: usize = 64;

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

/// The folded words, and what joins them: the terms of the products, and this party's part of their claim.
pub(super) struct Joined<E> {
    pub u: Vec<E>,
    pub v: Vec<E>,
    pub claim: E,
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
            // both operands combined, at two places
            let combine = |[x, w]: &Pair, at: [&mut [Gr]; 2]| {
                let [of_x, of_w] = at;
                first(device, shape, &x[part(shape.input_len())], &c.rows, of_x);
                second(device, shape, &w[part(shape.weight_len())], &c.columns, of_w);
            };
            let mut known = Gr::ZERO;
            if let Some(pair) = &self.u {
                let items = more(&mut to.u, 2 * depth(shape));
                let (x, w) = items.split_at_mut(depth(shape));
                combine(pair, [x, w]);
                if self.s.is_some() {
                    known = inner(device, x, w);
                }
                items.iter_mut().for_each(|item| shift(item, ring));
            }
            if let Some(pair) = &self.v {
                let items = more(&mut to.v, 2 * depth(shape));
                let (w, x) = items.split_at_mut(depth(shape));
                combine(pair, [x, w]);
                items.iter_mut().for_each(|item| reduce_to(item, ring));
            }
            if let Some(s) = &self.s {
                let s = &s[part(shape.output_len())];
                let mut sum = known.add(result(device, shape, s, c));
                shift(&mut sum, ring);
                to.claim = to.claim.sub(sum);
            }
        }
    }
}

/// So many items more, all 0.
fn more(items: &mut Vec<Gr>, count: usize) -> &mut [Gr] {
    let start = items.len();
    items.resize(start + count, Gr::ZERO);
    &mut items[start..]
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

/// The first operand's rows combined: for every place of the inner dimension, the sum of `a_r X_r`, added to what stands there.
fn first(device: &dyn Device, shape: LinearShape, x: &[u64], bits: &[u64], out: &mut [Gr]) {
    match shape {
        LinearShape::MatMulT { k, .. } | LinearShape::MatMul { k, .. } => {
            device.fold().rows_combine(x, [k, 1], bits, out);
        }
        LinearShape::Conv2d(c) => {
            let mut words = vec![0; ROWS.min(bits.len()) * POSITIONS.min(out.len())];
            for (i, bits) in bits.chunks(ROWS).enumerate() {
                let rows = i * ROWS..i * ROWS + bits.len();
                for (j, out) in out.chunks_mut(POSITIONS).enumerate() {
                    for (position, words) in words.chunks_mut(bits.len()).take(out.len()).enumerate() {
                        patches(&c, x, j * POSITIONS + position, rows.clone(), words);
                    }
                    device.fold().rows_combine(&words, [1, bits.len()], bits, out);
                }
            }
        }
    }
}

/// What one weight of each output channel meets: input channel and place in the kernel `position`, for outputs `rows`.
fn patches(c: &Conv2d, x: &[u64], position: usize, rows: Range<usize>, out: &mut [u64]) {
    let ([height, width], [kh, kw]) = (c.output(), c.kernel);
    let (channel, ky, kx) = (position / (kh * kw), position / kw % kh, position % kw);
    // what output 0 of a line meets, before the padding is taken off; and which outputs meet what is there
    let (from, step) = (kx * c.dilation[1], c.stride[1]);
    let before = |end: usize| end.saturating_sub(from).div_ceil(step).min(width);
    let there = before(c.padding[2])..before(c.padding[2] + c.input[1]);
    let mut row = rows.start;
    let mut out = out;
    while row < rows.end {
        let (image, oy, ox) = (row / (height * width), row / width % height, row % width);
        let len = (width - ox).min(rows.end - row);
        let (line, rest) = out.split_at_mut(len);
        // padding
        line.fill(0);
        let y = (oy * c.stride[0] + ky * c.dilation[0]).checked_sub(c.padding[0]);
        let (first, end) = (there.start.max(ox), there.end.min(ox + len));
        if let (Some(y), true) = (y.filter(|&y| y < c.input[0]), first < end) {
            let start = ((image * c.in_channels + channel) * c.input[0] + y) * c.input[1];
            let met = &x[start + first * step + from - c.padding[2]..];
            let line = &mut line[first - ox..end - ox];
            match step {
                1 => line.copy_from_slice(&met[..line.len()]),
                _ => line.iter_mut().zip(met.iter().step_by(step)).for_each(|(out, word)| *out = *word),
            }
        }
        (row, out) = (row + len, rest);
    }
}

/// The second operand's columns combined, added to what stands there.
fn second(device: &dyn Device, shape: LinearShape, w: &[u64], bits: &[u64], out: &mut [Gr]) {
    match shape {
        LinearShape::MatMulT { k, .. } => device.fold().rows_combine(w, [k, 1], bits, out),
        LinearShape::MatMul { n, .. } => device.fold().rows_combine(w, [1, n], bits, out),
        LinearShape::Conv2d(c) => {
            let (depth, channels) = (depth(shape) / c.groups, c.out_channels / c.groups);
            let groups = w.chunks(depth * channels).zip(bits.chunks(channels));
            for ((w, bits), out) in groups.zip(out.chunks_mut(depth)) {
                device.fold().rows_combine(w, [depth, 1], bits, out);
            }
        }
    }
}

/// The result's elements combined.
fn result(device: &dyn Device, shape: LinearShape, s: &[u64], c: &Coefficients) -> Gr {
    let mut columns = vec![Gr::ZERO; c.columns.len()];
    match shape {
        LinearShape::MatMulT { n, .. } | LinearShape::MatMul { n, .. } => {
            device.fold().rows_combine(s, [n, 1], &c.rows, &mut columns);
        }
        LinearShape::Conv2d(conv) => {
            let area = conv.output().iter().product::<usize>();
            for (s, rows) in s.chunks(area * conv.out_channels).zip(c.rows.chunks(area)) {
                device.fold().rows_combine(s, [1, area], rows, &mut columns);
            }
        }
    }
    device.fold().weigh(&mut columns, &c.columns);
    columns.into_iter().fold(Gr::ZERO, Gr::add)
}

#[cfg(test)]
mod tests {
    use super::super::extension::Extension;
    use super::*;
    use privet_prg::Seed;

    /// More outputs, and more places of kernels, than are gathered at a time; also with a stride, and with kernels that
    /// meet nothing but padding.
    #[test]
    fn convolutions_of_many_pieces() {
        let device = privet_kernels::cpu(1);
        let mut prg = Seed::from_bytes([6; 16]).stream();
        for (stride, padding, dilation) in
            [([1, 1], [1, 1, 1, 1], [1, 1]), ([1, 2], [2, 0, 3, 6], [2, 1]), ([2, 1], [0, 0, 15, 20], [1, 4])]
        {
            let c = Conv2d {
                batch: 5,
                in_channels: 8,
                input: [17, 13],
                out_channels: 2,
                kernel: [3, 3],
                stride,
                padding,
                dilation,
                groups: 2,
            };
            let (shape, [height, width]) = (LinearShape::Conv2d(c), c.output());
            let x = prg.elements(Ring::R64, shape.input_len());
            let bits = prg.elements(Ring::R64, extent(shape).0);
            assert!(bits.len() > ROWS && depth(shape) > POSITIONS);
            let mut found = vec![Gr::ZERO; depth(shape)];
            first(device.as_ref(), shape, &x, &bits, &mut found);
            for (position, found) in found.iter().enumerate() {
                let (channel, ky, kx) = (position / 9, position / 3 % 3, position % 3);
                let mut expected = Gr::ZERO;
                for (row, bits) in bits.iter().enumerate() {
                    let (image, oy, ox) = (row / (height * width), row / width % height, row % width);
                    let y = (oy * stride[0] + ky * dilation[0]).checked_sub(padding[0]);
                    let x_at = (ox * stride[1] + kx * dilation[1]).checked_sub(padding[2]);
                    let (Some(y @ ..17), Some(x_at @ ..13)) = (y, x_at) else { continue };
                    let word = x[((image * 8 + channel) * 17 + y) * 13 + x_at];
                    expected = expected.add(Gr::embed(*bits).map(|c| c * word));
                }
                assert_eq!(*found, expected, "stride {stride:?}, position {position}");
            }
        }
    }
}

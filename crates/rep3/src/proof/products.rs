//! Matrix products and convolutions: one statement for every element of the result, combined row by row and column by
//! column into one inner product as long as the inner dimension.
//!
//! For a result with rows r and columns c, random coefficients a_r and b_c of the exceptional set, and
//! `x = sum over r of a_r X_r`, `w = sum over c of W_c b_c`, the combined statement about prover i is
//! `x_i w_i + x_i w_(i+1) + x_(i+1) w_i + sum over r, c of a_r b_c (start_i + F_i - F_(i+1) - z_i)_rc = 0`. The terms in the middle
//! join the other items after the first fold, the party before knows the first term, and the sums are the two verifiers'.
//!
//! All three proofs have the same coefficients, so a party combines what it holds once for all its roles.

use super::batch::Role;
use super::column::Column;
use super::extension::Extension;
use super::galois::{Gr, inner, reduce_to, shift};
use crate::{PartyId, Share};
use privet_family::Products;
use privet_kernels::{Device, LinearShape};
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};
use std::ops::Range;

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

/// [`ProductClaim`] in the proof of one prover.
pub(super) struct Product {
    ring: Ring,
    products: Products,
    /// This party's in that proof.
    role: Role,
    /// The verifiers'.
    s: Option<Column>,
}

impl ProductClaim {
    /// What party `id` knows in the proof of `prover`.
    pub(super) fn about(&self, id: PartyId, prover: PartyId) -> Product {
        let role = Role::of(id, prover);
        let s = match role {
            Role::Prover => None,
            Role::Before => Some(self.before.clone()),
            Role::After => Some(self.after.clone()),
        };
        Product { ring: self.ring, products: self.products, role, s }
    }

    /// Every product of the node with coefficients from `prg`.
    fn combine(&self, device: &dyn Device, prg: &mut Prg) -> Vec<One> {
        let shape = self.products.shape;
        let one = |i| {
            let c = Coefficients::draw(shape, prg);
            let pair = |x: &[u64], w: &[u64]| Pair::combine(device, shape, i, [x, w], &c);
            let own = pair(&self.x.own, &self.w.own);
            let next = pair(&self.x.next, &self.w.next);
            One { coefficients: c, own, next }
        };
        (0..self.products.count).map(one).collect()
    }
}

/// The random coefficients of one product: rows (of a convolution: images and places) and columns (output channels).
struct Coefficients {
    rows: Vec<u64>,
    columns: Vec<u64>,
}

impl Coefficients {
    fn draw(shape: LinearShape, prg: &mut Prg) -> Coefficients {
        let (rows, columns) = extent(shape);
        Coefficients { rows: prg.elements(Ring::R64, rows), columns: prg.elements(Ring::R64, columns) }
    }
}

/// Both operands' components of one index, combined: an item for every place of the inner dimension.
struct Pair {
    x: Vec<Gr>,
    w: Vec<Gr>,
}

impl Pair {
    /// Of product `i` of a node whose operands are `x` and `w`.
    fn combine(
        device: &dyn Device,
        shape: LinearShape,
        i: usize,
        [x, w]: [&[u64]; 2],
        c: &Coefficients,
    ) -> Pair {
        let part = |len: usize| i * len..(i + 1) * len;
        let zeros = || vec![Gr::ZERO; depth(shape)];
        let mut pair = Pair { x: zeros(), w: zeros() };
        first(device, shape, &x[part(shape.input_len())], &c.rows, &mut pair.x);
        second(device, shape, &w[part(shape.weight_len())], &c.columns, &mut pair.w);
        pair
    }
}

/// One product of those of a node: its coefficients, and this party's components combined with them.
struct One {
    coefficients: Coefficients,
    own: Pair,
    next: Pair,
}

/// The operands of all products, combined for all three proofs. What is above the bits of a ring does not count.
pub(super) struct Combined {
    /// Every node's.
    nodes: Vec<Vec<One>>,
}

impl Combined {
    /// With coefficients from a seed that no prover knew before all messages of the batch were in.
    pub fn new(device: &dyn Device, claims: Vec<ProductClaim>, seed: &Seed) -> Combined {
        let mut prg = seed.stream();
        Combined { nodes: claims.iter().map(|claim| claim.combine(device, &mut prg)).collect() }
    }

    /// Add to one proof all that is stated in it about products: `products` are those that this was made of, in their order.
    pub fn join(&self, device: &dyn Device, products: &[Product], to: &mut Joined<Gr>) {
        // at once: what is copied here would be copied again as the vectors grow
        to.u.reserve(products.iter().map(|p| p.items()[0]).sum());
        to.v.reserve(products.iter().map(|p| p.items()[1]).sum());
        for (product, ones) in products.iter().zip(&self.nodes) {
            product.join(device, ones, to);
        }
    }
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

    /// How many it adds to u and to v.
    fn items(&self) -> [usize; 2] {
        let both = 2 * self.depth();
        match self.role {
            Role::Prover => [both, both],
            Role::Before => [both, 0],
            Role::After => [0, both],
        }
    }

    fn join(&self, device: &dyn Device, ones: &[One], to: &mut Joined<Gr>) {
        for (i, one) in ones.iter().enumerate() {
            // component i of the prover is its own, and the next of the party before it
            match self.role {
                Role::Prover => {
                    self.put_u(&one.own, &mut to.u);
                    self.put_v(&one.next, &mut to.v);
                }
                Role::Before => self.put_u(&one.next, &mut to.u),
                Role::After => self.put_v(&one.own, &mut to.v),
            }
            if let Some(s) = &self.s {
                let sum = self.sum(device, i, s, one);
                to.claim = to.claim.sub(sum);
            }
        }
    }

    /// `x_i`, `w_i`. In all products one factor is shifted, or the product.
    fn put_u(&self, Pair { x, w }: &Pair, u: &mut Vec<Gr>) {
        put([x, w], u, |item| shift(item, self.ring));
    }

    /// `w_(i+1)`, `x_(i+1)`: what those meet.
    fn put_v(&self, Pair { x, w }: &Pair, v: &mut Vec<Gr>) {
        put([w, x], v, |item| reduce_to(item, self.ring));
    }

    /// What a verifier alone knows of product `i`: its results' combination, and before the prover `x_i w_i`.
    fn sum(&self, device: &dyn Device, i: usize, s: &[u64], one: &One) -> Gr {
        let (shape, len) = (self.products.shape, self.products.shape.output_len());
        let mut sum = result(device, shape, &s[i * len..(i + 1) * len], &one.coefficients);
        if self.role == Role::Before {
            sum = sum.add(inner(device, &one.next.x, &one.next.w));
        }
        shift(&mut sum, self.ring);
        sum
    }
}

/// Append copies of both, finished.
fn put(both: [&[Gr]; 2], items: &mut Vec<Gr>, finish: impl Fn(&mut Gr)) {
    let start = items.len();
    both.iter().for_each(|part| items.extend_from_slice(part));
    items[start..].iter_mut().for_each(finish);
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

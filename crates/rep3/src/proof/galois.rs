//! Ring elements: statements over Z_2^64 in the Galois ring Z_2^64\[Y\]/(Y^64 + Y^4 + Y^3 + Y + 1).
//!
//! What costs time here are matrix products over Z_2^64, on the device: with a matrix of random bits, with the matrix of
//! a multiplication, or of coefficients with coefficients.

use super::batch::{Batch, Statements, Weights};
use super::extension::Extension;
use super::products::Joined;
use privet_kernels::fold::{diagonal, gr_reduce, gr_times_bits, points};
use privet_kernels::{Device, LinearShape};
use privet_plan::cost::proofs;
use privet_prg::Prg;
use privet_ring::Ring;
use std::ops::Range;

/// Coefficients of an element.
const DEGREE: usize = 64;

/// An element of the Galois ring, coefficient i for Y^i.
pub(super) type Gr = [u64; DEGREE];

/// Positions, and rows, of one product of [`combine`]: 1 MiB of operand.
const POSITIONS: usize = 1024;
const ROWS: usize = 128;

/// Groups of one product of [`Gr::message`] in two variables, of which there are many.
const GROUPS: usize = 256;

/// Items that [`fold_column`] makes at a time: half a megabyte.
const PIECE: usize = 1024;

/// Times an element of the exceptional set (public: branches on its bits).
pub(super) fn times_bits(a: &Gr, bits: u64) -> Gr {
    gr_times_bits(a, bits)
}

/// Every coefficient times 2^shift.
pub(super) fn shifted(a: &Gr, shift: u32) -> Gr {
    a.map(|c| c << shift)
}

/// For every row, the sum over positions p of `bits[p]`, as an element of the exceptional set, times the row's word at p.
/// `gather(rows, positions, out)` writes words row by row.
pub(super) fn combine(
    device: &dyn Device,
    rows: usize,
    bits: &[u64],
    mut gather: impl FnMut(Range<usize>, Range<usize>, &mut [u64]),
) -> Vec<Gr> {
    let mut out = vec![Gr::ZERO; rows];
    let mut words = vec![0; ROWS.min(rows) * POSITIONS.min(bits.len())];
    for (i, bits) in bits.chunks(POSITIONS).enumerate() {
        let positions = i * POSITIONS..i * POSITIONS + bits.len();
        let matrix: Vec<Gr> = bits.iter().map(|&b| Gr::embed(b)).collect();
        let shape = |m| LinearShape::MatMul { m, k: bits.len(), n: DEGREE };
        let matrix = device.prepare_bytes(Ring::R64, shape(1), matrix.as_flattened());
        for (j, out) in out.chunks_mut(ROWS).enumerate() {
            let words = &mut words[..out.len() * bits.len()];
            gather(j * ROWS..j * ROWS + out.len(), positions.clone(), words);
            device.linear_acc(Ring::R64, shape(out.len()), words, matrix.as_ref(), out.as_flattened_mut());
        }
    }
    out
}

/// A polynomial of degree at most 127, reduced.
fn reduce(wide: [u64; 2 * DEGREE]) -> Gr {
    let (low, high) = wide.split_at(DEGREE);
    gr_reduce(low.try_into().expect("half"), high.try_into().expect("half"))
}

/// Eight groups and coefficients at a time, so that both sides stay in a few cache lines: `out[i * n + g]` becomes
/// coefficient i of item `g << vars`.
fn by_coefficient(items: &[Gr], vars: u32, n: usize, out: &mut [u64]) {
    let groups = items.len().div_ceil(1 << vars);
    for first in (0..groups).step_by(8) {
        let some: Vec<&Gr> = items[first << vars..].iter().step_by(1 << vars).take(8).collect();
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            for (out, item) in row[first..].iter_mut().zip(&some) {
                *out = item[i];
            }
        }
    }
}

/// The values at all points of polynomials in `vars` variables, `len` words a point, from their coefficients, which stand
/// at [`diagonal`].
fn extend(planes: &mut [u64], len: usize, vars: u32) {
    for j in 0..vars {
        let place = points(j);
        for e in 0..points(vars) {
            // variable j at 1, and those above it not there yet
            if e / place % 3 != 1 || (j + 1..vars).any(|k| e / points(k) % 3 == 1) {
                continue;
            }
            let (before, rest) = planes.split_at_mut(e * len);
            let (out, after) = rest.split_at_mut(len);
            let (zero, infinity) = (&before[(e - place) * len..][..len], &after[(place - 1) * len..][..len]);
            for (out, (a, b)) in out.iter_mut().zip(zero.iter().zip(infinity)) {
                *out = a.wrapping_add(*b);
            }
        }
    }
}

/// The sums of coefficient products `c[i][j]` as a polynomial, reduced.
fn collapse(c: &[u64]) -> Gr {
    let mut wide = [0u64; 2 * DEGREE];
    for (i, row) in c.chunks(DEGREE).enumerate() {
        for (w, c) in wide[i..].iter_mut().zip(row) {
            *w = w.wrapping_add(*c);
        }
    }
    reduce(wide)
}

/// The inner product of two vectors.
pub(super) fn inner(device: &dyn Device, u: &[Gr], v: &[Gr]) -> Gr {
    Gr::message(device, u, v, 0)[0]
}

/// Append the words of a column, left-shifted and padded to whole groups, times `basis`, every item times its weight where
/// there are any.
fn fold_column(
    device: &dyn Device,
    column: &[u64],
    (shift, weights): (u32, Option<&[u64]>),
    basis: &[Gr],
    items: &mut Vec<Gr>,
) {
    let k = basis.len();
    let shape = |m| LinearShape::MatMul { m, k, n: DEGREE };
    let basis: Vec<Gr> = basis.iter().map(|b| shifted(b, shift)).collect();
    let matrix = device.prepare(Ring::R64, shape(1), basis.as_flattened());
    let mut multiply = |words: &[u64], first: usize| {
        let (at, m) = (items.len(), words.len() / k);
        items.resize(at + m, Gr::ZERO);
        let out = &mut items[at..];
        device.linear_acc(Ring::R64, shape(m), words, matrix.as_ref(), out.as_flattened_mut());
        if let Some(s) = weights {
            device.fold().weigh(out, &s[first..first + m]);
        }
    };
    let (whole, rest) = column.split_at(column.len() / k * k);
    for (i, words) in whole.chunks(k * PIECE).enumerate() {
        multiply(words, i * PIECE);
    }
    if !rest.is_empty() {
        let mut last = rest.to_vec();
        last.resize(k, 0);
        multiply(&last, whole.len() / k);
    }
}

/// Items of all columns of these batches.
fn items(batches: &[Batch], basis: &[Gr]) -> usize {
    batches.iter().map(|b| b.terms * b.words.div_ceil(basis.len())).sum()
}

impl Extension for Gr {
    const ZERO: Gr = [0; DEGREE];
    const BYTES: usize = proofs::Extension::Ring.bytes();

    fn embed(bits: u64) -> Gr {
        std::array::from_fn(|i| bits >> i & 1)
    }

    fn add(self, other: Gr) -> Gr {
        std::array::from_fn(|i| self[i].wrapping_add(other[i]))
    }

    fn sub(self, other: Gr) -> Gr {
        std::array::from_fn(|i| self[i].wrapping_sub(other[i]))
    }

    fn mul(self, other: Gr) -> Gr {
        let mut wide = [0u64; 2 * DEGREE];
        for (i, a) in self.iter().enumerate() {
            for (w, b) in wide[i..].iter_mut().zip(&other) {
                *w = w.wrapping_add(a.wrapping_mul(*b));
            }
        }
        reduce(wide)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.iter().flat_map(|c| c.to_le_bytes()));
    }

    fn get(bytes: &[u8]) -> Gr {
        let mut element = Gr::ZERO;
        for (c, bytes) in element.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *c = u64::from_le_bytes(*bytes);
        }
        element
    }

    fn draw(prg: &mut Prg) -> Gr {
        let mut element = Gr::ZERO;
        prg.fill(Ring::R64, &mut element);
        element
    }

    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Gr> {
        let points = points(weights.vars);
        let mut sums = vec![Gr::ZERO; points];
        let mut values = vec![];
        // some megabytes of values
        let positions = if weights.vars > 4 { POSITIONS / 4 } else { POSITIONS };
        for (b, s) in weights.of(batches) {
            let mut part = vec![Gr::ZERO; points];
            for (i, s) in s.chunks(positions).enumerate() {
                let range = |c: &'_ [u64]| {
                    let first = (i * positions) << weights.vars;
                    first..c.len().min(first + (positions << weights.vars))
                };
                let terms: Vec<_> = b.u.iter().zip(&b.v).map(|(u, v)| (&u[range(u)], &v[range(v)])).collect();
                values.resize(points * s.len(), 0);
                device.fold().ring_values(&terms, weights.vars, &mut values);
                let shape = |m| LinearShape::MatMul { m, k: s.len(), n: DEGREE };
                let matrix: Vec<Gr> = s.iter().map(|&s| Gr::embed(s)).collect();
                let matrix = device.prepare_bytes(Ring::R64, shape(1), matrix.as_flattened());
                let out = part.as_flattened_mut();
                device.linear_acc(Ring::R64, shape(points), &values, matrix.as_ref(), out);
            }
            sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum = sum.add(shifted(part, b.shift)));
        }
        sums
    }

    fn first_fold_u(device: &dyn Device, batches: &[Batch], weights: &Weights, basis: &[Gr]) -> Vec<Gr> {
        let mut out = Vec::with_capacity(items(batches, basis));
        for (b, s) in weights.of(batches) {
            for u in &b.u {
                fold_column(device, u, (b.shift, Some(s)), basis, &mut out);
            }
        }
        out
    }

    fn first_fold_v(device: &dyn Device, batches: &[Batch], basis: &[Gr]) -> Vec<Gr> {
        let mut out = Vec::with_capacity(items(batches, basis));
        for v in batches.iter().flat_map(|b| &b.v) {
            fold_column(device, v, (0, None), basis, &mut out);
        }
        out
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gr {
        let mut total = Gr::ZERO;
        for (b, s) in weights.of(batches) {
            let column = b.s.as_ref().expect("verifiers have s");
            let sums = combine(device, 1 << weights.vars, s, |rows, positions, out| {
                let n = positions.len();
                // few positions at a time, so that their words stay in the first-level cache
                for first in positions.clone().step_by(8) {
                    for (l, out) in rows.clone().zip(out.chunks_exact_mut(n)) {
                        for (g, out) in
                            (first..positions.end.min(first + 8)).zip(&mut out[first - positions.start..])
                        {
                            *out = column.get((g << weights.vars) + l).map_or(0, |w| w << b.shift);
                        }
                    }
                }
            });
            for (sum, rho) in sums.iter().zip(&weights.rho) {
                total = total.add(times_bits(sum, *rho));
            }
        }
        total
    }

    fn join(device: &dyn Device, statements: &Statements, weights: &Weights) -> Joined<Gr> {
        let mut joined = Joined::nothing();
        for (product, coefficients) in statements.products.iter().zip(&weights.products) {
            product.join(device, coefficients, &mut joined);
        }
        joined
    }

    fn message(device: &dyn Device, u: &[Gr], v: &[Gr], vars: u32) -> Vec<Gr> {
        let (n, points) = (1 << vars, points(vars));
        let mut products = vec![[0; DEGREE * DEGREE]; points];
        // some megabytes of values
        let most = if vars > 2 { GROUPS / 4 } else { GROUPS };
        let (mut left, mut right) = (vec![], vec![]);
        for (u, v) in u.chunks(most << vars).zip(v.chunks(most << vars)) {
            let groups = u.len().div_ceil(n);
            let len = groups * DEGREE;
            // what a last group lacks is 0
            [&mut left, &mut right].into_iter().for_each(|values| values.resize(points * len, 0));
            for l in 0..n {
                let at = diagonal(l) * len..(diagonal(l) + 1) * len;
                let (left, right) = (&mut left[at.clone()], &mut right[at]);
                if u.len() < groups * n {
                    left.fill(0);
                    right.fill(0);
                }
                by_coefficient(u.get(l..).unwrap_or_default(), vars, groups, left);
                let items = v.get(l..).unwrap_or_default().iter().step_by(n);
                right.as_chunks_mut().0.iter_mut().zip(items).for_each(|(out, item)| *out = *item);
            }
            extend(&mut left, len, vars);
            extend(&mut right, len, vars);
            let shape = LinearShape::MatMul { m: DEGREE, k: groups, n: DEGREE };
            for (out, (left, right)) in products.iter_mut().zip(left.chunks(len).zip(right.chunks(len))) {
                let right = device.prepare(Ring::R64, shape, right);
                device.linear_acc(Ring::R64, shape, left, right.as_ref(), out);
            }
        }
        products.iter().map(|c| collapse(c)).collect()
    }

    fn fold(device: &dyn Device, items: &[Gr], basis: &[Gr]) -> Vec<Gr> {
        // row (l, i): basis_l Y^i
        let mut matrix = Vec::with_capacity(basis.len() * DEGREE);
        for b in basis {
            matrix.extend((0..DEGREE).map(|i| times_bits(b, 1 << i)));
        }
        let shape = |m| LinearShape::MatMul { m, k: DEGREE * basis.len(), n: DEGREE };
        let matrix = device.prepare(Ring::R64, shape(1), matrix.as_flattened());
        let mut out = vec![Gr::ZERO; items.len().div_ceil(basis.len())];
        let whole = items.len() / basis.len();
        let (groups, rest) = items.split_at(whole * basis.len());
        let multiply = |items: &[Gr], out: &mut [Gr]| {
            let (shape, x) = (shape(out.len()), items.as_flattened());
            device.linear_acc(Ring::R64, shape, x, matrix.as_ref(), out.as_flattened_mut());
        };
        if whole > 0 {
            multiply(groups, &mut out[..whole]);
        }
        if !rest.is_empty() {
            let mut last = rest.to_vec();
            last.resize(basis.len(), Gr::ZERO);
            multiply(&last, &mut out[whole..]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    /// The values at all points against the product of the groups as polynomials, point by point, also where the last group
    /// or the last piece is not whole.
    #[test]
    fn messages_of_any_length() {
        let device = privet_kernels::cpu(1);
        let mut prg = Seed::from_bytes([5; 16]).stream();
        for (vars, lens) in
            [(0, vec![1, 3, 300]), (2, vec![1, 4, 7, 1030]), (3, vec![9, 523]), (4, vec![5, 16, 40])]
        {
            for len in lens {
                let mut draw = || (0..len).map(|_| Gr::draw(&mut prg)).collect::<Vec<Gr>>();
                let (u, v) = (draw(), draw());
                let found = Gr::message(device.as_ref(), &u, &v, vars);
                assert_eq!(found.len(), points(vars));
                for e in [0, 1, 4, points(vars) / 2, points(vars) - 1] {
                    let Some(found) = found.get(e) else { continue };
                    let value = |group: &[Gr]| {
                        let counts = |l: usize, j: u32| match e / points(j) % 3 {
                            0 => l >> j & 1 == 0,
                            1 => true,
                            _ => l >> j & 1 == 1,
                        };
                        let at = (0..group.len()).filter(|l| (0..vars).all(|j| counts(*l, j)));
                        at.fold(Gr::ZERO, |sum, l| sum.add(group[l]))
                    };
                    let groups = u.chunks(1 << vars).zip(v.chunks(1 << vars));
                    let expected = groups.fold(Gr::ZERO, |sum, (u, v)| sum.add(value(u).mul(value(v))));
                    assert_eq!(*found, expected, "{len} items, {vars} variables, point {e}");
                }
            }
        }
    }
}

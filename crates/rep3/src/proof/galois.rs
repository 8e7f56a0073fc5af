//! Ring elements: statements over Z_2^64 in the Galois ring Z_2^64\[Y\]/(Y^64 + Y^4 + Y^3 + Y + 1).
//!
//! What costs time here are matrix products over Z_2^64, on the device: with a matrix of random bits, with the matrix of
//! a multiplication, or of coefficients with coefficients.

use super::batch::{Batch, Statements, Weights};
use super::extension::Extension;
use super::products::Joined;
use super::tensor;
use privet_kernels::fold::{gr_reduce, gr_times_bits, points};
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

/// Groups of one product of [`Gr::message`].
const GROUPS: usize = 512;

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
        let matrix = device.prepare(Ring::R64, shape(1), matrix.as_flattened());
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

/// Coefficients by coefficient: row i has every element's coefficient i.
fn by_coefficient(items: &[Gr]) -> Vec<u64> {
    let n = items.len();
    let mut out = vec![0; DEGREE * n];
    // few rows at a time, so that they stay in the first-level cache
    for first in (0..DEGREE).step_by(8) {
        for (g, item) in items.iter().enumerate() {
            for i in first..first + 8 {
                out[i * n + g] = item[i];
            }
        }
    }
    out
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

/// The words of a column, left-shifted and padded to whole groups, times `basis`.
fn fold_column(device: &dyn Device, column: &[u64], shift: u32, basis: &[Gr], items: &mut Vec<Gr>) {
    let k = basis.len();
    let shape = |m| LinearShape::MatMul { m, k, n: DEGREE };
    let weights = device.prepare(Ring::R64, shape(1), basis.as_flattened());
    for words in column.chunks(k * POSITIONS) {
        let mut words: Vec<u64> = words.iter().map(|w| w << shift).collect();
        words.resize(words.len().next_multiple_of(k), 0);
        let (at, m) = (items.len(), words.len() / k);
        items.resize(at + m, Gr::ZERO);
        let out = items[at..].as_flattened_mut();
        device.linear_acc(Ring::R64, shape(m), &words, weights.as_ref(), out);
    }
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
            for (i, s) in s.chunks(positions).enumerate() {
                let part = |c: &'_ [u64]| {
                    let first = (i * positions) << weights.vars;
                    first..c.len().min(first + (positions << weights.vars))
                };
                let terms: Vec<_> = b.u.iter().zip(&b.v).map(|(u, v)| (&u[part(u)], &v[part(v)])).collect();
                values.resize(points * s.len(), 0);
                device.fold().ring_values(&terms, weights.vars, &mut values);
                let part = combine(device, points, s, |rows, positions, out| {
                    debug_assert_eq!(positions.len(), s.len());
                    let values = &values[rows.start * s.len()..rows.end * s.len()];
                    out.iter_mut().zip(values).for_each(|(out, z)| *out = z << b.shift);
                });
                sums.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.add(part));
            }
        }
        sums
    }

    fn first_fold_u(device: &dyn Device, batches: &[Batch], weights: &Weights, basis: &[Gr]) -> Vec<Gr> {
        let mut items = vec![];
        for (b, s) in weights.of(batches) {
            for u in &b.u {
                let at = items.len();
                fold_column(device, u, b.shift, basis, &mut items);
                device.fold().weigh(&mut items[at..], s);
            }
        }
        items
    }

    fn first_fold_v(device: &dyn Device, batches: &[Batch], basis: &[Gr]) -> Vec<Gr> {
        let mut items = vec![];
        for v in batches.iter().flat_map(|b| &b.v) {
            fold_column(device, v, 0, basis, &mut items);
        }
        items
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gr {
        let mut total = Gr::ZERO;
        for (b, s) in weights.of(batches) {
            let column = b.s.as_ref().expect("verifiers have s");
            let sums = combine(device, 1 << weights.vars, s, |rows, positions, out| {
                for (l, out) in rows.zip(out.chunks_mut(positions.len())) {
                    for (g, out) in positions.clone().zip(out) {
                        *out = column.get((g << weights.vars) + l).map_or(0, |w| w << b.shift);
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
        let mut values = vec![];
        for e in 0..points(vars) {
            let mut products = [0; DEGREE * DEGREE];
            for (u, v) in u.chunks(GROUPS << vars).zip(v.chunks(GROUPS << vars)) {
                let groups = u.len().div_ceil(1 << vars);
                let shape = LinearShape::MatMul { m: DEGREE, k: groups, n: DEGREE };
                let values = |items: &[Gr]| -> Vec<Gr> {
                    items.chunks(1 << vars).map(|group| tensor::value(group, vars, e)).collect()
                };
                let (left, right) = (by_coefficient(&values(u)), values(v));
                let right = device.prepare(Ring::R64, shape, right.as_flattened());
                device.linear_acc(Ring::R64, shape, &left, right.as_ref(), &mut products);
            }
            values.push(collapse(&products));
        }
        values
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

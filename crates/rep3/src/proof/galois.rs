//! Ring elements: statements over Z_2^64 in two Galois rings side by side, each Z_2^64\[Y\]/(Y^32 + Y^7 + Y^3 + Y^2 + 1). A statement
//! stands in both, and each has random coefficients of its own: a proof that should not pass would have to pass twice.
//!
//! What costs time here, on the device: matrix products over Z_2^64, of words with powers of a point and of values with random
//! bits; sums of words chosen by random bits; products and folds of elements.

use super::batch::{Batch, Factor, Weights};
use super::extension::Extension;
use super::outer::Sums;
use super::products::Combined;
use super::words::FoldedWords;
use crate::price::proofs;
use privet_family::Secret;
use privet_kernels::Device;
use privet_kernels::fold::{Powers, RINGS, gr_reduce, points};
use privet_prg::Prg;
use privet_ring::Ring;

/// Coefficients of an element, of both rings.
pub(super) const DEGREE: usize = 64;

/// An element of both rings: coefficient k of ring h is word 2 k + h.
pub(super) type Gr = [u64; DEGREE];

/// Blocks of words at a time: what is made of them stays in the second-level cache.
pub(super) const BLOCKS: usize = 128;

/// Terms whose values are added before they meet a matrix: they stand side by side until then.
const TERMS: usize = 16;

/// What a statement modulo 2^k is multiplied by, 2^(64-k), times every coefficient. What stood above the low k bits is gone: all
/// that is computed before this needs no more of them.
pub(super) fn shift(a: &mut Gr, ring: Ring) {
    if ring != Ring::R64 {
        a.iter_mut().for_each(|c| *c <<= 64 - ring.bits());
    }
}

/// The low k bits of every coefficient. Whatever computed them, both holders have the same: what is above the bits of a ring differs
/// from device to device, and would count in products with coefficients of other statements.
pub(super) fn reduce_to(a: &mut Gr, ring: Ring) {
    if ring != Ring::R64 {
        a.iter_mut().for_each(|c| *c = ring.wrap(*c));
    }
}

/// [`shift`] of a copy.
fn shifted(a: &Gr, ring: Ring) -> Gr {
    let mut a = *a;
    shift(&mut a, ring);
    a
}

/// Polynomials of degree at most 63 in both rings, reduced.
pub(super) fn reduce(wide: [u64; 2 * DEGREE]) -> Gr {
    let (low, high) = wide.split_at(DEGREE);
    gr_reduce(low.try_into().expect("half"), high.try_into().expect("half"))
}

/// One product; of many [`inner`] is faster.
pub(super) fn product(a: &Gr, b: &Gr) -> Gr {
    let mut wide = [0u64; 2 * DEGREE];
    for (i, a) in a.iter().enumerate() {
        let of_ring = b[i % RINGS..].iter().step_by(RINGS);
        for (w, b) in wide[i..].iter_mut().step_by(RINGS).zip(of_ring) {
            *w = w.wrapping_add(a.wrapping_mul(*b));
        }
    }
    reduce(wide)
}

/// The inner product of two vectors of elements that have no other powers.
pub(super) fn inner(device: &dyn Device, u: &[Gr], v: &[Gr], powers: Powers) -> Gr {
    if u.is_empty() {
        return Gr::ZERO;
    }
    let mut sum = [[0; 2 * DEGREE]];
    device.fold().products(u, v, powers, u.len(), &mut sum);
    reduce(sum[0])
}

/// The rings of these batches, each once.
fn rings(batches: &[Batch]) -> Vec<Ring> {
    let mut rings: Vec<Ring> = batches.iter().map(|b| b.ring).collect();
    rings.sort_by_key(|ring| ring.bits());
    rings.dedup();
    rings
}

/// What there is of one ring, made where there is nothing yet.
pub(super) fn of_ring<T>(rings: &mut Vec<(Ring, T)>, ring: Ring, make: impl FnOnce() -> T) -> &mut T {
    let place = rings.iter().position(|(r, _)| *r == ring).unwrap_or_else(|| {
        rings.push((ring, make()));
        rings.len() - 1
    });
    &mut rings[place].1
}

impl Extension for Gr {
    const ZERO: Gr = [0; DEGREE];
    const ONE: u64 = proofs::Extension::Ring.one();
    const BYTES: usize = proofs::Extension::Ring.bytes();
    type Folded = FoldedWords;
    type Joining = Combined;

    fn embed(bits: u64) -> Gr {
        std::array::from_fn(|i| bits >> i & 1)
    }

    fn add(self, other: Gr) -> Gr {
        std::array::from_fn(|i| self[i].wrapping_add(other[i]))
    }

    fn sub(self, other: Gr) -> Gr {
        std::array::from_fn(|i| self[i].wrapping_sub(other[i]))
    }

    fn times(device: &dyn Device, items: &mut [Gr], bits: u64) {
        device.fold().weigh(items, &vec![bits; items.len()]);
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

    fn draw(prg: &mut Prg, n: usize) -> Vec<Gr> {
        let mut elements = vec![Gr::ZERO; n];
        prg.fill(Ring::R64, elements.as_flattened_mut());
        elements
    }

    fn first_message(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Vec<Gr> {
        let [first, second] = weights.vars;
        let (points, block) = (points(first), 1usize << (first + second));
        // a place for every group of a block: their sigma is the same
        let mut total = vec![Gr::ZERO; points << second];
        let (mut sums, mut scratch) = (vec![], vec![]);
        let mut factors = vec![<[Secret; 2]>::default(); TERMS];
        for ring in rings(batches) {
            sums.clear();
            sums.resize(points << second, Gr::ZERO);
            for (b, s) in weights.of(batches).filter(|(b, _)| b.ring == ring) {
                for (j, s) in s.chunks(BLOCKS).enumerate() {
                    let piece = j * BLOCKS * block..b.words.min((j + 1) * BLOCKS * block);
                    let terms: Vec<_> = b.factors().collect();
                    for terms in terms.chunks(TERMS) {
                        let words: Vec<[&[u64]; 2]> = terms
                            .iter()
                            .zip(&mut factors)
                            .map(|((l, r), [left, right])| {
                                [l.words(piece.clone(), left), r.words(piece.clone(), right)]
                            })
                            .collect();
                        for (i, sums) in sums.chunks_mut(points).enumerate() {
                            let start = i << first;
                            if start >= piece.len() {
                                break;
                            }
                            let terms: Vec<_> =
                                words.iter().map(|[l, r]| (&l[start..], &r[start..])).collect();
                            device.fold().ring_values(
                                &terms,
                                first,
                                (s.len(), block),
                                &mut scratch,
                                &mut |e, values| {
                                    let out = &mut sums[e..e + values.len() / s.len()];
                                    device.fold().rows_combine(values, [1, s.len()], s, out);
                                },
                            );
                        }
                    }
                }
            }
            total.iter_mut().zip(&sums).for_each(|(total, sum)| *total = total.add(shifted(sum, ring)));
        }
        for (sums, sigma) in total.chunks_mut(points).zip(&weights.sigma) {
            Gr::times(device, sums, *sigma);
        }
        let (values, rest) = total.split_at_mut(points);
        for sums in rest.chunks(points) {
            values.iter_mut().zip(sums).for_each(|(value, sum)| *value = value.add(*sum));
        }
        total.truncate(points);
        total
    }

    fn second_message(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        first: &[u64],
        folded: &mut FoldedWords,
    ) -> (Vec<Gr>, [Vec<Gr>; 2]) {
        let vars = weights.vars[1];
        let mut total = vec![Gr::ZERO; points(vars)];
        for ring in rings(batches) {
            let of_ring = weights.of(batches).filter(|(b, _)| b.ring == ring);
            let values = folded.second_values(device, batches, first, vars, of_ring);
            total.iter_mut().zip(&values).for_each(|(total, value)| *total = total.add(shifted(value, ring)));
        }
        (total, [vec![], vec![]])
    }

    fn words_left(
        device: &dyn Device,
        batches: &[Batch],
        weights: &Weights,
        points: [&[u64]; 2],
        folded: &mut FoldedWords,
    ) -> Vec<Gr> {
        folded.both(device, batches, points);
        let mut items = vec![];
        for (b, s) in weights.of(batches) {
            for left in b.operands(Factor::Left).flatten() {
                let at = items.len();
                folded.append(left, &mut items);
                device.fold().weigh(&mut items[at..], s);
                items[at..].iter_mut().for_each(|item| shift(item, b.ring));
            }
        }
        items
    }

    fn words_right(
        device: &dyn Device,
        batches: &[Batch],
        points: [&[u64]; 2],
        folded: &mut FoldedWords,
    ) -> Vec<Gr> {
        // of all bits: the prover's factor is to be exactly the sum of the verifiers', as it also meets factors of other rings
        folded.both(device, batches, points);
        let mut items = vec![];
        let right = batches.iter().flat_map(|b| b.operands(Factor::Right).flatten());
        right.for_each(|right| folded.append(right, &mut items));
        items
    }

    fn combine(device: &dyn Device, batches: &[Batch], weights: &Weights) -> Gr {
        let block = 1usize << weights.vars.iter().sum::<u32>();
        let mut by_ring = vec![];
        for (b, s) in weights.of(batches) {
            let column = b.rest_column().expect("a verifier's batch");
            let sums = of_ring(&mut by_ring, b.ring, || vec![Gr::ZERO; block]);
            // the last block need not be whole
            let (words, last) = column.split_at(column.len() / block * block);
            let (s, s_last) = s.split_at(words.len() / block);
            device.fold().rows_combine(words, [block, 1], s, sums);
            device.fold().rows_combine(last, [block, 1], s_last, &mut sums[..last.len()]);
        }
        let mut total = Gr::ZERO;
        for (ring, mut sums) in by_ring {
            for (sums, sigma) in sums.chunks_mut(weights.rho.len()).zip(&weights.sigma) {
                device.fold().weigh(sums, &weights.rho);
                let mut sum = [sums.iter().fold(Gr::ZERO, |sum, term| sum.add(*term))];
                Gr::times(device, &mut sum, *sigma);
                total = total.add(shifted(&sum[0], ring));
            }
        }
        total
    }

    fn inner(device: &dyn Device, left: &[Gr], right: &[Gr]) -> Gr {
        inner(device, left, right, Powers::All)
    }

    fn message(device: &dyn Device, left: &[Gr], right: &[Gr], vars: u32) -> Vec<Gr> {
        let mut sums = Sums::new(vars, Powers::All);
        sums.add(device, left, right);
        sums.finish()
    }

    fn fold(device: &dyn Device, items: &[Gr], r: &[u64]) -> Vec<Gr> {
        let mut out = Vec::with_capacity(items.len().div_ceil(1 << r.len()));
        device.fold().ring_fold(items, r, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    /// The values at all points but the first against the product of the groups as polynomials, point by point, also where the
    /// last group or the last piece is not whole; and inner products.
    #[test]
    fn messages_of_any_length() {
        let device = privet_kernels::cpu(1);
        let mut prg = Seed::from_bytes([5; 16]).stream();
        for (vars, lens) in
            [(1, vec![1, 3, 300]), (2, vec![1, 4, 7, 1030]), (3, vec![9, 523]), (4, vec![5, 16, 40])]
        {
            for len in lens {
                let mut draw = || Gr::draw(&mut prg, len);
                let (u, v) = (draw(), draw());
                let found = Gr::message(device.as_ref(), &u, &v, vars);
                assert_eq!(found.len(), points(vars));
                let products = u.iter().zip(&v).map(|(u, v)| product(u, v));
                assert_eq!(
                    inner(device.as_ref(), &u, &v, Powers::All),
                    products.fold(Gr::ZERO, Gr::add),
                    "{len} items"
                );
                for e in [1, 2, 4, points(vars) / 2, points(vars) - 1] {
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
                    let expected =
                        groups.fold(Gr::ZERO, |sum, (u, v)| sum.add(product(&value(u), &value(v))));
                    assert_eq!(*found, expected, "{len} items, {vars} variables, point {e}");
                }
            }
        }
    }
}

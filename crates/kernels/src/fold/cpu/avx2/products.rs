//! Sums of products of elements of both Galois rings as polynomials, four at a time, one a lane.
//!
//! Karatsuba's method is used three times in each ring: 27 products of polynomials of 4 coefficients instead of 64. There is no 64-bit product: it takes
//! three of 32 bits, those of lower and upper halves added up before they are shifted. The method is linear in every product, so those of
//! all pairs of a sum are added up before they are put together, but for the last two levels.

use super::V;
use super::lanes::{Four, LANES, gather, load, store, transpose};
use crate::fold::{Element, GROUP, Powers, RINGS, Strided, Wide};
use std::arch::x86_64::*;

/// Coefficients of a part, half of a ring's.
const PART: usize = GROUP / RINGS / 2;
/// Coefficients whose products' sums stay in registers.
const TILE: usize = PART / 4;

/// The parts of four polynomials with which Karatsuba's method multiplies: of each ring their lower half, upper half and sum of both.
type Parts = [[[V; PART]; 3]; RINGS];

/// What is needed for four pairs after another.
struct Work {
    x: Four,
    parts: [Parts; 2],
    /// Products of parts.
    products: [[[V; 2 * PART]; 3]; RINGS],
    wide: [V; 2 * GROUP],
}

impl Work {
    #[target_feature(enable = "avx2")]
    fn new() -> Work {
        let zero = _mm256_setzero_si256();
        Work {
            x: [zero; GROUP],
            parts: [[[[zero; PART]; 3]; RINGS]; 2],
            products: [[[zero; 2 * PART]; 3]; RINGS],
            wide: [zero; 2 * GROUP],
        }
    }

    /// Add the products of four pairs, or begin with them.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(&mut self, a: &[Element], b: &[Element], stride: usize, first: bool) {
        for (elements, parts) in [a, b].into_iter().zip(&mut self.parts) {
            gather(elements, stride, &mut self.x);
            split(&self.x, parts);
        }
        let [a, b] = &self.parts;
        let parts = a.as_flattened().iter().zip(b.as_flattened());
        for ((a, b), product) in parts.zip(self.products.as_flattened_mut()) {
            multiply_add(a, b, first, product);
        }
    }

    /// Put together what has come.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn put_together(&mut self) {
        for (ring, [low, high, both]) in self.products.iter().enumerate() {
            let mut whole = [_mm256_setzero_si256(); 4 * PART];
            join(low, high, both, &mut whole);
            let of_ring = self.wide.iter_mut().skip(ring).step_by(RINGS);
            of_ring.zip(whole).for_each(|(wide, word)| *wide = word);
        }
    }

    /// Add what has come to a sum.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn finish(&mut self, sum: &mut Wide) {
        self.put_together();
        for (i, four) in self.wide.as_chunks().0.iter().enumerate() {
            let [a, b, c, d] = transpose(*four);
            add(_mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)), sum, i);
        }
    }
}

/// See [`crate::fold::FoldPath::products_of_some`]; there is at least one group.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn products_of_some(
    operands: &[Strided],
    _powers: Powers,
    groups: usize,
    sums: &mut [Wide],
) {
    let mut work = Work::new();
    for (Strided { a, b, stride }, sum) in operands.iter().zip(sums) {
        for first in (0..groups).step_by(LANES) {
            let end = groups.min(first + LANES);
            let some = |of: &[Element]| of.len().min(first * stride)..of.len().min(end * stride);
            work.add(&a[some(a)], &b[some(b)], *stride, first == 0);
        }
        work.finish(sum);
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn products(
    a: &[Element],
    b: &[Element],
    _powers: Powers,
    groups: usize,
    sums: &mut [Wide],
) {
    let mut work = Work::new();
    if groups < LANES {
        // pairs of several sums in a register
        for (first, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            work.add(a, b, 1, true);
            work.put_together();
            let of_lane: [usize; LANES] = std::array::from_fn(|lane| (first * LANES + lane) / groups);
            for (i, four) in work.wide.as_chunks().0.iter().enumerate() {
                for (sum, words) in of_lane[..a.len()].iter().zip(transpose(*four)) {
                    add(words, &mut sums[*sum], i);
                }
            }
        }
        return;
    }
    for ((a, b), sum) in a.chunks(groups).zip(b.chunks(groups)).zip(sums) {
        for (i, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            work.add(a, b, 1, i == 0);
        }
        work.finish(sum);
    }
}

/// Add to register i of a sum's words.
#[target_feature(enable = "avx2")]
#[inline]
fn add(words: V, sum: &mut Wide, i: usize) {
    let sum = &mut sum.as_chunks_mut().0[i];
    store(sum, _mm256_add_epi64(load(sum), words));
}

#[target_feature(enable = "avx2")]
#[inline]
fn split(x: &Four, parts: &mut Parts) {
    for (ring, [lower, upper, both]) in parts.iter_mut().enumerate() {
        for k in 0..PART {
            (lower[k], upper[k]) = (x[RINGS * k + ring], x[RINGS * (PART + k) + ring]);
            both[k] = _mm256_add_epi64(lower[k], upper[k]);
        }
    }
}

/// The product of polynomials from those of their lower halves, their upper halves and the sums of both.
#[target_feature(enable = "avx2")]
#[inline]
fn join(low: &[V], high: &[V], both: &[V], out: &mut [V]) {
    let n = low.len();
    let (lower, upper) = out.split_at_mut(n);
    lower.copy_from_slice(low);
    upper.copy_from_slice(high);
    for k in 0..n {
        let middle = _mm256_sub_epi64(both[k], _mm256_add_epi64(low[k], high[k]));
        out[n / 2 + k] = _mm256_add_epi64(out[n / 2 + k], middle);
    }
}

/// Add the product of two parts, made of nine products of tiles.
#[target_feature(enable = "avx2")]
#[inline]
fn multiply_add(x: &[V; PART], y: &[V; PART], first: bool, wide: &mut [V; 2 * PART]) {
    let zero = _mm256_setzero_si256();
    let sums =
        |x: &[V; PART]| -> [V; PART / 2] { std::array::from_fn(|k| _mm256_add_epi64(x[k], x[PART / 2 + k])) };
    let (mut low, mut high, mut both, mut product) =
        ([zero; PART], [zero; PART], [zero; PART], [zero; 2 * PART]);
    half(x[..PART / 2].first_chunk().expect("half"), y[..PART / 2].first_chunk().expect("half"), &mut low);
    half(x[PART / 2..].first_chunk().expect("half"), y[PART / 2..].first_chunk().expect("half"), &mut high);
    half(&sums(x), &sums(y), &mut both);
    join(&low, &high, &both, &mut product);
    for (wide, word) in wide.iter_mut().zip(product) {
        *wide = if first { word } else { _mm256_add_epi64(*wide, word) };
    }
}

/// The product of two halves of parts, made of three products of tiles.
#[target_feature(enable = "avx2")]
fn half(x: &[V; 2 * TILE], y: &[V; 2 * TILE], product: &mut [V; 4 * TILE]) {
    let (x, y) = (x.as_chunks::<TILE>().0, y.as_chunks::<TILE>().0);
    let sum = |x: &[[V; TILE]]| -> [V; TILE] { std::array::from_fn(|k| _mm256_add_epi64(x[0][k], x[1][k])) };
    join(&tile(&x[0], &y[0]), &tile(&x[1], &y[1]), &tile(&sum(x), &sum(y)), product);
}

/// The product of two tiles: of the lower halves of their words, and of lower and upper ones.
#[target_feature(enable = "avx2")]
#[inline]
fn tile(x: &[V; TILE], y: &[V; TILE]) -> [V; 2 * TILE] {
    let upper = |x: &[V; TILE]| -> [V; TILE] { std::array::from_fn(|k| _mm256_srli_epi64::<32>(x[k])) };
    let (x_upper, y_upper) = (upper(x), upper(y));
    let mut sums = [_mm256_setzero_si256(); 2 * TILE];
    add_products(&x_upper, y, &mut sums);
    add_products(x, &y_upper, &mut sums);
    sums = sums.map(|sum| _mm256_slli_epi64::<32>(sum));
    add_products(x, y, &mut sums);
    sums
}

/// Add the products of the lower halves of all words.
#[target_feature(enable = "avx2")]
#[inline]
fn add_products(x: &[V; TILE], y: &[V; TILE], sums: &mut [V; 2 * TILE]) {
    for (p, x) in x.iter().enumerate() {
        for (q, y) in y.iter().enumerate() {
            sums[p + q] = _mm256_add_epi64(sums[p + q], _mm256_mul_epu32(*x, *y));
        }
    }
}

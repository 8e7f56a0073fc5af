//! Sums of products of elements of both Galois rings as polynomials, eight at a time, one a lane.
//!
//! A 64-bit product is the slowest instruction here and a sum costs next to nothing, so Karatsuba's method is used twice in each ring:
//! 9 products of polynomials of 8 coefficients instead of 16. It is linear in every product, so those of
//! all pairs of a sum are added up before they are put together, but for the last level, which would not stay in the first-level cache.

use super::V;
use super::lanes::{Eight, LANES, gather, load, store, transpose};
use crate::fold::{Element, GROUP, RINGS, Strided, Wide};
use std::arch::x86_64::*;

/// Coefficients handled together, so that their sums stay in registers.
const TILE: usize = 8;

/// Coefficients of a part, half of a ring's.
const PART: usize = GROUP / RINGS / 2;
const TILES: usize = PART / TILE;
const _: () = assert!(TILES == 2);

/// The parts of eight polynomials with which Karatsuba's method multiplies: of each ring their lower half, upper half and sum of both.
type Parts = [[[V; PART]; 3]; RINGS];

/// Products of [`Parts`].
type WideParts = [[[V; 2 * PART]; 3]; RINGS];
type EightWide = [V; 2 * GROUP];

/// What is needed for eight pairs after another.
struct Work {
    x: Eight,
    parts: [Parts; 2],
    products: WideParts,
    wide: EightWide,
}

impl Work {
    #[target_feature(enable = "avx512f")]
    fn new() -> Work {
        let zero = _mm512_setzero_si512();
        Work {
            x: [zero; GROUP],
            parts: [[[[zero; PART]; 3]; RINGS]; 2],
            products: [[[zero; 2 * PART]; 3]; RINGS],
            wide: [zero; 2 * GROUP],
        }
    }

    /// Add the products of eight pairs, or begin with them.
    #[target_feature(enable = "avx512f,avx512dq")]
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

    /// Add what has come together to a sum.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn finish(&mut self, sum: &mut Wide) {
        put_together(&self.products, &mut self.wide);
        for (i, tile) in self.wide.as_chunks::<TILE>().0.iter().enumerate() {
            let zero = _mm512_setzero_si512();
            let words = transpose(*tile).into_iter().fold(zero, |sum, words| _mm512_add_epi64(sum, words));
            add(words, sum, i);
        }
    }
}

/// See [`crate::fold::FoldPath::products_of_some`]; there is at least one group.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn products_of_some(operands: &[Strided], groups: usize, sums: &mut [Wide]) {
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
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn products(a: &[Element], b: &[Element], groups: usize, sums: &mut [Wide]) {
    let mut work = Work::new();
    if groups < LANES {
        // pairs of several sums in a register
        for (first, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            work.add(a, b, 1, true);
            put_together(&work.products, &mut work.wide);
            let of_lane: [usize; LANES] = std::array::from_fn(|lane| (first * LANES + lane) / groups);
            for (i, tile) in work.wide.as_chunks::<TILE>().0.iter().enumerate() {
                for (sum, words) in of_lane[..a.len()].iter().zip(transpose(*tile)) {
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
#[target_feature(enable = "avx512f")]
#[inline]
fn add(words: V, sum: &mut Wide, i: usize) {
    let sum = &mut sum.as_chunks_mut().0[i];
    store(sum, _mm512_add_epi64(load(sum), words));
}

#[target_feature(enable = "avx512f")]
#[inline]
fn split(x: &Eight, parts: &mut Parts) {
    for (ring, [lower, upper, both]) in parts.iter_mut().enumerate() {
        for (k, ((lower, upper), both)) in lower.iter_mut().zip(upper).zip(both).enumerate() {
            (*lower, *upper) = (x[RINGS * k + ring], x[RINGS * (PART + k) + ring]);
            *both = _mm512_add_epi64(*lower, *upper);
        }
    }
}

/// Put products together.
#[target_feature(enable = "avx512f")]
#[inline]
fn put_together(products: &WideParts, wide: &mut EightWide) {
    // the parts of a polynomial are whole tiles: one coefficient of all tiles at a time, so that all stays in registers
    for k in 0..TILE {
        for (ring, products) in products.iter().enumerate() {
            let column =
                |part: usize| -> [V; 2 * TILES] { std::array::from_fn(|t| products[part][TILE * t + k]) };
            let mut whole = [_mm512_setzero_si512(); 2 * TILES * 2];
            join(&column(0), &column(1), &column(2), &mut whole);
            for (t, word) in whole.into_iter().enumerate() {
                wide[RINGS * (TILE * t + k) + ring] = word;
            }
        }
    }
}

/// The product of polynomials from those of their lower halves, their upper halves and the sums of both.
#[target_feature(enable = "avx512f")]
#[inline]
fn join(low: &[V], high: &[V], both: &[V], out: &mut [V]) {
    let n = low.len();
    for k in 0..n {
        (out[k], out[n + k]) = (low[k], high[k]);
    }
    for k in 0..n {
        let middle = _mm512_sub_epi64(both[k], _mm512_add_epi64(low[k], high[k]));
        out[n / 2 + k] = _mm512_add_epi64(out[n / 2 + k], middle);
    }
}

/// Add the product of two parts, made of three products of tiles.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply_add(x: &[V; PART], y: &[V; PART], first: bool, wide: &mut [V; 2 * PART]) {
    let (x, y) = (x.as_chunks::<TILE>().0, y.as_chunks::<TILE>().0);
    let sum = |x: &[[V; TILE]]| std::array::from_fn(|k| _mm512_add_epi64(x[0][k], x[1][k]));
    let (low, high, both) = (tile(&x[0], &y[0]), tile(&x[1], &y[1]), tile(&sum(x), &sum(y)));
    let mut product = [_mm512_setzero_si512(); 2 * PART];
    join(&low, &high, &both, &mut product);
    for (wide, word) in wide.iter_mut().zip(product) {
        *wide = if first { word } else { _mm512_add_epi64(*wide, word) };
    }
}

/// The product of two tiles, whose sums stay in registers.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn tile(x: &[V; TILE], y: &[V; TILE]) -> [V; 2 * TILE] {
    let mut sums = [_mm512_setzero_si512(); 2 * TILE];
    for (p, x) in x.iter().enumerate() {
        for (q, y) in y.iter().enumerate() {
            sums[p + q] = _mm512_add_epi64(sums[p + q], _mm512_mullo_epi64(*x, *y));
        }
    }
    sums
}

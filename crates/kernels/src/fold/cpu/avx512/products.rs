//! Sums of products of elements of the Galois ring as polynomials, eight at a time, one a lane.
//!
//! A 64-bit product is the slowest instruction here and a sum costs next to nothing, so Karatsuba's method is used twice:
//! nine products of polynomials of 16 coefficients instead of sixteen. It is linear in every product, so those of
//! all pairs of a sum are added up before they are put together.

use super::V;
use super::lanes::{Eight, LANES, gather, load, store, transpose};
use crate::fold::{Element, GROUP, Wide};
use std::arch::x86_64::*;

/// Coefficients handled together, so that their sums stay in registers.
const TILE: usize = 8;

/// Coefficients of a part.
const PART: usize = GROUP / 4;
const TILES: usize = PART / TILE;

/// The parts of eight polynomials with which Karatsuba's method multiplies: of the lower half, the upper half and the sum
/// of both their lower half, upper half and sum of both.
type Parts = [[[V; PART]; 3]; 3];

/// Products of [`Parts`].
type WideParts = [[[V; 2 * PART]; 3]; 3];
type EightWide = [V; 2 * GROUP];

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::fold::cpu) unsafe fn products(a: &[Element], b: &[Element], groups: usize, sums: &mut [Wide]) {
    let zero = _mm512_setzero_si512();
    let mut x: Eight = [zero; GROUP];
    let mut parts: [Parts; 2] = [[[[zero; PART]; 3]; 3]; 2];
    let mut products: WideParts = [[[zero; 2 * PART]; 3]; 3];
    let mut wide: EightWide = [zero; 2 * GROUP];
    let mut add_products = |a: &[Element], b: &[Element], first: bool, products: &mut WideParts| {
        for (elements, parts) in [a, b].into_iter().zip(&mut parts) {
            gather(elements, 1, &mut x);
            split(&x, parts);
        }
        let [a, b] = &parts;
        let parts = a.as_flattened().iter().zip(b.as_flattened());
        for ((a, b), product) in parts.zip(products.as_flattened_mut()) {
            multiply_add(a, b, first, product);
        }
    };
    if groups < LANES {
        // pairs of several sums in a register
        for (first, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            add_products(a, b, true, &mut products);
            put_together(&products, &mut wide);
            let of_lane: [usize; LANES] = std::array::from_fn(|lane| (first * LANES + lane) / groups);
            for (i, tile) in wide.as_chunks::<TILE>().0.iter().enumerate() {
                for (sum, words) in of_lane[..a.len()].iter().zip(transpose(*tile)) {
                    add(words, &mut sums[*sum], i);
                }
            }
        }
        return;
    }
    for ((a, b), sum) in a.chunks(groups).zip(b.chunks(groups)).zip(sums) {
        for (i, (a, b)) in a.chunks(LANES).zip(b.chunks(LANES)).enumerate() {
            add_products(a, b, i == 0, &mut products);
        }
        put_together(&products, &mut wide);
        for (i, tile) in wide.as_chunks::<TILE>().0.iter().enumerate() {
            let words = transpose(*tile).into_iter().fold(zero, |sum, words| _mm512_add_epi64(sum, words));
            add(words, sum, i);
        }
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
    let (low, high) = x.split_at(GROUP / 2);
    let at = |half: usize, k: usize| match half {
        0 => low[k],
        1 => high[k],
        _ => _mm512_add_epi64(low[k], high[k]),
    };
    for (half, [lower, upper, both]) in parts.iter_mut().enumerate() {
        for (k, ((lower, upper), both)) in lower.iter_mut().zip(upper).zip(both).enumerate() {
            (*lower, *upper) = (at(half, k), at(half, PART + k));
            *both = _mm512_add_epi64(*lower, *upper);
        }
    }
}

/// Put products together.
#[target_feature(enable = "avx512f")]
#[inline]
fn put_together(products: &WideParts, wide: &mut EightWide) {
    let zero = _mm512_setzero_si512();
    // the parts of a polynomial are whole tiles: one coefficient of all tiles at a time, so that all stays in registers
    for k in 0..TILE {
        let mut halves = [[zero; 2 * TILES * 2]; 3];
        for (products, half) in products.iter().zip(&mut halves) {
            let column =
                |part: usize| -> [V; 2 * TILES] { std::array::from_fn(|t| products[part][TILE * t + k]) };
            join(&column(0), &column(1), &column(2), half);
        }
        let mut column = [zero; 2 * GROUP / TILE];
        join(&halves[0], &halves[1], &halves[2], &mut column);
        for (t, word) in column.into_iter().enumerate() {
            wide[TILE * t + k] = word;
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

/// Tile d of the sums gets its lower half from tiles i and d - i, its upper half belongs to tile d + 1.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn multiply_add(x: &[V; PART], y: &[V; PART], first: bool, wide: &mut [V; 2 * PART]) {
    let (x, y) = (x.as_chunks::<TILE>().0, y.as_chunks::<TILE>().0);
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; 2 * TILE];
    for (d, out) in wide.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        for i in d.saturating_sub(TILES - 1)..TILES.min(d + 1) {
            for (p, x) in x[i].iter().enumerate() {
                for (q, y) in y[d - i].iter().enumerate() {
                    sums[p + q] = _mm512_add_epi64(sums[p + q], _mm512_mullo_epi64(*x, *y));
                }
            }
        }
        let (low, high) = sums.split_at_mut(TILE);
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            *out = if first { *low } else { _mm512_add_epi64(*out, *low) };
            (*low, *high) = (*high, zero);
        }
    }
}

//! Sums of products of elements of both Galois rings, four at a time.
//!
//! There is no 64-bit product: it takes three of 32 bits, those of lower and upper halves added up before they are shifted.

use super::V;
use super::lanes::{Four, LANES, gather, load, store, transpose};
use crate::fold::cpu::products::{ALL, FEW, KEPT, TILE, galois_products};
use crate::fold::{Element, GROUP, Powers, RINGS, Strided, Wide};
use std::arch::x86_64::*;

/// Coefficients whose products' sums stay in registers.
const HALF: usize = TILE / 2;

galois_products!("avx2", Four, _mm256_setzero_si256, _mm256_add_epi64, _mm256_sub_epi64);

/// The product of two tiles, made of three products of their halves.
#[target_feature(enable = "avx2")]
fn tile(x: &[V; TILE], y: &[V; TILE]) -> [V; 2 * TILE] {
    let (x, y) = (x.as_chunks::<HALF>().0, y.as_chunks::<HALF>().0);
    let sum = |x: &[[V; HALF]]| -> [V; HALF] { std::array::from_fn(|k| _mm256_add_epi64(x[0][k], x[1][k])) };
    let mut product = [_mm256_setzero_si256(); 2 * TILE];
    join(&half(&x[0], &y[0]), &half(&x[1], &y[1]), &half(&sum(x), &sum(y)), &mut product);
    product
}

/// The product of two halves of tiles: of the lower halves of their words, and of lower and upper ones.
#[target_feature(enable = "avx2")]
#[inline]
fn half(x: &[V; HALF], y: &[V; HALF]) -> [V; TILE] {
    let upper = |x: &[V; HALF]| -> [V; HALF] { std::array::from_fn(|k| _mm256_srli_epi64::<32>(x[k])) };
    let (x_upper, y_upper) = (upper(x), upper(y));
    let mut sums = [_mm256_setzero_si256(); TILE];
    add_products(&x_upper, y, &mut sums);
    add_products(x, &y_upper, &mut sums);
    sums = sums.map(|sum| _mm256_slli_epi64::<32>(sum));
    add_products(x, y, &mut sums);
    sums
}

/// Add the products of the lower halves of all words.
#[target_feature(enable = "avx2")]
#[inline]
fn add_products(x: &[V; HALF], y: &[V; HALF], sums: &mut [V; TILE]) {
    for (p, x) in x.iter().enumerate() {
        for (q, y) in y.iter().enumerate() {
            sums[p + q] = _mm256_add_epi64(sums[p + q], _mm256_mul_epu32(*x, *y));
        }
    }
}

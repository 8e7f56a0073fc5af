//! Sums of products of elements of both Galois rings, eight at a time.

use super::V;
use super::lanes::{Eight, LANES, gather, load, store, transpose};
use crate::fold::cpu::products::{ALL, FEW, KEPT, TILE, galois_products};
use crate::fold::{Element, GROUP, Powers, RINGS, Strided, Wide};
use std::arch::x86_64::*;

galois_products!("avx512f,avx512dq", Eight, _mm512_setzero_si512, _mm512_add_epi64, _mm512_sub_epi64);

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

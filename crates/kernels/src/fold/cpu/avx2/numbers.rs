//! Numbers that bits choose. A register has a number of each of four groups, half of a block.

use super::V;
use super::field::{halves, load_two, multiply_add, multiply_two, number, store_two, xor};
use super::lanes::{LANES, load};
use super::points::{CUBE, NINE, extend_nine};
use crate::fold::cpu::portable;
use crate::fold::words::some;
use crate::fold::{Chosen, GROUP, NUMBER_GROUP, NumberTerms, gf_reduce};
use crate::near::ahead;
use std::arch::x86_64::*;

/// Halves of a block.
const HALVES: usize = NUMBER_GROUP / LANES;

/// The numbers of half of block `b`, 0 after the last.
#[target_feature(enable = "avx2")]
#[inline]
fn rows(numbers: &[u64], b: usize, half: usize) -> [V; NUMBER_GROUP] {
    let mut room = [0; GROUP];
    let rows = some(&numbers[b * GROUP..], &mut room).as_chunks::<LANES>().0;
    std::array::from_fn(|l| {
        let row = &rows[HALVES * l + half];
        if half == 0 {
            ahead(row);
        }
        load(row)
    })
}

/// The bits of half of a block, each in all places of its number.
#[target_feature(enable = "avx2")]
#[inline]
fn spread(bits: u64, half: usize) -> [V; NUMBER_GROUP] {
    let places = _mm256_setr_epi64x(1, 2, 4, 8);
    let bytes = (bits >> (LANES * half)).to_le_bytes();
    bytes.map(|byte| {
        let there = _mm256_and_si256(_mm256_set1_epi64x(i64::from(byte)), places);
        _mm256_cmpeq_epi64(there, places)
    })
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_message(batches: &[NumberTerms], sums: &mut [u64]) {
    let zero = _mm256_setzero_si256();
    let mut acc = [_mm_setzero_si128(); CUBE];
    for NumberTerms { terms, weights, .. } in batches {
        let mut operands = vec![[[zero; NUMBER_GROUP]; 2]; terms.len()];
        for (i, s) in weights.as_chunks().0.iter().enumerate() {
            let (b, half, s) = (i / HALVES, i % HALVES, halves(load(s)));
            for ([u, v], Chosen { numbers, bits }) in operands.iter_mut().zip(terms) {
                (*u, *v) = (rows(numbers, b, half), spread(bits[b], half));
            }
            for (top, acc) in acc.as_chunks_mut::<NINE>().0.iter_mut().enumerate() {
                let mut z = [zero; NINE];
                for [u, v] in &operands {
                    let (u, v) = (extend_nine::<false>(u, top), extend_nine::<false>(v, top));
                    for (z, (u, v)) in z.iter_mut().zip(u.into_iter().zip(v)) {
                        *z = _mm256_xor_si256(*z, _mm256_and_si256(u, v));
                    }
                }
                for (acc, z) in acc.iter_mut().zip(z) {
                    *acc = multiply_add(*acc, z, s);
                }
            }
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(number(acc));
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_fold(
    numbers: &[u64],
    basis: &[u64; NUMBER_GROUP],
    weights: Option<&[u64]>,
    out: &mut Vec<u64>,
) {
    let mut room = [0; GROUP];
    for b in 0..numbers.len().div_ceil(GROUP) {
        let rows = some(&numbers[b * GROUP..], &mut room).as_chunks::<NUMBER_GROUP>().0;
        let mut items = [0; NUMBER_GROUP];
        for (pair, items) in items.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let (mut even, mut odd) = (_mm_setzero_si128(), _mm_setzero_si128());
            for (row, basis) in rows.iter().zip(basis) {
                let (row, basis) = (load_two(&row.as_chunks().0[pair]), load_two(&[*basis, 0]));
                even = xor(even, _mm_clmulepi64_si128::<0x00>(row, basis));
                odd = xor(odd, _mm_clmulepi64_si128::<0x01>(row, basis));
            }
            *items = [gf_reduce(number(even)), gf_reduce(number(odd))];
            if let Some(s) = weights {
                let s = &s[NUMBER_GROUP * b..].as_chunks().0[pair];
                store_two(items, multiply_two(load_two(items), load_two(s)));
            }
        }
        rows.iter().for_each(|row| ahead(row));
        out.extend_from_slice(&items);
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn bits_fold(bits: &[u64], basis: &[u64; NUMBER_GROUP], out: &mut Vec<u64>) {
    portable::bits_fold(bits, basis, out);
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_combine(
    numbers: &[u64],
    more: &[Chosen],
    weights: &[u64],
    sums: &mut [u64; NUMBER_GROUP],
) {
    let mut acc = [_mm_setzero_si128(); NUMBER_GROUP];
    for (i, s) in weights.as_chunks().0.iter().enumerate() {
        let (b, half, s) = (i / HALVES, i % HALVES, halves(load(s)));
        let mut sums = rows(numbers, b, half);
        for Chosen { numbers, bits } in more {
            let chosen = rows(numbers, b, half).into_iter().zip(spread(bits[b], half));
            for (sum, (number, bit)) in sums.iter_mut().zip(chosen) {
                *sum = _mm256_xor_si256(*sum, _mm256_and_si256(number, bit));
            }
        }
        for (acc, sum) in acc.iter_mut().zip(sums) {
            *acc = multiply_add(*acc, sum, s);
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(number(acc));
    }
}

//! Numbers that bits choose. A register has a number of each of a block's eight groups, and a byte of bits one for each.

use super::V;
use super::field::{multiply, multiply_add, reduce, total};
use super::lanes::{load, store};
use super::points::{CUBE, NINE, extend_nine};
use crate::fold::words::some;
use crate::fold::{Chosen, GROUP, NUMBER_GROUP, NumberTerms, gf_reduce};
use crate::near::ahead;
use std::arch::x86_64::*;

/// The numbers of block `b`, 0 after the last.
#[target_feature(enable = "avx512f")]
#[inline]
fn block(numbers: &[u64], b: usize) -> [V; NUMBER_GROUP] {
    let mut room = [0; GROUP];
    let numbers = some(&numbers[b * GROUP..], &mut room).as_chunks().0;
    std::array::from_fn(|l| {
        ahead(&numbers[l]);
        load(&numbers[l])
    })
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_message(batches: &[NumberTerms], sums: &mut [u64]) {
    let (zero, ones) = (_mm512_setzero_si512(), _mm512_set1_epi64(-1));
    let mut acc = [zero; CUBE];
    for NumberTerms { terms, weights, .. } in batches {
        let mut operands = vec![[[zero; NUMBER_GROUP]; 2]; terms.len()];
        for (b, s) in weights.as_chunks().0.iter().enumerate() {
            for ([u, v], Chosen { numbers, bits }) in operands.iter_mut().zip(terms) {
                *u = block(numbers, b);
                let bytes = bits[b].to_le_bytes();
                *v = bytes.map(|byte| _mm512_maskz_mov_epi64(byte, ones));
            }
            let s = load(s);
            for (top, acc) in acc.as_chunks_mut::<NINE>().0.iter_mut().enumerate() {
                let mut z = [zero; NINE];
                for [u, v] in &operands {
                    let (u, v) = (extend_nine::<false>(u, top), extend_nine::<false>(v, top));
                    for (z, (u, v)) in z.iter_mut().zip(u.into_iter().zip(v)) {
                        // z ^ (u & v)
                        *z = _mm512_ternarylogic_epi64::<0x78>(*z, u, v);
                    }
                }
                for (acc, z) in acc.iter_mut().zip(z) {
                    *acc = multiply_add(*acc, z, s);
                }
            }
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_fold(
    numbers: &[u64],
    basis: &[u64; NUMBER_GROUP],
    weights: Option<&[u64]>,
    out: &mut Vec<u64>,
) {
    let basis = basis.map(|b| _mm512_set1_epi64(b as i64));
    for b in 0..numbers.len().div_ceil(GROUP) {
        let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for (numbers, basis) in block(numbers, b).into_iter().zip(basis) {
            even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128::<0x00>(numbers, basis));
            odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128::<0x11>(numbers, basis));
        }
        let mut items = _mm512_unpacklo_epi64(reduce(even), reduce(odd));
        if let Some(s) = weights {
            items = multiply(items, load(&s.as_chunks().0[b]));
        }
        append(items, out);
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f")]
pub(in crate::fold::cpu) unsafe fn bits_fold(bits: &[u64], basis: &[u64; NUMBER_GROUP], out: &mut Vec<u64>) {
    let basis = basis.map(|b| _mm512_set1_epi64(b as i64));
    for bits in bits {
        let mut items = _mm512_setzero_si512();
        for (byte, basis) in bits.to_le_bytes().into_iter().zip(basis) {
            items = _mm512_mask_xor_epi64(items, byte, items, basis);
        }
        append(items, out);
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn append(items: V, out: &mut Vec<u64>) {
    let mut words = [0; NUMBER_GROUP];
    store(&mut words, items);
    out.extend_from_slice(&words);
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn numbers_combine(
    numbers: &[u64],
    more: &[Chosen],
    weights: &[u64],
    sums: &mut [u64; NUMBER_GROUP],
) {
    let mut acc = [_mm512_setzero_si512(); NUMBER_GROUP];
    for (b, s) in weights.as_chunks().0.iter().enumerate() {
        let (mut rows, s) = (block(numbers, b), load(s));
        for Chosen { numbers, bits } in more {
            let bytes = bits[b].to_le_bytes();
            for ((row, more), byte) in rows.iter_mut().zip(block(numbers, b)).zip(bytes) {
                *row = _mm512_mask_xor_epi64(*row, byte, *row, more);
            }
        }
        for (acc, row) in acc.iter_mut().zip(rows) {
            *acc = multiply_add(*acc, row, s);
        }
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

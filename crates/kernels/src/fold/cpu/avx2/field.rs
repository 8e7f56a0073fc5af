//! GF(2^64): products, and folds of elements.

use super::V;
use super::lanes::LANES;
use super::points::{CUBE, NINE, extend_nine, extend_upper, sixteen};
use crate::fold::cpu::pieces::blocks;
use crate::fold::cpu::portable;
use crate::fold::{GROUP, WORD_VARS, gf_reduce};
use std::arch::x86_64::*;

/// Two words, or a product of two.
pub(super) type Wide = __m128i;

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn xor(a: Wide, b: Wide) -> Wide {
    _mm_xor_si128(a, b)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_two(words: &[u64; 2]) -> Wide {
    // SAFETY: two words.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store_two(words: &mut [u64; 2], v: Wide) {
    // SAFETY: two words.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), v) }
}

/// A product that is not reduced, as a number.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn number(product: Wide) -> u128 {
    let mut words = [0; 2];
    store_two(&mut words, product);
    u128::from(words[1]) << 64 | u128::from(words[0])
}

/// Both halves.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn halves(v: V) -> [Wide; 2] {
    [_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)]
}

/// `acc ^ a b`, the products of two words each added up.
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
fn add_two(acc: Wide, a: Wide, b: Wide) -> Wide {
    xor(acc, xor(_mm_clmulepi64_si128::<0x00>(a, b), _mm_clmulepi64_si128::<0x11>(a, b)))
}

/// `acc ^ a b`, the products of four words each added up.
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
pub(super) fn multiply_add(acc: Wide, a: V, b: [Wide; 2]) -> Wide {
    let [low, high] = halves(a);
    add_two(add_two(acc, low, b[0]), high, b[1])
}

/// Two products in GF(2^64).
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
pub(super) fn multiply_two(a: Wide, b: Wide) -> Wide {
    let (even, odd) = (_mm_clmulepi64_si128::<0x00>(a, b), _mm_clmulepi64_si128::<0x11>(a, b));
    let (low, high) = (_mm_unpacklo_epi64(even, odd), _mm_unpackhi_epi64(even, odd));
    // as [`gf_reduce`]
    let again = xor(_mm_srli_epi64::<60>(high), xor(_mm_srli_epi64::<61>(high), _mm_srli_epi64::<63>(high)));
    let w = xor(high, again);
    let times = xor(xor(w, _mm_slli_epi64::<1>(w)), xor(_mm_slli_epi64::<3>(w), _mm_slli_epi64::<4>(w)));
    xor(low, times)
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_weigh(items: &mut [u64], weights: &[u64]) {
    let (pairs, last) = items.as_chunks_mut::<2>();
    let (pair_weights, last_weight) = weights.as_chunks::<2>();
    for (items, weights) in pairs.iter_mut().zip(pair_weights) {
        store_two(items, multiply_two(load_two(items), load_two(weights)));
    }
    for (item, s) in last.iter_mut().zip(last_weight) {
        let mut product = [0; 2];
        store_two(&mut product, multiply_two(load_two(&[*item, 0]), load_two(&[*s, 0])));
        *item = product[0];
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_message(u: &[u64], v: &[u64], vars: u32, sums: &mut [u64]) {
    let mut acc = vec![_mm_setzero_si128(); sums.len()];
    match vars {
        0 => inner(u, v, &mut acc),
        4 => sixteens(u, v, &mut acc),
        WORD_VARS => sixty_fours(u, v, &mut acc),
        // little, and seldom
        _ => return portable::field_message(u, v, vars, sums),
    }
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(number(acc));
    }
}

#[target_feature(enable = "avx2,pclmulqdq")]
fn inner(u: &[u64], v: &[u64], acc: &mut [Wide]) {
    blocks::<2>(u.len(), &[u, v], |_, operands| {
        let [a, b] = [0, 1].map(|i| load_two(operands[i].first_chunk().expect("two")));
        acc.iter_mut().for_each(|acc| *acc = add_two(*acc, a, b));
    });
}

#[target_feature(enable = "avx2,pclmulqdq")]
fn sixteens(u: &[u64], v: &[u64], acc: &mut [Wide]) {
    let zero = _mm256_setzero_si256();
    let (mut a, mut b) = ([zero; 3 * CUBE], [zero; 3 * CUBE]);
    blocks::<{ 16 * LANES }>(u.len(), &[u, v], |_, operands| {
        sixteen::<false>(operands[0], 16, &mut a);
        sixteen::<false>(operands[1], 16, &mut b);
        for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(&b)) {
            *acc = multiply_add(*acc, *a, halves(*b));
        }
    });
}

/// Nine values at a time, those at one point in the upper four.
#[target_feature(enable = "avx2,pclmulqdq")]
fn sixty_fours(u: &[u64], v: &[u64], acc: &mut [Wide]) {
    let mut upper = vec![[_mm256_setzero_si256(); 8 * CUBE]; 2];
    blocks::<{ GROUP * LANES }>(u.len(), &[u, v], |_, operands| {
        for (upper, items) in upper.iter_mut().zip(operands) {
            extend_upper::<false>(items, GROUP, upper);
        }
        for (i, acc) in acc.chunks_exact_mut(NINE).enumerate() {
            let (e, top) = (i / 3, i % 3);
            let a = extend_nine::<false>(&upper[0][8 * e..], top);
            let b = extend_nine::<false>(&upper[1][8 * e..], top);
            for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(&b)) {
                *acc = multiply_add(*acc, *a, halves(*b));
            }
        }
    });
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_fold(items: &[u64], basis: &[u64], out: &mut [u64]) {
    if basis.len() < 2 {
        return portable::field_fold(items, basis, out);
    }
    for (items, out) in items.chunks(basis.len()).zip(out) {
        let (pairs, last) = items.as_chunks::<2>();
        let mut acc = [_mm_setzero_si128(); 2];
        let basis = basis.as_chunks::<2>().0;
        for (i, (items, basis)) in pairs.iter().zip(basis).enumerate() {
            acc[i % 2] = add_two(acc[i % 2], load_two(items), load_two(basis));
        }
        if let [last] = last {
            acc[0] = add_two(acc[0], load_two(&[*last, 0]), load_two(&basis[pairs.len()]));
        }
        *out = gf_reduce(number(xor(acc[0], acc[1])));
    }
}

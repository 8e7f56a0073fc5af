//! GF(2^64): products, and folds of elements.

use super::V;
use super::lanes::{LANES, lanes, load, store};
use super::points::{CUBE, NINE, extend_nine, extend_upper, sixteen};
use crate::fold::cpu::pieces::blocks;
use crate::fold::cpu::portable;
use crate::fold::{GROUP, WORD_VARS, gf_reduce, points};
use std::arch::x86_64::*;

/// Y^64 = Y^4 + Y^3 + Y + 1.
const FOLD: i64 = 0x1b;

/// Words below Y^60 times Y^64.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn times_low(w: V) -> V {
    let more = _mm512_ternarylogic_epi64::<0x96>(w, _mm512_slli_epi64::<1>(w), _mm512_slli_epi64::<3>(w));
    _mm512_xor_si512(more, _mm512_slli_epi64::<4>(w))
}

/// `acc ^ a b` in the four even and four odd lanes, which are added up.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
pub(super) fn multiply_add(acc: V, a: V, b: V) -> V {
    let even = _mm512_clmulepi64_epi128::<0x00>(a, b);
    let odd = _mm512_clmulepi64_epi128::<0x11>(a, b);
    _mm512_ternarylogic_epi64::<0x96>(acc, even, odd)
}

/// The four 128-bit products of a register added up.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn total(v: V) -> u128 {
    let mut words = [0; 8];
    store(&mut words, v);
    words.as_chunks::<2>().0.iter().fold(0, |sum, w| sum ^ (u128::from(w[1]) << 64 | u128::from(w[0])))
}

/// Four unreduced products, reduced in their low halves.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
pub(super) fn reduce(p: V) -> V {
    let poly = _mm512_set1_epi64(FOLD);
    let once = _mm512_clmulepi64_epi128::<0x01>(p, poly);
    let twice = _mm512_clmulepi64_epi128::<0x01>(once, poly);
    _mm512_ternarylogic_epi64::<0x96>(p, once, twice)
}

/// Eight products in GF(2^64).
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
pub(super) fn multiply(a: V, b: V) -> V {
    let even = reduce(_mm512_clmulepi64_epi128::<0x00>(a, b));
    let odd = reduce(_mm512_clmulepi64_epi128::<0x11>(a, b));
    _mm512_unpacklo_epi64(even, odd)
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_weigh(items: &mut [u64], weights: &[u64]) {
    for (items, weights) in items.chunks_mut(LANES).zip(weights.chunks(LANES)) {
        let (mut a, mut b) = ([0; LANES], [0; LANES]);
        a[..items.len()].copy_from_slice(items);
        b[..weights.len()].copy_from_slice(weights);
        let product = multiply(load(&a), load(&b));
        store(&mut a, product);
        items.copy_from_slice(&a[..items.len()]);
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_message(u: &[u64], v: &[u64], vars: u32, sums: &mut [u64]) {
    match vars {
        0 => inner(u, v, sums),
        4 => sixteens(u, v, sums),
        WORD_VARS => sixty_fours(u, v, sums),
        _ => portable::field_message(u, v, vars, sums),
    }
}

#[target_feature(enable = "avx512f,vpclmulqdq")]
fn inner(u: &[u64], v: &[u64], sums: &mut [u64]) {
    let mut acc = _mm512_setzero_si512();
    blocks::<LANES>(u.len(), &[u, v], |_, operands| {
        let [a, b] = [0, 1].map(|i| load(operands[i].first_chunk().expect("a register")));
        acc = multiply_add(acc, a, b);
    });
    sums.iter_mut().for_each(|sum| *sum ^= gf_reduce(total(acc)));
}

#[target_feature(enable = "avx512f,vpclmulqdq")]
fn sixteens(u: &[u64], v: &[u64], sums: &mut [u64]) {
    let mut acc = [_mm512_setzero_si512(); 3 * CUBE];
    let (mut a, mut b) = (acc, acc);
    blocks::<{ 16 * LANES }>(u.len(), &[u, v], |_, operands| {
        sixteen::<false>(operands[0], 16, &mut a);
        sixteen::<false>(operands[1], 16, &mut b);
        for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(&b)) {
            *acc = multiply_add(*acc, *a, *b);
        }
    });
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// Nine values at a time, those at one point in the upper four.
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn sixty_fours(u: &[u64], v: &[u64], sums: &mut [u64]) {
    let mut acc = vec![_mm512_setzero_si512(); points(WORD_VARS)];
    let mut upper = vec![[_mm512_setzero_si512(); 8 * CUBE]; 2];
    blocks::<{ GROUP * LANES }>(u.len(), &[u, v], |_, operands| {
        for (upper, items) in upper.iter_mut().zip(operands) {
            extend_upper::<false>(items, GROUP, upper);
        }
        for (i, acc) in acc.chunks_exact_mut(NINE).enumerate() {
            let (e, top) = (i / 3, i % 3);
            let a = extend_nine::<false>(&upper[0][8 * e..], top);
            let b = extend_nine::<false>(&upper[1][8 * e..], top);
            for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(&b)) {
                *acc = multiply_add(*acc, *a, *b);
            }
        }
    });
    for (sum, acc) in sums.iter_mut().zip(acc) {
        *sum ^= gf_reduce(total(acc));
    }
}

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_fold(items: &[u64], basis: &[u64], out: &mut [u64]) {
    match basis.len() {
        16 => fold_groups::<16>(items, basis.try_into().expect("16"), out),
        GROUP => fold_groups::<GROUP>(items, basis.try_into().expect("64"), out),
        _ => portable::field_fold(items, basis, out),
    }
}

/// For a basis of N elements, 16 or 64.
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_groups<const N: usize>(items: &[u64], basis: &[u64; N], out: &mut [u64]) {
    const { assert!(N == GROUP || N == 16) };
    let zero = _mm512_setzero_si512();
    let b: [V; N] = std::array::from_fn(|i| _mm512_set1_epi64(basis[i] as i64));
    let mut fold = |at: usize, operands: &[&[u64]]| {
        let (mut even, mut odd) = (zero, zero);
        for i in 0..N / LANES {
            for (x, b) in lanes(operands[0], N, i).into_iter().zip(&b[LANES * i..]) {
                even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128::<0x00>(x, *b));
                odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128::<0x11>(x, *b));
            }
        }
        let mut folded = [0; LANES];
        store(&mut folded, _mm512_unpacklo_epi64(reduce(even), reduce(odd)));
        let out = &mut out[at / N..];
        match out.first_chunk_mut() {
            Some(out) => *out = folded,
            None => out.iter_mut().zip(folded).for_each(|(out, f)| *out = f),
        }
    };
    match N {
        GROUP => blocks::<{ GROUP * LANES }>(items.len(), &[items], &mut fold),
        _ => blocks::<{ 16 * LANES }>(items.len(), &[items], &mut fold),
    }
}

//! GF(2^64): products, and folds of elements.

use super::V;
use super::lanes::{LANES, blocks, lanes, store};
use super::points::{CUBE, sixteen};
use crate::fold::gf_reduce;
use std::arch::x86_64::*;

/// Y^64 = Y^4 + Y^3 + Y + 1.
const FOLD: i64 = 0x1b;

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

/// Of four variables.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_message(u: &[u64], v: &[u64], sums: &mut [u64]) {
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

/// For a basis of sixteen.
///
/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(in crate::fold::cpu) unsafe fn field_fold(items: &[u64], basis: &[u64; 16], out: &mut [u64]) {
    let zero = _mm512_setzero_si512();
    let b: [V; 16] = std::array::from_fn(|i| _mm512_set1_epi64(basis[i] as i64));
    blocks::<{ 16 * LANES }>(items.len(), &[items], |at, operands| {
        let (mut even, mut odd) = (zero, zero);
        for i in 0..2 {
            for (x, b) in lanes(operands[0], 16, i).into_iter().zip(&b[8 * i..]) {
                even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128::<0x00>(x, *b));
                odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128::<0x11>(x, *b));
            }
        }
        let mut folded = [0; LANES];
        store(&mut folded, _mm512_unpacklo_epi64(reduce(even), reduce(odd)));
        let out = &mut out[at / 16..];
        match out.first_chunk_mut() {
            Some(out) => *out = folded,
            None => out.iter_mut().zip(folded).for_each(|(out, f)| *out = f),
        }
    });
}

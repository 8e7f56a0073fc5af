//! Words, bytes and bits moved about in registers of eight words, for all kernels that have AVX-512 with 8x8 bit matrices (GFNI).

use std::arch::x86_64::*;

/// Eight words.
pub(crate) type V = __m512i;

/// Whether this machine can run these functions.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("gfni")
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn load(words: &[u64; 8]) -> V {
    // SAFETY: eight words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn store(words: &mut [u64; 8], v: V) {
    // SAFETY: eight words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), v) }
}

/// Lane j of result i is lane i of row j.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn transpose(r: [V; 8]) -> [V; 8] {
    let low = |i: usize| _mm512_unpacklo_epi64(r[i], r[i + 1]);
    let high = |i: usize| _mm512_unpackhi_epi64(r[i], r[i + 1]);
    let quarters = |a: V, b: V, c: V, d: V| {
        let (ab, cd) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
        let (ab2, cd2) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(ab, cd),
            _mm512_shuffle_i64x2::<0xdd>(ab, cd),
            _mm512_shuffle_i64x2::<0x88>(ab2, cd2),
            _mm512_shuffle_i64x2::<0xdd>(ab2, cd2),
        ]
    };
    let even = quarters(low(0), low(2), low(4), low(6));
    let odd = quarters(high(0), high(2), high(4), high(6));
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Byte `8 b + 7 - k` of the result is byte b of word k: with rows reversed, as [`_mm512_gf2p8affine_epi64_epi8`] has them.
const BYTES_OF_WORDS: [u8; 64] = {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        index[8 * (i / 8) + 7 - i % 8] = (8 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    index
};

/// The lane at every byte, so that three rounds of interleaving bytes, 16 at a time, bring the lanes in order.
const LANE_ORDER: [u8; 64] = {
    let mut index = [0; 64];
    let mut p = 0;
    while p < 64 {
        let (quarter, r, h) = (p / 16, p % 16 / 2, p % 2);
        index[p] = (8 * r + 2 * quarter + h) as u8;
        p += 1;
    }
    index
};

#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn bytes(index: &[u8; 64]) -> V {
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(index.as_ptr().cast()) }
}

/// A byte for every lane: its bits of eight words.
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
#[inline]
pub(crate) fn columns(words: V) -> V {
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
    _mm512_gf2p8affine_epi64_epi8::<0>(identity, _mm512_permutexvar_epi8(bytes(&BYTES_OF_WORDS), words))
}

/// The 8x8 matrices that take eight bits to the sum of the words at its ones: word p of the result for byte p of the sum.
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
#[inline]
pub(crate) fn matrices_of(words: V) -> V {
    // rows are reversed in a matrix
    let reversed = _mm512_set1_epi64(0x0102_0408_1020_4080);
    _mm512_gf2p8affine_epi64_epi8::<0>(reversed, _mm512_permutexvar_epi8(bytes(&BYTES_OF_WORDS), words))
}

/// Byte p of word k of the result is byte k of word p.
#[target_feature(enable = "avx512f,avx512vbmi")]
#[inline]
pub(crate) fn byte_by_byte(words: V) -> V {
    const ORDER: [u8; 64] = {
        let mut index = [0; 64];
        let mut i = 0;
        while i < 64 {
            index[i] = (8 * (i % 8) + i / 8) as u8;
            i += 1;
        }
        index
    };
    _mm512_permutexvar_epi8(bytes(&ORDER), words)
}

/// A byte for every lane as [`interleave`] takes them.
#[target_feature(enable = "avx512f,avx512vbmi")]
#[inline]
pub(crate) fn lanes_in_order(columns: V) -> V {
    _mm512_permutexvar_epi8(bytes(&LANE_ORDER), columns)
}

/// Words from their bytes: register q has byte q of every word, in [`LANE_ORDER`]; result i has words 8 i to 8 i + 7.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(crate) fn interleave(y: [V; 8]) -> [V; 8] {
    // four times two bytes, twice four bytes, then all eight; each register has the words at places 2 r and 2 r + 1 of
    // every quarter
    let four = |a: V, b: V, c: V, d: V| {
        let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
        let (ab2, cd2) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(ab, cd),
            _mm512_unpackhi_epi16(ab, cd),
            _mm512_unpacklo_epi16(ab2, cd2),
            _mm512_unpackhi_epi16(ab2, cd2),
        ]
    };
    let (low, high) = (four(y[0], y[1], y[2], y[3]), four(y[4], y[5], y[6], y[7]));
    let mut out = [_mm512_setzero_si512(); 8];
    for t in 0..4 {
        out[2 * t] = _mm512_unpacklo_epi32(low[t], high[t]);
        out[2 * t + 1] = _mm512_unpackhi_epi32(low[t], high[t]);
    }
    out
}

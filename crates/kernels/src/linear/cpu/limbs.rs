//! Byte limbs of words, with AVX-512 VBMI.

use std::arch::x86_64::*;

/// Whether this machine has what this module needs.
pub(super) fn supported() -> bool {
    super::avx512::missing().is_none()
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
}

const TILE: usize = 1024;

/// In a register of eight words: byte l of all of them, for every l.
const BY_LIMB: [u8; 64] = {
    let mut p = [0; 64];
    let mut i = 0;
    while i < 64 {
        p[i] = (i % 8 * 8 + i / 8) as u8;
        i += 1;
    }
    p
};

/// From rows 0 to 3 of columns 0 to 7, then of columns 8 to 15, to column-major.
const BY_COLUMN: [u8; 64] = {
    let mut p = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (column, row) = (i / 4, i % 4);
        p[i] = (column / 8 * 32 + row * 8 + column % 8) as u8;
        i += 1;
    }
    p
};

/// Transpose eight registers of eight words as a matrix of 64-bit elements.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose(z: [__m512i; 8]) -> [__m512i; 8] {
    let even = |i: usize| _mm512_unpacklo_epi64(z[i], z[i + 1]);
    let odd = |i: usize| _mm512_unpackhi_epi64(z[i], z[i + 1]);
    let [e0, e2, e4, e6] = lanes([even(0), even(2), even(4), even(6)]);
    let [e1, e3, e5, e7] = lanes([odd(0), odd(2), odd(4), odd(6)]);
    [e0, e1, e2, e3, e4, e5, e6, e7]
}

/// Transpose four registers as a matrix of 128-bit elements.
#[target_feature(enable = "avx512f")]
#[inline]
fn lanes(t: [__m512i; 4]) -> [__m512i; 4] {
    let (a, b) = (_mm512_shuffle_i64x2::<0x44>(t[0], t[1]), _mm512_shuffle_i64x2::<0x44>(t[2], t[3]));
    let (c, d) = (_mm512_shuffle_i64x2::<0xee>(t[0], t[1]), _mm512_shuffle_i64x2::<0xee>(t[2], t[3]));
    [
        _mm512_shuffle_i64x2::<0x88>(a, b),
        _mm512_shuffle_i64x2::<0xdd>(a, b),
        _mm512_shuffle_i64x2::<0x88>(c, d),
        _mm512_shuffle_i64x2::<0xdd>(c, d),
    ]
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(words: &[u64; 8]) -> __m512i {
    // SAFETY: eight words are 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(limbs: [__m512i; 8], count: usize, out: &mut [u8]) {
    for (l, v) in limbs.into_iter().take(count).enumerate() {
        let line: &mut [u8; 64] = out[l * TILE..].first_chunk_mut().expect("a line in every tile");
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), v) };
    }
}

/// Limb l of 64 words to the 64 bytes at `l * 1024` of `out`, for every l below `count`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn pack_row(row: &[u64; 64], count: usize, out: &mut [u8]) {
    // SAFETY: 64 bytes.
    let by_limb = unsafe { _mm512_loadu_si512(BY_LIMB.as_ptr().cast()) };
    let mut z = [by_limb; 8];
    for (z, words) in z.iter_mut().zip(row.as_chunks().0) {
        *z = _mm512_permutexvar_epi8(by_limb, load(words));
    }
    store(transpose(z), count, out);
}

/// Four rows of 16 words, `stride` apart: limb l of column c and row r to byte `l * 1024 + 4 * c + r` of `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn pack_quad(block: &[u64], stride: usize, count: usize, out: &mut [u8]) {
    // SAFETY: 64 bytes each.
    let (by_limb, by_column) = unsafe {
        (_mm512_loadu_si512(BY_LIMB.as_ptr().cast()), _mm512_loadu_si512(BY_COLUMN.as_ptr().cast()))
    };
    let mut z = [by_limb; 8];
    for r in 0..4 {
        let row: &[u64; 16] = block[r * stride..].first_chunk().expect("a row of sixteen");
        let (left, right) = (row.first_chunk().unwrap_or(&[0; 8]), row.last_chunk().unwrap_or(&[0; 8]));
        z[r] = _mm512_permutexvar_epi8(by_limb, load(left));
        z[r + 4] = _mm512_permutexvar_epi8(by_limb, load(right));
    }
    let limbs = transpose(z).map(|v| _mm512_permutexvar_epi8(by_column, v));
    store(limbs, count, out);
}

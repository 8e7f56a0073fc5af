//! Words on AVX2, which has 32-bit products only: three make a 64-bit one modulo 2^64.

use super::kernel::{Kernel, Tile};
use super::words;
use super::{column, direct};
use std::arch::x86_64::*;

const DEPTH: usize = 16;

/// What this machine lacks for this path.
pub(super) fn missing() -> Option<&'static str> {
    (!is_x86_feature_detected!("avx2")).then_some("AVX2")
}

/// Rings of more than 32 bits. Only where [`missing`] finds nothing.
#[derive(Clone, Copy)]
pub(super) struct Wide;

/// Rings of at most 32 bits. Only where [`missing`] finds nothing.
#[derive(Clone, Copy)]
pub(super) struct Narrow;

const WIDE_ROWS: usize = 2;
const WIDE_COLS: usize = 8;

impl Kernel for Wide {
    const ROWS: usize = WIDE_ROWS;
    const COLS: usize = WIDE_COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 32;
    const BLOCK_TILES: usize = 32;
    const FEWER: Option<usize> = Some(2);

    fn a_step(&self) -> usize {
        WIDE_ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        WIDE_COLS * DEPTH * 8
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, WIDE_ROWS>(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<u64, WIDE_COLS>(block, stride, out);
    }

    #[inline(always)]
    fn put_a(&self, words: &[u64], out: &mut [u8]) {
        words::put::<u64>(words, 0, out);
    }

    #[inline(always)]
    fn put_b(&self, words: &[u64], at: usize, out: &mut [u8]) {
        words::put::<u64>(words, at, out);
    }

    #[inline(always)]
    fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: this kernel is only made where AVX2 is.
        unsafe { within(f) }
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(
        &self,
        [rows, _]: [usize; 2],
        a: &[u8],
        b: &[u8],
        steps: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let (a, b) = (words::view(a), words::view(b));
        // SAFETY: this kernel is only made where AVX2 is.
        unsafe {
            match rows {
                1 => wide::<1>(a, b, steps, tile),
                _ => wide::<WIDE_ROWS>(a, b, steps, tile),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn within<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// x*y = x0*y0 + 2^32 (x0*y1 + x1*y0) modulo 2^64, with the middle sums kept apart until the end.
#[target_feature(enable = "avx2")]
fn wide<const R: usize>(a: &[u64], b: &[u64], steps: usize, tile: &mut Tile) {
    let mut low = [[_mm256_setzero_si256(); 2]; R];
    let mut middle = [[_mm256_setzero_si256(); 2]; R];
    for (a, b) in a.chunks_exact(WIDE_ROWS).zip(b.as_chunks::<WIDE_COLS>().0).take(steps * DEPTH) {
        for (v, b) in b.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: four words.
            let b0 = unsafe { _mm256_loadu_si256(b.as_ptr().cast()) };
            let b1 = _mm256_srli_epi64::<32>(b0);
            for i in 0..R {
                let a0 = _mm256_set1_epi64x(a[i] as i64);
                let a1 = _mm256_srli_epi64::<32>(a0);
                let cross = _mm256_add_epi64(_mm256_mul_epu32(a0, b1), _mm256_mul_epu32(a1, b0));
                low[i][v] = _mm256_add_epi64(low[i][v], _mm256_mul_epu32(a0, b0));
                middle[i][v] = _mm256_add_epi64(middle[i][v], cross);
            }
        }
    }
    for (i, row) in tile.0.as_chunks_mut::<WIDE_COLS>().0.iter_mut().take(R).enumerate() {
        for (v, out) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let sum = _mm256_add_epi64(low[i][v], _mm256_slli_epi64::<32>(middle[i][v]));
            // SAFETY: four words.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), sum) };
        }
    }
}

const NARROW_ROWS: usize = 4;
const NARROW_COLS: usize = 16;

impl Kernel for Narrow {
    const ROWS: usize = NARROW_ROWS;
    const COLS: usize = NARROW_COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 64;
    const BLOCK_TILES: usize = 32;
    const FEWER: Option<usize> = None;

    fn a_step(&self) -> usize {
        NARROW_ROWS * DEPTH * 4
    }

    fn b_step(&self) -> usize {
        NARROW_COLS * DEPTH * 4
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u32, NARROW_ROWS>(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<u32, NARROW_COLS>(block, stride, out);
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(
        &self,
        [rows, _]: [usize; 2],
        a: &[u8],
        b: &[u8],
        steps: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let (a, b) = (words::view(a), words::view(b));
        // SAFETY: this kernel is only made where AVX2 is.
        unsafe {
            match rows {
                1 => narrow::<1>(a, b, steps, tile),
                2 => narrow::<2>(a, b, steps, tile),
                3 => narrow::<3>(a, b, steps, tile),
                _ => narrow::<NARROW_ROWS>(a, b, steps, tile),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn narrow<const R: usize>(a: &[u32], b: &[u32], steps: usize, tile: &mut Tile) {
    let mut acc = [[_mm256_setzero_si256(); 2]; R];
    for (a, b) in a.chunks_exact(NARROW_ROWS).zip(b.as_chunks::<NARROW_COLS>().0).take(steps * DEPTH) {
        for (v, b) in b.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: eight words of 4 bytes.
            let b = unsafe { _mm256_loadu_si256(b.as_ptr().cast()) };
            for i in 0..R {
                let product = _mm256_mullo_epi32(_mm256_set1_epi32(a[i] as i32), b);
                acc[i][v] = _mm256_add_epi32(acc[i][v], product);
            }
        }
    }
    for (acc, row) in acc.iter().zip(tile.0.as_chunks_mut::<NARROW_COLS>().0) {
        for (v, out) in acc.iter().zip(row.as_chunks_mut::<8>().0) {
            let mut words = [0u32; 8];
            // SAFETY: eight words of 4 bytes.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), *v) };
            *out = words.map(u64::from);
        }
    }
}

/// [`direct::add_row`] with this path's vectors.
///
/// # Safety
/// [`missing`] finds nothing.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_row(terms: &[direct::Term], out: &mut [u64]) {
    direct::add_row(terms, out);
}

/// [`column::dot`] with this path's vectors.
///
/// # Safety
/// [`missing`] finds nothing.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dot(x: &[u64], w: &[u64]) -> u64 {
    column::dot(x, w)
}

//! Words on AVX-512: 52-bit multiply-add where the ring fits it, else full 64-bit products.

use super::kernel::{Kernel, Tile};
use super::words::{self, Word};
use super::{column, direct};
use std::arch::x86_64::*;
use std::marker::PhantomData;

const ROWS: usize = 8;
const VECTORS: usize = 3;
const COLS: usize = 8 * VECTORS;
const DEPTH: usize = 16;

/// Columns of words `W`; products by IFMA (rings of at most 52 bits) or by `vpmullq`.
#[derive(Clone, Copy)]
pub(super) struct Avx512<W, const IFMA: bool>(PhantomData<W>);

/// What this machine lacks for [`Avx512`] without IFMA.
pub(super) fn missing() -> Option<&'static str> {
    let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
    (!has).then_some("AVX-512 F and DQ")
}

/// Whether this machine has 52-bit multiply-add.
pub(super) fn has_ifma() -> bool {
    is_x86_feature_detected!("avx512ifma")
}

impl<W: Word, const IFMA: bool> Avx512<W, IFMA> {
    /// Only where [`missing`] finds nothing, and with IFMA only where [`has_ifma`].
    pub(super) fn new() -> Self {
        debug_assert!(missing().is_none() && (!IFMA || has_ifma()));
        Avx512(PhantomData)
    }
}

impl<W: Word, const IFMA: bool> Kernel for Avx512<W, IFMA> {
    const ROWS: usize = ROWS;
    const COLS: usize = COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 32;
    const BLOCK_TILES: usize = 8;
    const FEWER: Option<usize> = Some(8);

    fn a_step(&self) -> usize {
        ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        COLS * DEPTH * size_of::<W>()
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, ROWS>(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<W, COLS>(block, stride, out);
    }

    #[inline(always)]
    fn put_a(&self, words: &[u64], out: &mut [u8]) {
        words::put::<u64>(words, 0, out);
    }

    #[inline(always)]
    fn put_b(&self, words: &[u64], at: usize, out: &mut [u8]) {
        words::put::<W>(words, at, out);
    }

    #[inline(always)]
    fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512dq")]
        fn inner<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        // SAFETY: this kernel is only made where the extensions are there.
        unsafe { inner(f) }
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(
        &self,
        [rows, columns]: [usize; 2],
        a: &[u8],
        b: &[u8],
        steps: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let (a, b) = (words::view(a), words::view(b));
        match columns.div_ceil(8) {
            ..=1 => product::<W, IFMA, 1>(rows, a, b, steps, tile),
            2 => product::<W, IFMA, 2>(rows, a, b, steps, tile),
            _ => product::<W, IFMA, VECTORS>(rows, a, b, steps, tile),
        }
    }
}

/// Columns are `V` vectors of the `VECTORS` that are packed.
fn product<W: Word, const IFMA: bool, const V: usize>(
    rows: usize,
    a: &[u64],
    b: &[W],
    steps: usize,
    tile: &mut Tile,
) {
    // SAFETY: the kernel is only made where the extensions are there.
    unsafe {
        match (IFMA, rows) {
            (true, 1) => ifma::<W, 1, V>(a, b, steps, tile),
            (true, 2) => ifma::<W, 2, V>(a, b, steps, tile),
            (true, 3) => ifma::<W, 3, V>(a, b, steps, tile),
            (true, 4) => ifma::<W, 4, V>(a, b, steps, tile),
            (true, 5) => ifma::<W, 5, V>(a, b, steps, tile),
            (true, 6) => ifma::<W, 6, V>(a, b, steps, tile),
            (true, 7) => ifma::<W, 7, V>(a, b, steps, tile),
            (true, _) => ifma::<W, 8, V>(a, b, steps, tile),
            (false, 1) => full::<W, 1, V>(a, b, steps, tile),
            (false, 2) => full::<W, 2, V>(a, b, steps, tile),
            (false, 3) => full::<W, 3, V>(a, b, steps, tile),
            (false, 4) => full::<W, 4, V>(a, b, steps, tile),
            (false, 5) => full::<W, 5, V>(a, b, steps, tile),
            (false, 6) => full::<W, 6, V>(a, b, steps, tile),
            (false, 7) => full::<W, 7, V>(a, b, steps, tile),
            (false, _) => full::<W, 8, V>(a, b, steps, tile),
        }
    }
}

/// 52-bit products; the low 52 bits of every sum are right.
#[target_feature(enable = "avx512f,avx512ifma")]
fn ifma<W: Word, const R: usize, const V: usize>(a: &[u64], b: &[W], steps: usize, tile: &mut Tile) {
    let mut acc = [[_mm512_setzero_si512(); V]; R];
    for (a, b) in a.chunks_exact(ROWS).zip(b.as_chunks::<COLS>().0).take(steps * DEPTH) {
        let b = columns::<W, V>(b);
        for (acc, a) in acc.iter_mut().zip(a) {
            let a = _mm512_set1_epi64(*a as i64);
            for (acc, b) in acc.iter_mut().zip(b) {
                *acc = _mm512_madd52lo_epu64(*acc, a, b);
            }
        }
    }
    store(acc, tile);
}

/// 64-bit products.
#[target_feature(enable = "avx512f,avx512dq")]
fn full<W: Word, const R: usize, const V: usize>(a: &[u64], b: &[W], steps: usize, tile: &mut Tile) {
    let mut acc = [[_mm512_setzero_si512(); V]; R];
    for (a, b) in a.chunks_exact(ROWS).zip(b.as_chunks::<COLS>().0).take(steps * DEPTH) {
        let b = columns::<W, V>(b);
        for (acc, a) in acc.iter_mut().zip(a) {
            let a = _mm512_set1_epi64(*a as i64);
            for (acc, b) in acc.iter_mut().zip(b) {
                *acc = _mm512_add_epi64(*acc, _mm512_mullo_epi64(a, b));
            }
        }
    }
    store(acc, tile);
}

#[target_feature(enable = "avx512f")]
#[inline]
fn columns<W: Word, const V: usize>(b: &[W; COLS]) -> [__m512i; V] {
    let mut out = [_mm512_setzero_si512(); V];
    for (v, words) in out.iter_mut().zip(b.as_chunks::<8>().0) {
        // SAFETY: eight words of 8 bytes, or of 4.
        *v = unsafe {
            if size_of::<W>() == 8 {
                _mm512_loadu_si512(words.as_ptr().cast())
            } else {
                _mm512_cvtepu32_epi64(_mm256_loadu_si256(words.as_ptr().cast()))
            }
        };
    }
    out
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store<const R: usize, const V: usize>(acc: [[__m512i; V]; R], tile: &mut Tile) {
    for (acc, row) in acc.iter().zip(tile.0.as_chunks_mut::<COLS>().0) {
        for (v, out) in acc.iter().zip(row.as_chunks_mut::<8>().0) {
            // SAFETY: eight words.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), *v) };
        }
    }
}

/// [`direct::add_row`] with this path's vectors.
///
/// # Safety
/// [`missing`] finds nothing.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn add_row(terms: &[direct::Term], out: &mut [u64]) {
    direct::add_row(terms, out);
}

/// [`column::dot`] with this path's vectors. Left to itself, the compiler gathers words that lie apart.
///
/// # Safety
/// [`missing`] finds nothing.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn dot(x: &[u64], w: &[u64]) -> u64 {
    /// Registers at a time: as many as hide what a multiplication takes.
    const SUMS: usize = 4;
    const WORDS: usize = 8;
    let ((xs, x), (ws, w)) = (x.as_chunks::<{ SUMS * WORDS }>(), w.as_chunks::<{ SUMS * WORDS }>());
    let mut sums = [_mm512_setzero_si512(); SUMS];
    for (x, w) in xs.iter().zip(ws) {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: eight words of each.
            let [x, w] = [x, w].map(|v| unsafe { _mm512_loadu_si512(v.as_ptr().add(i * WORDS).cast()) });
            *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(x, w));
        }
    }
    let sum = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi64(a, b));
    (_mm512_reduce_add_epi64(sum) as u64).wrapping_add(column::dot(x, w))
}

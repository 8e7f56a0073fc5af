//! Words on AVX2, which has 32-bit products only. Modulo 2^64 a product is `x0 y0 + 2^32 (x0 y1 + x1 y0)`: one product of 64
//! bits, and both low halves of 32 bits that `vpmulld` gives at once.

use super::kernel::{Kernel, Own, Panel, Tile};
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
    const PAIRS: Option<usize> = Some(4 * WIDE_ROWS);

    fn a_step(&self) -> usize {
        WIDE_ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        WIDE_COLS * DEPTH * 8
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, WIDE_ROWS, DEPTH>(rows, out);
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
        a: Panel,
        b: Panel,
        depth: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let own = a.own.zip(b.own);
        let (a, b) = (words::view(a.words), words::view(b.words));
        // SAFETY: this kernel is only made where AVX2 is.
        unsafe {
            match (own, rows) {
                (Some(own), 1) => pairs::<1>(a, b, own, depth, tile),
                (Some(own), _) => pairs::<WIDE_ROWS>(a, b, own, depth, tile),
                (None, 1) => one_by_one::<1>(a, b, depth, tile),
                (None, _) => one_by_one::<WIDE_ROWS>(a, b, depth, tile),
            }
        }
    }

    fn own_a(&self, words: &[u8], depth: usize) -> Own {
        self.within(
            #[inline(always)]
            || words::own::<WIDE_ROWS>(words::view(words), depth),
        )
    }

    fn own_b(&self, words: &[u8], depth: usize) -> Own {
        self.within(
            #[inline(always)]
            || words::own::<WIDE_COLS>(words::view(words), depth),
        )
    }
}

#[target_feature(enable = "avx2")]
fn within<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Sums of products of four words, the halves kept apart until the end.
#[derive(Clone, Copy)]
struct Sum {
    /// Of `x0 y0`, in 64 bits.
    low: __m256i,
    /// Of `x0 y1` and of `x1 y0`, in 32 bits each.
    middle: __m256i,
}

impl Sum {
    #[target_feature(enable = "avx2")]
    fn zero() -> Sum {
        Sum { low: _mm256_setzero_si256(), middle: _mm256_setzero_si256() }
    }

    /// `turned` is y with its halves exchanged.
    #[target_feature(enable = "avx2")]
    fn add(&mut self, x: __m256i, y: __m256i, turned: __m256i) {
        self.low = _mm256_add_epi64(self.low, _mm256_mul_epu32(x, y));
        self.middle = _mm256_add_epi32(self.middle, _mm256_mullo_epi32(x, turned));
    }

    #[target_feature(enable = "avx2")]
    fn all(self) -> __m256i {
        let both = _mm256_add_epi32(self.middle, turned(self.middle));
        _mm256_add_epi64(self.low, _mm256_slli_epi64::<32>(both))
    }
}

/// Words with their halves exchanged.
#[target_feature(enable = "avx2")]
fn turned(x: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(x)
}

#[target_feature(enable = "avx2")]
fn four(words: &[u64; 4]) -> __m256i {
    // SAFETY: four words.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn one_by_one<const R: usize>(a: &[u64], b: &[u64], depth: usize, tile: &mut Tile) {
    let mut sums = [[Sum::zero(); WIDE_COLS / 4]; R];
    for (a, b) in a.as_chunks::<WIDE_ROWS>().0.iter().zip(b.as_chunks::<WIDE_COLS>().0).take(depth) {
        for (v, b) in b.as_chunks::<4>().0.iter().enumerate() {
            let b = four(b);
            let other = turned(b);
            for (sums, a) in sums.iter_mut().zip(a) {
                sums[v].add(_mm256_set1_epi64x(*a as i64), b, other);
            }
        }
    }
    store(sums.map(|sums| sums.map(|sum| sum.all())), tile);
}

#[target_feature(enable = "avx2")]
fn pairs<const R: usize>(a: &[u64], b: &[u64], own: (&Own, &Own), depth: usize, tile: &mut Tile) {
    let mut sums = [[Sum::zero(); WIDE_COLS / 4]; R];
    let (a, b) = (a.as_chunks::<{ 2 * WIDE_ROWS }>().0, b.as_chunks::<WIDE_COLS>().0.as_chunks::<2>().0);
    for (a, [b0, b1]) in a.iter().zip(b).take(depth.div_ceil(2)) {
        let (b0, b1) = (b0.as_chunks::<4>().0, b1.as_chunks::<4>().0);
        for v in 0..WIDE_COLS / 4 {
            let (b0, b1) = (four(&b0[v]), four(&b1[v]));
            for (i, sums) in sums.iter_mut().enumerate() {
                let [a0, a1] = [a[i], a[WIDE_ROWS + i]].map(|a| _mm256_set1_epi64x(a as i64));
                let y = _mm256_add_epi64(a1, b0);
                sums[v].add(_mm256_add_epi64(a0, b1), y, turned(y));
            }
        }
    }
    let mut out = sums.map(|sums| sums.map(|sum| sum.all()));
    for (out, of_a) in out.iter_mut().zip(own.0.0) {
        for (out, of_b) in out.iter_mut().zip(own.1.0.as_chunks::<4>().0) {
            let less = _mm256_add_epi64(_mm256_set1_epi64x(of_a as i64), four(of_b));
            *out = _mm256_sub_epi64(*out, less);
        }
    }
    store(out, tile);
}

#[target_feature(enable = "avx2")]
fn store<const R: usize>(sums: [[__m256i; WIDE_COLS / 4]; R], tile: &mut Tile) {
    for (sums, row) in sums.iter().zip(tile.0.as_chunks_mut::<WIDE_COLS>().0) {
        for (sum, out) in sums.iter().zip(row.as_chunks_mut::<4>().0) {
            // SAFETY: four words.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), *sum) };
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
        words::pack_a::<u32, NARROW_ROWS, DEPTH>(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        words::pack_b::<u32, NARROW_COLS>(block, stride, out);
    }

    fn enter(&self, _rows: usize) -> impl Sized {}

    fn multiply(
        &self,
        [rows, _]: [usize; 2],
        a: Panel,
        b: Panel,
        depth: usize,
        _ahead: &[u8],
        tile: &mut Tile,
    ) {
        let (a, b) = (words::view(a.words), words::view(b.words));
        // SAFETY: this kernel is only made where AVX2 is.
        unsafe {
            match rows {
                1 => narrow::<1>(a, b, depth, tile),
                2 => narrow::<2>(a, b, depth, tile),
                3 => narrow::<3>(a, b, depth, tile),
                _ => narrow::<NARROW_ROWS>(a, b, depth, tile),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn narrow<const R: usize>(a: &[u32], b: &[u32], depth: usize, tile: &mut Tile) {
    let mut acc = [[_mm256_setzero_si256(); 2]; R];
    for (a, b) in a.chunks_exact(NARROW_ROWS).zip(b.as_chunks::<NARROW_COLS>().0).take(depth) {
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

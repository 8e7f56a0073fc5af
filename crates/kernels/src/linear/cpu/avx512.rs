//! Words on AVX-512: 52-bit multiply-add where the ring fits it, else full 64-bit products.

use super::kernel::{Kernel, MAX_COLS, Own, Panel, Tile};
use super::words::{self, Word};
use super::{column, direct};
use std::arch::x86_64::*;
use std::marker::PhantomData;

const ROWS: usize = 6;
const VECTORS: usize = 3;
const COLS: usize = 8 * VECTORS;
const DEPTH: usize = 16;
/// Of six rows and a block's depth: 0.6 MB, which leaves room in a second-level cache of 1 MB.
const ROW_TILES: usize = 24;
/// Bytes of a cache line.
const LINE: usize = 64;

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
    const BLOCK_ROW_TILES: usize = ROW_TILES;
    const FEWER: Option<usize> = Some(8);
    const PAIRS: Option<usize> = Some(ROWS + 1);

    fn a_step(&self) -> usize {
        ROWS * DEPTH * 8
    }

    fn b_step(&self) -> usize {
        COLS * DEPTH * size_of::<W>()
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        words::pack_a::<u64, ROWS, DEPTH>(rows, out);
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
        a: Panel,
        b: Panel,
        depth: usize,
        ahead: &[u8],
        tile: &mut Tile,
    ) {
        match columns.div_ceil(8) {
            ..=1 => product::<W, IFMA, 1>(rows, a, b, depth, ahead, tile),
            2 => product::<W, IFMA, 2>(rows, a, b, depth, ahead, tile),
            _ => product::<W, IFMA, VECTORS>(rows, a, b, depth, ahead, tile),
        }
    }

    fn own_a(&self, words: &[u8], depth: usize) -> Own {
        // SAFETY: this kernel is only made where the extensions are there.
        unsafe { own::<u64, ROWS>(words::view(words), depth) }
    }

    fn own_b(&self, words: &[u8], depth: usize) -> Own {
        // SAFETY: as above.
        unsafe { own::<W, COLS>(words::view(words), depth) }
    }
}

/// What is wanted soon, some lines of it in each step of a product.
struct Ahead<'a>(std::slice::Chunks<'a, u8>);

impl Ahead<'_> {
    fn new(bytes: &[u8], steps: usize) -> Ahead<'_> {
        Ahead(bytes.chunks(LINE * bytes.len().div_ceil(LINE * steps.max(1)).max(1)))
    }

    #[inline(always)]
    fn step(&mut self) {
        for line in self.0.next().unwrap_or_default().chunks(LINE) {
            // SAFETY: every x86-64 has SSE, and no address is read.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
        }
    }
}

/// Columns are `V` vectors of the `VECTORS` that are packed.
fn product<W: Word, const IFMA: bool, const V: usize>(
    rows: usize,
    a: Panel,
    b: Panel,
    depth: usize,
    ahead: &[u8],
    tile: &mut Tile,
) {
    match rows {
        1 => rows_of::<W, IFMA, 1, V>(a, b, depth, ahead, tile),
        2 => rows_of::<W, IFMA, 2, V>(a, b, depth, ahead, tile),
        3 => rows_of::<W, IFMA, 3, V>(a, b, depth, ahead, tile),
        4 => rows_of::<W, IFMA, 4, V>(a, b, depth, ahead, tile),
        5 => rows_of::<W, IFMA, 5, V>(a, b, depth, ahead, tile),
        _ => rows_of::<W, IFMA, ROWS, V>(a, b, depth, ahead, tile),
    }
}

fn rows_of<W: Word, const IFMA: bool, const R: usize, const V: usize>(
    a: Panel,
    b: Panel,
    depth: usize,
    ahead: &[u8],
    tile: &mut Tile,
) {
    let own = a.own.zip(b.own);
    let (a, b) = (words::view(a.words), words::view(b.words));
    // SAFETY: the kernel is only made where the extensions are there.
    unsafe {
        match (own, IFMA) {
            (Some(own), true) => pairs_ifma::<W, R, V>(a, b, own, depth, ahead, tile),
            (Some(own), false) => pairs::<W, R, V>(a, b, own, depth, ahead, tile),
            (None, true) => one_by_one_ifma::<W, R, V>(a, b, depth, tile),
            (None, false) => one_by_one::<W, R, V>(a, b, depth, tile),
        }
    }
}

/// 52-bit products; the low 52 bits of every sum are right.
#[target_feature(enable = "avx512f,avx512ifma")]
fn one_by_one_ifma<W: Word, const R: usize, const V: usize>(
    a: &[u64],
    b: &[W],
    depth: usize,
    tile: &mut Tile,
) {
    let mut acc = [[_mm512_setzero_si512(); V]; R];
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLS>().0).take(depth) {
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
fn one_by_one<W: Word, const R: usize, const V: usize>(a: &[u64], b: &[W], depth: usize, tile: &mut Tile) {
    let mut acc = [[_mm512_setzero_si512(); V]; R];
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLS>().0).take(depth) {
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

/// [`one_by_one_ifma`] in pairs: a product's operands are sums, of which it takes the low 52 bits.
#[target_feature(enable = "avx512f,avx512ifma")]
fn pairs_ifma<W: Word, const R: usize, const V: usize>(
    a: &[u64],
    b: &[W],
    own: (&Own, &Own),
    depth: usize,
    ahead: &[u8],
    tile: &mut Tile,
) {
    let mut acc = less::<R, V>(own);
    let mut ahead = Ahead::new(ahead, depth.div_ceil(2));
    let (a, b) = (a.as_chunks::<{ 2 * ROWS }>().0, b.as_chunks::<COLS>().0.as_chunks::<2>().0);
    for (a, [b0, b1]) in a.iter().zip(b).take(depth.div_ceil(2)) {
        ahead.step();
        let (b0, b1) = (columns::<W, V>(b0), columns::<W, V>(b1));
        for i in 0..R {
            let (a0, a1) = (_mm512_set1_epi64(a[i] as i64), _mm512_set1_epi64(a[ROWS + i] as i64));
            for v in 0..V {
                let (x, y) = (_mm512_add_epi64(a0, b1[v]), _mm512_add_epi64(a1, b0[v]));
                acc[i][v] = _mm512_madd52lo_epu64(acc[i][v], x, y);
            }
        }
    }
    store(acc, tile);
}

/// [`one_by_one`] in pairs.
#[target_feature(enable = "avx512f,avx512dq")]
fn pairs<W: Word, const R: usize, const V: usize>(
    a: &[u64],
    b: &[W],
    own: (&Own, &Own),
    depth: usize,
    ahead: &[u8],
    tile: &mut Tile,
) {
    let mut acc = less::<R, V>(own);
    let mut ahead = Ahead::new(ahead, depth.div_ceil(2));
    let (a, b) = (a.as_chunks::<{ 2 * ROWS }>().0, b.as_chunks::<COLS>().0.as_chunks::<2>().0);
    for (a, [b0, b1]) in a.iter().zip(b).take(depth.div_ceil(2)) {
        ahead.step();
        let (b0, b1) = (columns::<W, V>(b0), columns::<W, V>(b1));
        for i in 0..R {
            let (a0, a1) = (_mm512_set1_epi64(a[i] as i64), _mm512_set1_epi64(a[ROWS + i] as i64));
            for v in 0..V {
                let (x, y) = (_mm512_add_epi64(a0, b1[v]), _mm512_add_epi64(a1, b0[v]));
                acc[i][v] = _mm512_add_epi64(acc[i][v], _mm512_mullo_epi64(x, y));
            }
        }
    }
    store(acc, tile);
}

/// What both panels' pairs add by themselves, negated: where sums of pairs begin.
#[target_feature(enable = "avx512f")]
#[inline]
fn less<const R: usize, const V: usize>((a, b): (&Own, &Own)) -> [[__m512i; V]; R] {
    let mut acc = [[_mm512_setzero_si512(); V]; R];
    for (acc, a) in acc.iter_mut().zip(a.0) {
        let a = _mm512_set1_epi64(a.wrapping_neg() as i64);
        for (acc, b) in acc.iter_mut().zip(b.0.as_chunks::<8>().0) {
            // SAFETY: eight words.
            *acc = _mm512_sub_epi64(a, unsafe { _mm512_loadu_si512(b.as_ptr().cast()) });
        }
    }
    acc
}

/// [`Own`] of a panel of `N` words for each position of the depth.
#[target_feature(enable = "avx512f,avx512dq")]
fn own<W: Word, const N: usize>(words: &[W], depth: usize) -> Own {
    const { assert!(DEPTH.is_multiple_of(2), "no pair lies in two steps") };
    let mut sums = [_mm512_setzero_si512(); MAX_COLS / 8];
    for [x, y] in words.as_chunks::<N>().0.as_chunks::<2>().0.iter().take(depth.div_ceil(2)) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.chunks(8).zip(y.chunks(8))) {
            *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(some(x), some(y)));
        }
    }
    let mut out = Own([0; MAX_COLS]);
    for (sum, out) in sums.into_iter().zip(out.0.as_chunks_mut::<8>().0) {
        // SAFETY: eight words.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
    }
    out
}

#[target_feature(enable = "avx512f")]
#[inline]
fn columns<W: Word, const V: usize>(b: &[W; COLS]) -> [__m512i; V] {
    let mut out = [_mm512_setzero_si512(); V];
    for (v, words) in out.iter_mut().zip(b.as_chunks::<8>().0) {
        *v = eight(words);
    }
    out
}

/// Up to eight words as 64-bit numbers, and zeros.
#[target_feature(enable = "avx512f")]
#[inline]
fn some<W: Word>(words: &[W]) -> __m512i {
    match words.first_chunk() {
        Some(words) => eight(words),
        None => {
            let mut padded = [W::truncate(0); 8];
            padded[..words.len()].copy_from_slice(words);
            eight(&padded)
        }
    }
}

/// Eight words as 64-bit numbers.
#[target_feature(enable = "avx512f")]
#[inline]
fn eight<W: Word>(words: &[W; 8]) -> __m512i {
    // SAFETY: eight words of 8 bytes, or of 4.
    unsafe {
        if size_of::<W>() == 8 {
            _mm512_loadu_si512(words.as_ptr().cast())
        } else {
            _mm512_cvtepu32_epi64(_mm256_loadu_si256(words.as_ptr().cast()))
        }
    }
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

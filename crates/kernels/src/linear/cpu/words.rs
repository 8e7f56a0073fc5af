//! Panels of whole words, for the kernels that multiply words and not limbs.
//!
//! A packed step of A holds, for each position of the depth, one word of every row; of B, of every column.

use super::kernel::{MAX_COLS, Own};

/// What a panel is made of: `u64`, or `u32` for rings of at most 32 bits.
pub(super) trait Word: Copy + Send + Sync {
    fn truncate(x: u64) -> Self;
}

impl Word for u64 {
    #[inline(always)]
    fn truncate(x: u64) -> u64 {
        x
    }
}

impl Word for u32 {
    #[inline(always)]
    fn truncate(x: u64) -> u32 {
        x as u32
    }
}

/// The words of a packed panel.
pub(super) fn view<W: Word>(bytes: &[u8]) -> &[W] {
    // SAFETY: words are plain integers, valid for every byte pattern.
    let (before, words, _) = unsafe { bytes.align_to::<W>() };
    assert!(before.is_empty(), "panels start on a cache line");
    words
}

#[inline(always)]
pub(super) fn view_mut<W: Word>(bytes: &mut [u8]) -> &mut [W] {
    // SAFETY: as for `view`.
    let (before, words, _) = unsafe { bytes.align_to_mut::<W>() };
    assert!(before.is_empty(), "panels start on a cache line");
    words
}

/// Pack rows of A, `ROWS` words to a position; what lies past the given rows and their length is zero.
#[inline(always)]
pub(super) fn pack_a<W: Word, const ROWS: usize, const DEPTH: usize>(rows: &[&[u64]], out: &mut [u8]) {
    let full = rows.len() == ROWS && rows.iter().all(|row| row.len() == DEPTH);
    let mut padded = [[0; DEPTH]; ROWS];
    if !full {
        padded.iter_mut().zip(rows).for_each(|(padded, row)| padded[..row.len()].copy_from_slice(row));
    }
    let rows: [&[u64; DEPTH]; ROWS] = std::array::from_fn(|i| match full {
        true => rows[i].first_chunk().expect("as many words as a step is deep"),
        false => &padded[i],
    });
    for (l, words) in view_mut::<W>(out).as_chunks_mut::<ROWS>().0[..DEPTH].iter_mut().enumerate() {
        for (word, row) in words.iter_mut().zip(rows) {
            *word = W::truncate(row[l]);
        }
    }
}

/// Pack rows of B, `COLS` words each, `stride` apart.
pub(super) fn pack_b<W: Word, const COLS: usize>(block: &[u64], stride: usize, out: &mut [u8]) {
    for (l, words) in view_mut::<W>(out).chunks_exact_mut(COLS).enumerate() {
        for (word, v) in words.iter_mut().zip(&block[l * stride..][..COLS]) {
            *word = W::truncate(*v);
        }
    }
}

/// Write words from word `at` of a packed step on.
#[inline(always)]
pub(super) fn put<W: Word>(words: &[u64], at: usize, out: &mut [u8]) {
    for (word, v) in view_mut::<W>(out)[at..at + words.len()].iter_mut().zip(words) {
        *word = W::truncate(*v);
    }
}

/// [`Own`] of the first `depth` positions of a panel of `N` words each.
#[inline(always)]
pub(super) fn own<const N: usize>(words: &[u64], depth: usize) -> Own {
    let mut out = Own([0; MAX_COLS]);
    for [x, y] in words.as_chunks::<N>().0.as_chunks::<2>().0.iter().take(depth.div_ceil(2)) {
        for (out, (x, y)) in out.0.iter_mut().zip(x.iter().zip(y)) {
            *out = out.wrapping_add(x.wrapping_mul(*y));
        }
    }
    out
}

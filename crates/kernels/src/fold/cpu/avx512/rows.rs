//! Rows of words combined by bits: the sums of every choice of four rows once, then one look-up for four rows and a coefficient.
//!
//! Sums of a position's four words stand in two registers, and eight coefficients are looked up in one instruction.

use super::V;
use super::lanes::{LANES, load, store, transpose};
use crate::avx512::columns;
use crate::fold::cpu::pieces::coefficients;
use crate::fold::{Element, GROUP};
use std::arch::x86_64::*;

/// Rows whose sums are looked up at once.
const CHOICE: usize = 4;
/// Rows at a time: as many places of memory as a processor foresees reads at. More of them would read and write what is added to less often,
/// and take twice as long where rows are long and come from memory.
const ROWS: usize = 32;
/// Registers of an element.
const PARTS: usize = GROUP / LANES;
/// Positions between what is read and what is brought near meanwhile: rows may be far apart, so that memory takes long.
const AHEAD: usize = 3 * LANES;

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(in crate::fold::cpu) unsafe fn rows_combine(
    words: &[u64],
    strides: [usize; 2],
    bits: &[u64],
    out: &mut [Element],
) {
    const MOST: usize = PARTS - 2;
    match coefficients(bits).div_ceil(LANES) {
        ..=MOST => combine::<MOST>(words, strides, bits, out),
        _ => combine::<PARTS>(words, strides, bits, out),
    }
}

/// The first `PARTS` registers of each element; no row has other coefficients.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn combine<const PARTS: usize>(words: &[u64], strides: [usize; 2], bits: &[u64], out: &mut [Element]) {
    let mut tile = [[0; LANES]; ROWS];
    let mut choices = [[_mm512_setzero_si512(); PARTS]; ROWS / CHOICE];
    for (i, bits) in bits.chunks(ROWS).enumerate() {
        let words = &words[i * ROWS * strides[0]..];
        for (bits, choices) in bits.chunks(8).zip(choices.as_chunks_mut().0) {
            *choices = choices_of(bits);
        }
        let choices = &choices[..bits.len().div_ceil(CHOICE)];
        for (j, out) in out.chunks_mut(LANES).enumerate() {
            let words = &words[j * LANES * strides[1]..];
            fill(words, strides, bits.len(), out.len(), &mut tile);
            let (pairs, last) = out.as_chunks_mut::<2>();
            for (p, pair) in pairs.iter_mut().enumerate() {
                add(&tile, 2 * p, choices, pair);
            }
            if let Some(last) = last.first_mut() {
                add(&tile, 2 * pairs.len(), choices, std::array::from_mut(last));
            }
        }
    }
}

/// For each coefficient, which rows of the first and second four of eight have it: in the low four bits of its word. Rows that
/// are not there have nothing.
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
#[inline]
fn choices_of<const PARTS: usize>(bits: &[u64]) -> [[V; PARTS]; 2] {
    let mut rows = [0; LANES];
    rows[..bits.len()].copy_from_slice(bits);
    let by_coefficient = columns(load(&rows));
    store(&mut rows, by_coefficient);
    let mut choices = [[_mm512_setzero_si512(); PARTS]; 2];
    let [first, second] = &mut choices;
    for ((first, second), eight) in first.iter_mut().zip(second).zip(rows) {
        *first = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(eight as i64));
        *second = _mm512_srli_epi64::<4>(*first);
    }
    choices
}

/// The first words of each row side by side. What is behind the last row or position stays as it was.
#[target_feature(enable = "avx512f")]
#[inline]
fn fill(
    words: &[u64],
    [row, position]: [usize; 2],
    rows: usize,
    positions: usize,
    tile: &mut [[u64; LANES]; ROWS],
) {
    let eight = |from: usize| -> &[u64; 8] { words[from..].first_chunk().expect("eight words") };
    let mut rest = 0;
    if positions == LANES && position == 1 {
        for (r, tile) in tile[..rows].iter_mut().enumerate() {
            let from = eight(r * row);
            // more rows than the processor foresees, and than there is room for nearest to it; harmless at any address
            _mm_prefetch::<_MM_HINT_T1>(from.as_ptr().wrapping_add(AHEAD).cast());
            store(tile, load(from));
        }
        rest = rows;
    } else if positions == LANES && row == 1 {
        for (i, tile) in tile[..rows].as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let of = |p: usize| load(eight(p * position + 8 * i));
            let by_row = transpose([of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)]);
            tile.iter_mut().zip(by_row).for_each(|(tile, row)| store(tile, row));
        }
        rest = rows / 8 * 8;
    }
    for (r, tile) in tile[..rows].iter_mut().enumerate().skip(rest) {
        for (p, word) in tile[..positions].iter_mut().enumerate() {
            *word = words[r * row + p * position];
        }
    }
}

/// Add the combinations of `N` positions from `first` on, which look up by the same choices.
#[target_feature(enable = "avx512f")]
#[inline]
fn add<const PARTS: usize, const N: usize>(
    tile: &[[u64; LANES]; ROWS],
    first: usize,
    choices: &[[V; PARTS]],
    out: &mut [Element; N],
) {
    let zero = _mm512_setzero_si512();
    let mut sums = [[zero; PARTS]; N];
    for (sums, out) in sums.iter_mut().zip(out.iter()) {
        sums.iter_mut().zip(out.as_chunks().0).for_each(|(sum, out)| *sum = load(out));
    }
    for (rows, choices) in tile.as_chunks::<CHOICE>().0.iter().zip(choices) {
        // sums of the rows at the ones of 0 to 7, and of 8 to 15
        let mut tables = [[zero; 2]; N];
        for (p, [low, high]) in tables.iter_mut().enumerate() {
            let word = |r: usize| _mm512_set1_epi64(rows[r][first + p] as i64);
            let one = _mm512_maskz_mov_epi64(0b1010_1010, word(0));
            let two = _mm512_mask_add_epi64(one, 0b1100_1100, one, word(1));
            *low = _mm512_mask_add_epi64(two, 0b1111_0000, two, word(2));
            *high = _mm512_add_epi64(*low, word(3));
        }
        for (j, choice) in choices.iter().enumerate() {
            for (sums, [low, high]) in sums.iter_mut().zip(&tables) {
                let chosen = _mm512_permutex2var_epi64(*low, *choice, *high);
                sums[j] = _mm512_add_epi64(sums[j], chosen);
            }
        }
    }
    for (sums, out) in sums.iter().zip(out) {
        sums.iter().zip(out.as_chunks_mut().0).for_each(|(sum, out)| store(out, *sum));
    }
}

//! Rows of words combined by bits: the sums of every choice of four rows once, then one look-up for four rows and a coefficient.
//!
//! Tables stand in memory, eight positions side by side. The sums of one coefficient stay in registers through all tables.

use super::V;
use super::lanes::{LANES, load, store, transpose};
use crate::fold::cpu::pieces::coefficients;
use crate::fold::{Element, GROUP};
use std::arch::x86_64::*;

/// Rows whose sums are looked up at once.
const CHOICE: usize = 4;
/// Rows at a time: their tables stay in the first-level cache.
const ROWS: usize = 64;
const TABLES: usize = ROWS / CHOICE;
/// Positions at a time, and their registers.
const POSITIONS: usize = 8;
const PARTS: usize = POSITIONS / LANES;

/// Which sum of each table a coefficient takes.
type Choices = [[u8; TABLES]; GROUP];

/// # Safety
/// [`super::available`].
#[target_feature(enable = "avx2")]
pub(in crate::fold::cpu) unsafe fn rows_combine(
    words: &[u64],
    strides: [usize; 2],
    bits: &[u64],
    out: &mut [Element],
) {
    let fours = coefficients(bits).div_ceil(LANES);
    let mut tables = [[[_mm256_setzero_si256(); PARTS]; 1 << CHOICE]; TABLES];
    for (i, bits) in bits.chunks(ROWS).enumerate() {
        let words = &words[i * ROWS * strides[0]..];
        let choices = choices_of(bits);
        for (j, out) in out.chunks_mut(POSITIONS).enumerate() {
            let words = &words[j * POSITIONS * strides[1]..];
            for (t, table) in tables.iter_mut().enumerate().take(bits.len().div_ceil(CHOICE)) {
                let rows = CHOICE.min(bits.len() - t * CHOICE);
                tabulate(&words[t * CHOICE * strides[0]..], strides, (rows, out.len()), table);
            }
            let tables = &tables[..bits.len().div_ceil(CHOICE)];
            for (c, choices) in choices.as_chunks::<LANES>().0[..fours].iter().enumerate() {
                let sums = choices.map(|choices| look_up(tables, &choices));
                for (part, out) in out.chunks_mut(LANES).enumerate() {
                    let by_position = transpose(sums.map(|sum| sum[part]));
                    for (out, words) in out.iter_mut().zip(by_position) {
                        let out = &mut out.as_chunks_mut().0[c];
                        store(out, _mm256_add_epi64(load(out), words));
                    }
                }
            }
        }
    }
}

/// Rows that are not there have nothing.
#[target_feature(enable = "avx2")]
fn choices_of(bits: &[u64]) -> Choices {
    // bit r is whether row r has the coefficient
    let mut rows = [0u64; GROUP];
    for (r, bits) in bits.iter().enumerate() {
        for (c, rows) in rows.iter_mut().enumerate() {
            *rows |= (bits >> c & 1) << r;
        }
    }
    rows.map(|rows| std::array::from_fn(|t| (rows >> (CHOICE * t)) as u8 % (1 << CHOICE)))
}

/// The sums of one coefficient at all positions.
#[target_feature(enable = "avx2")]
#[inline]
fn look_up(tables: &[[[V; PARTS]; 1 << CHOICE]], choices: &[u8; TABLES]) -> [V; PARTS] {
    let mut sums = [_mm256_setzero_si256(); PARTS];
    for (table, choice) in tables.iter().zip(choices) {
        let chosen = &table[usize::from(choice % (1 << CHOICE))];
        for (sum, words) in sums.iter_mut().zip(chosen) {
            *sum = _mm256_add_epi64(*sum, *words);
        }
    }
    sums
}

/// The sums of some rows at all positions.
#[target_feature(enable = "avx2")]
#[inline]
fn tabulate(
    words: &[u64],
    [row, position]: [usize; 2],
    (rows, positions): (usize, usize),
    table: &mut [[V; PARTS]; 1 << CHOICE],
) {
    let zero = _mm256_setzero_si256();
    let four = |from: usize| load(words[from..].first_chunk().expect("four words"));
    let mut of_rows = [[zero; PARTS]; CHOICE];
    if (rows, positions) == (CHOICE, POSITIONS) && position == 1 {
        for (r, words) in of_rows.iter_mut().enumerate() {
            *words = std::array::from_fn(|part| four(r * row + part * LANES));
        }
    } else if (rows, positions) == (CHOICE, POSITIONS) && row == 1 {
        for part in 0..PARTS {
            let at = |p: usize| four((part * LANES + p) * position);
            let by_row = transpose([at(0), at(1), at(2), at(3)]);
            of_rows.iter_mut().zip(by_row).for_each(|(words, row)| words[part] = row);
        }
    } else {
        for (r, of_row) in of_rows.iter_mut().enumerate().take(rows) {
            let mut some = [0; POSITIONS];
            for (p, word) in some.iter_mut().enumerate().take(positions) {
                *word = words[r * row + p * position];
            }
            of_row.iter_mut().zip(some.as_chunks().0).for_each(|(words, some)| *words = load(some));
        }
    }
    table[0] = [zero; PARTS];
    for (r, words) in of_rows.iter().enumerate() {
        let (without, with) = table.split_at_mut(1 << r);
        for (with, without) in with.iter_mut().zip(without) {
            *with = std::array::from_fn(|part| _mm256_add_epi64(without[part], words[part]));
        }
    }
}

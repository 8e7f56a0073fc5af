//! From 128 columns of bits to blocks, 512 rows at a time.
//!
//! Rows leave in another order than they came: of 512 rows, row `64 l + b` becomes block `8 b + l`. Both parties permute
//! alike and transfers are alike, so the order is free, and whole registers are stored.

use crate::cpu::Path;

/// Rows to a call.
pub(crate) const ROWS: usize = 512;
/// Words of a column in a call.
pub(crate) const LANES: usize = ROWS / 64;

/// Words 0 to 63 of a lane are the rows of a square of bits.
type Square = [[u64; LANES]; 64];

/// Blocks of [`ROWS`] rows: bit c of a block is the row's bit in column c. The columns are used up.
pub(crate) fn transpose(path: Path, columns: &mut [[u64; LANES]; 128], rows: &mut [u128; ROWS]) {
    let [low, high] = columns.as_chunks_mut::<64>().0 else { unreachable!("two halves of 128") };
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Path::of` gives this path only where the machine has it.
        Path::Avx512 => unsafe { wide::transpose(low, high, rows) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Path::Avx2 => unsafe { avx2(low, high, rows) },
        _ => portable(low, high, rows),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(low: &mut Square, high: &mut Square, rows: &mut [u128; ROWS]) {
    portable(low, high, rows)
}

#[inline(always)]
fn portable(low: &mut Square, high: &mut Square, rows: &mut [u128; ROWS]) {
    square(low);
    square(high);
    let rows = crate::cpu::words(rows).as_chunks_mut::<{ 2 * LANES }>().0;
    for ((row, low), high) in rows.iter_mut().zip(low.iter()).zip(high.iter()) {
        for l in 0..LANES {
            row[2 * l] = low[l];
            row[2 * l + 1] = high[l];
        }
    }
}

/// In every lane: word r, bit c becomes word c, bit r (Eklundh; swaps of halves, quarters, and so on).
#[inline(always)]
fn square(x: &mut Square) {
    level::<32>(x);
    level::<16>(x);
    level::<8>(x);
    level::<4>(x);
    level::<2>(x);
    level::<1>(x);
}

/// The bits of a word that stand in the lower half of each group of 2 `width`.
const fn lower(width: u32) -> u64 {
    u64::MAX / ((1 << width) + 1)
}

#[inline(always)]
fn level<const WIDTH: usize>(x: &mut Square) {
    for block in x.chunks_exact_mut(2 * WIDTH) {
        let (up, down) = block.split_at_mut(WIDTH);
        for (up, down) in up.iter_mut().zip(down) {
            for l in 0..LANES {
                let t = ((up[l] >> WIDTH) ^ down[l]) & lower(WIDTH as u32);
                down[l] ^= t;
                up[l] ^= t << WIDTH;
            }
        }
    }
}

/// The same with a register a row. Left to itself, the compiler makes registers of rows that lie apart, which it gathers.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{LANES, ROWS, Square, lower};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) fn transpose(low: &mut Square, high: &mut Square, rows: &mut [u128; ROWS]) {
        square(low);
        square(high);
        // words of low and high by turns, four lanes to a register
        let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        let rows = crate::cpu::words(rows).as_chunks_mut::<LANES>().0;
        for ((rows, low), high) in rows.as_chunks_mut::<2>().0.iter_mut().zip(&*low).zip(&*high) {
            let (low, high) = (load(low), load(high));
            store(&mut rows[0], _mm512_permutex2var_epi64(low, first, high));
            store(&mut rows[1], _mm512_permutex2var_epi64(low, second, high));
        }
    }

    /// Three levels on eight rows that stay in registers, twice.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn square(x: &mut Square) {
        for i in 0..8 {
            let mut r = [_mm512_setzero_si512(); 8];
            for j in 0..8 {
                r[j] = load(&x[8 * j + i]);
            }
            level::<32, 4>(&mut r);
            level::<16, 2>(&mut r);
            level::<8, 1>(&mut r);
            for j in 0..8 {
                store(&mut x[8 * j + i], r[j]);
            }
        }
        for rows in x.as_chunks_mut::<8>().0 {
            let mut r = [_mm512_setzero_si512(); 8];
            for j in 0..8 {
                r[j] = load(&rows[j]);
            }
            level::<4, 4>(&mut r);
            level::<2, 2>(&mut r);
            level::<1, 1>(&mut r);
            for j in 0..8 {
                store(&mut rows[j], r[j]);
            }
        }
    }

    /// Swaps bits between rows that are `APART` registers apart.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn level<const WIDTH: u32, const APART: usize>(r: &mut [__m512i; 8]) {
        let mask = _mm512_set1_epi64(lower(WIDTH) as i64);
        for up in 0..8 {
            if up & APART != 0 {
                continue;
            }
            let down = up + APART;
            // (up >> WIDTH ^ down) & mask
            let t = _mm512_ternarylogic_epi64::<0x28>(_mm512_srli_epi64::<WIDTH>(r[up]), r[down], mask);
            r[down] = _mm512_xor_si512(r[down], t);
            r[up] = _mm512_xor_si512(r[up], _mm512_slli_epi64::<WIDTH>(t));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(words: &[u64; LANES]) -> __m512i {
        // SAFETY: a register's words, wherever they lie.
        unsafe { _mm512_loadu_epi64(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(words: &mut [u64; LANES], r: __m512i) {
        // SAFETY: a register's words, wherever they lie.
        unsafe { _mm512_storeu_epi64(words.as_mut_ptr().cast(), r) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Path;
    use privet_prg::Seed;
    use privet_ring::Ring;

    #[test]
    fn every_bit_goes_to_its_place_on_every_path() {
        let mut prg = Seed::from_bytes([4; 16]).stream();
        let columns: [[u64; LANES]; 128] =
            std::array::from_fn(|_| prg.elements(Ring::R64, LANES).try_into().unwrap());
        for path in Path::all() {
            let mut rows = [0; ROWS];
            transpose(path, &mut columns.clone(), &mut rows);
            for l in 0..LANES {
                for b in 0..64 {
                    let row = (0..128).fold(0u128, |v, c| v | ((columns[c][l] >> b & 1) as u128) << c);
                    assert_eq!(rows[8 * b + l], row, "{path:?}, row {}", 64 * l + b);
                }
            }
        }
    }
}

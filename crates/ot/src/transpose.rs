//! From 128 columns of bits to blocks, 512 rows at a time.
//!
//! Rows leave in another order than they came: of 512 rows, row `64 l + b` becomes block `8 b + l`. Both parties permute
//! alike and transfers are alike, so the order is free, and whole registers are stored.

use crate::cpu::twice;

/// Rows to a call.
pub(crate) const ROWS: usize = 512;
/// Words of a column in a call.
pub(crate) const LANES: usize = ROWS / 64;

twice! {
    /// Blocks of [`ROWS`] rows: bit c of a block is the row's bit in column c. The columns are used up.
    fn transpose(columns: &mut [[u64; LANES]; 128], rows: &mut [u128; ROWS]) = body
}

#[inline(always)]
fn body(columns: &mut [[u64; LANES]; 128], rows: &mut [u128; ROWS]) {
    let (low, high) = columns.split_at_mut(64);
    let [low, high] = [low, high].map(|half| {
        let half: &mut [[u64; LANES]; 64] = half.try_into().expect("half of 128");
        square(half);
        half
    });
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
fn square(x: &mut [[u64; LANES]; 64]) {
    level::<32>(x, 0x0000_0000_ffff_ffff);
    level::<16>(x, 0x0000_ffff_0000_ffff);
    level::<8>(x, 0x00ff_00ff_00ff_00ff);
    level::<4>(x, 0x0f0f_0f0f_0f0f_0f0f);
    level::<2>(x, 0x3333_3333_3333_3333);
    level::<1>(x, 0x5555_5555_5555_5555);
}

#[inline(always)]
fn level<const WIDTH: usize>(x: &mut [[u64; LANES]; 64], mask: u64) {
    for block in x.chunks_exact_mut(2 * WIDTH) {
        let (up, down) = block.split_at_mut(WIDTH);
        for (up, down) in up.iter_mut().zip(down) {
            for l in 0..LANES {
                let t = ((up[l] >> WIDTH) ^ down[l]) & mask;
                down[l] ^= t;
                up[l] ^= t << WIDTH;
            }
        }
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

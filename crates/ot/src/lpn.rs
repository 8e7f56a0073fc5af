//! The code of Ferret: every output adds ten blocks of the table, at places that a public seed gives.
//!
//! Places are independent and uniform, 19 bits each at most: three words of the stream give ten (three in the low 57
//! bits of each word, the tenth from the seven highest bits of all three).

use crate::cpu::by_path;
use crate::params::GATHERS;
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// Bits of a place at most.
pub(crate) const INDEX_BITS: u32 = 19;
/// Words of the stream to an output.
const STREAM_WORDS: usize = 3;
/// Outputs whose places are drawn at a time.
const TILE: usize = 64;
/// Blocks are asked for so many rows ahead. A table lies in second-level caches at best, and the window in which a processor looks
/// ahead by itself holds few rows. LOCAL.
const AHEAD: usize = 6;

/// The rows of the code, one after the other.
pub(crate) struct Rows {
    stream: Prg,
    mask: u64,
}

impl Rows {
    /// Rows over a table of 2^log_k blocks.
    pub fn new(public: &Seed, log_k: u32) -> Rows {
        Rows { stream: public.stream(), mask: (1 << log_k) - 1 }
    }

    /// Adds the next rows' blocks of `table` to `out`, a multiple of [`TILE`] outputs.
    pub fn fold(&mut self, path: crate::cpu::Path, table: &[u128], out: &mut [u128]) {
        assert!(table.len() as u64 == self.mask + 1 && out.len().is_multiple_of(TILE));
        let mut drawn = [0; STREAM_WORDS * TILE];
        for out in out.as_chunks_mut::<TILE>().0 {
            self.stream.fill(Ring::R64, &mut drawn);
            gather(path, table, &drawn, self.mask, out);
        }
    }
}

/// Bytes of a block, as a shift.
const BLOCK: u32 = size_of::<u128>().trailing_zeros();

/// The places of one row in bytes from the table's start: a shift and a mask each, and no third instruction.
#[inline(always)]
fn places(words: &[u64; STREAM_WORDS], mask: u64) -> [usize; GATHERS] {
    let [a, b, c] = *words;
    let last = (a >> 57 | b >> 57 << 7 | c >> 57 << 14) << BLOCK;
    let of = |w: u64| [w << BLOCK, w >> (19 - BLOCK), w >> (38 - BLOCK)];
    let ([a, d, e], [b, f, g], [c, h, i]) = (of(a), of(b), of(c));
    [a, d, e, b, f, g, c, h, i, last].map(|p| (p & mask << BLOCK) as usize)
}

/// Has a row's blocks brought to the first-level cache.
#[inline(always)]
fn ask_for(table: &[u128], row: &[u64; STREAM_WORDS], mask: u64) {
    for place in places(row, mask) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: any address may be asked for; this one lies in the table.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().byte_add(place).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (table, place);
    }
}

by_path! {
    fn gather(table: &[u128], drawn: &[u64; STREAM_WORDS * TILE], mask: u64, out: &mut [u128; TILE]) = gather_body
}

#[inline(always)]
fn gather_body(table: &[u128], drawn: &[u64; STREAM_WORDS * TILE], mask: u64, out: &mut [u128; TILE]) {
    assert!(table.len() as u64 > mask);
    let rows = drawn.as_chunks::<STREAM_WORDS>().0;
    rows[..AHEAD].iter().for_each(|row| ask_for(table, row, mask));
    for (i, (out, words)) in out.iter_mut().zip(rows).enumerate() {
        if let Some(row) = rows.get(i + AHEAD) {
            ask_for(table, row, mask);
        }
        for place in places(words, mask) {
            // SAFETY: a whole number of blocks, at most `mask`, which is below the length, as asserted.
            *out ^= unsafe { *table.as_ptr().byte_add(place) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Path;

    #[test]
    fn places_of_a_row_are_ten_fields_of_nineteen_bits() {
        let words = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 0x5555_aaaa_1234_8765];
        let mask = (1 << 19) - 1;
        let fields = |w: u64| [w & mask, w >> 19 & mask, w >> 38 & mask];
        let expected: Vec<u64> = words.into_iter().flat_map(fields).collect();
        let found = places(&words, mask).map(|p| p as u64);
        assert!(found.iter().all(|p| p.is_multiple_of(16)));
        let found = found.map(|p| p / 16);
        assert_eq!(found[..9], expected);
        assert_eq!(found[9], (0x5555_aaaa_1234_8765u64 >> 57 << 14 | 127 << 7) & mask);
    }

    #[test]
    fn paths_agree_with_the_definition_and_rows_differ() {
        let mut table = vec![0u128; 1 << 8];
        Seed::from_bytes([1; 16]).stream().fill_blocks(&mut table);
        let public = Seed::from_bytes([2; 16]);
        for path in Path::all() {
            let mut rows = Rows::new(&public, 8);
            let mut out = vec![3u128; 4 * TILE];
            rows.fold(path, &table, &mut out);
            let mut stream = public.stream();
            for out in out.as_chunks::<TILE>().0 {
                let drawn = stream.elements(Ring::R64, STREAM_WORDS * TILE);
                for (out, words) in out.iter().zip(drawn.as_chunks::<STREAM_WORDS>().0) {
                    let expected = places(words, 255).into_iter().fold(3, |v, p| v ^ table[p / 16]);
                    assert_eq!(*out, expected, "{path:?}");
                }
            }
        }
    }
}

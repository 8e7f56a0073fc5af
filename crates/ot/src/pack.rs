//! Pads cut to bits and words: 128 bits a transfer, each read once.

use crate::cpu::Path;
use privet_prg::Wiped;
use privet_ring::Ring;

/// Bits of one string of a transfer.
pub const PAD_BITS: u32 = 128;

/// One string of each of n transfers. Reading moves on, so no bit is given twice.
pub struct Strings {
    blocks: Wiped<u128>,
    read: u32,
}

impl Strings {
    pub(crate) fn new(blocks: Wiped<u128>) -> Strings {
        Strings { blocks, read: 0 }
    }

    /// Transfers.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The next bit of every string: 64 to a word, zeros past the last.
    ///
    /// # Panics
    /// When the strings are used up.
    pub fn bits(&mut self) -> Wiped<u64> {
        let at = self.advance(1);
        bits_at(&self.blocks, at)
    }

    /// The next element of `ring` of every string: as many bits as an element has.
    ///
    /// # Panics
    /// When the strings are used up.
    pub fn words(&mut self, ring: Ring) -> Wiped<u64> {
        let (at, mask) = (self.advance(ring.bits()), ring.mask());
        match at + ring.bits() <= 64 {
            // one half of a block: shifts of 64 bits make vectors, those of 128 do not
            true => self.blocks.iter().map(|b| *b as u64 >> at & mask).collect(),
            false => self.blocks.iter().map(|b| (b >> at) as u64 & mask).collect(),
        }
    }

    /// The same as [`Strings::words`], each with the value beside it.
    ///
    /// # Panics
    /// When the strings are used up.
    #[inline(always)]
    pub fn words_into(&mut self, ring: Ring, values: &mut [u64], with: impl Fn(&mut u64, u64)) {
        let (at, mask) = (self.advance(ring.bits()), ring.mask());
        let all = values.iter_mut().zip(self.blocks.iter());
        match at + ring.bits() <= 64 {
            true => all.for_each(|(value, b)| with(value, *b as u64 >> at & mask)),
            false => all.for_each(|(value, b)| with(value, (b >> at) as u64 & mask)),
        }
    }

    fn advance(&mut self, bits: u32) -> u32 {
        let at = self.read;
        self.read += bits;
        assert!(self.read <= PAD_BITS, "{} bits of a string of {PAD_BITS} are read", self.read);
        at
    }
}

impl std::fmt::Debug for Strings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Strings[{}]", self.blocks.len())
    }
}

/// Bit `at` of every block: 64 to a word, zeros past the last.
pub(crate) fn bits_at(blocks: &[u128], at: u32) -> Wiped<u64> {
    let mut words = Wiped::zeros(blocks.len().div_ceil(64));
    gather(Path::detect(), blocks, at, &mut words);
    words
}

fn gather(path: Path, blocks: &[u128], at: u32, words: &mut [u64]) {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Path::of` gives this path only where the machine has it.
        Path::Avx512 => unsafe { avx512(blocks, at, words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Path::Avx2 => unsafe { avx2(blocks, at, words) },
        _ => portable(blocks, at, words),
    }
}

fn portable(blocks: &[u128], at: u32, words: &mut [u64]) {
    // One half of a block is looked at: shifts of 64 bits make vectors, those of 128 do not.
    let high = at >= 64;
    let shift = at % 64;
    for (word, blocks) in words.iter_mut().zip(blocks.chunks(64)) {
        let half = |b: &u128| if high { (b >> 64) as u64 } else { *b as u64 };
        *word = blocks.iter().enumerate().fold(0, |v, (i, b)| v | (half(b) >> shift & 1) << i);
    }
}

/// A test of four blocks at a time. Left to itself, the compiler gathers their halves.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn avx512(blocks: &[u128], at: u32, words: &mut [u64]) {
    use std::arch::x86_64::*;
    /// Blocks to a register.
    const FOUR: usize = 4;
    let bit = (1u64 << (at % 64)) as i64;
    let (bit, kept) = match at < 64 {
        true => (_mm512_setr_epi64(bit, 0, bit, 0, bit, 0, bit, 0), 0x5555_5555_5555_5555),
        false => (_mm512_setr_epi64(0, bit, 0, bit, 0, bit, 0, bit), 0xaaaa_aaaa_aaaa_aaaa),
    };
    for (word, blocks) in words.iter_mut().zip(blocks.chunks(64)) {
        *word = 0;
        // of a half's bits every other one counts
        for (i, blocks) in blocks.chunks(32).enumerate() {
            let (whole, rest) = blocks.as_chunks::<FOUR>();
            let mut found = 0u64;
            for (j, four) in whole.iter().enumerate() {
                // SAFETY: a register's blocks, wherever they lie.
                let four = unsafe { _mm512_loadu_epi64(four.as_ptr().cast()) };
                found |= u64::from(_mm512_test_epi64_mask(four, bit)) << (8 * j);
            }
            *word |= _pext_u64(found, kept) << (32 * i);
            for (j, block) in rest.iter().enumerate() {
                *word |= ((block >> at) as u64 & 1) << (32 * i + FOUR * whole.len() + j);
            }
        }
    }
}

/// The bit moved to the sign of one half, four blocks at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(blocks: &[u128], at: u32, words: &mut [u64]) {
    use std::arch::x86_64::*;
    /// Blocks to two registers.
    const FOUR: usize = 4;
    let up = _mm_cvtsi32_si128(63 - (at % 64) as i32);
    for (word, blocks) in words.iter_mut().zip(blocks.chunks(64)) {
        let (whole, rest) = blocks.as_chunks::<FOUR>();
        *word = 0;
        for (j, four) in whole.iter().enumerate() {
            let from: *const __m256i = four.as_ptr().cast();
            // SAFETY: two registers' blocks, wherever they lie.
            let (first, second) = unsafe { (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) };
            let halves = match at < 64 {
                true => _mm256_unpacklo_epi64(first, second),
                false => _mm256_unpackhi_epi64(first, second),
            };
            let in_order = _mm256_permute4x64_epi64::<0b11_01_10_00>(halves);
            let signs = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_sll_epi64(in_order, up)));
            *word |= (signs as u64) << (FOUR * j);
        }
        for (j, block) in rest.iter().enumerate() {
            *word |= ((block >> at) as u64 & 1) << (FOUR * whole.len() + j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    #[test]
    fn bits_and_words_lie_one_after_the_other() {
        for n in [0, 1, 63, 64, 65, 200] {
            let mut blocks = vec![0; n];
            Seed::from_bytes([7; 16]).stream().fill_blocks(&mut blocks);
            let mut strings = Strings::new(Wiped::new(blocks.clone()));
            let ring = Ring::new(37);
            let (bit, word, next) = (strings.bits(), strings.words(ring), strings.bits());
            let mut others = Strings::new(Wiped::new(blocks.clone()));
            let mut twice = vec![1; n];
            for _ in 0..3 {
                others.words_into(ring, &mut twice, |value, word| *value = *value << 1 ^ word);
            }
            let words = n.div_ceil(64);
            assert_eq!((bit.len(), word.len(), next.len()), (words, n, words));
            for (i, b) in blocks.iter().enumerate() {
                assert_eq!(bit[i / 64] >> (i % 64) & 1, *b as u64 & 1);
                assert_eq!(word[i], (b >> 1) as u64 & ring.mask());
                assert_eq!(next[i / 64] >> (i % 64) & 1, (b >> 38) as u64 & 1);
                let of = |at: u32| (b >> at) as u64 & ring.mask();
                assert_eq!(twice[i], 8 ^ of(0) << 2 ^ of(37) << 1 ^ of(74));
            }
        }
    }

    #[test]
    fn paths_agree() {
        for (n, at) in [(130, 70), (128, 0), (64, 63), (97, 64), (31, 127), (3, 5), (0, 1)] {
            let mut blocks = vec![0; n];
            Seed::from_bytes([8; 16]).stream().fill_blocks(&mut blocks);
            for path in Path::all() {
                let mut words = vec![u64::MAX; n.div_ceil(64)];
                gather(path, &blocks, at, &mut words);
                assert_eq!(words, bits_at(&blocks, at)[..]);
                let bit = |i: usize| words[i / 64] >> (i % 64) & 1;
                assert!(
                    (0..n).all(|i| bit(i) == (blocks[i] >> at) as u64 & 1),
                    "{path:?}, {n} blocks, bit {at}"
                );
                assert!((n..64 * words.len()).all(|i| bit(i) == 0), "{path:?}: zeros past the last");
            }
        }
    }

    #[test]
    #[should_panic(expected = "129 bits of a string of 128 are read")]
    fn no_bit_is_read_twice() {
        let mut strings = Strings::new(Wiped::new(vec![1]));
        strings.words(Ring::R64);
        strings.words(Ring::R64);
        strings.bits();
    }
}

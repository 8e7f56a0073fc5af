//! What the calls of [`super::Transfers`] cost, from sizes alone. Tests hold this to what is counted.
//!
//! Costs are of two parties together, and equal for every two of them. Among n parties there are n (n - 1) / 2 such pairs, and
//! a party has a share of 1 / n of all that is sent, as all take turns in the roles. Elements count in whole words of 64.

use super::row::{LOAD, ROWS, RUN};
use privet_ring::Ring;
use std::ops::{Add, Range};

/// What a call costs two parties together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Correlated transfers, of both directions.
    pub transfers: u64,
    /// Bytes of messages, both ways, but for what makes the transfers ([`privet_ot::Source`]).
    pub bytes: u64,
    /// Exchanges one after the other: two messages each way, after those that make the transfers.
    pub steps: u64,
}

impl Add for Transferred {
    type Output = Transferred;

    /// One call after the other.
    fn add(self, other: Transferred) -> Transferred {
        Transferred {
            transfers: self.transfers + other.transfers,
            bytes: self.bytes + other.bytes,
            steps: self.steps + other.steps,
        }
    }
}

/// Rows of `words` words of transfers: each has a masked choice beside the bits that it carries.
fn rows(words: usize, rows: u64, carried: u64) -> Transferred {
    let words = words as u64;
    Transferred { transfers: 64 * words * rows, bytes: 8 * words * (rows + carried), steps: 0 }
}

/// Exchanges of what goes in blocks through `stages` stages, `rows` rows to a block.
fn steps(parties: usize, words: usize, rows: u64, stages: usize) -> u64 {
    let size = words.div_ceil(parties).clamp(1, RUN / 64);
    let together = parties as u64 * (ROWS as u64 / rows.max(1)).max(1);
    (words.div_ceil(size) as u64).div_ceil(together) * stages as u64
}

/// [`super::Transfers::bitwise_mask`], of `bits` bits, in `ring`.
pub fn bitwise_mask(
    parties: usize,
    count: usize,
    bits: u32,
    ring: Ring,
    words: &[Range<u32>],
    pairs: bool,
) -> Transferred {
    let (mut number, mut carried) = (0, 0);
    for bit in 0..bits {
        let of = || words.iter().filter(|range| range.contains(&bit));
        let modulus = of().map(|range| ring.bits().saturating_sub(bit - range.start)).max().unwrap_or(0);
        let fresh = of().any(|range| range.start == bit);
        let word = if fresh { modulus } else { modulus.saturating_sub(1) };
        let pair = pairs && bit < bits / 2 * 2;
        number += u64::from(word > 0 || pair);
        carried += u64::from(word) + u64::from(pair);
    }
    let side = count.div_ceil(64);
    Transferred { steps: steps(parties, side, number, parties - 1), ..rows(side, number, carried) }
}

/// [`super::Transfers::and`] of factors with so many words and so many others.
pub fn and(factors: &[(usize, usize)]) -> Transferred {
    let pieces: usize = factors.iter().map(|(words, ys)| words.div_ceil(RUN / 64) * ys.div_ceil(LOAD)).sum();
    let both = |(words, ys): &(usize, usize)| rows(*words, 2 * ys.div_ceil(LOAD) as u64, 2 * *ys as u64);
    let all = factors.iter().map(both).fold(Transferred::default(), Transferred::add);
    Transferred { steps: pieces.div_ceil(ROWS) as u64, ..all }
}

/// [`super::Transfers::to_words`] of planes of so many words.
pub fn to_words(parties: usize, words: usize, ring: Ring) -> Transferred {
    Transferred { steps: steps(parties, words, 1, parties - 1), ..rows(words, 1, ring.bits().into()) }
}

/// [`super::Transfers::times`] of one plane of so many words, and one operand.
pub fn times(parties: usize, words: usize, ring: Ring) -> Transferred {
    Transferred { steps: steps(parties, words, 1, parties), ..rows(words, 2, 2 * u64::from(ring.bits())) }
}

/// [`super::Transfers::multiply`].
pub fn multiply(parties: usize, count: usize, ring: Ring) -> Transferred {
    let (k, words) = (u64::from(ring.bits()), count.div_ceil(64));
    Transferred { steps: steps(parties, words, k, 1), ..rows(words, 2 * k, k * (k + 1)) }
}

/// [`super::Transfers::square`].
pub fn square(parties: usize, count: usize, ring: Ring) -> Transferred {
    let (k, words) = (u64::from(ring.bits()), count.div_ceil(64));
    let number = (k - 1).max(1);
    Transferred {
        steps: steps(parties, words, number, 1),
        ..rows(words, number, k + (k - 1) * k.saturating_sub(2) / 2)
    }
}

/// [`super::Transfers::open`].
pub fn open(count: usize, ring: Ring) -> Transferred {
    Transferred { transfers: 0, bytes: 2 * ring.packed_bytes(count) as u64, steps: 1 }
}

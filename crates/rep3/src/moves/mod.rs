//! Deal, split, and the reshare of bits: what everything that costs communication is made of (docs/rep3.md, section 2).
//!
//! Every move remembers what it has to prove where a party may cheat. Statements are pushed part by part, in the same
//! order at all parties.

mod and;
mod deal;
mod masked;
mod pieces;
mod same;
mod select;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use and::And;
pub(crate) use deal::{Deal, DealMasks, Dealt, Product};
pub(crate) use masked::Masked;
pub use masked::masked_block;
pub(crate) use pieces::Pieces;
pub(crate) use same::{Side, Sides};
pub(crate) use select::{Chosen, Select, Turned};
pub(crate) use split::{Known, Split};

use crate::PartyId;
use crate::proof::{Algebra, Kind, Transcript, View};
use privet_kernels::wide;
use privet_ring::Ring;

/// Words handled at a time, which stay in the first-level cache; a whole number of cipher blocks and of packed bytes.
const PIECE: usize = 1024;

/// Remember a statement, if it is about anything: parts of short vectors are empty.
fn remember(transcript: &mut Transcript, kind: Kind, prover: PartyId, view: View) {
    if view.words() > 0 {
        transcript.push(kind, prover, view);
    }
}

impl Algebra {
    /// What a word of it is packed as.
    pub(crate) fn ring(self) -> Ring {
        match self {
            Algebra::Bits => Ring::R64,
            Algebra::Ring(ring) => ring,
        }
    }

    /// `a <- a - b`, word by word.
    pub(crate) fn subtract(self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        let words = a.iter_mut().zip(b);
        wide!(match self {
            Algebra::Bits => words.for_each(|(a, b)| *a ^= b),
            Algebra::Ring(ring) => words.for_each(|(a, b)| *a = ring.wrap(a.wrapping_sub(*b))),
        })
    }

    /// `a <- a + b`, word by word.
    pub(crate) fn add(self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        let words = a.iter_mut().zip(b);
        wide!(match self {
            Algebra::Bits => words.for_each(|(a, b)| *a ^= b),
            Algebra::Ring(ring) => words.for_each(|(a, b)| *a = ring.wrap(a.wrapping_add(*b))),
        })
    }

    /// `a + b`, word by word.
    pub(crate) fn sum(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        debug_assert_eq!(a.len(), b.len());
        let words = a.iter().zip(b);
        wide!(match self {
            Algebra::Bits => words.map(|(a, b)| a ^ b).collect(),
            Algebra::Ring(ring) => words.map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect(),
        })
    }

    /// `a <- a - x y`, word by word.
    pub(crate) fn subtract_product(self, a: &mut [u64], x: &[u64], y: &[u64]) {
        debug_assert!(a.len() == x.len() && x.len() == y.len());
        let words = a.iter_mut().zip(x.iter().zip(y));
        wide!(match self {
            Algebra::Bits => words.for_each(|(a, (x, y))| *a ^= x & y),
            Algebra::Ring(ring) => {
                words.for_each(|(a, (x, y))| *a = ring.wrap(a.wrapping_sub(x.wrapping_mul(*y))))
            }
        })
    }

    /// `a <- a + x y`, word by word.
    pub(crate) fn add_product(self, a: &mut [u64], x: &[u64], y: &[u64]) {
        debug_assert!(a.len() == x.len() && x.len() == y.len());
        let words = a.iter_mut().zip(x.iter().zip(y));
        wide!(match self {
            Algebra::Bits => words.for_each(|(a, (x, y))| *a ^= x & y),
            Algebra::Ring(ring) => {
                words.for_each(|(a, (x, y))| *a = ring.wrap(a.wrapping_add(x.wrapping_mul(*y))))
            }
        })
    }

    /// `a <- -a`, word by word.
    pub(crate) fn negate(self, a: &mut [u64]) {
        if let Algebra::Ring(ring) = self {
            wide!(a.iter_mut().for_each(|a| *a = ring.wrap(a.wrapping_neg())));
        }
    }
}

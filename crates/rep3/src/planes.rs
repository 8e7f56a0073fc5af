//! Bits, 64 to a word, and their way from and to elements.

use crate::context::Party;
use crate::moves::{Dealt, Known};
use crate::parts::Parts;
use crate::proof::Column;
use crate::{PartyId, Planes};
use privet_family::Secret;
use privet_kernels::Device;
use privet_ring::Ring;
use std::ops::Range;
use std::sync::Arc;

/// One party's share of some words of bits: a range of planes.
#[derive(Clone)]
pub(crate) struct Words {
    pub own: Column,
    pub next: Column,
}

impl Words {
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Add words to both components.
    pub fn xor(&self, other: &Words) -> Words {
        let xor =
            |a: &Column, b: &Column| a.iter().zip(b.iter()).map(|(a, b)| a ^ b).collect::<Vec<_>>().into();
        Words { own: xor(&self.own, &other.own), next: xor(&self.next, &other.next) }
    }

    /// As one plane of `n` bits.
    pub fn plane(&self, n: usize) -> Planes {
        Planes::new(n, 1, self.own.to_vec(), self.next.to_vec())
    }
}

impl Planes {
    /// All words, without a copy.
    pub(crate) fn all(&self) -> Words {
        Words { own: (&self.own).into(), next: (&self.next).into() }
    }

    /// The planes `range`, without a copy.
    pub(crate) fn range(&self, range: Range<usize>) -> Words {
        let words = range.start * self.words()..range.end * self.words();
        Words { own: Column::slice(&self.own, words.clone()), next: Column::slice(&self.next, words) }
    }

    /// The elements `range` of one plane, which begins at a word.
    pub(crate) fn range_of(&self, range: Range<usize>) -> Planes {
        debug_assert!(self.count == 1 && range.start.is_multiple_of(64));
        if range.len() == self.n {
            return self.clone();
        }
        let words = range.start / 64..range.end.div_ceil(64);
        Planes::new(range.len(), 1, self.own[words.clone()].to_vec(), self.next[words].to_vec())
    }

    /// The complement of every bit: a public constant, added to component 0.
    pub(crate) fn not(&self, id: PartyId) -> Planes {
        let flip = |words: &Arc<Secret>, flip: bool| {
            if flip { Arc::new(words.iter().map(|w| !w).collect()) } else { words.clone() }
        };
        Planes {
            own: flip(&self.own, id == PartyId::ALL[0]),
            next: flip(&self.next, id == PartyId::ALL[2]),
            ..*self
        }
    }

    /// One plane as the summands of section 3, one 0 or 1 an element: `c_j ^ c_(j+1)` and `c_(j+2)`.
    pub(crate) fn summands(&self, cx: &Party, parts: &Parts) -> (Bit, Known) {
        let mine = parts.words(cx.id).mine;
        let u: Vec<u64> = self.own[mine.clone()].iter().zip(&self.next[mine]).map(|(a, b)| a ^ b).collect();
        let values = elements(&u, 0..parts.elements(cx.id).mine.len());
        let shared = cx.transcript.is_some().then(|| self.dealt(cx.id, parts));
        (Bit { values, shared }, self.known(cx.id, parts))
    }

    /// `c_j` and `c_(j+1)` of one plane, one 0 or 1 an element.
    pub(crate) fn dealt(&self, id: PartyId, parts: &Parts) -> Dealt {
        debug_assert_eq!((self.count, self.n), (1, parts.len()));
        let part = parts.elements(id);
        let bits = |words: &[u64], range| Column::from(elements(words, range));
        Dealt {
            own: bits(&self.own, part.mine.clone()),
            next: bits(&self.next, part.mine),
            before: bits(&self.own, part.before),
            after: bits(&self.next, part.after),
        }
    }

    /// `c_(j+2)` of one plane, one 0 or 1 an element.
    pub(crate) fn known(&self, id: PartyId, parts: &Parts) -> Known {
        debug_assert_eq!((self.count, self.n), (1, parts.len()));
        let part = parts.elements(id);
        let bits = |words: &[u64], range| Column::from(elements(words, range));
        Known { before: bits(&self.next, part.before), after: bits(&self.own, part.after) }
    }
}

/// A bit that the dealer of a part knows, for this party's own part, 0 or 1 an element.
pub(crate) struct Bit {
    pub values: Vec<u64>,
    /// The bit's sharing modulo 2, as elements 0 and 1, from which the dealt number is proved. None where every party
    /// is trusted.
    pub shared: Option<Dealt>,
}

impl Bit {
    /// Remember to prove that `dealt` is this bit.
    pub fn claim(&self, cx: &mut Party, ring: Ring, dealt: &Dealt) {
        if let Some(shared) = &self.shared {
            cx.claim_bits(ring, [(1, shared)], dealt);
        }
    }
}

/// Planes of `values`, see [`Device::bit_planes`]; every place below `places.len()` is taken once.
pub(crate) fn to_planes(device: &dyn Device, values: &[u64], places: &[usize]) -> Vec<u64> {
    let mut out = vec![0; places.len() * values.len().div_ceil(64)];
    device.bit_planes(values, places, &mut out);
    out
}

/// Bits `range` of a plane, one 0 or 1 an element.
pub(crate) fn elements(plane: &[u64], range: Range<usize>) -> Vec<u64> {
    debug_assert!(range.start.is_multiple_of(64) || range.is_empty());
    let mut out = Vec::with_capacity(range.len());
    let words = plane.get(range.start / 64..).unwrap_or_default();
    for word in words.iter().take(range.len().div_ceil(64)) {
        let bits: [u64; 64] = std::array::from_fn(|e| word >> e & 1);
        out.extend_from_slice(&bits[..bits.len().min(range.len() - out.len())]);
    }
    out.resize(range.len(), 0);
    out
}

/// The plane of which these are the bits, 0 or 1 an element.
pub(crate) fn packed(bits: &[u64]) -> Vec<u64> {
    let word = |bits: &[u64]| bits.iter().enumerate().fold(0, |word, (e, bit)| word | bit << e);
    bits.chunks(64).map(word).collect()
}

/// Places that put the even bits of `count` first and the odd ones behind them.
pub(crate) fn evens_first(count: usize) -> Vec<usize> {
    (0..count).map(|l| l / 2 + (l % 2) * count.div_ceil(2)).collect()
}

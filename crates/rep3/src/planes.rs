//! Bits, 64 to a word, and their way from and to elements.

use crate::context::Party;
use crate::moves::{Dealt, Known};
use crate::parts::Parts;
use crate::proof::Column;
use crate::{PartyId, Planes};
use privet_family::Secret;
use privet_kernels::{Device, wide};
use privet_ring::{PLACES, Ring, mask_at};
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

    /// One plane as the summands of section 3: `c_j ^ c_(j+1)` and `c_(j+2)`.
    pub(crate) fn summands(&self, cx: &Party, parts: &Parts) -> (Bit, Known<Bits>) {
        let mine = parts.words(cx.id).mine;
        let u: Vec<u64> = self.own[mine.clone()].iter().zip(&self.next[mine]).map(|(a, b)| a ^ b).collect();
        let values = elements(&u, 0..parts.elements(cx.id).mine.len());
        let shared = cx.transcript.is_some().then(|| self.dealt(cx.id, parts));
        (Bit { values, shared }, self.known(cx.id, parts))
    }

    /// `c_j` and `c_(j+1)` of one plane.
    pub(crate) fn dealt(&self, id: PartyId, parts: &Parts) -> Dealt<Bits> {
        debug_assert_eq!((self.count, self.n), (1, parts.len()));
        let part = parts.elements(id);
        Dealt {
            own: Bits::part(&self.own, part.mine.clone()),
            next: Bits::part(&self.next, part.mine),
            before: Bits::part(&self.own, part.before),
            after: Bits::part(&self.next, part.after),
        }
    }

    /// `c_(j+2)` of one plane.
    pub(crate) fn known(&self, id: PartyId, parts: &Parts) -> Known<Bits> {
        debug_assert_eq!((self.count, self.n), (1, parts.len()));
        let part = parts.elements(id);
        Known { before: Bits::part(&self.next, part.before), after: Bits::part(&self.own, part.after) }
    }
}

/// Bits of elements that stand side by side, 64 to a word; those behind the last one are 0.
#[derive(Clone)]
pub(crate) struct Bits {
    words: Column,
    n: usize,
}

impl Bits {
    /// The first `n` bits of as many words as have them.
    pub fn of(words: Column, n: usize) -> Bits {
        debug_assert_eq!(words.len(), n.div_ceil(64));
        if n.is_multiple_of(64) {
            return Bits { words, n };
        }
        let mut words = words.to_vec();
        words.iter_mut().skip(n / 64).for_each(|last| *last &= (1 << (n % 64)) - 1);
        Bits { words: words.into(), n }
    }

    /// The elements `range` of a plane, of which the first one begins a word.
    fn part(plane: &Arc<Secret>, range: Range<usize>) -> Bits {
        debug_assert!(range.start.is_multiple_of(64) || range.is_empty());
        let words = range.start.div_ceil(64)..range.end.div_ceil(64);
        Bits::of(Column::slice(plane, words), range.len())
    }

    /// The bit `l` of every number.
    pub fn of_numbers(numbers: &[u64], l: u32) -> Bits {
        let word = |some: &[u64]| some.iter().rev().fold(0, |word, x| word << 1 | (x >> l & 1));
        Bits { words: numbers.chunks(64).map(word).collect::<Vec<_>>().into(), n: numbers.len() }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.n
    }

    /// The words.
    pub fn words(&self) -> &Column {
        &self.words
    }

    /// For every element of a range all ones where its bit is 1, and else 0.
    pub fn masks(&self, range: Range<usize>, mut to: &mut [u64]) {
        debug_assert!(range.len() == to.len() && range.end <= self.n);
        let mut at = range.start;
        while !to.is_empty() {
            let word = self.words[at / 64] >> (at % 64);
            let (some, later) = to.split_at_mut(to.len().min(64 - at % 64));
            wide!(some.iter_mut().zip(&PLACES).for_each(|(mask, place)| *mask = mask_at(word, *place)));
            at += some.len();
            to = later;
        }
    }

    /// Those of a range of numbers whose bit is 1, and 0 for the others.
    pub fn choose(&self, range: Range<usize>, numbers: &[u64], to: &mut [u64]) {
        self.masks(range.clone(), to);
        wide!(to.iter_mut().zip(&numbers[range]).for_each(|(to, number)| *to &= number));
    }

    /// Every number by what its bit says: `of(mask, number)`, with a mask as of [`Bits::masks`].
    pub fn with(&self, numbers: &[u64], of: impl Fn(u64, u64) -> u64) -> Vec<u64> {
        debug_assert_eq!(numbers.len(), self.n);
        let mut out = Vec::with_capacity(numbers.len());
        wide!({
            for (word, some) in self.words.iter().zip(numbers.chunks(64)) {
                out.extend(some.iter().zip(&PLACES).map(|(x, place)| of(mask_at(*word, *place), *x)));
            }
        });
        out
    }
}

/// A bit that the dealer of a part knows, for this party's own part, 0 or 1 an element.
pub(crate) struct Bit {
    pub values: Vec<u64>,
    /// The bit's sharing modulo 2, from which the dealt number is proved. None where every party is trusted.
    pub shared: Option<Dealt<Bits>>,
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

/// Places that put the even bits of `count` first and the odd ones behind them.
pub(crate) fn evens_first(count: usize) -> Vec<usize> {
    (0..count).map(|l| l / 2 + (l % 2) * count.div_ceil(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits against their definition, wherever a range begins; and what stands behind the last one is left out.
    #[test]
    fn bits_choose_among_numbers() {
        for n in [0, 1, 63, 64, 65, 200] {
            let numbers: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let ones = |l: u32| numbers.iter().map(|x| (x >> l & 1).wrapping_neg()).collect::<Vec<u64>>();
            let bits = Bits::of_numbers(&numbers, 7);
            assert_eq!(bits.len(), n);
            for range in [0..n, n / 2..n, n.min(1)..n, n.min(64)..n, n..n] {
                let mut masks = vec![3; range.len()];
                bits.masks(range.clone(), &mut masks);
                assert_eq!(masks, ones(7)[range.clone()], "{range:?} of {n}");
                bits.choose(range.clone(), &numbers, &mut masks);
                let chosen = ones(7).into_iter().zip(&numbers).map(|(mask, x)| mask & x);
                assert_eq!(masks, chosen.collect::<Vec<_>>()[range.clone()], "{range:?} of {n}");
            }
            let with = bits.with(&numbers, |mask, x| mask.wrapping_add(x));
            let sums = ones(7).into_iter().zip(&numbers).map(|(mask, x)| mask.wrapping_add(*x));
            assert_eq!(with, sums.collect::<Vec<_>>(), "{n}");

            // of a plane: what its last word has beyond the elements is a share of nothing
            let plane = Arc::new(Secret::from(vec![u64::MAX; n.div_ceil(64)]));
            for start in (0..=n).step_by(64) {
                let part = Bits::part(&plane, start..n);
                let ones: u32 = part.words().iter().map(|word| word.count_ones()).sum();
                assert_eq!((part.len(), ones as usize), (n - start, n - start), "from {start} of {n}");
            }
        }
    }

    /// As they meet numbers: 64 in a word, or each in every place of a number.
    #[test]
    fn bits_in_every_place_of_numbers() {
        let numbers: Vec<u64> = (0..130).map(|i| i / 3 % 2).collect();
        let bits = Bits::of_numbers(&numbers, 0);
        for ring in [1, 13, 21].map(Ring::new) {
            let words = bits.spread(ring);
            let lanes = 64 / ring.bits() as usize;
            assert_eq!(words.len(), numbers.len().div_ceil(lanes));
            for (i, bit) in numbers.iter().enumerate() {
                let place = words[i / lanes] >> (i % lanes * ring.bits() as usize);
                assert_eq!(ring.wrap(place), ring.wrap(bit.wrapping_neg()), "{i} of {ring}");
            }
        }
        assert_eq!(bits.spread(Ring::R64)[..], bits.words()[..]);
    }
}

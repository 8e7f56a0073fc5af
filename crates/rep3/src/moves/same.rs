//! Statements that two numbers are the same, of which each verifier knows one but for bits that the other verifier knows
//! (docs/rep3.md, section 6).
//!
//! The words W_x of one side, one for each choice x of the other's bits, have the word of the bits that are set as
//! `W_0 ^ sum over sets of bits of (product of the bits)(difference)`. So the statement is one about words of bits, whatever their carries
//! meant: for each nonempty set of bits the product of a bit, of which each side has a summand, and a word, of which each has one.

use crate::PartyId;
use crate::context::Party;
use crate::planes::packed;
use crate::price::proofs::alone;
use crate::proof::{Algebra, Column, Kind, View};
use privet_ring::Ring;
use std::ops::Range;

/// What one verifier knows of a number: which of some it is, the other verifier's bits say.
pub(crate) struct Side<F> {
    /// Its bits, which say which of the other side's numbers it is, as they meet numbers ([`spread`]).
    pub bits: Vec<Column>,
    /// The elements of a range where the other's bits are those of the argument, the first one lowest; what is above the
    /// bits of the ring does not count.
    pub numbers: F,
}

/// One party's view of both sides.
pub(crate) enum Sides<F, G> {
    /// The prover's.
    Both(Side<F>, Side<G>),
    /// That of the party before the prover, and how many bits the other side has.
    Before(Side<F>, usize),
    /// That of the party after it.
    After(Side<G>, usize),
}

impl Party<'_> {
    /// Remember that both sides' numbers are the same modulo 2^k, `n` of them.
    pub(crate) fn claim_same<F, G>(&mut self, ring: Ring, prover: PartyId, n: usize, sides: Sides<F, G>)
    where
        F: Fn(Range<usize>, usize, &mut [u64]),
        G: Fn(Range<usize>, usize, &mut [u64]),
    {
        let Some(transcript) = &mut self.transcript else { return };
        // a statement about words of bits is products + s_B + s_A = 0 as well as this side's number = the other's
        let view = match sides {
            Sides::Both(before, after) => both(ring, n, before, after),
            Sides::Before(side, others) => side.view(ring, n, others),
            Sides::After(side, others) => side.view(ring, n, others),
        };
        // a number that has a word of its own is one statement
        let kind = if alone(ring.bits()) { Kind::Numbers } else { Kind::Bits };
        super::remember(transcript, kind, prover, view);
    }
}

/// The prover's view. With W' and x for the difference and the product of bits of one set of the bits of A, and V' and y of B's:
/// `W' x + V' y = (W' + V')(x + y) + W' y + V' x`, of which B knows the second summand and A the third.
fn both<F, G>(ring: Ring, n: usize, before: Side<F>, after: Side<G>) -> View
where
    F: Fn(Range<usize>, usize, &mut [u64]),
    G: Fn(Range<usize>, usize, &mut [u64]),
{
    let (of_before, of_after) = (before.bits.len(), after.bits.len());
    let terms = sets(of_before, of_after).map(|set| {
        let left = side_by_side(ring, n, |range, to| {
            if is_of(set, of_after) {
                before.add_difference(range.clone(), set, to);
            }
            if is_of(set, of_before) {
                after.add_difference(range, set, to);
            }
        });
        let products = [before.product(set), after.product(set)];
        let right = match products {
            [Some(x), Some(y)] => Algebra::Bits.sum(&x, &y).into(),
            [x, y] => x.or(y).unwrap_or_else(|| unreachable!("a set of either side's bits")),
        };
        [left.into(), right]
    });
    View::Prover(terms.collect())
}

/// All sets of the bits of one side or the other, but the empty one.
fn sets(bits: usize, others: usize) -> Range<usize> {
    1..1 << bits.max(others)
}

/// Whether a set is one of so many bits.
fn is_of(set: usize, bits: usize) -> bool {
    set >> bits == 0
}

impl<F: Fn(Range<usize>, usize, &mut [u64])> Side<F> {
    /// What a verifier with this side knows, where the other side has so many bits.
    fn view(&self, ring: Ring, n: usize, others: usize) -> View {
        let mut s = side_by_side(ring, n, |range, to| (self.numbers)(range, 0, to));
        let terms = sets(self.bits.len(), others).map(|set| {
            let difference = |range, to: &mut [u64]| self.add_difference(range, set, to);
            let left = is_of(set, others).then(|| side_by_side(ring, n, difference));
            let right = self.product(set);
            if let (Some(left), Some(right)) = (&left, &right) {
                add_chosen(ring, &mut s, left, right);
            }
            [left.map(Column::from), right]
        });
        let terms = terms.collect();
        View::Verifier { terms, s: s.into() }
    }

    /// Add what a set of the other's bits adds to the number, to elements.
    fn add_difference(&self, range: Range<usize>, set: usize, to: &mut [u64]) {
        let mut more = [0; PIECE];
        let more = &mut more[..to.len()];
        for x in subsets(set) {
            (self.numbers)(range.clone(), x, more);
            Algebra::Bits.add(to, more);
        }
    }

    /// The product of a set of this side's bits, if it is one.
    fn product(&self, set: usize) -> Option<Column> {
        if !is_of(set, self.bits.len()) {
            return None;
        }
        let mut bits = self.bits.iter().enumerate().filter(|(t, _)| set >> t & 1 == 1).map(|(_, bit)| bit);
        let first = bits.next()?.clone();
        Some(
            bits.fold(first, |all, bit| {
                all.iter().zip(&bit[..]).map(|(a, b)| a & b).collect::<Vec<_>>().into()
            }),
        )
    }
}

/// Add words where a bit is 1, as it meets them ([`spread`]).
fn add_chosen(ring: Ring, to: &mut [u64], words: &[u64], bits: &[u64]) {
    if !alone(ring.bits()) {
        return Algebra::Bits.add_product(to, words, bits);
    }
    for ((to, words), bits) in to.chunks_mut(64).zip(words.chunks(64)).zip(bits) {
        for (i, (to, word)) in to.iter_mut().zip(words).enumerate() {
            *to ^= word & (bits >> i & 1).wrapping_neg();
        }
    }
}

/// Bits, 0 or 1 an element, as they meet numbers of a ring: each in every place of a number, or, where a number has a word of its
/// own, 64 in a word.
pub(crate) fn spread(ring: Ring, bits: &[u64]) -> Column {
    if alone(ring.bits()) {
        return packed(bits).into();
    }
    let words = side_by_side(ring, bits.len(), |range, to| {
        to.iter_mut().zip(&bits[range]).for_each(|(to, bit)| *to = bit.wrapping_neg());
    });
    words.into()
}

/// All subsets of a set, as sets of bits, the empty one included.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    (0..=set).filter(move |x| x & !set == 0)
}

/// Numbers at a time, before they are put together in words.
const PIECE: usize = 512;

/// Numbers modulo 2^k, each in a word or, where they are short, as many in one as go in. `numbers` is given zeros.
fn side_by_side(ring: Ring, n: usize, numbers: impl Fn(Range<usize>, &mut [u64])) -> Vec<u64> {
    let bits = ring.bits();
    let lanes = if alone(bits) { 1 } else { 64 / bits as usize };
    let mut words = Vec::with_capacity(n.div_ceil(lanes));
    let mut some = [0; PIECE];
    let piece = PIECE / lanes * lanes;
    for start in (0..n).step_by(piece) {
        let range = start..n.min(start + piece);
        let some = &mut some[..range.len()];
        some.fill(0);
        numbers(range, some);
        some.iter_mut().for_each(|x| *x = ring.wrap(*x));
        if lanes == 1 {
            words.extend_from_slice(some);
            continue;
        }
        words.extend(some.chunks(lanes).map(|some| some.iter().rev().fold(0, |word, x| word << bits | x)));
    }
    words
}

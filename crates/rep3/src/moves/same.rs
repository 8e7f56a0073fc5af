//! Statements that two numbers are equal modulo 2^k (docs/rep3.md, section 6, *equal numbers*).
//!
//! B can compute one of the numbers if it is told A's bits, and A the other if it is told B's. So each side writes down a word for
//! every choice of the other's bits. With W_x for the word of choice x, the word at the true bits is `W_0 ^ sum over sets of bits of
//! (product of the set's bits)(difference of the set)`, where the difference of a set is the sum of the W_x of its subsets. That is
//! a statement about words of bits, whatever carries the numbers have: for each nonempty set one term, of a word and of a bit.

use crate::PartyId;
use crate::context::Party;
use crate::planes::packed;
use crate::price::proofs::alone;
use crate::proof::{Algebra, Column, Kind, View};
use privet_ring::Ring;
use std::ops::Range;

/// What one verifier knows of the statement.
pub(crate) struct Side<F> {
    /// Its bits, on which the other side's number depends, as they are multiplied with numbers ([`spread`]).
    pub bits: Vec<Column>,
    /// `numbers(range, choice, to)` puts this side's numbers of a range of elements into `to`, for one choice of the other side's
    /// bits: bit t of `choice` is the other's bit t. What is above the bits of the ring does not count.
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
        // The sum of both sides' words at the true bits is 0 where the numbers are equal.
        let view = match sides {
            Sides::Both(before, after) => both(ring, n, before, after),
            Sides::Before(side, others) => side.view(ring, n, others),
            Sides::After(side, others) => side.view(ring, n, others),
        };
        // A number that has a word of its own is one statement.
        let kind = if alone(ring.bits()) { Kind::Numbers } else { Kind::Bits };
        super::remember(transcript, kind, prover, view);
    }
}

/// The prover's view. For one set of bits, let W' and y be B's difference and the product of B's bits, and V' and x be A's. The
/// statement needs W' x + V' y, which is `(W' + V')(x + y) + W' y + V' x`: one term, and what B alone and A alone know.
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

/// Whether a side with so many bits has all bits of a set.
fn is_of(set: usize, bits: usize) -> bool {
    set >> bits == 0
}

impl<F: Fn(Range<usize>, usize, &mut [u64])> Side<F> {
    /// The view of the verifier with this side, where the other side has `others` bits.
    fn view(&self, ring: Ring, n: usize, others: usize) -> View {
        let mut rest = side_by_side(ring, n, |range, to| (self.numbers)(range, 0, to));
        let terms = sets(self.bits.len(), others).map(|set| {
            let difference = |range, to: &mut [u64]| self.add_difference(range, set, to);
            let left = is_of(set, others).then(|| side_by_side(ring, n, difference));
            let right = self.product(set);
            if let (Some(left), Some(right)) = (&left, &right) {
                add_chosen(ring, &mut rest, left, right);
            }
            [left.map(Column::from), right]
        });
        let terms = terms.collect();
        View::Verifier { terms, rest: rest.into() }
    }

    /// Add the difference of a set of the other side's bits, for a range of elements.
    fn add_difference(&self, range: Range<usize>, set: usize, to: &mut [u64]) {
        let mut more = [0; PIECE];
        let more = &mut more[..to.len()];
        for x in subsets(set) {
            (self.numbers)(range.clone(), x, more);
            Algebra::Bits.add(to, more);
        }
    }

    /// The product of a set of this side's bits; none where it has not all of them.
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

/// Add words where a bit is 1; the bits are laid out as [`spread`] does.
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

/// Bits, 0 or 1 an element, as they are multiplied with numbers of a ring: each in every place of a number, or, where a number
/// has a word of its own, 64 in a word.
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

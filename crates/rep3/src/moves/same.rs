//! Statements that two numbers are equal modulo 2^k (docs/rep3.md, section 6, *equal numbers*).
//!
//! B can compute one of the numbers if it is told A's bits, and A the other if it is told B's. So each side writes down a word for
//! every choice of the other's bits. With W_x for the word of choice x, the word at the true bits is `W_0 ^ sum over sets of bits of
//! (product of the set's bits)(difference of the set)`, where the difference of a set is the sum of the W_x of its subsets. That is
//! a statement about words of bits, whatever carries the numbers have: for each nonempty set one term, of a word and of a bit.

use crate::PartyId;
use crate::context::Party;
use crate::planes::Bits;
use crate::price::proofs::alone;
use crate::proof::{Algebra, Column, Kind, Rest, View};
use privet_family::Secret;
use privet_kernels::wide;
use privet_ring::Ring;
use std::ops::Range;

/// What one verifier knows of the statement.
pub(crate) struct Side<F> {
    /// Its bits, on which the other side's number depends, as they are multiplied with numbers ([`Bits::spread`]).
    pub bits: Vec<Column>,
    /// `numbers(range, choice, to)` puts this side's numbers of a range of elements into `to`, over what stands there, for one choice of
    /// the other side's bits: bit t of `choice` is the other's bit t. What is above the bits of the ring does not count.
    pub numbers: F,
    /// The numbers where none of the other side's bits is 1, of k bits each, where the side has a column of them.
    pub at_none: Option<Column>,
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
    // the numbers at no bit are the verifiers' alone
    let left = differences(ring, n, &[before.of(of_after), after.of(of_before)], 1);
    let terms = sets(of_before, of_after).zip(left).map(|(set, left)| {
        let right = match [before.product(set), after.product(set)] {
            [Some(x), Some(y)] => Algebra::Bits.sum(&x, &y).into(),
            [x, y] => x.or(y).unwrap_or_else(|| unreachable!("a set of either side's bits")),
        };
        [left.into(), right]
    });
    View::prover(terms)
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
        let at_none = self.at_none.as_ref().filter(|_| alone(ring.bits()));
        // that of the empty set comes first
        let words = differences(ring, n, &[self.of(others)], usize::from(at_none.is_some()));
        let mut words = words.into_iter().map(Column::from);
        let at_none = at_none.cloned().or_else(|| words.next());
        let at_none = at_none.unwrap_or_else(|| unreachable!("the numbers at no bit"));
        let terms: Vec<_> =
            sets(self.bits.len(), others).map(|set| [words.next(), self.product(set)]).collect();
        // what the prover's terms have too much of
        let own = terms.iter().filter_map(|[left, right]| Some([left.clone()?, right.clone()?]));
        let rest = Rest::new(at_none, own.collect());
        View::Verifier { terms, rest }
    }

    /// The numbers, where the other side has `others` bits.
    fn of(&self, others: usize) -> Numbers<'_> {
        Numbers { at: &self.numbers, others, at_none: self.at_none.as_deref() }
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

impl Bits {
    /// As they are multiplied with numbers of a ring: each in every place of a number, or, where a number has a word of its own, 64 in a
    /// word.
    pub(crate) fn spread(&self, ring: Ring) -> Column {
        if alone(ring.bits()) {
            return self.words().clone();
        }
        let mut masks = Secret::new(vec![0; self.len()]);
        self.masks(0..self.len(), &mut masks);
        let mut words = Vec::with_capacity(masks.len().div_ceil(lanes(ring)));
        append(ring, masks.iter().copied(), &mut words);
        words.into()
    }
}

/// Numbers at a time: for every choice of bits they stay in the first-level cache.
pub(super) const PIECE: usize = 512;

/// One side's numbers ([`Side::numbers`]), how many bits the other side has, and the numbers where none of them is 1, if there is such a column.
struct Numbers<'a> {
    at: &'a NumbersAt<'a>,
    others: usize,
    at_none: Option<&'a [u64]>,
}

type NumbersAt<'a> = dyn Fn(Range<usize>, usize, &mut [u64]) + 'a;

impl Numbers<'_> {
    fn choices(&self) -> usize {
        1 << self.others
    }
}

/// Which numbers the difference of a set is the sum of, of all sides' one after the other: those of all its subsets, of every side that has it.
fn of_subsets(set: usize, sides: &[Numbers]) -> Vec<usize> {
    let (mut all, mut at) = (vec![], 0);
    for side in sides {
        if is_of(set, side.others) {
            all.extend((0..=set).filter(|subset| subset & !set == 0).map(|subset| at + subset));
        }
        at += side.choices();
    }
    all
}

/// The differences of all sets of bits from `first` on, the sums of all sides' that have such a set: modulo 2^k, each in a word or, where
/// they are short, as many in one as go in.
fn differences(ring: Ring, n: usize, sides: &[Numbers], first: usize) -> Vec<Vec<u64>> {
    let sets = sides.iter().map(Numbers::choices).max().unwrap_or(1);
    let sums: Vec<_> = (first..sets).map(|set| of_subsets(set, sides)).collect();
    let columns: Vec<_> = sides
        .iter()
        .flat_map(|side| (0..side.choices()).map(|choice| side.at_none.filter(|_| choice == 0)))
        .collect();
    let mut words: Vec<_> = sums.iter().map(|_| Vec::with_capacity(n.div_ceil(lanes(ring)))).collect();
    let mut numbers = vec![[0; PIECE]; columns.len()];
    let piece = PIECE / lanes(ring) * lanes(ring);
    for start in (0..n).step_by(piece) {
        let range = start..n.min(start + piece);
        let mut rest = &mut numbers[..];
        for side in sides {
            let (of_side, others) = rest.split_at_mut(side.choices());
            rest = others;
            for (choice, to) in of_side.iter_mut().enumerate().skip(usize::from(side.at_none.is_some())) {
                (side.at)(range.clone(), choice, &mut to[..range.len()]);
            }
        }
        let some = |i: usize| match columns[i] {
            Some(column) => column[range.clone()].iter(),
            None => numbers[i][..range.len()].iter(),
        };
        for (words, sum) in words.iter_mut().zip(&sums) {
            wide!(match sum[..] {
                [a] => append(ring, some(a).copied(), words),
                [a, b] => append(ring, some(a).zip(some(b)).map(|(a, b)| a ^ b), words),
                [a, b, c, d] => {
                    let (first, second) = (some(a).zip(some(b)), some(c).zip(some(d)));
                    append(ring, first.zip(second).map(|((a, b), (c, d))| a ^ b ^ c ^ d), words);
                }
                ref all => {
                    let mut total = [0; PIECE];
                    for of in all {
                        total.iter_mut().zip(some(*of)).for_each(|(sum, number)| *sum ^= number);
                    }
                    append(ring, total[..range.len()].iter().copied(), words);
                }
            });
        }
    }
    words
}

/// Numbers of a ring in a word.
fn lanes(ring: Ring) -> usize {
    if alone(ring.bits()) { 1 } else { 64 / ring.bits() as usize }
}

/// Append numbers modulo 2^k, each in a word or as many in one as go in: of words that are not filled, none but the last.
#[inline(always)]
fn append(ring: Ring, mut numbers: impl ExactSizeIterator<Item = u64>, words: &mut Vec<u64>) {
    match lanes(ring) {
        1 => words.extend(numbers.map(|x| ring.wrap(x))),
        lanes => {
            while numbers.len() > 0 {
                let some = numbers.by_ref().take(lanes).enumerate();
                words.push(some.fold(0, |word, (i, x)| word | ring.wrap(x) << (i as u32 * ring.bits())));
            }
        }
    }
}

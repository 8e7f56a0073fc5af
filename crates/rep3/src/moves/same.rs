//! Statements that two numbers are the same, of which each verifier knows one but for bits that the other verifier knows
//! (docs/rep3.md, section 6).
//!
//! The words W_x of one side, one for each choice x of the other's bits, have the word of the bits that are set as
//! `W_0 ^ sum over sets of bits of (product of the bits)(difference)`. So the statement is one about words of bits, whatever their carries
//! meant: a product for each nonempty set of bits on either side, of a word that one verifier knows and a bit that the other does.

use crate::PartyId;
use crate::context::Party;
use crate::planes::packed;
use crate::proof::{Algebra, Column, Kind, View};
use privet_plan::cost::proofs::alone;
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
        // a statement about words of bits is u v + s_B + s_A = 0 as well as this side's number = the other's
        let (view, bits_after) = match sides {
            Sides::Both(before, after) => {
                let (others, own) = (after.bits.len(), before.bits.len());
                let view = View::Prover {
                    u: before.operands(ring, n, others, Order::DifferencesFirst),
                    v: after.operands(ring, n, own, Order::ProductsFirst),
                };
                (view, others)
            }
            Sides::Before(side, others) => {
                let u = side.operands(ring, n, others, Order::DifferencesFirst);
                (View::Before { u, s: side.plain(ring, n) }, others)
            }
            Sides::After(side, others) => {
                let v = side.operands(ring, n, others, Order::ProductsFirst);
                (View::After { v, s: side.plain(ring, n) }, side.bits.len())
            }
        };
        // a number that has a word of its own is one statement
        let kind =
            if alone(ring.bits()) { Kind::Numbers { first: (1 << bits_after) - 1 } } else { Kind::Bits };
        super::remember(transcript, kind, prover, view);
    }
}

/// Differences of one side meet products of bits of the other.
enum Order {
    DifferencesFirst,
    ProductsFirst,
}

impl<F: Fn(Range<usize>, usize, &mut [u64])> Side<F> {
    /// The number where none of the other's bits is set.
    fn plain(&self, ring: Ring, n: usize) -> Column {
        side_by_side(ring, n, |range, to| (self.numbers)(range, 0, to))
    }

    fn operands(&self, ring: Ring, n: usize, others: usize, order: Order) -> Vec<Column> {
        let differences = (1..1 << others).map(|set| {
            side_by_side(ring, n, |range, to| {
                (self.numbers)(range.clone(), 0, to);
                let mut more = [0; PIECE];
                let more = &mut more[..to.len()];
                for x in subsets(set).filter(|x| *x > 0) {
                    (self.numbers)(range.clone(), x, more);
                    Algebra::Bits.add(to, more);
                }
            })
        });
        let products = (1usize..1 << self.bits.len()).map(|set| {
            let mut bits =
                self.bits.iter().enumerate().filter(|(t, _)| set >> t & 1 == 1).map(|(_, bit)| bit);
            let first = bits.next().expect("a set that is not empty").clone();
            bits.fold(first, |all, bit| {
                all.iter().zip(&bit[..]).map(|(a, b)| a & b).collect::<Vec<_>>().into()
            })
        });
        match order {
            Order::DifferencesFirst => differences.chain(products).collect(),
            Order::ProductsFirst => products.chain(differences).collect(),
        }
    }
}

/// Bits, 0 or 1 an element, as they meet numbers of a ring: each in every place of a number, or, where a number has a word of its
/// own, 64 in a word.
pub(crate) fn spread(ring: Ring, bits: &[u64]) -> Column {
    if alone(ring.bits()) {
        return packed(bits).into();
    }
    side_by_side(ring, bits.len(), |range, to| {
        to.iter_mut().zip(&bits[range]).for_each(|(to, bit)| *to = bit.wrapping_neg());
    })
}

/// All subsets of a set, as sets of bits, the empty one included.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    (0..=set).filter(move |x| x & !set == 0)
}

/// Numbers at a time, before they are put together in words.
const PIECE: usize = 512;

/// Numbers modulo 2^k, each in a word or, where they are short, as many in one as go in.
fn side_by_side(ring: Ring, n: usize, numbers: impl Fn(Range<usize>, &mut [u64])) -> Column {
    let bits = ring.bits();
    let lanes = if alone(bits) { 1 } else { 64 / bits as usize };
    let mut words = Vec::with_capacity(n.div_ceil(lanes));
    let mut some = [0; PIECE];
    let piece = PIECE / lanes * lanes;
    for start in (0..n).step_by(piece) {
        let range = start..n.min(start + piece);
        let some = &mut some[..range.len()];
        numbers(range, some);
        some.iter_mut().for_each(|x| *x = ring.wrap(*x));
        if lanes == 1 {
            words.extend_from_slice(some);
            continue;
        }
        words.extend(some.chunks(lanes).map(|some| some.iter().rev().fold(0, |word, x| word << bits | x)));
    }
    words.into()
}

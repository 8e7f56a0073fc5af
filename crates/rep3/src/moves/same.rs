//! Statements that two numbers are the same, of which each verifier knows one but for bits that the other verifier knows
//! (docs/rep3.md, section 6).
//!
//! The words W_x of one side, one for each choice x of the other's bits, have the word of the bits that are set as
//! `W_0 ^ sum over sets of bits of (product of the bits)(difference)`. So the statement is one about words of bits, whatever their carries
//! meant: a product for each nonempty set of bits on either side, of a word that one verifier knows and a bit that the other does.

use crate::PartyId;
use crate::context::Party;
use crate::proof::{Algebra, Column, View};
use privet_ring::Ring;

/// What one verifier knows of a number: which of some it is, the other verifier's bits say.
pub(crate) struct Side<F> {
    /// Its bits, which say which of the other side's numbers it is, each in every place of a number ([`spread`]).
    pub bits: Vec<Column>,
    /// Element i where the other's bits are those of the argument, the first one lowest.
    pub number: F,
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
        F: Fn(usize, usize) -> u64,
        G: Fn(usize, usize) -> u64,
    {
        let Some(transcript) = &mut self.transcript else { return };
        // a statement about words of bits is u v + s_B + s_A = 0 as well as this side's number = the other's
        let view = match sides {
            Sides::Both(before, after) => {
                let (others, own) = (after.bits.len(), before.bits.len());
                View::Prover {
                    u: before.operands(ring, n, others, Order::DifferencesFirst),
                    v: after.operands(ring, n, own, Order::ProductsFirst),
                }
            }
            Sides::Before(side, others) => View::Before {
                u: side.operands(ring, n, others, Order::DifferencesFirst),
                s: side.plain(ring, n),
            },
            Sides::After(side, others) => View::After {
                v: side.operands(ring, n, others, Order::ProductsFirst),
                s: side.plain(ring, n),
            },
        };
        super::remember(transcript, Algebra::Bits, prover, view);
    }
}

/// Differences of one side meet products of bits of the other.
enum Order {
    DifferencesFirst,
    ProductsFirst,
}

impl<F: Fn(usize, usize) -> u64> Side<F> {
    /// The number where none of the other's bits is set.
    fn plain(&self, ring: Ring, n: usize) -> Column {
        side_by_side(ring, n, |i| (self.number)(i, 0))
    }

    fn operands(&self, ring: Ring, n: usize, others: usize, order: Order) -> Vec<Column> {
        let differences = (1..1 << others).map(|set| match set {
            // the common ones without a loop
            1 | 2 => side_by_side(ring, n, |i| (self.number)(i, 0) ^ (self.number)(i, set)),
            _ => side_by_side(ring, n, |i| subsets(set).fold(0, |sum, x| sum ^ (self.number)(i, x))),
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

/// Bits, 0 or 1 an element, each in every place of a number of its ring.
pub(crate) fn spread(ring: Ring, bits: &[u64]) -> Column {
    side_by_side(ring, bits.len(), |i| bits[i].wrapping_neg())
}

/// All subsets of a set, as sets of bits, the empty one included.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    (0..=set).filter(move |x| x & !set == 0)
}

/// Numbers at a time, before they are put together in words.
const PIECE: usize = 512;

/// Numbers modulo 2^k, as many in a word as go in.
fn side_by_side(ring: Ring, n: usize, number: impl Fn(usize) -> u64) -> Column {
    let (bits, lanes) = (ring.bits() as usize, 64 / ring.bits() as usize);
    if lanes == 1 {
        return (0..n).map(|i| ring.wrap(number(i))).collect::<Vec<u64>>().into();
    }
    let mut words = Vec::with_capacity(n.div_ceil(lanes));
    let mut numbers = [0; PIECE];
    let piece = PIECE / lanes * lanes;
    for start in (0..n).step_by(piece) {
        let numbers = &mut numbers[..piece.min(n - start)];
        numbers.iter_mut().zip(start..).for_each(|(to, i)| *to = ring.wrap(number(i)));
        match lanes {
            2 => {
                let (pairs, rest) = numbers.as_chunks::<2>();
                words.extend(pairs.iter().map(|[low, high]| low | high << bits));
                words.extend_from_slice(rest);
            }
            _ => words.extend(
                numbers.chunks(lanes).map(|some| some.iter().rev().fold(0, |word, x| word << bits | x)),
            ),
        }
    }
    words.into()
}

//! What a gate's preprocessing is written over: one program, run by a party with its peers or by a helper alone.
//!
//! Every gate's program is the same at all parties and follows from the plan. It computes on shares; what is local it does
//! with [`Words`] and [`Bits`], for the rest it asks a runner. A runner is a party, which holds one share of everything and
//! talks to its peers, or the [`crate::Helper`], which holds all shares and knows the values. Both end in the same record.
//!
//! A program hands over whole chunks of elements, so that a call is one batch: a few rounds whatever its size.

use crate::seeds::Public;
use crate::shares::{Bits, Seats, Words};
use privet_family::keys::KeyError;
use privet_family::{Products, Wire};
use privet_net::NetError;
use privet_plan::ir::{Plan, ValueId};
use privet_ring::Ring;
use std::ops::Range;
use thiserror::Error;

/// Why a record cannot be prepared. Nothing was revealed, and nothing of it may be used.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// A peer or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// What is kept cannot be written.
    #[error("{0}")]
    Record(#[from] KeyError),
    /// A peer's message is none of the protocol, or what is needed is not there.
    #[error("{0}")]
    Failed(String),
}

/// Runs the preprocessing of gates.
///
/// A call that is not marked local is made by all parties in the same order with operands of the same sizes. What it returns
/// is shared afresh: all but one of the shares are uniform and independent of everything that came before.
pub trait Preprocess {
    /// How many parties there are.
    fn parties(&self) -> usize;

    /// Whose shares are held here.
    fn seats(&self) -> Seats;

    /// Local: what all parties draw alike for the record.
    fn public(&self) -> &Public;

    /// Local: `n` fresh uniform words of the record for `wire`, the sum of what each party expands from its seed.
    /// Asked again, the same ones.
    fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Words;

    /// Local: the same of a weight of the session.
    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words;

    /// Local: so many words of fresh uniform bits for a use of a wire, the XOR of what each party expands from its seed.
    /// Asked again, the same ones.
    fn private_bits(&self, at: BitsAt, words: usize) -> Bits;

    /// Numbers H uniform in `[0, 2^bits)`, of which every bit is shared. The bits are [`Preprocess::private_bits`] of
    /// `of.at`, plane after plane.
    fn bitwise_mask(&mut self, of: &MaskOf) -> Result<BitwiseMask, PrepareError>;

    /// XOR shares of products of bits: of each x with each of its y, in order.
    fn and(&mut self, factors: &[(&Bits, Vec<&Bits>)]) -> Result<Vec<Vec<Bits>>, PrepareError>;

    /// Of each plane of bits, the first `n` as words of `ring`: 0 or 1.
    fn to_words(&mut self, bits: &[&Bits], n: usize, ring: Ring) -> Result<Vec<Words>, PrepareError>;

    /// Of each plane of bits with each of its words: the word where the bit is 1, else 0. A plane has as many bits as its words
    /// have elements, and padding.
    fn times(&mut self, factors: &[(&Bits, Vec<&Words>)]) -> Result<Vec<Vec<Words>>, PrepareError>;

    /// Products element by element.
    fn multiply(&mut self, x: &Words, y: &Words) -> Result<Words, PrepareError>;

    /// Squares, element by element.
    fn square(&mut self, x: &Words) -> Result<Words, PrepareError> {
        self.multiply(x, x)
    }

    /// Matrix products or convolutions, in the ring of `x`.
    fn products(&mut self, what: Products, x: &Words, w: Factor) -> Result<Words, PrepareError>;

    /// `each` words of `ring` for every element of x, side by side, as `fill` makes them from it. A helper's alone, who knows x:
    /// parties among themselves have no protocol for any function, and plans for them have no operation that asks for one.
    fn dealt(
        &mut self,
        x: &Words,
        ring: Ring,
        each: usize,
        fill: &dyn Fn(u64, &mut [u64]),
    ) -> Result<Words, PrepareError> {
        let (_, _, _, _) = (x, ring, each, fill);
        Err(PrepareError::Failed(
            "words that only a dealer of protocol semi2k can prepare; compile the model again without one"
                .into(),
        ))
    }

    /// The elements themselves, to all parties. The one thing that is ever opened is the offset `H - lambda` of a mask of
    /// bits from the mask of a wire, which is uniform because H is, and H is used for nothing else.
    fn open(&mut self, what: &str, x: &Words) -> Result<Vec<u64>, PrepareError>;

    /// Local: append to the record: of every seat its frame ([`crate::frame`]).
    fn keep(&mut self, kept: Kept) -> Result<(), PrepareError>;

    /// Bytes of a party's record so far.
    fn kept_bytes(&self) -> u64;
}

/// A use of a wire's bits: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsAt {
    /// The wire.
    pub wire: Wire,
    /// What for.
    pub usage: BitUse,
    /// The chunk of its elements.
    pub chunk: usize,
}

/// What private bits are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitUse {
    /// The bits of a mask.
    Mask,
    /// They mask what a gate opens as its last bit.
    Result,
    /// They mask what is opened before a level of a comparison.
    Level(usize),
}

/// The mask of bits that is asked for.
#[derive(Clone, Debug)]
pub struct MaskOf {
    /// Where its bits come from.
    pub at: BitsAt,
    /// Elements.
    pub count: usize,
    /// Bits, 1 to 64.
    pub bits: u32,
    /// The ring of its words.
    pub ring: Ring,
    /// The bits of each word that is wanted: `first..last` gives `H >> first mod 2^(last - first)`.
    pub words: Vec<Range<u32>>,
    /// Whether products of pairs of bits are wanted.
    pub pairs: bool,
}

/// A mask H of which every bit is shared.
#[derive(Clone, Debug)]
pub struct BitwiseMask {
    /// Plane l has bit l of every element.
    pub bits: Vec<Bits>,
    /// Plane j has the product of bits 2 j and 2 j + 1; as many as there are whole pairs, or none.
    pub pairs: Vec<Bits>,
    /// The words asked for, in their order.
    pub words: Vec<Words>,
}

/// The second operand of a product of masks.
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a> {
    /// The static second operand of this linear node: made of weights alone, so its mask stays for the session
    /// ([`crate::static_operand`]), and a runner prepares it once.
    Session(ValueId),
    /// A mask of the record.
    Record(&'a Words),
}

/// What is appended to a record, each a frame of every party's.
#[derive(Clone, Copy, Debug)]
pub enum Kept<'a> {
    /// Words of 64 bits.
    Bits(&'a Bits),
    /// Elements, packed by the bits of their ring.
    Words(&'a Words),
    /// Elements that all parties know, packed.
    Public(Ring, &'a [u64]),
}

/// Linear nodes whose second operand is static: those of [`Factor::Session`].
pub fn static_operand(plan: &Plan, node: ValueId) -> Option<(Products, ValueId)> {
    let products = Products::of(plan, &plan.nodes[node])?;
    let operand = plan.nodes[node].inputs[1];
    privet_family::is_static(plan, operand).then_some((products, operand))
}

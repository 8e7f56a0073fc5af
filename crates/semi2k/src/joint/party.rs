//! A party that prepares a record together with its peers.

use super::Transfers;
use crate::masks::Masks;
use crate::preprocess::*;
use crate::record::{self, RecordSink};
use crate::seeds::{PartySeed, Public};
use crate::shares::{Bits, Seats, Words};
use privet_family::{Products, Wire};
use privet_plan::ir::ValueId;
use privet_ring::Ring;

/// What a party has by itself when it prepares a record.
pub struct Own<'a> {
    /// Its seed of the session, from which its masks of weights follow.
    pub session: &'a PartySeed,
    /// Its seed of the record.
    pub record: &'a PartySeed,
    /// What all parties draw alike for the record.
    pub public: Public,
}

impl Own<'_> {
    /// The same.
    pub(super) fn again(&self) -> Own<'_> {
        Own { session: self.session, record: self.record, public: self.public.clone() }
    }
}

impl Masks for Own<'_> {
    fn seats(&self) -> Seats {
        Seats::one(self.record.party())
    }

    fn fresh(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        Words::new(Masks::seats(self), ring, vec![self.record.mask(wire, ring, n)])
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        Words::new(Masks::seats(self), ring, vec![self.session.weight_mask(node, ring, n)])
    }

    fn public(&self) -> &Public {
        &self.public
    }
}

/// Who multiplies masks among the parties, and knows the masks of static operands.
pub trait Linear {
    /// See [`Preprocess::products`]: shares of the product, afresh. All parties call it alike.
    fn products(
        &mut self,
        transfers: &mut Transfers<'_>,
        what: Products,
        x: &Words,
        w: Factor,
    ) -> Result<Words, PrepareError>;

    /// Whether shares of the products of a node with a static operand are there already: it asks nobody for them.
    fn is_ready(&self, node: ValueId) -> bool {
        let _ = node;
        false
    }

    /// Those shares, for that node.
    fn take_ready(&mut self, node: ValueId) -> Option<Words> {
        let _ = node;
        None
    }

    /// See [`Preprocess::multiply`]: by transfers, unless there is a cheaper way.
    fn multiply(
        &mut self,
        transfers: &mut Transfers<'_>,
        x: &Words,
        y: &Words,
    ) -> Result<Words, PrepareError> {
        transfers.multiply(x, y)
    }

    /// See [`Preprocess::square`]: by transfers, unless there is a cheaper way.
    fn square(&mut self, transfers: &mut Transfers<'_>, x: &Words) -> Result<Words, PrepareError> {
        transfers.square(x)
    }
}

/// Runs the preprocessing of one record at one party; all parties do at the same time. It needs no helper.
pub struct Joint<'a, 't> {
    own: Own<'a>,
    transfers: Transfers<'t>,
    linear: &'a mut dyn Linear,
    sink: &'a mut dyn RecordSink,
    kept: u64,
}

impl<'a, 't> Joint<'a, 't> {
    /// The runner of a record, whose frames go to place 0 of the sink.
    ///
    /// # Panics
    /// Where seeds and transfers are not one party's.
    pub fn new(
        own: Own<'a>,
        transfers: Transfers<'t>,
        linear: &'a mut dyn Linear,
        sink: &'a mut dyn RecordSink,
    ) -> Joint<'a, 't> {
        let me = Seats::one(own.record.party());
        assert!(me == transfers.seats() && own.session.party() == own.record.party(), "one party's");
        Joint { own, transfers, linear, sink, kept: 0 }
    }
}

impl Joint<'_, '_> {
    /// The step that comes next.
    pub(super) fn next_step(&mut self) -> u32 {
        self.transfers.next_step()
    }
}

impl Preprocess for Joint<'_, '_> {
    fn parties(&self) -> usize {
        self.transfers.parties()
    }

    fn seats(&self) -> Seats {
        self.transfers.seats()
    }

    fn public(&self) -> &Public {
        &self.own.public
    }

    fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        self.own.fresh(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        Masks::weight(&self.own, node, ring, n)
    }

    fn private_bits(&self, at: BitsAt, words: usize) -> Bits {
        Bits::new(self.seats(), vec![self.own.record.private_bits(at, words)])
    }

    fn bitwise_mask(&mut self, of: &MaskOf) -> Result<BitwiseMask, PrepareError> {
        let bits = self.private_bits(of.at, of.bits as usize * of.count.div_ceil(64));
        self.transfers.bitwise_mask(of, &bits)
    }

    fn and(&mut self, factors: &[(&Bits, Vec<&Bits>)]) -> Result<Vec<Vec<Bits>>, PrepareError> {
        self.transfers.and(factors)
    }

    fn to_words(&mut self, bits: &[&Bits], n: usize, ring: Ring) -> Result<Vec<Words>, PrepareError> {
        self.transfers.to_words(bits, n, ring)
    }

    fn times(&mut self, factors: &[(&Bits, Vec<&Words>)]) -> Result<Vec<Vec<Words>>, PrepareError> {
        self.transfers.times(factors)
    }

    fn multiply(&mut self, x: &Words, y: &Words) -> Result<Words, PrepareError> {
        self.linear.multiply(&mut self.transfers, x, y)
    }

    fn square(&mut self, x: &Words) -> Result<Words, PrepareError> {
        self.linear.square(&mut self.transfers, x)
    }

    fn products(&mut self, what: Products, x: &Words, w: Factor) -> Result<Words, PrepareError> {
        self.linear.products(&mut self.transfers, what, x, w)
    }

    fn open(&mut self, what: &str, x: &Words) -> Result<Vec<u64>, PrepareError> {
        self.transfers.open(what, x)
    }

    fn keep(&mut self, kept: Kept) -> Result<(), PrepareError> {
        let mut frame = record::frame(&kept, 0);
        self.kept += frame.len() as u64;
        self.sink.put(0, &mut frame)?;
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        self.kept
    }
}

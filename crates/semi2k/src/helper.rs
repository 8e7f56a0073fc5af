//! The helper: who knows all parties' seeds and runs the preprocessing of all of them at once, without a message among them.
//!
//! It computes the values that the parties would compute shares of. Fresh shares of them are what each party expands from its
//! seed, and for the last party the difference. Whoever has the helper's seeds knows all masks, so a helper must collude with no
//! party: it is for tests, and for deployments that have somebody whom all parties trust that far.

use crate::preprocess::*;
use crate::record::{self, RecordSink};
use crate::seeds::{PartySeed, Public, all_seeds};
use crate::shares::{Bits, Seats, Words};
use crate::{mutation, static_masks};
use privet_family::{Prepared, Products, Secret, Wire};
use privet_kernels::Device;
use privet_plan::ir::{Plan, ValueId};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use std::collections::HashMap;

/// What a helper keeps for a session: all parties' seeds, and the masks of static operands in the device's layout.
pub struct HelperSession {
    seeds: Vec<PartySeed>,
    public: Seed,
    prepared: HashMap<ValueId, Prepared>,
}

impl HelperSession {
    /// From the session's secret seed, which only the helper may know, and its public one.
    pub fn new(
        plan: &Plan,
        device: &dyn Device,
        parties: usize,
        secret: &Seed,
        public: Seed,
    ) -> HelperSession {
        HelperSession::with(plan, device, all_seeds(parties, secret), public)
    }

    /// The same from seeds that were drawn one by one.
    pub fn with(plan: &Plan, device: &dyn Device, seeds: Vec<PartySeed>, public: Seed) -> HelperSession {
        let mut prepared = HashMap::new();
        static_masks(plan, &seeds, Seats::all(seeds.len()), |node, products, mask| {
            prepared.insert(node, products.prepare(device, mask.ring(), &sum(mask)));
        });
        HelperSession { seeds, public, prepared }
    }

    /// The parties' seeds of the session.
    pub fn seeds(&self) -> &[PartySeed] {
        &self.seeds
    }

    /// What all parties draw alike for a record.
    pub fn public(&self, record: u64) -> Public {
        Public::new(&self.public, record)
    }
}

/// The sum of all shares.
fn sum(x: &Words) -> Secret {
    let ring = x.ring();
    let mut out = x.shares()[0].clone();
    for share in &x.shares()[1..] {
        out.iter_mut().zip(share.iter()).for_each(|(a, b)| *a = ring.wrap(a.wrapping_add(*b)));
    }
    out
}

/// The XOR of all shares.
fn xor(x: &Bits) -> Secret {
    let mut out = x.shares()[0].clone();
    for share in &x.shares()[1..] {
        out.iter_mut().zip(share.iter()).for_each(|(a, b)| *a ^= b);
    }
    out
}

/// Bit i of packed bits.
fn bit(bits: &[u64], i: usize) -> u64 {
    bits[i / 64] >> (i % 64) & 1
}

/// Runs the preprocessing of one record for all parties.
pub struct Helper<'a> {
    device: &'a dyn Device,
    session: &'a HelperSession,
    seeds: &'a [PartySeed],
    public: Public,
    streams: Vec<Prg>,
    sink: &'a mut dyn RecordSink,
    kept: u64,
    opened: u64,
}

impl<'a> Helper<'a> {
    /// Record `number` of a session, from all parties' seeds of the record.
    pub fn new(
        device: &'a dyn Device,
        session: &'a HelperSession,
        number: u64,
        seeds: &'a [PartySeed],
        sink: &'a mut dyn RecordSink,
    ) -> Helper<'a> {
        assert_eq!(seeds.len(), session.seeds.len(), "a seed of every party");
        let streams = seeds.iter().map(PartySeed::dealt).collect();
        Helper { device, session, seeds, public: session.public(number), streams, sink, kept: 0, opened: 0 }
    }

    /// Bits of what was opened so far, which all parties learn.
    pub fn opened_bits(&self) -> u64 {
        self.opened
    }

    fn shares(&mut self, ring: Ring, value: Secret, less: impl Fn(u64, u64) -> u64) -> Vec<Secret> {
        let last = self.seeds.len() - 1;
        let mut rest = value;
        let mut shares = Vec::with_capacity(last + 1);
        for stream in &mut self.streams[..last] {
            let mut share = Secret::new(stream.elements(ring, rest.len()));
            mutation::dealt(&mut share);
            rest.iter_mut().zip(share.iter()).for_each(|(r, s)| *r = ring.wrap(less(*r, *s)));
            shares.push(share);
        }
        rest.iter_mut().for_each(|r| *r = ring.wrap(*r));
        shares.push(rest);
        shares
    }

    /// Fresh shares of elements.
    fn words(&mut self, ring: Ring, value: Secret) -> Words {
        Words::new(self.seats(), ring, self.shares(ring, value, u64::wrapping_sub))
    }

    /// Fresh shares of bits.
    fn bits(&mut self, value: Secret) -> Bits {
        Bits::new(self.seats(), self.shares(Ring::R64, value, |a, b| a ^ b))
    }
}

impl Preprocess for Helper<'_> {
    fn parties(&self) -> usize {
        self.seeds.len()
    }

    fn seats(&self) -> Seats {
        Seats::all(self.seeds.len())
    }

    fn public(&self) -> &Public {
        &self.public
    }

    fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        Words::new(self.seats(), ring, self.seeds.iter().map(|seed| seed.mask(wire, ring, n)).collect())
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        let seeds = self.session.seeds.iter();
        Words::new(self.seats(), ring, seeds.map(|seed| seed.weight_mask(node, ring, n)).collect())
    }

    fn private_bits(&self, at: BitsAt, words: usize) -> Bits {
        Bits::new(self.seats(), self.seeds.iter().map(|seed| seed.private_bits(at, words)).collect())
    }

    fn bitwise_mask(&mut self, of: &MaskOf) -> Result<BitwiseMask, PrepareError> {
        let (side, n) = (of.count.div_ceil(64), of.count);
        let all = self.private_bits(of.at, of.bits as usize * side);
        let plane = |l: usize| all.slice(l * side..(l + 1) * side);
        let bits: Vec<Bits> = (0..of.bits as usize).map(plane).collect();
        let values: Vec<Secret> = bits.iter().map(xor).collect();
        let product = |pair: &[Secret]| pair[0].iter().zip(pair[1].iter()).map(|(a, b)| a & b).collect();
        let pairs: Vec<Secret> =
            if of.pairs { values.chunks_exact(2).map(product).collect() } else { Vec::new() };
        let word = |part: &std::ops::Range<u32>| -> Secret {
            let element = |i: usize| {
                part.clone().fold(0, |sum, l| sum | bit(&values[l as usize], i) << (l - part.start))
            };
            (0..n).map(element).collect()
        };
        let words: Vec<Secret> = of.words.iter().map(word).collect();
        let pairs = pairs.into_iter().map(|pair| self.bits(pair)).collect();
        let words = words.into_iter().map(|word| self.words(of.ring, word)).collect();
        Ok(BitwiseMask { bits, pairs, words })
    }

    fn and(&mut self, factors: &[(&Bits, Vec<&Bits>)]) -> Result<Vec<Vec<Bits>>, PrepareError> {
        let each = |(x, ys): &(&Bits, Vec<&Bits>)| {
            let x = xor(x);
            let one = |y: &&Bits| {
                let product = x.iter().zip(xor(y).iter()).map(|(a, b)| a & b).collect();
                self.bits(product)
            };
            ys.iter().map(one).collect()
        };
        Ok(factors.iter().map(each).collect())
    }

    fn to_words(&mut self, bits: &[&Bits], n: usize, ring: Ring) -> Result<Vec<Words>, PrepareError> {
        let each = |bits: &&Bits| {
            let bits = xor(bits);
            self.words(ring, (0..n).map(|i| bit(&bits, i)).collect())
        };
        Ok(bits.iter().map(each).collect())
    }

    fn times(&mut self, factors: &[(&Bits, Vec<&Words>)]) -> Result<Vec<Vec<Words>>, PrepareError> {
        let each = |(bits, words): &(&Bits, Vec<&Words>)| {
            let bits = xor(bits);
            let one = |word: &&Words| {
                let value = sum(word).iter().enumerate().map(|(i, w)| w * bit(&bits, i)).collect();
                self.words(word.ring(), value)
            };
            words.iter().map(one).collect()
        };
        Ok(factors.iter().map(each).collect())
    }

    fn multiply(&mut self, x: &Words, y: &Words) -> Result<Words, PrepareError> {
        let product = sum(x).iter().zip(sum(y).iter()).map(|(a, b)| a.wrapping_mul(*b)).collect();
        Ok(self.words(x.ring(), product))
    }

    fn products(&mut self, what: Products, x: &Words, w: Factor) -> Result<Words, PrepareError> {
        let mut out = Secret::new(vec![0; what.output_len()]);
        match w {
            Factor::Session(node) => {
                let missing = || PrepareError::Failed(format!("node {node} has no static operand"));
                let w = self.session.prepared.get(&node).ok_or_else(missing)?;
                what.accumulate(self.device, x.ring(), &sum(x), w, &mut out);
            }
            Factor::Record(w) => {
                let w = what.prepare(self.device, x.ring(), &sum(w));
                what.accumulate(self.device, x.ring(), &sum(x), &w, &mut out);
            }
        }
        Ok(self.words(x.ring(), out))
    }

    fn dealt(
        &mut self,
        x: &Words,
        ring: Ring,
        each: usize,
        fill: &dyn Fn(u64, &mut [u64]),
    ) -> Result<Words, PrepareError> {
        let mut words = Secret::new(vec![0; each * x.len()]);
        words.chunks_exact_mut(each).zip(sum(x).iter()).for_each(|(words, x)| fill(*x, words));
        Ok(self.words(ring, words))
    }

    fn open(&mut self, _: &str, x: &Words) -> Result<Vec<u64>, PrepareError> {
        self.opened += x.len() as u64 * u64::from(x.ring().bits());
        Ok(sum(x).expose())
    }

    fn keep(&mut self, kept: Kept) -> Result<(), PrepareError> {
        for place in 0..self.seeds.len() {
            let mut frame = record::frame(&kept, place);
            self.kept += if place == 0 { frame.len() as u64 } else { 0 };
            self.sink.put(place, &mut frame)?;
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        self.kept
    }
}

use crate::coins::Coins;
use crate::keys::{KeyError, KeySink};
use crate::wire::{Wire, bit_mask_share, mask_share};
use privet_family::NodeStats;
use privet_kernels::Device;
use privet_prg::{Domain, Prg, Seed, TreeHash};
use privet_ring::{BitVec, Ring};

/// Elements expanded at a time: an even number, so that the stream is the same as in one piece, and few enough for the
/// first-level cache.
const CHUNK: usize = 1024;

/// The dealer's side of one record: both evaluators' seeds, its own secret randomness, and the streams.
pub struct Deal<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) hash: &'a TreeHash,
    seeds: [Seed; 2],
    secret: Seed,
    coins: Coins,
    sink: &'a mut dyn KeySink,
    pub(crate) stats: NodeStats,
    bytes: [u64; 2],
}

impl<'a> Deal<'a> {
    /// Deal record number `number` of a session, whose randomness all comes from `record`, which nobody else may know.
    pub fn new(
        device: &'a dyn Device,
        hash: &'a TreeHash,
        number: u64,
        record: &Seed,
        sink: &'a mut dyn KeySink,
    ) -> Deal<'a> {
        Deal {
            device,
            hash,
            seeds: [record.derive(Domain::Party, 0), record.derive(Domain::Party, 1)],
            secret: record.derive(Domain::Dealer, 0),
            coins: Coins::new(hash.keys(), number),
            sink,
            stats: NodeStats::default(),
            bytes: [0; 2],
        }
    }

    /// The seeds that the evaluators must be given, one each, with the record.
    pub fn party_seeds(&self) -> &[Seed; 2] {
        &self.seeds
    }

    /// The coins of this record's dropouts.
    pub(crate) fn coins(&self) -> &Coins {
        &self.coins
    }

    /// Key bytes so far, by evaluator.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// The fresh mask of `wire`: the sum of both evaluators' shares.
    pub(crate) fn fresh_mask(&self, wire: Wire, ring: Ring, n: usize) -> Vec<u64> {
        let mut r = mask_share(&self.seeds[0], wire, ring, n);
        let mut other = self.seeds[1].derive(Domain::Mask, wire.index()).stream();
        let mut buffer = [0; CHUNK];
        for r in r.chunks_mut(CHUNK) {
            let buffer = &mut buffer[..r.len()];
            other.fill(ring, buffer);
            r.iter_mut().zip(buffer).for_each(|(a, b)| *a = ring.wrap(a.wrapping_add(*b)));
        }
        r
    }

    /// The bits that mask the comparison bits of `wire`.
    pub(crate) fn bit_mask(&self, wire: Wire, n: usize) -> BitVec {
        let mut m = bit_mask_share(&self.seeds[0], wire, n);
        m.xor_assign(&bit_mask_share(&self.seeds[1], wire, n));
        m
    }

    /// The dealer's own randomness for `wire`; `purpose` separates its uses within one gate.
    pub(crate) fn secret(&self, wire: Wire, purpose: u64) -> Prg {
        dealer_secret(&self.secret, wire, purpose)
    }

    /// The stream of evaluator `party`'s pseudorandom table shares of `wire`.
    pub(crate) fn table_stream(&self, party: usize, wire: Wire) -> Prg {
        self.seeds[party].derive(Domain::Table, wire.index()).stream()
    }

    pub(crate) fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (total, frame) in self.bytes.iter_mut().zip(&frames) {
            *total += frame.len() as u64;
        }
        self.sink.put(frames)
    }
}

/// The dealer's own stream for one use within one gate; `secret` is the record's.
pub(crate) fn dealer_secret(secret: &Seed, wire: Wire, purpose: u64) -> Prg {
    secret.derive(Domain::Dealer, wire.index()).derive(Domain::Dealer, purpose).stream()
}

use crate::keys::{KeyError, KeySink};
use crate::public::Public;
use crate::seeds::{PartySeed, RecordSeeds};
use crate::wire::Wire;
use privet_family::NodeStats;
use privet_family::Secret;
use privet_kernels::Device;
use privet_plan::Form;
use privet_prg::{Domain, HashKeys, Prg};
use privet_ring::{BitVec, Ring};

/// The dealer's side of one record: both evaluators' seeds, its own secret randomness, and the streams.
pub struct Deal<'a> {
    pub(crate) device: &'a dyn Device,
    /// How the node that is dealt for compares.
    pub(crate) form: Form,
    seeds: &'a RecordSeeds,
    public: Public,
    sink: &'a mut dyn KeySink,
    pub(crate) stats: NodeStats,
    bytes: [u64; 2],
}

impl<'a> Deal<'a> {
    /// Deal record number `number` of a session with these public keys; all that is secret comes from `seeds`.
    pub fn new(
        device: &'a dyn Device,
        session: &HashKeys,
        number: u64,
        seeds: &'a RecordSeeds,
        sink: &'a mut dyn KeySink,
    ) -> Deal<'a> {
        let public = Public::new(session, number);
        Deal { device, form: Form::Tree, seeds, public, sink, stats: NodeStats::default(), bytes: [0; 2] }
    }

    /// What the evaluators draw alike as well.
    pub(crate) fn public(&self) -> &Public {
        &self.public
    }

    /// Key bytes so far, by evaluator.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// The fresh mask of `wire`: the sum of both evaluators' shares.
    pub(crate) fn fresh_mask(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        whole_mask(&self.seeds.parties, wire, ring, n)
    }

    /// How much larger evaluator 0's share of it is than evaluator 1's.
    pub(crate) fn fresh_difference(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        mask_difference(&self.seeds.parties, wire, ring, n)
    }

    /// The bits that mask the comparison bits of `wire`.
    pub(crate) fn bit_mask(&self, wire: Wire, n: usize) -> Secret<BitVec> {
        let [a, b] = &self.seeds.parties;
        let mut m = a.bit_mask_share(wire, n);
        m.xor_assign(&b.bit_mask_share(wire, n));
        m
    }

    /// The dealer's own randomness for `wire`; `purpose` separates its uses within one gate.
    pub(crate) fn secret(&self, wire: Wire, purpose: u64) -> Prg {
        self.seeds.dealer.derive(Domain::Dealer, wire.index()).derive(Domain::Dealer, purpose).stream()
    }

    /// The streams of both evaluators' shares of the masks before level `level` of a comparison.
    pub(crate) fn level_mask_streams(&self, wire: Wire, level: usize) -> [Prg; 2] {
        self.seeds.parties.each_ref().map(|seed| seed.level_mask_stream(wire, level))
    }

    /// The streams of both evaluators' pseudorandom shares of dealt planes.
    pub(crate) fn plane_streams(&self, wire: Wire, part: usize) -> [Prg; 2] {
        self.seeds.parties.each_ref().map(|seed| seed.plane_stream(wire, part))
    }

    /// The streams of both evaluators' pseudorandom table shares of `wire`.
    pub(crate) fn table_streams(&self, wire: Wire) -> [Prg; 2] {
        self.seeds.parties.each_ref().map(|seed| seed.table_stream(wire))
    }

    pub(crate) fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (total, frame) in self.bytes.iter_mut().zip(&frames) {
            *total += frame.len() as u64;
        }
        self.sink.put(frames)
    }
}

/// The mask of which both evaluators expand a share.
pub(crate) fn whole_mask(seeds: &[PartySeed; 2], wire: Wire, ring: Ring, n: usize) -> Secret {
    let mut r = seeds[0].mask_share(wire, ring, n);
    seeds[1].add_mask_share(wire, ring, &mut r);
    r
}

/// Evaluator 0's share of that mask, less evaluator 1's.
pub(crate) fn mask_difference(seeds: &[PartySeed; 2], wire: Wire, ring: Ring, n: usize) -> Secret {
    let mut d = seeds[0].mask_share(wire, ring, n);
    seeds[1].sub_mask_share(wire, ring, &mut d);
    d
}

//! Seeds of a session and of its records, and what an evaluator expands from its own.

use crate::gate::{Kind, Source, kind};
use crate::mutation;
use crate::wire::{PartyId, Wire};
use privet_family::Secret;
use privet_plan::ir::{Plan, ValueId};
use privet_prg::{Domain, HashKeys, Prg, Seed};
use privet_ring::{BitVec, Ring};
use zeroize::Zeroizing;

/// Elements expanded at a time: an even number, so that the stream is the same as in one piece, and few enough for the
/// first-level cache.
const CHUNK: usize = 1024;

/// The seed of one evaluator, of a record or (for weights) of a session. Only this evaluator and the dealer know it.
#[derive(Clone)]
pub struct PartySeed {
    party: PartyId,
    seed: Seed,
}

impl PartySeed {
    /// The seed that the dealer gave `party`.
    pub fn new(party: PartyId, seed: Seed) -> PartySeed {
        PartySeed { party, seed }
    }

    /// The evaluator.
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// The seed itself, for whom the protocol says may know it.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// This evaluator's share of the mask of an input (record's seed) or of a weight (session's): to be sent to the owner,
    /// which adds both shares to its plaintext and sends the sum to both evaluators.
    pub fn operand_mask_share(&self, plan: &Plan, v: ValueId) -> Secret {
        let ty = &plan.nodes[v].ty;
        let (ring, n) = (Ring::new(ty.bits), ty.len());
        match kind(&plan.nodes[v].op) {
            Kind::Shared(Source::Weight) => self.weight_mask_share(v, ring, n),
            Kind::Shared(Source::Input | Source::State) | Kind::Public | Kind::Gate(_) => {
                self.mask_share(Wire::node(v), ring, n)
            }
        }
    }

    /// The share of the mask of a weight, from a session's seed.
    pub(crate) fn weight_mask_share(&self, v: ValueId, ring: Ring, n: usize) -> Secret {
        self.mask_share(mutation::weight_wire(Wire::node(v)), ring, n)
    }

    /// The share of the fresh mask of `wire`: `n` uniform elements.
    pub(crate) fn mask_share(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        let wire = mutation::mask_wire(wire);
        let share = self.seed.derive(Domain::Mask, wire.index()).stream().elements(ring, n);
        let mut share = Secret::new(share);
        mutation::mask_share(self.party, 0, &mut share);
        share
    }

    /// The same, added to `r`.
    pub(crate) fn add_mask_share(&self, wire: Wire, ring: Ring, r: &mut [u64]) {
        self.onto(wire, ring, r, u64::wrapping_add);
    }

    /// The same, taken off `r`.
    pub(crate) fn sub_mask_share(&self, wire: Wire, ring: Ring, r: &mut [u64]) {
        self.onto(wire, ring, r, u64::wrapping_sub);
    }

    /// `with(r, share)` in place of every element of `r`.
    fn onto(&self, wire: Wire, ring: Ring, r: &mut [u64], with: impl Fn(u64, u64) -> u64) {
        let wire = mutation::mask_wire(wire);
        let mut stream = self.seed.derive(Domain::Mask, wire.index()).stream();
        let mut buffer = Zeroizing::new([0; CHUNK]);
        for (i, r) in r.chunks_mut(CHUNK).enumerate() {
            let share = &mut buffer[..r.len()];
            stream.fill(ring, share);
            mutation::mask_share(self.party, i * CHUNK, share);
            r.iter_mut().zip(share).for_each(|(a, b)| *a = ring.wrap(with(*a, *b)));
        }
    }

    /// The share of the bits that mask the comparison bits of `wire`.
    ///
    /// The domain is the mask's, the index is [`beside`] the wire's, so both are independent.
    pub(crate) fn bit_mask_share(&self, wire: Wire, n: usize) -> Secret<BitVec> {
        let share = self.seed.derive(Domain::Mask, beside(wire, 0)).stream().bits(n);
        Secret::new(mutation::bit_mask_share(self.party, share))
    }

    /// The stream of the shares of the bits that mask what is opened before level `level` of a comparison by chunks.
    pub(crate) fn level_mask_stream(&self, wire: Wire, level: usize) -> Prg {
        self.seed.derive(Domain::Mask, beside(wire, 1 + mutation::level(level))).stream()
    }

    /// The stream of this evaluator's pseudorandom shares of part `part` of the planes dealt for a comparison.
    pub(crate) fn plane_stream(&self, wire: Wire, part: usize) -> Prg {
        self.seed.derive(Domain::Table, beside(wire, part)).stream()
    }

    /// The stream of this evaluator's pseudorandom table shares of `wire`.
    pub(crate) fn table_stream(&self, wire: Wire) -> Prg {
        self.seed.derive(Domain::Table, wire.index()).stream()
    }
}

/// The index of a use of a wire's seed beside its mask and its table words: the top bit is set, which no wire has, the
/// seven bits below it count the uses.
fn beside(wire: Wire, count: usize) -> u64 {
    assert!(wire.index() >> 56 == 0 && count < 128, "an index of 56 bits, 128 uses");
    wire.index() | 1 << 63 | (count as u64) << 56
}

/// Both evaluators' seeds as the dealer has them.
fn both(seeds: [Seed; 2]) -> [PartySeed; 2] {
    let [a, b] = seeds;
    [PartySeed::new(PartyId::P0, a), PartySeed::new(PartyId::P1, b)]
}

/// All secret randomness of a record.
pub struct RecordSeeds {
    /// One for each evaluator, which is given it with the record.
    pub parties: [PartySeed; 2],
    /// The dealer's own, which never leaves it.
    pub dealer: Seed,
}

impl RecordSeeds {
    /// From the record's seed, which only the dealer may know: one derivation for each of the three.
    pub fn of(record: &Seed) -> RecordSeeds {
        let record = &mutation::record(record);
        let parties = both([0, 1].map(|party| record.derive(Domain::Party, party)));
        RecordSeeds { parties, dealer: record.derive(Domain::Dealer, 0) }
    }
}

/// All randomness of a session beside its records'.
pub struct SessionSeeds {
    /// Of the weights' masks, one for each evaluator, which is given it with the session.
    pub parties: [PartySeed; 2],
    /// Public.
    pub hash: HashKeys,
}

impl SessionSeeds {
    /// From the session's secret seed, which only the dealer may know.
    pub fn of(session: &Seed) -> SessionSeeds {
        let parties = both([0, 1].map(|party| session.derive(Domain::Session, party)));
        SessionSeeds { parties, hash: HashKeys::from_seed(&session.derive(Domain::Hash, 0)) }
    }
}

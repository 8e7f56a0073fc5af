//! Seeds of sessions and records, what a party expands from its own, and what all parties draw alike.

use crate::gate::{Kind, Source, kind};
use crate::mutation;
use crate::preprocess::{BitUse, BitsAt};
use privet_family::{Secret, Wire};
use privet_plan::ir::{Plan, ValueId};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;

/// The seed of one party, of a record or (for weights) of a session. Nobody else knows it, but a helper who chose it.
#[derive(Clone)]
pub struct PartySeed {
    party: usize,
    seed: Seed,
    owner: Option<usize>,
}

impl PartySeed {
    /// The seed of `party`.
    pub fn new(party: usize, seed: Seed) -> PartySeed {
        PartySeed { party, seed, owner: None }
    }

    /// Of a session whose weights are all known to one party, if so. That party's summands alone mask them, and the others' are 0.
    pub fn with_owner(self, owner: Option<usize>) -> PartySeed {
        PartySeed { owner, ..self }
    }

    /// The party that knows all weights of the session, if there is one.
    pub fn owner(&self) -> Option<usize> {
        self.owner
    }

    /// Whether this party's summands of weights' masks are others than 0.
    pub fn masks_weights(&self) -> bool {
        self.owner.is_none_or(|owner| owner == self.party)
    }

    /// The party.
    pub fn party(&self) -> usize {
        self.party
    }

    /// The seed itself, for whom the protocol says may know it.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// This party's summand of the mask of an input (record's seed) or of a weight (session's): to be sent to the owner, who adds
    /// all parties' to its plaintext and sends the sum to every party.
    pub fn operand_mask(&self, plan: &Plan, v: ValueId) -> Secret {
        let ty = &plan.nodes[v].ty;
        let (ring, n) = (Ring::new(ty.bits), ty.len());
        match kind(&plan.nodes[v].op) {
            Kind::Shared(Source::Weight) => self.weight_mask(v, ring, n),
            Kind::Shared(Source::Input | Source::State) | Kind::Public | Kind::Gate(_) => {
                self.mask(Wire::node(v), ring, n)
            }
        }
    }

    /// The summand of the mask of a weight, from a session's seed.
    pub fn weight_mask(&self, v: ValueId, ring: Ring, n: usize) -> Secret {
        match mutation::masks_weights(self.masks_weights(), self.owner) {
            true => self.mask(mutation::weight_wire(Wire::node(v)), ring, n),
            false => Secret::new(vec![0; n]),
        }
    }

    /// The summand of the fresh mask of `wire`: `n` uniform elements.
    pub fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        let wire = mutation::mask_wire(wire);
        let mut share = self.seed.derive(Domain::Mask, wire.index()).stream().elements(ring, n);
        mutation::mask_share(self.party, &mut share);
        Secret::new(share)
    }

    /// This party's XOR share of private bits, so many words.
    pub fn private_bits(&self, at: BitsAt, words: usize) -> Secret {
        let at = mutation::bits_at(at);
        let usage = match at.usage {
            BitUse::Mask => 0,
            BitUse::Result => 1,
            BitUse::Level(level) => 2 + level as u64,
        };
        assert!(at.wire.index() >> 56 == 0 && usage < 128, "an index of 56 bits, 128 uses");
        // the top bit is set, which no wire has
        let of_use = self.seed.derive(Domain::Mask, at.wire.index() | 1 << 63 | usage << 56);
        let mut share = of_use.derive(Domain::Mask, at.chunk as u64).stream().elements(Ring::R64, words);
        mutation::private_bits(self.party, at.usage, &mut share);
        Secret::new(share)
    }

    /// The stream of this party's shares of what a helper deals.
    pub(crate) fn dealt(&self) -> Prg {
        self.seed.derive(Domain::Table, 0).stream()
    }
}

/// All parties' seeds of a record or session, as a helper has them.
pub fn all_seeds(parties: usize, secret: &Seed) -> Vec<PartySeed> {
    let seed = |party| PartySeed::new(party, secret.derive(Domain::Party, party as u64));
    (0..parties).map(seed).collect()
}

/// What all parties draw alike for a record, without a message: the coins of dropouts. All of it is public.
#[derive(Clone)]
pub struct Public(Seed);

impl Public {
    /// Of record `record` in a session whose public seed all parties know. No party may choose that seed alone.
    pub fn new(session: &Seed, record: u64) -> Public {
        Public(session.derive(Domain::Public, record))
    }

    fn dropout(&self, stream: u32, n: usize) -> Vec<u64> {
        self.0.derive(Domain::Public, stream.into()).stream().elements(Ring::R64, n.div_ceil(2))
    }

    /// The elements of `x` that [`privet_plan::ir::Op::Dropout`] keeps, zeros for the others.
    pub(crate) fn keep(&self, stream: u32, keep: u32, x: &[u64]) -> Vec<u64> {
        privet_family::keep(&self.dropout(stream, x.len()), keep, x)
    }

    /// The coins of a dropout, `count` numbers uniform in 32 bits, for the interpreter.
    pub fn dropout_coins(&self, stream: u32, count: usize) -> Vec<u64> {
        privet_family::dropout_coins(&self.dropout(stream, count), count)
    }
}

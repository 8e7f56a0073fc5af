use privet_plan::ir::ValueId;
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::fmt;

/// The keys that party i holds: key i, shared with the party before it, key i + 1, shared with the party after it,
/// and one that all three share.
///
/// Fresh in every session, kept in memory alone: a party that is restarted has none, and nothing can be used twice.
pub struct Keys {
    /// Key i.
    pub own: Seed,
    /// Key i + 1.
    pub next: Seed,
    /// Known to all three parties and to nobody else, chosen by none of them alone: what may be public between them.
    pub common: Seed,
}

impl Keys {
    /// The keys of one use of the session's: the sharing of weights, or a run. `index` must never repeat in a session.
    pub fn derive(&self, index: u64) -> Keys {
        let derive = |seed: &Seed| seed.derive(Domain::Record, index);
        Keys { own: derive(&self.own), next: derive(&self.next), common: derive(&self.common) }
    }

    /// Both keys' streams for draw `index`, which must never repeat under the same keys.
    pub(crate) fn streams(&self, index: u64) -> Streams {
        let stream = |seed: &Seed| seed.derive(Domain::Pair, index).stream();
        Streams { own: stream(&self.own), next: stream(&self.next) }
    }
}

/// The coins of stochastic rounding at `node` of a run whose common key is `common`, uniform in `shift` bits: what the
/// interpreter needs to give the run's own result. Adding `2^shift - 1 - coin` and taking the floor rounds up just where
/// the coin is below the fraction.
pub fn rounding_coins(common: &Seed, node: ValueId, shift: u32, count: usize) -> Vec<u64> {
    common.derive(Domain::Common, node as u64).stream().elements(Ring::new(shift), count)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// What this party draws together with each of its neighbours.
pub(crate) struct Streams {
    /// Alike with the party before.
    pub own: Prg,
    /// Alike with the party after.
    pub next: Prg,
}

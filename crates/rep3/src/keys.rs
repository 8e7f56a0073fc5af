use privet_plan::ir::ValueId;
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::fmt;

/// Uses of the common key of a run, beside those of its nodes, which are numbered from 0: dropouts' streams and outputs.
const DROPOUT: u64 = 1 << 62;
pub(crate) const OUTPUT: u64 = 1 << 63;

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

/// The coins of dropout `stream` of a run whose common key is `common`, uniform in 32 bits: an element is kept where its coin
/// is below what the plan says. The same wherever the stream is named, and no node's coins of rounding.
pub fn dropout_coins(common: &Seed, stream: u32, count: usize) -> Vec<u64> {
    common.derive(Domain::Common, DROPOUT | u64::from(stream)).stream().elements(Ring::new(32), count)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Coins of a stream are the same whenever asked for, and no other stream's, run's or node's.
    #[test]
    fn coins_of_dropout_belong_to_a_stream_of_a_run() {
        let common = Seed::from_bytes([7; 16]);
        let coins = |seed: &Seed, stream| dropout_coins(seed, stream, 1000);
        assert_eq!(coins(&common, 3), coins(&common, 3));
        assert_eq!(coins(&common, 3)[..10], dropout_coins(&common, 3, 10), "of whatever length");
        let run = common.derive(Domain::Record, 1);
        let mut all =
            [coins(&common, 0), coins(&common, 3), coins(&common, u32::MAX), coins(&run, 3)].to_vec();
        all.push(rounding_coins(&common, 3, 32, 1000));
        for (i, a) in all.iter().enumerate() {
            assert!(a.iter().all(|&coin| coin < 1 << 32));
            let below = a.iter().filter(|&&coin| coin < 1 << 30).count();
            assert!((180..320).contains(&below), "a quarter of 1000 is kept, not {below}");
            for b in &all[..i] {
                let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
                assert!(same < 3, "coins came twice");
            }
        }
    }
}

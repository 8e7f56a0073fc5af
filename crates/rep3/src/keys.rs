use crate::PartyId;
use crate::parts::Parts;
use privet_plan::ir::ValueId;
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::fmt;

/// Uses of the key of a run's coins, beside those of its nodes, which are numbered from 0: dropouts' streams.
const DROPOUT: u64 = 1 << 62;
/// Uses of a pair key of a run, beside its share of the coins' key: coins that one party must not know.
const HIDDEN: u64 = 1 << 63;
/// Uses of the common key of a run: outputs.
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

    /// This party's shares of the key of the coins, of a run's keys: the first it has with the party before, the second with
    /// the party after.
    pub(crate) fn coin_shares(&self) -> [Seed; 2] {
        [coin_share(&self.own), coin_share(&self.next)]
    }

    /// The keys of the coins that this party has with the party before and hides from the one after, and the other way round: of block
    /// `number` of a node.
    pub(crate) fn hidden(&self, node: ValueId, number: u64) -> [Seed; 2] {
        [hidden(&self.own, node, number), hidden(&self.next, node, number)]
    }

    /// Both keys' streams for draw `index`, which must never repeat under the same keys.
    pub(crate) fn streams(&self, index: u64) -> Streams {
        let stream = |seed: &Seed| seed.derive(Domain::Pair, index).stream();
        Streams { own: stream(&self.own), next: stream(&self.next) }
    }
}

/// The key of a run's coins, from the run's three pair keys in any order. Every party lacks one of them, so to every party it
/// is uniform until the others send that one's share (docs/rep3.md, section 1).
pub fn run_coins(pairs: [&Seed; 3]) -> Seed {
    joined(pairs.map(coin_share).each_ref())
}

/// The key of the coins, from its shares in any order.
pub(crate) fn joined(shares: [&Seed; 3]) -> Seed {
    let [a, b, c] = shares.map(Seed::expose);
    Seed::from_bytes(std::array::from_fn(|i| a[i] ^ b[i] ^ c[i]))
}

/// No stream that masks anything comes of this use of a pair key: a share becomes known to all.
fn coin_share(pair: &Seed) -> Seed {
    pair.derive(Domain::Common, 0)
}

fn hidden(pair: &Seed, node: ValueId, number: u64) -> Seed {
    pair.derive(Domain::Common, HIDDEN | number << 32 | node as u64)
}

/// The coins at `node` of a run that in every part its dealer does not know, of a vector that is taken `block` elements at a time; from the
/// run's pair keys 0, 1 and 2: what the interpreter needs to give the run's own result.
pub fn hidden_coins(pairs: [&Seed; 3], node: ValueId, bits: u32, count: usize, block: usize) -> Vec<u64> {
    let mut all = Vec::with_capacity(count);
    for (number, start) in (0..count).step_by(block).enumerate() {
        let parts = Parts::of(block.min(count - start));
        for dealer in PartyId::ALL {
            let key = hidden(pairs[dealer.prev().index()], node, number as u64);
            all.extend(key.stream().elements(Ring::new(bits), parts.elements(dealer).mine.len()));
        }
    }
    all
}

/// The coins of stochastic rounding at `node` of a run, whose coins have this key ([`run_coins`]), uniform in `shift` bits: what the
/// interpreter needs to give the run's own result. Adding `2^shift - 1 - coin` and taking the floor rounds up just where
/// the coin is below the fraction.
pub fn rounding_coins(coins: &Seed, node: ValueId, shift: u32, count: usize) -> Vec<u64> {
    coins.derive(Domain::Common, node as u64).stream().elements(Ring::new(shift), count)
}

/// The coins of dropout `stream` of a run, whose coins have this key ([`run_coins`]), uniform in 32 bits: an element is kept where its coin
/// is below what the plan says. The same wherever the stream is named, and no node's coins of rounding.
pub fn dropout_coins(coins: &Seed, stream: u32, count: usize) -> Vec<u64> {
    coins.derive(Domain::Common, DROPOUT | u64::from(stream)).stream().elements(Ring::new(32), count)
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

    /// Whoever lacks one pair key knows nothing of the coins, and another run has others.
    #[test]
    fn the_coins_need_all_three_pair_keys_of_the_run() {
        let session = [1, 2, 3].map(|b| Seed::from_bytes([b; 16]));
        let run = |number| session.each_ref().map(|key| key.derive(Domain::Record, number));
        let pairs = run(1);
        let [a, b, c] = pairs.each_ref();
        let found = run_coins([a, b, c]);
        assert_eq!(found, run_coins([c, a, b]), "every party has them in an order of its own");
        let other = Seed::from_bytes([4; 16]);
        for changed in [[&other, b, c], [a, &other, c], [a, b, &other]] {
            assert_ne!(run_coins(changed), found);
        }
        assert_ne!(run_coins(run(2).each_ref()), found);
    }

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

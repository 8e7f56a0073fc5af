//! What the dealer and both evaluators draw alike for a record, without a message: hash keys, coins of dropout and of
//! rounding. All of it is public.

use crate::Wire;
use crate::mutation;
use privet_prg::{Domain, HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;

/// The public randomness of one record: AES in counter mode under a key that is used for nothing else. The key is derived
/// by the record's number from the XOR of the session's two public keys.
pub(crate) struct Public(Seed);

impl Public {
    pub fn new(session: &HashKeys, record: u64) -> Public {
        let key = std::array::from_fn(|i| session.inner[i] ^ session.leaf[i]);
        Public(Seed::from_bytes(key).derive(Domain::Public, record))
    }

    /// The hashes of the trees of `wire`, a pair of keys for each frame of keys.
    pub fn hashes(&self, wire: Wire) -> Hashes {
        Hashes(self.0.derive(Domain::Hash, wire.index()).stream())
    }

    /// The rounding coins of `wire`: `n` numbers uniform in `[0, 2^shift)`.
    pub fn rounding(&self, wire: Wire, shift: u32, n: usize) -> Vec<u64> {
        let mut stream = self.0.derive(Domain::Common, mutation::rounding_wire(wire).index()).stream();
        let low = Ring::new(shift);
        if mutation::active("rounding-coins-dropped") {
            return vec![0; n];
        }
        if shift > 32 {
            return stream.elements(low, n);
        }
        // two numbers a word
        let words = stream.elements(Ring::R64, n.div_ceil(2));
        let mut coins: Vec<u64> = words.into_iter().flat_map(|w| [low.wrap(w), low.wrap(w >> 32)]).collect();
        coins.truncate(n);
        coins
    }

    /// Words of which each has two numbers uniform in 32 bits, the lower half first; enough for `n` numbers.
    fn dropout(&self, stream: u32, n: usize) -> Vec<u64> {
        self.0.derive(Domain::Public, stream.into()).stream().elements(Ring::R64, n.div_ceil(2))
    }

    /// The elements of `x` that [`privet_plan::ir::Op::Dropout`] keeps, zeros for the others.
    pub fn keep(&self, stream: u32, keep: u32, x: &[u64]) -> Vec<u64> {
        privet_family::keep(&self.dropout(stream, x.len()), keep, x)
    }
}

/// The hashes of one gate's trees, frame after frame. A key of the hash serves the trees of one frame and no others: who
/// computes hashes to find a seed tries them against that frame's seeds alone.
pub(crate) struct Hashes(Prg);

impl Hashes {
    /// The hash of the next frame.
    pub fn next(&mut self) -> TreeHash {
        mutation::hash(TreeHash::new(HashKeys::draw(&mut self.0)))
    }
}

/// The coins of dropout `stream` in record number `record` of the session with these public keys, `count` numbers
/// uniform in 32 bits: what the interpreter needs to agree with the protocol. They are no secret.
pub fn dropout_coins(session: &HashKeys, record: u64, stream: u32, count: usize) -> Vec<u64> {
    privet_family::dropout_coins(&Public::new(session, record).dropout(stream, count), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair of hash keys serves one frame: another frame, wire, record or session has another one.
    #[test]
    fn hash_keys_are_of_one_frame() {
        let session = |i| HashKeys::from_seed(&Seed::from_bytes([6; 16]).derive(Domain::Public, i));
        let mut seen = Vec::new();
        for (i, record, wire) in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1)] {
            let mut hashes = Public::new(&session(i), record).hashes(Wire::node(wire));
            seen.extend((0..3).flat_map(|_| {
                let keys = *hashes.next().keys();
                [keys.inner, keys.leaf]
            }));
        }
        seen.extend([session(0), session(1)].iter().flat_map(|keys| [keys.inner, keys.leaf]));
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "a key came twice");
        let again = Public::new(&session(0), 0).hashes(Wire::node(0)).next();
        assert_eq!(again.keys(), Public::new(&session(0), 0).hashes(Wire::node(0)).next().keys());
    }
}

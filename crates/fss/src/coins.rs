//! The public coins of a record's dropouts: both evaluators and the dealer draw them alike, without a message.

use privet_prg::{Domain, HashKeys, Seed};
use privet_ring::Ring;

/// The coins of one record: AES in counter mode under a key that is used for nothing else, the XOR of the session's two
/// public hash keys, by the record's number and the stream's.
pub(crate) struct Coins(Seed);

impl Coins {
    pub fn new(hash: &HashKeys, record: u64) -> Coins {
        let key = std::array::from_fn(|i| hash.inner[i] ^ hash.leaf[i]);
        Coins(Seed::from_bytes(key).derive(Domain::Public, record))
    }

    /// Words of which each has two numbers uniform in 32 bits, the lower half first; enough for `n` numbers.
    fn draw(&self, stream: u32, n: usize) -> Vec<u64> {
        self.0.derive(Domain::Public, stream.into()).stream().elements(Ring::R64, n.div_ceil(2))
    }

    /// The elements of `x` that [`privet_plan::ir::Op::Dropout`] keeps, zeros for the others.
    pub fn keep(&self, stream: u32, keep: u32, x: &[u64]) -> Vec<u64> {
        let kept = |coin: u32| u64::from(coin < keep).wrapping_neg();
        let mut out = x.to_vec();
        for (pair, w) in out.chunks_mut(2).zip(self.draw(stream, x.len())) {
            pair[0] &= kept(w as u32);
            pair[1..].iter_mut().for_each(|x| *x &= kept((w >> 32) as u32));
        }
        out
    }
}

/// The coins of dropout `stream` in record number `record` of the session with these public keys, `count` numbers
/// uniform in 32 bits: what the interpreter needs to agree with the protocol. They are no secret.
pub fn dropout_coins(hash: &HashKeys, record: u64, stream: u32, count: usize) -> Vec<u64> {
    let words = Coins::new(hash, record).draw(stream, count);
    words.into_iter().flat_map(|w| [w & u64::from(u32::MAX), w >> 32]).take(count).collect()
}

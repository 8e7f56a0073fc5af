use crate::cipher::Cipher;
use crate::{Prg, Seed};
use std::sync::OnceLock;

/// Two public AES keys of tree hashes: `inner` for H, `leaf` for H'.
///
/// Everybody may know them; what matters is that few trees share a pair, so that hashes computed against these trees'
/// seeds help against no others. A session has a pair that nothing is hashed with: pairs are drawn from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKeys {
    /// Key of H, used on the way down.
    pub inner: [u8; 16],
    /// Key of H', used at the leaf.
    pub leaf: [u8; 16],
}

impl HashKeys {
    /// Draw both keys from a seed that is used for nothing else.
    pub fn from_seed(seed: &Seed) -> HashKeys {
        HashKeys::draw(&mut seed.stream())
    }

    /// Draw both keys from a stream, two of its blocks.
    pub fn draw(prg: &mut Prg) -> HashKeys {
        let mut both = [[0; 16]; 2];
        prg.fill_bytes(both.as_flattened_mut());
        let [inner, leaf] = both;
        HashKeys { inner, leaf }
    }
}

/// The circular-correlation-robust hash of half-trees, `H(s) = AES_k(sigma(s)) ^ sigma(s)` with the
/// linear orthomorphism `sigma(l || r) = (l ^ r || l)` on the high and low 64 bits
/// (Guo et al., EUROCRYPT 2023, section 2; Guo et al., S&P 2020).
///
/// Key schedules are made when they are first used: kernels with AES of their own need the keys alone.
#[derive(Clone)]
pub struct TreeHash {
    keys: HashKeys,
    inner: OnceLock<Cipher>,
    leaf: OnceLock<Cipher>,
}

/// sigma on a block whose high 64 bits are `l` and low 64 bits are `r`.
#[inline(always)]
pub const fn sigma(s: u128) -> u128 {
    let (l, r) = ((s >> 64) as u64, s as u64);
    (((l ^ r) as u128) << 64) | l as u128
}

impl TreeHash {
    /// The hashes under these keys.
    pub fn new(keys: HashKeys) -> TreeHash {
        TreeHash { keys, inner: OnceLock::new(), leaf: OnceLock::new() }
    }

    /// The public keys (kernels with their own AES expand these).
    pub fn keys(&self) -> &HashKeys {
        &self.keys
    }

    /// H on every block, in place.
    pub fn inner(&self, blocks: &mut [u128]) {
        self.inner.get_or_init(|| Cipher::new(&self.keys.inner)).hash(blocks);
    }

    /// H' on every block, in place.
    pub fn leaf(&self, blocks: &mut [u128]) {
        self.leaf.get_or_init(|| Cipher::new(&self.keys.leaf)).hash(blocks);
    }
}

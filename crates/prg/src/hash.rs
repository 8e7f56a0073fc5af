use crate::Seed;
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// The two public AES keys of a session's tree hashes: `inner` for H, `leaf` for H'.
///
/// Drawn fresh by the dealer for every session and sent in the clear, so that precomputation against
/// one session's trees does not help against another's.
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
        let mut prg = seed.stream();
        let (mut inner, mut leaf) = ([0; 16], [0; 16]);
        prg.fill_bytes(&mut inner);
        prg.fill_bytes(&mut leaf);
        HashKeys { inner, leaf }
    }
}

/// The circular-correlation-robust hash of half-trees, `H(s) = AES_k(sigma(s)) ^ sigma(s)` with the
/// linear orthomorphism `sigma(l || r) = (l ^ r || l)` on the high and low 64 bits
/// (Guo et al., EUROCRYPT 2023, section 2; Guo et al., S&P 2020).
#[derive(Clone)]
pub struct TreeHash {
    keys: HashKeys,
    inner: Aes128,
    leaf: Aes128,
}

/// sigma on a block whose high 64 bits are `l` and low 64 bits are `r`.
pub const fn sigma(s: u128) -> u128 {
    let (l, r) = ((s >> 64) as u64, s as u64);
    (((l ^ r) as u128) << 64) | l as u128
}

impl TreeHash {
    /// Expand both key schedules.
    pub fn new(keys: HashKeys) -> TreeHash {
        TreeHash { keys, inner: Aes128::new(&Array(keys.inner)), leaf: Aes128::new(&Array(keys.leaf)) }
    }

    /// The public keys (kernels with their own AES expand these).
    pub fn keys(&self) -> &HashKeys {
        &self.keys
    }

    /// H on every block, in place.
    pub fn inner(&self, blocks: &mut [u128]) {
        apply(&self.inner, blocks);
    }

    /// H' on every block, in place.
    pub fn leaf(&self, blocks: &mut [u128]) {
        apply(&self.leaf, blocks);
    }
}

fn apply(aes: &Aes128, blocks: &mut [u128]) {
    for chunk in blocks.chunks_mut(64) {
        let mut buf = [Array([0u8; 16]); 64];
        for (b, s) in buf.iter_mut().zip(chunk.iter()) {
            b.0 = sigma(*s).to_le_bytes();
        }
        aes.encrypt_blocks(&mut buf[..chunk.len()]);
        for (s, b) in chunk.iter_mut().zip(&buf) {
            *s = u128::from_le_bytes(b.0) ^ sigma(*s);
        }
    }
}

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use privet_ring::{BitVec, Ring};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What a derived seed is for. Two uses never share a domain, so two streams never overlap.
///
/// The label is the first eight bytes of the block that [`Seed::derive`] encrypts; the numbers are part
/// of the wire and key formats and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Domain {
    /// One party's share of a wire's mask; index = value of the plan.
    Mask = 1,
    /// One party's pseudorandom share of a gate's table; index = value of the plan.
    Table = 2,
    /// The dealer's own randomness for a gate (never leaves the dealer); index = value of the plan.
    Dealer = 3,
    /// One evaluator's seed inside a record; index = party.
    Party = 4,
    /// A record of a session; index = record number.
    Record = 5,
    /// The masks of the session's weights; index = party.
    Session = 6,
    /// Public fresh hash keys of a session.
    Hash = 7,
    /// Pairwise PRF between two parties.
    Pair = 8,
    /// Test inputs and bench weights that are public by nature.
    Public = 9,
}

/// A secret 128-bit seed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// A fresh seed from the operating system. Panics when the system has no randomness: going on
    /// without is never right.
    pub fn random() -> Seed {
        let mut s = [0; 16];
        getrandom::fill(&mut s).expect("the operating system's random generator failed");
        Seed(s)
    }

    /// A seed received from the dealer or a peer, or fixed by a test.
    pub fn from_bytes(bytes: [u8; 16]) -> Seed {
        Seed(bytes)
    }

    /// The bytes, to be sent to whom the protocol says may know this seed.
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    /// An independent seed for `(domain, index)`: AES_seed(domain || index), a PRF of the pair.
    pub fn derive(&self, domain: Domain, index: u64) -> Seed {
        let aes = Aes128::new(&Array(self.0));
        let mut block = [0u8; 16];
        block[..8].copy_from_slice(&(domain as u64).to_le_bytes());
        block[8..].copy_from_slice(&index.to_le_bytes());
        let mut block = Array(block);
        aes.encrypt_block(&mut block);
        Seed(block.0)
    }

    /// The stream of this seed from its start. A seed is either derived from or expanded, never both.
    pub fn stream(&self) -> Prg {
        Prg { aes: Aes128::new(&Array(self.0)), counter: 0 }
    }
}

impl PartialEq for Seed {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// AES-128-CTR keyed by a seed. Each call starts at a block border, so the stream depends on the
/// sequence of calls and their lengths, which both sides take from the plan.
pub struct Prg {
    aes: Aes128,
    counter: u128,
}

const BATCH: usize = 64;

impl Prg {
    /// The next bytes of the stream; at most 15 bytes of the last block are thrown away.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(16 * BATCH) {
            let mut blocks = [Array([0u8; 16]); BATCH];
            let n = chunk.len().div_ceil(16);
            for b in &mut blocks[..n] {
                b.0 = self.counter.to_le_bytes();
                self.counter += 1;
            }
            self.aes.encrypt_blocks(&mut blocks[..n]);
            for (o, b) in chunk.chunks_mut(16).zip(&blocks) {
                o.copy_from_slice(&b.0[..o.len()]);
            }
        }
    }

    /// Uniform elements of `ring`; two 64-bit words a block.
    pub fn fill(&mut self, ring: Ring, out: &mut [u64]) {
        let mask = ring.mask();
        for chunk in out.chunks_mut(2 * BATCH) {
            let mut blocks = [Array([0u8; 16]); BATCH];
            let n = chunk.len().div_ceil(2);
            for b in &mut blocks[..n] {
                b.0 = self.counter.to_le_bytes();
                self.counter += 1;
            }
            self.aes.encrypt_blocks(&mut blocks[..n]);
            for (o, b) in chunk.chunks_mut(2).zip(&blocks) {
                let v = u128::from_le_bytes(b.0);
                o[0] = v as u64 & mask;
                if let Some(hi) = o.get_mut(1) {
                    *hi = (v >> 64) as u64 & mask;
                }
            }
        }
    }

    /// `n` uniform elements of `ring`.
    pub fn elements(&mut self, ring: Ring, n: usize) -> Vec<u64> {
        let mut v = vec![0; n];
        self.fill(ring, &mut v);
        v
    }

    /// `n` uniform bits.
    pub fn bits(&mut self, n: usize) -> BitVec {
        BitVec::from_words(n, self.elements(Ring::R64, n.div_ceil(64)))
    }

    /// Uniform 128-bit blocks.
    pub fn fill_blocks(&mut self, out: &mut [u128]) {
        for chunk in out.chunks_mut(BATCH) {
            let mut blocks = [Array([0u8; 16]); BATCH];
            for b in &mut blocks[..chunk.len()] {
                b.0 = self.counter.to_le_bytes();
                self.counter += 1;
            }
            self.aes.encrypt_blocks(&mut blocks[..chunk.len()]);
            for (o, b) in chunk.iter_mut().zip(&blocks) {
                *o = u128::from_le_bytes(b.0);
            }
        }
    }

    /// A fresh seed from the stream.
    pub fn seed(&mut self) -> Seed {
        let mut s = [0; 16];
        self.fill_bytes(&mut s);
        Seed(s)
    }
}

impl std::fmt::Debug for Prg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prg(..)")
    }
}

use crate::cipher::Cipher;
use crate::ctr;
use aes::Aes128Enc;
use aes::cipher::{Array, KeyInit};
use privet_ring::{BitVec, Ring};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What a derived seed is for. Two uses never share a domain, so two streams never overlap.
///
/// The label is the last eight bytes of the block that [`Seed::derive`] encrypts; label 0 belongs to
/// [`Seed::stream`]. The numbers are part of the wire and key formats and are never reused.
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
    /// Public keys of tree hashes: of a session, and below a record's public seed, index = wire.
    Hash = 7,
    /// Pairwise PRF between two parties.
    Pair = 8,
    /// What is public by nature: a session's name, test inputs, bench weights.
    Public = 9,
    /// What all parties draw alike; index = value of the plan. Whoever knows the seed knows it.
    Common = 10,
}

/// The label of a seed's stream, which no [`Domain`] has.
pub(crate) const STREAM: u64 = 0;

/// A secret 128-bit seed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// A fresh seed from the operating system. Panics when the system has no randomness: going on
    /// without is never right.
    pub fn random() -> Seed {
        let mut seed = Seed([0; 16]);
        getrandom::fill(&mut seed.0).expect("the operating system's random generator failed");
        seed
    }

    /// A seed received from the dealer or a peer, or fixed by a test.
    pub fn from_bytes(bytes: [u8; 16]) -> Seed {
        Seed(bytes)
    }

    /// The bytes, to be sent to whom the protocol says may know this seed.
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    /// An independent seed for `(domain, index)`: `AES_seed(index || domain)`, a PRF of the pair.
    pub fn derive(&self, domain: Domain, index: u64) -> Seed {
        let mut block = [[0; 16]];
        ctr::keystream(&self.aes(), domain as u64, index, &mut block);
        let seed = Seed(block[0]);
        block.zeroize();
        seed
    }

    /// The stream of this seed from its start: `AES_seed(counter || 0)`. No derived seed is a block of it, as
    /// no [`Domain`] is 0; but two streams of one seed are the same, so expand each seed once.
    pub fn stream(&self) -> Prg {
        Prg { cipher: Cipher::new(&self.0), counter: 0 }
    }

    fn aes(&self) -> Aes128Enc {
        Aes128Enc::new(&Array(self.0))
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
    cipher: Cipher,
    counter: u64,
}

/// Words masked at a time, while they are still in the first-level cache.
const WORDS: usize = 1024;

impl Prg {
    /// The next bytes of the stream; at most 15 bytes of the last block are thrown away.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        let (blocks, rest) = out.as_chunks_mut::<16>();
        self.next(blocks);
        if !rest.is_empty() {
            let mut last = [[0; 16]];
            self.next(&mut last);
            rest.copy_from_slice(&last[0][..rest.len()]);
            last.zeroize();
        }
    }

    /// Uniform elements of `ring`; two 64-bit words a block.
    pub fn fill(&mut self, ring: Ring, out: &mut [u64]) {
        let mask = ring.mask();
        for chunk in out.chunks_mut(WORDS) {
            self.fill_bytes(as_bytes(chunk));
            if cfg!(target_endian = "big") || mask != u64::MAX {
                for w in chunk {
                    *w = u64::from_le(*w) & mask;
                }
            }
        }
    }

    /// The same stream, `words` of 64 bits behind where this one stands: for who has to have them twice, and keeps none between. Panics
    /// where that is within a block of two.
    pub fn again(&self, words: usize) -> Prg {
        assert!(words.is_multiple_of(2), "a block from its middle on");
        let counter = self.counter.checked_add(words as u64 / 2).expect("2^64 blocks of one stream");
        Prg { cipher: self.cipher.clone(), counter }
    }

    fn next(&mut self, out: &mut [[u8; 16]]) {
        self.cipher.keystream(self.counter, out);
        self.counter = self.counter.checked_add(out.len() as u64).expect("2^64 blocks of one stream");
    }

    /// `n` uniform elements of `ring`.
    pub fn elements(&mut self, ring: Ring, n: usize) -> Vec<u64> {
        let mut v = Vec::with_capacity(n);
        let mut piece = [0; WORDS];
        while v.len() < n {
            let piece = &mut piece[..(n - v.len()).min(WORDS)];
            self.fill(ring, piece);
            v.extend_from_slice(piece);
        }
        piece.zeroize();
        v
    }

    /// `n` uniform bits.
    pub fn bits(&mut self, n: usize) -> BitVec {
        BitVec::from_words(n, self.elements(Ring::R64, n.div_ceil(64)))
    }

    /// Uniform 128-bit blocks.
    pub fn fill_blocks(&mut self, out: &mut [u128]) {
        self.fill_bytes(as_bytes(out));
        if cfg!(target_endian = "big") {
            for b in out {
                *b = u128::from_le(*b);
            }
        }
    }

    /// A fresh seed from the stream.
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed([0; 16]);
        self.fill_bytes(&mut seed.0);
        seed
    }
}

mod plain {
    /// Integers of which every bit pattern is a value and no byte is padding.
    pub trait Plain {}
    impl Plain for u64 {}
    impl Plain for u128 {}
}

fn as_bytes<T: plain::Plain>(words: &mut [T]) -> &mut [u8] {
    // SAFETY: the same memory for the same time, no stricter alignment; `Plain` makes all bytes valid.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

impl std::fmt::Debug for Prg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prg(..)")
    }
}

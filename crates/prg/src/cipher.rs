use crate::ctr;
use crate::hash::{Level, TREES, sum_by_hash};
use crate::seed::STREAM;
#[cfg(target_arch = "x86_64")]
use crate::{CpuCap, x86};
use aes::Aes128Enc;
use aes::cipher::{Array, KeyInit};

/// AES-128 under one key, by the best path that the machine has and `PRIVET_CPU` allows.
#[derive(Clone)]
pub(crate) enum Cipher {
    #[cfg(target_arch = "x86_64")]
    Wide(x86::Rounds),
    Any(Box<Aes128Enc>),
}

impl Cipher {
    /// Under this key.
    pub fn new(key: &[u8; 16]) -> Cipher {
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = width() {
            // SAFETY: detected.
            return Cipher::Wide(unsafe { x86::Rounds::new(width, key) });
        }
        Cipher::Any(Box::new(Aes128Enc::new(&Array(*key))))
    }

    /// Blocks `first`, `first + 1`, ... of the stream.
    pub fn keystream(&self, first: u64, out: &mut [[u8; 16]]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Cipher::Wide(rounds) => rounds.keystream(first, out),
            Cipher::Any(aes) => ctr::keystream(aes, STREAM, first, out),
        }
    }

    /// `block -> AES(sigma(block)) ^ sigma(block)` on every block, in place.
    pub fn hash(&self, blocks: &mut [u128]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Cipher::Wide(rounds) => rounds.hash(blocks),
            Cipher::Any(aes) => ctr::hash(aes, blocks),
        }
    }

    /// A level of half-trees.
    pub fn children(&self, level: Level<'_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Cipher::Wide(rounds) => rounds.children(level),
            Cipher::Any(aes) => level.by_hash(|blocks| ctr::hash(aes, blocks)),
        }
    }

    /// Hashes of nodes of half-trees added up.
    pub fn sum(&self, nodes: &[u128], sums: &mut [u128; TREES]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Cipher::Wide(rounds) => rounds.sum(nodes, sums),
            Cipher::Any(aes) => sum_by_hash(nodes, sums, |blocks| ctr::hash(aes, blocks)),
        }
    }
}

/// The registers that this machine has and `PRIVET_CPU` allows. What names no level is refused where a device is opened; here it lowers.
#[cfg(target_arch = "x86_64")]
fn width() -> Option<x86::Width> {
    static WIDTH: std::sync::OnceLock<Option<x86::Width>> = std::sync::OnceLock::new();
    *WIDTH.get_or_init(|| CpuCap::from_env().ok().and_then(x86::Width::detect))
}

//! The hashes, one name an assumption (Guo, Katz, Wang, Yu, S&P 2020, eprint 2019/074). AES keys are public.
//!
//! | name | formula | assumed of it | where |
//! |---|---|---|---|
//! | `ccr` | `AES_k(sigma(x)) ^ sigma(x)` | circular correlation robust, section 7.3 | trees ([`Trees`]) |
//! | `tccr` | `AES_k(i)(sigma(x)) ^ sigma(x)` | the same for every tweak `i`, each a key of its own (Guo, Katz, Wang, Weng, Yu, CRYPTO 2020, eprint 2019/1168) | pads ([`Pads`]) |
//!
//! `sigma(l || r) = (l ^ r || l)`. Both are arguments in the ideal-cipher model; docs/ot.md counts what a search costs.

use crate::mutation;
use privet_prg::{Domain, HashKeys, Seed, TREES, TreeHash};

/// Transfers that share a tweak of [`Pads`]. AGREEMENT: both parties cut alike. SECURITY: a search tests so many at once.
pub const TWEAK_RUN: u64 = 1 << 12;

/// `ccr` for the trees of one round, under keys of its own.
pub(crate) struct Trees(TreeHash);

impl Trees {
    /// The hash of round `round` of a direction, from its public seed.
    pub fn of_round(public: &Seed, round: u64) -> Trees {
        Trees(TreeHash::new(HashKeys::from_seed(&public.derive(Domain::Hash, round))))
    }

    /// `ccr` on every block, in place.
    pub fn ccr(&self, blocks: &mut [u128]) {
        self.0.inner(blocks);
    }

    /// A level of half-trees side by side to the next one, both sides added up ([`TreeHash::children`]).
    pub fn children(&self, left: &mut [u128], right: &mut [u128], kept: u128, sums: &mut [[u128; TREES]; 2]) {
        self.0.children(left, right, kept, sums);
    }

    /// Adds `ccr` of every node to the sum of its tree ([`TreeHash::sum`]).
    pub fn sum(&self, nodes: &[u128], sums: &mut [u128; TREES]) {
        self.0.sum(nodes, sums);
    }

    /// `ccr` under the second key: the right child of a tree whose children are two hashes.
    pub fn ccr_right(&self, blocks: &mut [u128]) {
        self.0.leaf(blocks);
    }
}

/// `tccr` of a direction: transfer number `j` has tweak `j / TWEAK_RUN`.
#[derive(Clone)]
pub(crate) struct Pads(Seed);

impl Pads {
    /// From the direction's public seed, used for nothing else.
    pub fn new(public: Seed) -> Pads {
        Pads(public)
    }

    /// What hashes seeds, for trees of each depth apart.
    pub fn of_seeds(&self, depth: u32) -> Pads {
        Pads(self.0.derive(Domain::Public, u64::from(depth)))
    }

    /// The hash of some of its trees, whose keys no pad has.
    pub fn trees(&self, number: u64) -> Trees {
        Trees::of_round(&self.0.derive(Domain::Common, 0), number)
    }

    /// Hashes the blocks of transfers `first ..`, in place.
    pub fn tccr(&self, first: u64, mut blocks: &mut [u128]) {
        let mut at = first;
        while !blocks.is_empty() {
            let here = (TWEAK_RUN - at % TWEAK_RUN).min(blocks.len() as u64);
            let (now, later) = blocks.split_at_mut(here as usize);
            let tweak = if mutation::active("tweak-constant") { 0 } else { at / TWEAK_RUN };
            Trees::of_round(&self.0, tweak).ccr(now);
            (blocks, at) = (later, at + here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_blocks_hash_apart_under_different_tweaks_only() {
        let pads = Pads::new(Seed::from_bytes([1; 16]));
        let mut all = vec![7u128; 2 * TWEAK_RUN as usize];
        pads.tccr(0, &mut all);
        let (a, b) = all.split_at(TWEAK_RUN as usize);
        assert!(a.iter().all(|x| *x == a[0]) && b.iter().all(|x| *x == b[0]));
        assert_ne!(a[0], b[0], "the tweak must reach the hash");
    }

    #[test]
    fn pads_do_not_depend_on_how_transfers_are_cut() {
        let pads = Pads::new(Seed::from_bytes([2; 16]));
        let inputs: Vec<u128> = (0..9000).map(|i| i * 0x1234_5678_9abc).collect();
        let mut whole = inputs.clone();
        pads.tccr(100, &mut whole);
        let mut parts = inputs;
        for (from, to) in [(0, 1), (1, 3996), (3996, 3997), (3997, 9000)] {
            pads.tccr(100 + from as u64, &mut parts[from..to]);
        }
        assert_eq!(whole, parts);
    }
}

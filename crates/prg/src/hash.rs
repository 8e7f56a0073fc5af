use crate::cipher::Cipher;
use crate::{Prg, Seed};
use std::sync::OnceLock;
use zeroize::Zeroize;

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

/// Half-trees side by side: node j of a level is of tree `j % TREES`. Four blocks are a 512-bit register.
pub const TREES: usize = 4;

/// A level of half-trees on its way to the next one.
pub(crate) struct Level<'a> {
    /// The nodes, then their left children.
    pub left: &'a mut [u128],
    /// The right children.
    pub right: &'a mut [u128],
    /// Which bits of children stay. Sums have all.
    pub kept: u128,
    /// Of each tree, left and right children are added to these.
    pub sums: &'a mut [[u128; TREES]; 2],
}

impl Level<'_> {
    /// By a hash of blocks, in place.
    pub fn by_hash(self, hash: impl Fn(&mut [u128])) {
        /// Nodes at a time, while they are in the first-level cache.
        const TILE: usize = 64 * TREES;
        let [of_left, of_right] = self.sums;
        for (left, right) in self.left.chunks_mut(TILE).zip(self.right.chunks_mut(TILE)) {
            right.copy_from_slice(left);
            hash(left);
            for (i, (left, right)) in left.iter_mut().zip(right).enumerate() {
                *right ^= *left;
                of_left[i % TREES] ^= *left;
                of_right[i % TREES] ^= *right;
                (*left, *right) = (*left & self.kept, *right & self.kept);
            }
        }
    }
}

/// A hash, and nodes of half-trees of which the sum of hashes is wanted.
pub(crate) fn sum_by_hash(nodes: &[u128], sums: &mut [u128; TREES], hash: impl Fn(&mut [u128])) {
    const TILE: usize = 16 * TREES;
    let mut hashes = [0; TILE];
    for nodes in nodes.chunks(TILE) {
        let hashes = &mut hashes[..nodes.len()];
        hashes.copy_from_slice(nodes);
        hash(hashes);
        hashes.iter().enumerate().for_each(|(i, h)| sums[i % TREES] ^= h);
    }
    hashes.zeroize();
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

    /// From the nodes of a level of half-trees, [`TREES`] side by side, to their children: a node s in `left` becomes `H(s)`, and
    /// its place in `right` gets `H(s) ^ s`. Tree by tree, all left children are added to the first of `sums` and all right ones to the
    /// second. After that children keep the bits of `kept` alone.
    ///
    /// # Panics
    /// Where both sides are not as long, and whole nodes of all trees.
    pub fn children(&self, left: &mut [u128], right: &mut [u128], kept: u128, sums: &mut [[u128; TREES]; 2]) {
        assert!(left.len() == right.len() && left.len().is_multiple_of(TREES), "a level of {TREES} trees");
        let cipher = self.inner.get_or_init(|| Cipher::new(&self.keys.inner));
        cipher.children(Level { left, right, kept, sums });
    }

    /// Adds H of every node of a level of half-trees to the sum of its tree.
    ///
    /// # Panics
    /// Where there are not whole nodes of all trees.
    pub fn sum(&self, nodes: &[u128], sums: &mut [u128; TREES]) {
        assert!(nodes.len().is_multiple_of(TREES), "a level of {TREES} trees");
        self.inner.get_or_init(|| Cipher::new(&self.keys.inner)).sum(nodes, sums);
    }

    /// H' on every block, in place.
    pub fn leaf(&self, blocks: &mut [u128]) {
        self.leaf.get_or_init(|| Cipher::new(&self.keys.leaf)).hash(blocks);
    }
}

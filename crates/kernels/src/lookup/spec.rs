//! One key, as plainly as possible. Every path is tested against this.

use super::{LEAF_POINTS, LookupShape};
use privet_prg::TreeHash;

/// One party's key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Seed of the root; its lowest bit is the control bit.
    pub root: u128,
    /// Correction words, from the root down.
    pub levels: Vec<u128>,
    /// Correction words of a leaf.
    pub leaf: Vec<u64>,
}

fn hashed(hash: impl Fn(&mut [u128]), s: u128) -> u128 {
    let mut block = [s];
    hash(&mut block);
    block[0]
}

/// The words of a leaf with seed s: word j at both points is the hash of `s ^ 2j`, low half first.
fn leaf_words(hash: &TreeHash, shape: LookupShape, s: u128) -> Vec<u64> {
    let blocks = (0..shape.leaf_blocks()).map(|j| hashed(|b| hash.leaf(b), s ^ ((j as u128) << 1)));
    blocks.flat_map(|b| [b as u64, (b >> 64) as u64]).collect()
}

/// Both parties' keys for `words` at the point `alpha`; `root` is party 0's root seed, `delta` the offset between the
/// parties, whose lowest bit is set here.
pub fn generate(
    hash: &TreeHash,
    shape: LookupShape,
    alpha: u64,
    words: &[u64],
    root: u128,
    delta: u128,
) -> [Key; 2] {
    let delta = delta | 1;
    let roots = [root, root ^ delta];
    let mut s = roots;
    let mut levels = Vec::new();
    for level in (1..shape.bits).rev() {
        let right = alpha >> level & 1 == 1;
        let h = s.map(|s| hashed(|b| hash.inner(b), s));
        let cw = h[0] ^ h[1] ^ if right { 0 } else { delta };
        for b in 0..2 {
            let left = h[b] ^ if s[b] & 1 == 1 { cw } else { 0 };
            s[b] = if right { left ^ s[b] } else { left };
        }
        levels.push(cw);
    }
    let leaves = s.map(|s| leaf_words(hash, shape, s));
    let leaf = (0..shape.leaf_words()).map(|i| {
        let here = i % LEAF_POINTS == (alpha % LEAF_POINTS as u64) as usize;
        let wanted = if here { words[i / LEAF_POINTS] } else { 0 };
        let difference = wanted.wrapping_sub(leaves[0][i]).wrapping_add(leaves[1][i]);
        // party 1 subtracts it where its control bit is set
        if s[1] & 1 == 1 { difference.wrapping_neg() } else { difference }
    });
    let leaf: Vec<u64> = leaf.collect();
    roots.map(|root| Key { root, levels: levels.clone(), leaf: leaf.clone() })
}

/// Party 0's or (`second`) party 1's shares of all words, point after point.
pub fn expand(hash: &TreeHash, shape: LookupShape, key: &Key, second: bool) -> Vec<u64> {
    let mut nodes = vec![key.root];
    for &cw in &key.levels {
        let children = nodes.iter().flat_map(|&s| {
            let left = hashed(|b| hash.inner(b), s) ^ if s & 1 == 1 { cw } else { 0 };
            [left, left ^ s]
        });
        nodes = children.collect();
    }
    let leaf = |s: &u128| {
        let corrected = leaf_words(hash, shape, *s).into_iter().zip(&key.leaf);
        let word = |(w, &cw): (u64, &u64)| w.wrapping_add(if s & 1 == 1 { cw } else { 0 });
        let words: Vec<u64> =
            corrected.map(word).map(|w| if second { w.wrapping_neg() } else { w }).collect();
        let point = |p: usize| words.iter().skip(p).step_by(LEAF_POINTS).copied().collect::<Vec<_>>();
        (0..LEAF_POINTS).flat_map(point).collect::<Vec<_>>()
    };
    nodes.iter().flat_map(leaf).collect()
}

impl Key {
    /// Key `j` of a batch.
    pub fn read(shape: LookupShape, bytes: &[u8], j: usize) -> Key {
        let row = &bytes[j * shape.key_row()..][..shape.key_row()];
        let (blocks, words) = row.split_at(16 * (1 + shape.depth()));
        let mut blocks = blocks.as_chunks::<16>().0.iter().map(|b| u128::from_le_bytes(*b));
        Key {
            root: blocks.next().unwrap_or_default(),
            levels: blocks.collect(),
            leaf: words.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect(),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let blocks = std::iter::once(&self.root).chain(&self.levels).flat_map(|b| b.to_le_bytes());
        blocks.chain(self.leaf.iter().flat_map(|w| w.to_le_bytes())).collect()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key[{} levels]", self.levels.len())
    }
}

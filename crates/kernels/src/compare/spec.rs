//! The plain definition of a comparison key: one key, one step a line, to be believed by reading.
//!
//! Fast paths must agree with it bit for bit. It branches on secrets, so it serves tests and reading only.
//!
//! Invariant of the tree: on the path to `alpha` the parties' seeds differ by `Delta`, whose lowest bit is
//! 1, so exactly one party holds control bit 1; off the path the seeds are equal, and so is everything
//! below, which therefore cancels in the XOR of the shares.

use super::{BLOCK, CompareShape, LEAF_BITS};
use privet_prg::TreeHash;

/// One party's key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Seed of the root; its lowest bit is the control bit.
    pub root: u128,
    /// Correction words, from the root down.
    pub levels: Vec<u128>,
    /// Correction word of the 128-point leaf.
    pub leaf: u128,
}

/// One party's XOR shares at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of `1{x < alpha}`.
    pub lt: bool,
    /// Of `1{x = alpha}`.
    pub eq: bool,
}

fn inner(hash: &TreeHash, s: u128) -> u128 {
    let mut block = [s];
    hash.inner(&mut block);
    block[0]
}

fn leaf(hash: &TreeHash, s: u128) -> u128 {
    let mut block = [s];
    hash.leaf(&mut block);
    block[0]
}

fn control(s: u128) -> bool {
    s & 1 == 1
}

/// Bits of `v` that choose the way down a domain of `bits` bits, most significant first.
fn path(bits: u32, v: u64) -> impl Iterator<Item = bool> {
    (LEAF_BITS..bits.max(LEAF_BITS)).rev().map(move |i| v >> i & 1 == 1)
}

/// Position of `v` in its leaf.
fn low(v: u64) -> u32 {
    (v & 127) as u32
}

/// Both parties' keys for the threshold `alpha < 2^bits`; `root` is party 0's root seed, `delta` the offset
/// between the parties, whose lowest bit is set here.
pub fn generate(hash: &TreeHash, bits: u32, alpha: u64, root: u128, delta: u128) -> [Key; 2] {
    let delta = delta | 1;
    let roots = [root, root ^ delta];
    let mut s = roots;
    let mut levels = Vec::new();
    for right in path(bits, alpha) {
        let h = s.map(|s| inner(hash, s));
        // The sibling left of a right step must cancel: its children are H(s) ^ t*CW with t0 ^ t1 = 1.
        let cw = h[0] ^ h[1] ^ if right { 0 } else { delta };
        for b in 0..2 {
            let left = h[b] ^ if control(s[b]) { cw } else { 0 };
            s[b] = if right { left ^ s[b] } else { left };
        }
        levels.push(cw);
    }
    let word = leaf(hash, s[0]) ^ leaf(hash, s[1]) ^ (1 << low(alpha));
    roots.map(|root| Key { root, levels: levels.clone(), leaf: word })
}

/// One party's shares at the public point `x < 2^bits`.
///
/// `x < alpha` exactly when at one level `x` goes left and `alpha` right, that is when a right sibling of
/// `x`'s path lies on `alpha`'s path (its control bits differ), or when both share the leaf and `alpha`'s
/// one bit stands above `x`'s position.
pub fn eval(hash: &TreeHash, bits: u32, key: &Key, x: u64) -> Shares {
    let mut s = key.root;
    let mut lt = false;
    for (right, &cw) in path(bits, x).zip(&key.levels) {
        let l = inner(hash, s) ^ if control(s) { cw } else { 0 };
        let r = l ^ s;
        if right {
            s = r;
        } else {
            lt ^= control(r);
            s = l;
        }
    }
    let out = leaf(hash, s) ^ if control(s) { key.leaf } else { 0 };
    for i in low(x) + 1..128 {
        lt ^= out >> i & 1 == 1;
    }
    Shares { lt, eq: out >> low(x) & 1 == 1 }
}

impl Key {
    /// Where the 16-byte word `w` (0 the root, then the levels, then the leaf) of key `j` lies in a batch.
    fn offset(shape: CompareShape, j: usize, w: usize) -> usize {
        let first = j - j % BLOCK;
        let width = BLOCK.min(shape.count - first);
        16 * (first * (shape.depth() + 2) + w * width + j % BLOCK)
    }

    /// Key `j` of a batch laid out as [`CompareShape::key_bytes`] says.
    pub fn read(shape: CompareShape, bytes: &[u8], j: usize) -> Key {
        let word = |w| {
            let at = Key::offset(shape, j, w);
            bytes[at..at + 16].iter().rev().fold(0u128, |v, &b| v << 8 | b as u128)
        };
        let d = shape.depth();
        Key { root: word(0), levels: (1..=d).map(word).collect(), leaf: word(d + 1) }
    }

    /// Put this key at place `j` of a batch.
    pub fn write(&self, shape: CompareShape, bytes: &mut [u8], j: usize) {
        let words = std::iter::once(&self.root).chain(&self.levels).chain([&self.leaf]);
        for (w, v) in words.enumerate() {
            let at = Key::offset(shape, j, w);
            bytes[at..at + 16].copy_from_slice(&v.to_le_bytes());
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key[{} levels]", self.levels.len())
    }
}

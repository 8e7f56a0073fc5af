//! Batches of keys on the CPU. Points and tables are public; the dealt point, its words, seeds and control bits are
//! secret and only ever masked, never branched on or used as an index.

use super::{LEAF_POINTS, LookupShape, Read};
use crate::secret::{mask64, mask128};
use privet_prg::TreeHash;
use zeroize::Zeroizing;

/// Keys that are dealt level by level at a time.
const DEALT: usize = 256;

/// `blocks` hashes of every seed, one after the other.
fn leaves(hash: &TreeHash, seeds: &[u128], blocks: usize, out: &mut Vec<u128>) {
    out.clear();
    out.extend(seeds.iter().flat_map(|s| (0..blocks as u128).map(move |j| s ^ (j << 1))));
    hash.leaf(out);
}

/// Word `i` of what a leaf's hashes hold.
fn word(blocks: &[u128], i: usize) -> u64 {
    (blocks[i / 2] >> (64 * (i % 2))) as u64
}

/// Deal both parties' keys; see [`crate::Device::lookup_gen`], whose contract this is.
#[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain slice")]
pub fn generate(
    hash: &TreeHash,
    shape: LookupShape,
    alpha: &[u64],
    words: &[u64],
    roots: &[u128],
    deltas: &[u128],
    key0: &mut [u8],
    key1: &mut [u8],
) {
    let row = shape.key_row();
    let secrets = alpha.chunks(DEALT).zip(words.chunks(DEALT * shape.words));
    let secrets = secrets.zip(roots.chunks(DEALT).zip(deltas.chunks(DEALT)));
    let keys = key0.chunks_mut(DEALT * row).zip(key1.chunks_mut(DEALT * row));
    for (((alpha, words), (roots, deltas)), (key0, key1)) in secrets.zip(keys) {
        generate_some(hash, shape, alpha, words, roots, deltas, key0);
        key1.copy_from_slice(key0);
        let seeds = roots.iter().zip(deltas);
        for (key, (root, delta)) in key1.chunks_exact_mut(row).zip(seeds) {
            key[..16].copy_from_slice(&(root ^ (delta | 1)).to_le_bytes());
        }
    }
}

/// Party 0's keys.
fn generate_some(
    hash: &TreeHash,
    shape: LookupShape,
    alpha: &[u64],
    words: &[u64],
    roots: &[u128],
    deltas: &[u128],
    keys: &mut [u8],
) {
    let (n, row) = (alpha.len(), shape.key_row());
    let mut put =
        |j: usize, at: usize, bytes: &[u8]| keys[j * row + at..][..bytes.len()].copy_from_slice(bytes);
    // both parties' seeds on the path, party 0's first: they differ by delta
    let mut s = Zeroizing::new(roots.to_vec());
    s.extend(roots.iter().zip(deltas).map(|(root, delta)| root ^ (delta | 1)));
    let mut h = Zeroizing::new(vec![0; 2 * n]);
    (0..n).for_each(|j| put(j, 0, &s[j].to_le_bytes()));
    for (i, level) in (1..shape.bits).rev().enumerate() {
        h.copy_from_slice(&s);
        hash.inner(&mut h);
        for j in 0..n {
            let right = mask128((alpha[j] >> level) as u128);
            let cw = h[j] ^ h[n + j] ^ ((deltas[j] | 1) & !right);
            put(j, 16 * (i + 1), &cw.to_le_bytes());
            for at in [j, n + j] {
                s[at] = h[at] ^ (cw & mask128(s[at])) ^ (s[at] & right);
            }
        }
    }
    let (blocks, of_leaf) = (shape.leaf_blocks(), shape.leaf_words());
    let mut hashed = Zeroizing::new(Vec::with_capacity(2 * n * blocks));
    leaves(hash, &s, blocks, &mut hashed);
    for j in 0..n {
        let sides = [j, n + j].map(|at| &hashed[at * blocks..(at + 1) * blocks]);
        let negative = mask128(s[n + j]) as u64;
        for i in 0..of_leaf {
            let here = mask64(alpha[j] ^ (i / shape.words) as u64 ^ 1);
            let wanted = words[j * shape.words + i % shape.words] & here;
            let cw = wanted.wrapping_sub(word(sides[0], i)).wrapping_add(word(sides[1], i));
            let cw = (cw ^ negative).wrapping_sub(negative);
            put(j, 16 * (1 + shape.depth()) + 8 * i, &cw.to_le_bytes());
        }
    }
}

/// One key's shares, word by word over the points, and the room to make them in.
struct Expanded {
    nodes: Vec<u128>,
    children: Vec<u128>,
    blocks: Vec<u128>,
    words: Vec<Vec<u64>>,
}

impl Expanded {
    fn new(shape: LookupShape) -> Expanded {
        let (nodes, children, blocks) = (Vec::new(), Vec::new(), Vec::new());
        Expanded { nodes, children, blocks, words: vec![vec![0; shape.points()]; shape.words] }
    }

    /// Expand a key; the shares are party 0's, or those of party 1 negated.
    fn fill(&mut self, hash: &TreeHash, shape: LookupShape, key: &[u8]) {
        let (seeds, cws) = key.split_at(16 * (1 + shape.depth()));
        let seeds = seeds.as_chunks::<16>().0;
        self.nodes.clear();
        self.nodes.push(u128::from_le_bytes(seeds[0]));
        for cw in &seeds[1..] {
            let cw = u128::from_le_bytes(*cw);
            self.blocks.clear();
            self.blocks.extend_from_slice(&self.nodes);
            hash.inner(&mut self.blocks);
            self.children.clear();
            let pairs = self.nodes.iter().zip(&self.blocks);
            self.children.extend(pairs.flat_map(|(&s, h)| {
                let left = h ^ (cw & mask128(s));
                [left, left ^ s]
            }));
            std::mem::swap(&mut self.nodes, &mut self.children);
        }
        let of_leaf = shape.leaf_blocks();
        leaves(hash, &self.nodes, of_leaf, &mut self.blocks);
        let cws = cws.as_chunks::<8>().0;
        for (i, cw) in cws.iter().enumerate() {
            let cw = u64::from_le_bytes(*cw);
            let (point, words) = (i / shape.words, &mut self.words[i % shape.words]);
            let leaves = self.nodes.iter().zip(self.blocks.chunks_exact(of_leaf));
            for (out, (s, blocks)) in words[point..].iter_mut().step_by(LEAF_POINTS).zip(leaves) {
                *out = word(blocks, i).wrapping_add(cw & mask128(*s) as u64);
            }
        }
    }
}

/// Tables such that `doubled[points - at + alpha]` is what stands at `at - alpha`, modulo the number of points.
fn doubled(points: usize, at: impl Fn(usize) -> i64) -> Vec<u64> {
    (0..2 * points).map(|i| at((2 * points - i) % points) as u64).collect()
}

#[inline(always)]
fn sum_of_products(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).fold(0, |sum: u64, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn sum_of_products_wide(x: &[u64], y: &[u64]) -> u64 {
    sum_of_products(x, y)
}

/// A sum of products, eight at a time where the machine can.
fn dot(wide: bool, x: &[u64], y: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if wide {
        // SAFETY: `wide` is only ever set where the instructions are there.
        return unsafe { sum_of_products_wide(x, y) };
    }
    let _ = wide;
    sum_of_products(x, y)
}

/// Whether this machine multiplies eight words at a time, and may.
pub fn wide(cap: crate::CpuCap) -> bool {
    #[cfg(target_arch = "x86_64")]
    return cap >= crate::CpuCap::Avx512
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq");
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = cap;
        false
    }
}

/// Read tables; see [`crate::Device::lookup_eval`], whose contract this is. Results are in order of keys, then of tables.
pub fn eval(
    wide: bool,
    hash: &TreeHash,
    shape: LookupShape,
    second: bool,
    keys: &[u8],
    points: &[u64],
    read: &Read,
) -> Vec<u64> {
    let n = shape.points();
    let mut expanded = Expanded::new(shape);
    let mut out = Vec::with_capacity(shape.count * read.results());
    let sign = |y: u64| if second { y.wrapping_neg() } else { y };
    let rows = keys.chunks_exact(shape.key_row()).zip(points);
    match read {
        Read::Tables(tables) => {
            let tables: Vec<Vec<u64>> = tables.iter().map(|t| doubled(n, |i| t[i])).collect();
            for (key, &point) in rows {
                expanded.fill(hash, shape, key);
                let from = n - point as usize % n;
                out.extend(tables.iter().map(|t| sign(dot(wide, &expanded.words[0], &t[from..from + n]))));
            }
        }
        Read::Quadratics(pieces, lows) => {
            let [c0, c1, c2] = [0, 1, 2].map(|k| doubled(n, |i| pieces[i][k]));
            for ((key, &point), &low) in rows.zip(*lows) {
                expanded.fill(hash, shape, key);
                let from = n - point as usize % n;
                let [one, r, square] = [0, 1, 2].map(|w| &expanded.words[w][..]);
                let at = |c: &[u64], words: &[u64]| dot(wide, words, &c[from..from + n]);
                // c0 + c1 (low - r) + c2 (low - r)^2
                let linear = at(&c1, one).wrapping_sub(at(&c2, r).wrapping_mul(2));
                let slope = low.wrapping_mul(at(&c2, one)).wrapping_add(linear);
                let rest = at(&c0, one).wrapping_sub(at(&c1, r)).wrapping_add(at(&c2, square));
                out.push(sign(low.wrapping_mul(slope).wrapping_add(rest)));
            }
        }
    }
    out
}

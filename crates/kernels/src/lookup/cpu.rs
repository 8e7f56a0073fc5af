//! Batches of keys on the CPU. Points and tables are public; the dealt point, its words, seeds and control bits are
//! secret and only ever masked, never branched on or used as an index.

use super::{LEAF_POINTS, LookupShape, Read};
use crate::secret::{mask64, mask128};
use privet_prg::TreeHash;
use zeroize::Zeroizing;

/// Keys that are dealt level by level at a time.
const DEALT: usize = 256;

/// `blocks` hashes of every seed: those of all seeds, then the next ones of all seeds.
fn leaves(hash: &TreeHash, seeds: &[u128], blocks: usize, out: &mut Vec<u128>) {
    out.clear();
    out.extend((0..blocks as u128).flat_map(|j| seeds.iter().map(move |s| s ^ (j << 1))));
    hash.leaf(out);
}

/// Both points of a word.
#[inline(always)]
fn points(block: u128) -> [u64; LEAF_POINTS] {
    [block as u64, (block >> 64) as u64]
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
    let mut hashed = Zeroizing::new(Vec::with_capacity(2 * n * shape.leaf_blocks()));
    leaves(hash, &s, shape.leaf_blocks(), &mut hashed);
    for (w, hashed) in hashed.chunks_exact(2 * n).enumerate() {
        for j in 0..n {
            let sides = points(hashed[j]).into_iter().zip(points(hashed[n + j]));
            let negative = mask128(s[n + j]) as u64;
            for (p, (first, second)) in sides.enumerate() {
                let here = mask64(alpha[j] ^ p as u64 ^ 1);
                let wanted = words[j * shape.words + w] & here;
                let cw = wanted.wrapping_sub(first).wrapping_add(second);
                let cw = (cw ^ negative).wrapping_sub(negative);
                put(j, 16 * (1 + shape.depth()) + 8 * (LEAF_POINTS * w + p), &cw.to_le_bytes());
            }
        }
    }
}

/// One key's shares, word by word over the points, and the room to make them in.
struct Expanded {
    nodes: Vec<u128>,
    children: Vec<u128>,
    blocks: Vec<u128>,
    words: Vec<u64>,
}

impl Expanded {
    fn new(shape: LookupShape) -> Expanded {
        let leaves = shape.points() / LEAF_POINTS;
        Expanded {
            nodes: Vec::with_capacity(leaves),
            children: Vec::with_capacity(leaves),
            blocks: Vec::with_capacity(leaves * shape.leaf_blocks()),
            words: vec![0; shape.points() * shape.words],
        }
    }

    /// Expand a key; the shares are party 0's, or those of party 1 negated.
    #[inline(always)]
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
            self.children.resize(2 * self.nodes.len(), 0);
            let pairs = self.nodes.iter().zip(&self.blocks);
            for (children, (&s, h)) in self.children.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
                let left = h ^ (cw & mask128(s));
                *children = [left, left ^ s];
            }
            std::mem::swap(&mut self.nodes, &mut self.children);
        }
        leaves(hash, &self.nodes, shape.leaf_blocks(), &mut self.blocks);
        let words = self.words.chunks_exact_mut(shape.points());
        let made = words.zip(self.blocks.chunks_exact(self.nodes.len()));
        for ((words, blocks), cw) in made.zip(cws.as_chunks::<16>().0) {
            let cw = points(u128::from_le_bytes(*cw));
            let leaves = self.nodes.iter().zip(blocks);
            for (word, (s, block)) in words.as_chunks_mut::<LEAF_POINTS>().0.iter_mut().zip(leaves) {
                let (block, on) = (points(*block), mask128(*s) as u64);
                *word = std::array::from_fn(|p| block[p].wrapping_add(cw[p] & on));
            }
        }
    }
}

/// Tables such that `doubled[points - at + alpha]` is what stands at `at - alpha`, modulo the number of points.
fn doubled(points: usize, at: impl Fn(usize) -> i64) -> Vec<u64> {
    (0..2 * points).map(|i| at((2 * points - i) % points) as u64).collect()
}

#[inline(always)]
fn dot(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).fold(0, |sum: u64, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}

/// Whether this machine multiplies eight words at a time, and may.
pub fn wide(cap: crate::CpuCap) -> bool {
    #[cfg(target_arch = "x86_64")]
    return cap >= crate::CpuCap::Avx512
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = cap;
        false
    }
}

/// A batch that is read, as [`crate::Device::lookup_eval`] has it.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// Hashes of its trees.
    pub hash: &'a TreeHash,
    /// Its domain and size.
    pub shape: LookupShape,
    /// Whether this is party 1.
    pub second: bool,
    /// One party's keys.
    pub keys: &'a [u8],
    /// The public points.
    pub points: &'a [u64],
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn eval_wide(batch: Batch, read: &Read) -> Vec<u64> {
    eval_any(batch, read)
}

/// Read tables; see [`crate::Device::lookup_eval`], whose contract this is. Results are in order of keys, then of tables.
/// `wide` is what [`wide`] said.
pub fn eval(wide: bool, batch: Batch, read: &Read) -> Vec<u64> {
    #[cfg(target_arch = "x86_64")]
    if wide {
        // SAFETY: `wide` is only ever set where the instructions are there.
        return unsafe { eval_wide(batch, read) };
    }
    let _ = wide;
    eval_any(batch, read)
}

#[inline(always)]
fn eval_any(batch: Batch, read: &Read) -> Vec<u64> {
    let Batch { hash, shape, second, keys, points } = batch;
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
                out.extend(tables.iter().map(|t| sign(dot(&expanded.words, &t[from..from + n]))));
            }
        }
        Read::Quadratics(pieces, lows) => {
            let coefficients = [0, 1, 2].map(|k| doubled(n, |i| pieces[i][k]));
            for ((key, &point), &low) in rows.zip(*lows) {
                expanded.fill(hash, shape, key);
                let from = n - point as usize % n;
                let [c0, c1, c2] = [0, 1, 2].map(|k| &coefficients[k][from..from + n]);
                let [one, r, square] = [0, 1, 2].map(|w| &expanded.words[w * n..(w + 1) * n]);
                // c0 + c1 (low - r) + c2 (low - r)^2
                let linear = dot(c1, one).wrapping_sub(dot(c2, r).wrapping_mul(2));
                let slope = low.wrapping_mul(dot(c2, one)).wrapping_add(linear);
                let rest = dot(c0, one).wrapping_sub(dot(c1, r)).wrapping_add(dot(c2, square));
                out.push(sign(low.wrapping_mul(slope).wrapping_add(rest)));
            }
        }
    }
    out
}

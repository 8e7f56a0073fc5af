//! Comparison walks on the CPU.

use super::{BLOCK, CompareShape, LEAF_BITS};
use crate::{CpuCap, device::CompareOut};
use privet_prg::TreeHash;
use privet_ring::BitVec;
use std::fmt;

/// Which implementation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparePath {
    /// Whatever [`TreeHash`] does, one key at a time.
    Portable,
}

impl ComparePath {
    /// The best path within `cap`.
    pub fn detect(_cap: CpuCap) -> ComparePath {
        ComparePath::Portable
    }
}

impl fmt::Display for ComparePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AES portable")
    }
}

fn block_range(shape: CompareShape, block: usize) -> (usize, usize) {
    let first = block * BLOCK;
    (first, BLOCK.min(shape.count - first))
}

fn load(key: &[u8], word: usize) -> u128 {
    let mut b = [0; 16];
    b.copy_from_slice(&key[16 * word..16 * word + 16]);
    u128::from_le_bytes(b)
}

fn store(key: &mut [u8], word: usize, v: u128) {
    key[16 * word..16 * word + 16].copy_from_slice(&v.to_le_bytes());
}

fn one(hash: &TreeHash, s: u128, leaf: bool) -> u128 {
    let mut b = [s];
    if leaf {
        hash.leaf(&mut b)
    } else {
        hash.inner(&mut b)
    }
    b[0]
}

/// All ones when the lowest bit is set.
fn spread(bit: u128) -> u128 {
    (bit & 1).wrapping_neg()
}

/// See [`crate::Device::compare_gen`].
#[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain slice")]
pub fn generate(
    _path: ComparePath,
    hash: &TreeHash,
    shape: CompareShape,
    alpha: &[u64],
    roots: &[u128],
    deltas: &[u128],
    key0: &mut [u8],
    key1: &mut [u8],
) {
    let d = shape.depth();
    for block in 0..shape.count.div_ceil(BLOCK) {
        let (first, b) = block_range(shape, block);
        let base = (d + 2) * first;
        for j in 0..b {
            let delta = deltas[first + j] | 1;
            let a = alpha[first + j];
            let (mut s0, mut s1) = (roots[first + j], roots[first + j] ^ delta);
            store(key0, base + j, s0);
            store(key1, base + j, s1);
            for level in 0..d {
                let bit = ((a >> LEAF_BITS) >> (d - 1 - level)) as u128;
                let (h0, h1) = (one(hash, s0, false), one(hash, s1, false));
                let cw = h0 ^ h1 ^ (spread(!bit) & delta);
                store(key0, base + b * (1 + level) + j, cw);
                store(key1, base + b * (1 + level) + j, cw);
                let left = |s: u128, h: u128| h ^ (spread(s) & cw);
                let right = spread(bit);
                s0 = left(s0, h0) ^ (right & s0);
                s1 = left(s1, h1) ^ (right & s1);
            }
            let cw = one(hash, s0, true) ^ one(hash, s1, true) ^ (1 << (a & 127));
            store(key0, base + b * (1 + d) + j, cw);
            store(key1, base + b * (1 + d) + j, cw);
        }
    }
}

/// See [`crate::Device::compare_eval`].
pub fn eval(
    _path: ComparePath,
    hash: &TreeHash,
    shape: CompareShape,
    key: &[u8],
    x: &[u64],
    want_eq: bool,
) -> CompareOut {
    let d = shape.depth();
    let mut lt = BitVec::zeros(shape.count);
    let mut eq = BitVec::zeros(if want_eq { shape.count } else { 0 });
    for block in 0..shape.count.div_ceil(BLOCK) {
        let (first, b) = block_range(shape, block);
        let base = (d + 2) * first;
        for j in 0..b {
            let point = x[first + j];
            let mut s = load(key, base + j);
            let mut parity = 0;
            for level in 0..d {
                let bit = ((point >> LEAF_BITS) >> (d - 1 - level)) as u128;
                let left = one(hash, s, false) ^ (spread(s) & load(key, base + b * (1 + level) + j));
                let right = left ^ s;
                parity ^= right & !bit & 1;
                s = left ^ (spread(bit) & s);
            }
            let leaf = one(hash, s, true) ^ (spread(s) & load(key, base + b * (1 + d) + j));
            let low = (point & 127) as u32;
            let above = (leaf >> low >> 1).count_ones();
            lt.set(first + j, parity as u64 ^ u64::from(above));
            if want_eq {
                eq.set(first + j, (leaf >> low) as u64);
            }
        }
    }
    CompareOut { lt, eq }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::{HashKeys, Seed};
    use privet_ring::Ring;

    #[test]
    fn shares_of_the_comparison() {
        let mut prg = Seed::random().stream();
        let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
        for bits in [1, 3, 7, 8, 13, 63, 64] {
            let shape = CompareShape { bits, count: 131 };
            let alpha = prg.elements(Ring::new(bits), 131);
            let mut x = prg.elements(Ring::new(bits), 131);
            x[..40].copy_from_slice(&alpha[..40]);
            let (mut roots, mut deltas) = ([0; 131], [0; 131]);
            prg.fill_blocks(&mut roots);
            prg.fill_blocks(&mut deltas);
            let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
            let [k0, k1] = &mut keys;
            generate(ComparePath::Portable, &hash, shape, &alpha, &roots, &deltas, k0, k1);
            let [mut a, b] = keys.map(|k| eval(ComparePath::Portable, &hash, shape, &k, &x, true));
            a.lt.xor_assign(&b.lt);
            a.eq.xor_assign(&b.eq);
            for i in 0..131 {
                assert_eq!(a.lt.get(i) == 1, x[i] < alpha[i], "{bits} bits");
                assert_eq!(a.eq.get(i) == 1, x[i] == alpha[i], "{bits} bits");
            }
        }
    }
}

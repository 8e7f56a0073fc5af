//! Single-point correlated OTs from half-trees (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, EUROCRYPT 2023, eprint
//! 2022/1431, the correlated GGM tree), [`LANES`] trees side by side.
//!
//! Conventions. Two children of a node XOR to it: left `H(s)`, right `H(s) ^ s`; the two nodes of level 1 XOR to Delta.
//! So every level XORs to Delta, and so do the leaves. Nodes of a level lie by path, level 1 in the *lowest* bit: the
//! left children of nodes `0..N` are `0..N` again and the right ones `N..2N`, which is why expansion runs in place. Node j
//! of tree l is block `LANES * j + l`. The base COT of a level has random choice b: the message `sum_left ^ q` and
//! `t = q ^ b Delta` give the sum of side b, so the missing path goes to side `1 - b`: nothing is derandomised.
//!
//! The receiver expands the missing path as any other, from some value, and repairs the sibling below it on every level:
//! a scan with masks, so that neither branch nor address depends on the path.

use crate::cpu::{Path, twice, words};
use crate::delta::{mask, wide};
use crate::hash::Trees;
use crate::mutation;

/// Trees side by side: four blocks are a 512-bit register. AGREEMENT.
pub(crate) const LANES: usize = 4;
/// A node of each tree.
pub(crate) type Quad = [u128; LANES];

/// Nodes hashed at a time, while they are in the first-level cache.
const TILE: usize = 256;

/// The sender: all leaves of four trees into `leaves`, lowest bits cleared; `sums(level, left)` gets each level's sum of
/// left nodes.
pub(crate) fn expand(
    path: Path,
    hash: &Trees,
    delta: u128,
    roots: &Quad,
    leaves: &mut [u128],
    mut sums: impl FnMut(usize, Quad),
) {
    leaves[..LANES].copy_from_slice(roots);
    leaves[LANES..2 * LANES].copy_from_slice(&roots.map(|r| r ^ delta));
    sums(0, *roots);
    let depth = (leaves.len() / LANES).trailing_zeros() as usize;
    for level in 1..depth {
        let width = LANES << level;
        let (left, _) = children(path, hash, &mut leaves[..2 * width]);
        sums(level, left);
    }
    leaves.iter_mut().for_each(|leaf| *leaf &= !1);
}

/// The receiver: all leaves but the missing one of each tree, in whose place it puts the leaf XOR Delta. Lowest bits are
/// 1 there and 0 elsewhere. Each level has the base COTs' blocks `t`, choices in the lowest bits, and the message's words.
pub(crate) fn punctured(path: Path, hash: &Trees, base: &[Quad], message: &[Quad], leaves: &mut [u128]) {
    leaves[..2 * LANES].fill(0);
    let mut missing = [0u64; LANES];
    for (level, (t, c)) in base.iter().zip(message).enumerate() {
        let width = LANES << level;
        let nodes = &mut leaves[..2 * width];
        let (left, right) = if level == 0 { ([0; LANES], [0; LANES]) } else { children(path, hash, nodes) };
        let (mut of_left, mut of_right) = ([0; LANES], [0; LANES]);
        for l in 0..LANES {
            let choice = wide(mask(t[l] as u64));
            let known = t[l] ^ c[l];
            of_left[l] = (known ^ left[l]) & !choice;
            of_right[l] = (known ^ right[l]) & choice;
        }
        let (left, right) = nodes.split_at_mut(width);
        repair(path, left, &missing, &of_left);
        repair(path, right, &missing, &of_right);
        for l in 0..LANES {
            missing[l] |= ((t[l] as u64 & 1) ^ 1) << level;
        }
    }
    let total =
        leaves.chunks_exact(LANES).fold([0; LANES], |s: Quad, q| std::array::from_fn(|l| s[l] ^ q[l]));
    repair(path, leaves, &missing, &total);
    set_choices(path, leaves, &missing);
}

/// From the nodes in the lower half to their children in both; gives both sides' sums.
fn children(path: Path, hash: &Trees, nodes: &mut [u128]) -> (Quad, Quad) {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let mut sums = [[0; LANES]; 2];
    for (left, right) in left.chunks_mut(TILE).zip(right.chunks_mut(TILE)) {
        right.copy_from_slice(left);
        hash.ccr(left);
        split(path, left, right, &mut sums);
    }
    (sums[0], sums[1])
}

twice! {
    /// `right ^= left`, and both are added to the sums.
    fn split(left: &mut [u128], right: &mut [u128], sums: &mut [Quad; 2]) = split_body
}

#[inline(always)]
fn split_body(left: &mut [u128], right: &mut [u128], sums: &mut [Quad; 2]) {
    let (left, right) = (words(left).as_chunks::<8>().0, words(right).as_chunks_mut::<8>().0);
    let (mut of_left, mut of_right) = ([0; 8], [0; 8]);
    for (left, right) in left.iter().zip(right) {
        for i in 0..8 {
            right[i] ^= left[i];
            of_left[i] ^= left[i];
            of_right[i] ^= right[i];
        }
    }
    for (sum, of) in sums.iter_mut().zip([of_left, of_right]) {
        words(sum).iter_mut().zip(of).for_each(|(s, o)| *s ^= o);
    }
}

twice! {
    /// XORs `by` into the node `at` of each tree.
    fn repair(nodes: &mut [u128], at: &[u64; LANES], by: &Quad) = repair_body
}

#[inline(always)]
fn repair_body(nodes: &mut [u128], at: &[u64; LANES], by: &Quad) {
    let mut by = *by;
    let by: [u64; 8] = std::array::from_fn(|i| words(&mut by)[i]);
    let at: [u64; 8] = std::array::from_fn(|i| at[i / 2]);
    for (j, node) in words(nodes).as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for i in 0..8 {
            node[i] ^= by[i] & ((at[i] == j as u64) as u64).wrapping_neg();
        }
    }
}

twice! {
    /// Lowest bits: 1 in the node `at` of each tree, 0 elsewhere.
    fn set_choices(nodes: &mut [u128], at: &[u64; LANES]) = set_choices_body
}

#[inline(always)]
fn set_choices_body(nodes: &mut [u128], at: &[u64; LANES]) {
    for (j, node) in words(nodes).as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for l in 0..LANES {
            node[2 * l] = (node[2 * l] & !1) | (at[l] == j as u64) as u64;
        }
    }
}

/// The words of a message, and back: `sum_left ^ q`.
pub(crate) fn masked(sum: Quad, q: &Quad) -> Quad {
    let open = mutation::active("tree-sums-unmasked");
    std::array::from_fn(|l| sum[l] ^ if open { 0 } else { q[l] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    /// The protocol, as it reads in the paper, on every path; each tree has its own missing leaf.
    #[test]
    fn leaves_differ_by_delta_at_one_place() {
        let hash = Trees::of_round(&Seed::from_bytes([5; 16]), 1);
        let mut prg = Seed::from_bytes([6; 16]).stream();
        for depth in [1, 2, 3, 7, 10] {
            let mut secrets = vec![0u128; 1 + LANES + 2 * LANES * depth];
            prg.fill_blocks(&mut secrets);
            let delta = secrets[0] | 1;
            let roots: Quad = secrets[1..1 + LANES].try_into().unwrap();
            let quads: Vec<Quad> = secrets[1 + LANES..].as_chunks::<LANES>().0.to_vec();
            let q: Vec<Quad> = quads[..depth].iter().map(|q| q.map(|q| q & !1)).collect();
            let choice = |level: usize, l: usize| quads[depth + level][l] & 1;
            let t: Vec<Quad> = (0..depth)
                .map(|i| std::array::from_fn(|l| if choice(i, l) == 1 { q[i][l] ^ delta } else { q[i][l] }))
                .collect();
            let mut first = None;
            for path in Path::all() {
                let (mut all, mut found) = (vec![0; LANES << depth], vec![0; LANES << depth]);
                let mut message = vec![[0; LANES]; depth];
                expand(path, &hash, delta, &roots, &mut all, |level, sum| {
                    message[level] = masked(sum, &q[level])
                });
                punctured(path, &hash, &t, &message, &mut found);
                for l in 0..LANES {
                    let missing = (0..depth).fold(0, |v, i| v | (1 ^ choice(i, l) as usize) << i);
                    for j in 0..1 << depth {
                        let (v, w) = (all[LANES * j + l], found[LANES * j + l]);
                        assert_eq!(v ^ w, if j == missing { delta } else { 0 }, "{path:?} {depth} {l} {j}");
                        assert_eq!(w & 1 == 1, j == missing);
                    }
                }
                assert_eq!(*first.get_or_insert((all.clone(), message.clone())), (all, message));
            }
        }
    }
}

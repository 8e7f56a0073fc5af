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

use crate::cpu::{Path, words};
use crate::delta::{mask, wide};
use crate::hash::Trees;
use crate::mutation;

/// Trees side by side. AGREEMENT.
pub(crate) const LANES: usize = privet_prg::TREES;
/// A node of each tree.
pub(crate) type Quad = [u128; LANES];

/// The sender: all leaves of four trees into `leaves`, lowest bits cleared.
pub(crate) fn expand(hash: &Trees, delta: u128, roots: &Quad, leaves: &mut [u128]) {
    start(delta, roots, leaves);
    let depth = (leaves.len() / LANES).trailing_zeros() as usize;
    for level in 1..depth {
        let width = LANES << level;
        children(hash, &mut leaves[..2 * width], kept(level + 1 == depth));
    }
    if depth == 1 {
        leaves.iter_mut().for_each(|leaf| *leaf &= !1);
    }
}

/// The sender's message of four trees: each level's sum of left nodes, from the first. `nodes` has room for the last level's parents,
/// whose children nobody needs.
pub(crate) fn sums(
    hash: &Trees,
    delta: u128,
    roots: &Quad,
    nodes: &mut [u128],
    mut sum: impl FnMut(usize, Quad),
) {
    sum(0, *roots);
    let depth = (nodes.len() / LANES).trailing_zeros() as usize;
    if depth == 0 {
        return;
    }
    start(delta, roots, nodes);
    for level in 1..depth {
        let width = LANES << level;
        let [left, _] = children(hash, &mut nodes[..2 * width], u128::MAX);
        sum(level, left);
    }
    let mut left = [0; LANES];
    hash.sum(nodes, &mut left);
    sum(depth, left);
}

/// The bits that nodes keep: of leaves all but the lowest one.
fn kept(leaves: bool) -> u128 {
    if leaves { !1 } else { u128::MAX }
}

/// The first level of four trees.
fn start(delta: u128, roots: &Quad, nodes: &mut [u128]) {
    nodes[..LANES].copy_from_slice(roots);
    nodes[LANES..2 * LANES].copy_from_slice(&roots.map(|r| r ^ delta));
}

/// What is XORed into one node of each tree.
#[derive(Clone, Copy)]
pub(crate) struct Repair {
    at: [u64; LANES],
    by: Quad,
}

/// The receiver: all leaves but the missing one of each tree, in whose place it puts the leaf XOR Delta. Lowest bits are
/// 1 there and 0 elsewhere. Each level has the base COTs' blocks `t`, choices in the lowest bits, and the message's words.
pub(crate) fn punctured(path: Path, hash: &Trees, base: &[Quad], message: &[Quad], leaves: &mut [u128]) {
    leaves[..2 * LANES].fill(0);
    let (mut missing, mut total) = ([0u64; LANES], [0; LANES]);
    let mut repair = Repair { at: missing, by: total };
    for (level, (t, c)) in base.iter().zip(message).enumerate() {
        let width = LANES << level;
        let [left, right] = match level {
            0 => [[0; LANES]; 2],
            _ => {
                correct(path, &mut leaves[..width], &[repair]);
                children(hash, &mut leaves[..2 * width], kept(level + 1 == base.len()))
            }
        };
        for l in 0..LANES {
            let bit = t[l] as u64 & 1;
            let choice = wide(mask(bit));
            let known = t[l] ^ c[l];
            // the sum of the side that is known: what it lacks is the sibling of the missing node
            repair.by[l] = known ^ (left[l] & !choice) ^ (right[l] & choice);
            repair.at[l] = missing[l] | bit << level;
            total[l] = left[l] ^ right[l] ^ repair.by[l];
            missing[l] |= (bit ^ 1) << level;
        }
    }
    // leaves have lowest bits of 0, and the missing one's place has 1
    repair.by = repair.by.map(|by| by & !1);
    correct(path, leaves, &[repair, Repair { at: missing, by: total.map(|by| by | 1) }]);
}

/// From the nodes in the lower half to their children in both, of which the bits of `kept` stay; gives both sides' sums.
fn children(hash: &Trees, nodes: &mut [u128], kept: u128) -> [Quad; 2] {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let mut sums = [[0; LANES]; 2];
    hash.children(left, right, kept, &mut sums);
    sums
}

/// XORs one block into one node of each tree, once for each entry: a scan, as places are secret.
fn correct<const N: usize>(path: Path, nodes: &mut [u128], by: &[Repair; N]) {
    let of = by.each_ref().map(of_words);
    let nodes = words(nodes).as_chunks_mut::<WORDS>().0;
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Path::of` gives this path only where the machine has it.
        Path::Avx512 => unsafe { avx512(nodes, &of) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Path::Avx2 => unsafe { avx2(nodes, &of) },
        _ => correct_body(nodes, &of),
    }
}

/// Words of a node of each tree.
const WORDS: usize = 2 * LANES;
/// A repair word by word: places and blocks.
type Words = [[u64; WORDS]; 2];

fn of_words(repair: &Repair) -> Words {
    let half = |i: usize| (repair.by[i / 2] >> (64 * (i % 2))) as u64;
    [std::array::from_fn(|i| repair.at[i / 2]), std::array::from_fn(half)]
}

#[inline(always)]
fn correct_body<const N: usize>(nodes: &mut [[u64; WORDS]], by: &[Words; N]) {
    for (j, node) in nodes.iter_mut().enumerate() {
        for [at, by] in by {
            for i in 0..WORDS {
                node[i] ^= by[i] & ((at[i] == j as u64) as u64).wrapping_neg();
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<const N: usize>(nodes: &mut [[u64; WORDS]], by: &[Words; N]) {
    correct_body(nodes, by);
}

/// Left to itself, the compiler takes eight nodes at a time: it gathers and scatters words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512<const N: usize>(nodes: &mut [[u64; WORDS]], by: &[Words; N]) {
    use std::arch::x86_64::*;
    // SAFETY: of this and of all below: a register's words.
    let of = by.each_ref().map(|by| by.each_ref().map(|w| unsafe { _mm512_loadu_epi64(w.as_ptr().cast()) }));
    for (j, node) in nodes.iter_mut().enumerate() {
        let (place, here) = (_mm512_set1_epi64(j as i64), node.as_mut_ptr().cast());
        let mut node = unsafe { _mm512_loadu_epi64(here) };
        for [at, by] in of {
            node = _mm512_mask_xor_epi64(node, _mm512_cmpeq_epi64_mask(at, place), node, by);
        }
        unsafe { _mm512_storeu_epi64(here, node) };
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
                expand(&hash, delta, &roots, &mut all);
                let mut parents = vec![0; (LANES << depth) / 2];
                sums(&hash, delta, &roots, &mut parents, |level, sum| {
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

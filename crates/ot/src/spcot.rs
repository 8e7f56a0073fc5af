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

use crate::cpu::{Path, by_path, words};
use crate::delta::{mask, wide};
use crate::hash::Trees;
use crate::mutation;

/// Trees side by side: four blocks are a 512-bit register. AGREEMENT.
pub(crate) const LANES: usize = 4;
/// A node of each tree.
pub(crate) type Quad = [u128; LANES];

/// Nodes hashed at a time, while they are in the first-level cache.
const TILE: usize = 256;

/// The sender: all leaves of four trees into `leaves`, lowest bits cleared.
pub(crate) fn expand(path: Path, hash: &Trees, delta: u128, roots: &Quad, leaves: &mut [u128]) {
    start(delta, roots, leaves);
    let depth = (leaves.len() / LANES).trailing_zeros() as usize;
    for level in 1..depth {
        let width = LANES << level;
        children(path, hash, &mut leaves[..2 * width], &Repair::NONE, level + 1 == depth);
    }
    if depth == 1 {
        leaves.iter_mut().for_each(|leaf| *leaf &= !1);
    }
}

/// The sender's message of four trees: each level's sum of left nodes, from the first. `nodes` has room for the last level's parents,
/// whose children nobody needs.
pub(crate) fn sums(
    path: Path,
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
        let [left, _] = children(path, hash, &mut nodes[..2 * width], &Repair::NONE, false);
        sum(level, left);
    }
    let mut left = [[0; LANES]; 2];
    for nodes in nodes.chunks_mut(TILE) {
        hash.ccr(nodes);
        add(path, nodes, &mut left);
    }
    sum(depth, left[0]);
}

/// The first level of four trees.
fn start(delta: u128, roots: &Quad, nodes: &mut [u128]) {
    nodes[..LANES].copy_from_slice(roots);
    nodes[LANES..2 * LANES].copy_from_slice(&roots.map(|r| r ^ delta));
}

/// What is XORed into one node of each tree.
pub(crate) struct Repair {
    at: [u64; LANES],
    by: Quad,
}

impl Repair {
    const NONE: Repair = Repair { at: [0; LANES], by: [0; LANES] };
}

/// The receiver: all leaves but the missing one of each tree, in whose place it puts the leaf XOR Delta. Lowest bits are
/// 1 there and 0 elsewhere. Each level has the base COTs' blocks `t`, choices in the lowest bits, and the message's words.
pub(crate) fn punctured(path: Path, hash: &Trees, base: &[Quad], message: &[Quad], leaves: &mut [u128]) {
    leaves[..2 * LANES].fill(0);
    let (mut missing, mut repair, mut total) = ([0u64; LANES], Repair::NONE, [0; LANES]);
    for (level, (t, c)) in base.iter().zip(message).enumerate() {
        let width = LANES << level;
        let [left, right] = match level {
            0 => [[0; LANES]; 2],
            // what the level above lacks is repaired on the way
            _ => children(path, hash, &mut leaves[..2 * width], &repair, false),
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
    finish(path, leaves, &repair, &Repair { at: missing, by: total });
}

/// From the nodes in the lower half, repaired, to their children in both; gives both sides' sums. `last` clears lowest bits.
fn children(path: Path, hash: &Trees, nodes: &mut [u128], repair: &Repair, last: bool) -> [Quad; 2] {
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    let mut sums = [[0; LANES]; 2];
    let kept = if last { !1 } else { u64::MAX };
    for (i, (left, right)) in left.chunks_mut(TILE).zip(right.chunks_mut(TILE)).enumerate() {
        repaired(path, left, right, (i * TILE / LANES) as u64, repair);
        hash.ccr(left);
        split(path, left, right, kept, &mut sums);
    }
    sums
}

by_path! {
    /// Repairs nodes, the first of which has number `first`, and copies them.
    fn repaired(nodes: &mut [u128], copy: &mut [u128], first: u64, repair: &Repair) = repaired_body
}

#[inline(always)]
fn repaired_body(nodes: &mut [u128], copy: &mut [u128], first: u64, repair: &Repair) {
    let (at, by) = of_words(repair);
    let copies = words(copy).as_chunks_mut::<8>().0;
    for (j, (node, copy)) in words(nodes).as_chunks_mut::<8>().0.iter_mut().zip(copies).enumerate() {
        for i in 0..8 {
            node[i] ^= by[i] & ((at[i] == first + j as u64) as u64).wrapping_neg();
        }
        *copy = *node;
    }
}

/// A repair word by word.
#[inline(always)]
fn of_words(repair: &Repair) -> ([u64; 8], [u64; 8]) {
    let half = |i: usize| (repair.by[i / 2] >> (64 * (i % 2))) as u64;
    (std::array::from_fn(|i| repair.at[i / 2]), std::array::from_fn(half))
}

by_path! {
    /// `right ^= left`, and both are added to the sums; of each block the lower half is kept where `kept` has ones.
    fn split(left: &mut [u128], right: &mut [u128], kept: u64, sums: &mut [Quad; 2]) = split_body
}

#[inline(always)]
fn split_body(left: &mut [u128], right: &mut [u128], kept: u64, sums: &mut [Quad; 2]) {
    let kept: [u64; 8] = std::array::from_fn(|i| if i % 2 == 0 { kept } else { u64::MAX });
    let (left, right) = (words(left).as_chunks_mut::<8>().0, words(right).as_chunks_mut::<8>().0);
    let (mut of_left, mut of_right) = ([0; 8], [0; 8]);
    for (left, right) in left.iter_mut().zip(right) {
        for i in 0..8 {
            let other = right[i] ^ left[i];
            of_left[i] ^= left[i];
            of_right[i] ^= other;
            (left[i], right[i]) = (left[i] & kept[i], other & kept[i]);
        }
    }
    for (sum, of) in sums.iter_mut().zip([of_left, of_right]) {
        words(sum).iter_mut().zip(of).for_each(|(s, o)| *s ^= o);
    }
}

by_path! {
    /// Adds nodes to the first sum.
    fn add(nodes: &mut [u128], sums: &mut [Quad; 2]) = add_body
}

#[inline(always)]
fn add_body(nodes: &mut [u128], sums: &mut [Quad; 2]) {
    let mut sum = [0; 8];
    for node in words(nodes).as_chunks::<8>().0 {
        (0..8).for_each(|i| sum[i] ^= node[i]);
    }
    words(&mut sums[0]).iter_mut().zip(sum).for_each(|(s, o)| *s ^= o);
}

by_path! {
    /// The last level: its repair, and what stands in the missing node's place. Lowest bits are 1 there, 0 elsewhere.
    fn finish(nodes: &mut [u128], repair: &Repair, missing: &Repair) = finish_body
}

#[inline(always)]
fn finish_body(nodes: &mut [u128], repair: &Repair, missing: &Repair) {
    let ((at, by), (place, total)) = (of_words(repair), of_words(missing));
    for (j, node) in words(nodes).as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for i in 0..8 {
            let here = (place[i] == j as u64) as u64;
            let value = node[i]
                ^ by[i] & ((at[i] == j as u64) as u64).wrapping_neg()
                ^ total[i] & here.wrapping_neg();
            node[i] = if i % 2 == 0 { (value & !1) | here } else { value };
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
                expand(path, &hash, delta, &roots, &mut all);
                let mut parents = vec![0; (LANES << depth) / 2];
                sums(path, &hash, delta, &roots, &mut parents, |level, sum| {
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

//! Levels of half-trees: nodes are hashed, and children written and added up, while they are in registers.

use super::lanes::Lanes;
use super::{STEP, Schedule, broadcast, hashes};
use crate::hash::{Level, TREES};
use std::arch::x86_64::*;

#[target_feature(enable = "aes,avx")]
pub(super) fn children_of_one(keys: &Schedule, level: Level<'_>) {
    // SAFETY: enabled here.
    unsafe { children::<__m128i>(keys, level) }
}

#[target_feature(enable = "avx2,vaes")]
pub(super) fn children_of_two(keys: &Schedule, level: Level<'_>) {
    // SAFETY: enabled here.
    unsafe { children::<__m256i>(keys, level) }
}

#[target_feature(enable = "avx512f,vaes")]
pub(super) fn children_of_four(keys: &Schedule, level: Level<'_>) {
    // SAFETY: enabled here.
    unsafe { children::<__m512i>(keys, level) }
}

#[target_feature(enable = "aes,avx")]
pub(super) fn sum_of_one(keys: &Schedule, nodes: &[u128], sums: &mut [u128; TREES]) {
    // SAFETY: enabled here.
    unsafe { sum::<__m128i>(keys, nodes, sums) }
}

#[target_feature(enable = "avx2,vaes")]
pub(super) fn sum_of_two(keys: &Schedule, nodes: &[u128], sums: &mut [u128; TREES]) {
    // SAFETY: enabled here.
    unsafe { sum::<__m256i>(keys, nodes, sums) }
}

#[target_feature(enable = "avx512f,vaes")]
pub(super) fn sum_of_four(keys: &Schedule, nodes: &[u128], sums: &mut [u128; TREES]) {
    // SAFETY: enabled here.
    unsafe { sum::<__m512i>(keys, nodes, sums) }
}

/// Sums tree by tree: a register has some of the trees, the next one the others.
struct Sums<L>([L; TREES]);

impl<L: Lanes> Sums<L> {
    #[inline(always)]
    unsafe fn zero(of: L) -> Sums<L> {
        unsafe { Sums([of.xor(of); TREES]) }
    }

    /// Adds the j-th register of nodes.
    #[inline(always)]
    unsafe fn add(&mut self, j: usize, nodes: L) {
        let at = j % (TREES / L::BLOCKS);
        unsafe { self.0[at] = self.0[at].xor(nodes) }
    }

    #[inline(always)]
    unsafe fn add_to(self, sums: &mut [u128; TREES]) {
        for (sum, of) in sums.chunks_exact_mut(L::BLOCKS).zip(self.0) {
            unsafe { L::load(sum.as_ptr()).xor(of).store(sum.as_mut_ptr()) }
        }
    }
}

/// From nodes to their children, both of which are added up tree by tree.
#[inline(always)]
unsafe fn children<L: Lanes>(keys: &Schedule, level: Level<'_>) {
    let Level { left, right, kept, sums: [of_left, of_right] } = level;
    assert!(left.len() == right.len() && left.len().is_multiple_of(TREES));
    unsafe {
        let keys = broadcast::<L>(keys);
        let kept = L::load([kept; TREES].as_ptr());
        let mut sums = [Sums::zero(keys[0]), Sums::zero(keys[0])];
        let (from, to, whole) = (left.as_mut_ptr(), right.as_mut_ptr(), STEP * L::BLOCKS);
        let steps = left.len() / whole * whole;
        for at in (0..steps).step_by(whole) {
            part::<L, STEP>(&keys, [from.add(at), to.add(at)], kept, &mut sums, 0);
        }
        for (j, at) in (steps..left.len()).step_by(L::BLOCKS).enumerate() {
            part::<L, 1>(&keys, [from.add(at), to.add(at)], kept, &mut sums, j);
        }
        let [left, right] = sums;
        left.add_to(of_left);
        right.add_to(of_right);
    }
}

/// N registers of nodes, the first of which is number `first`.
#[inline(always)]
unsafe fn part<L: Lanes, const N: usize>(
    keys: &[L; 11],
    [from, to]: [*mut u128; 2],
    kept: L,
    [of_left, of_right]: &mut [Sums<L>; 2],
    first: usize,
) {
    unsafe {
        for (j, left) in hashes::<L, N>(keys, from).into_iter().enumerate() {
            let right = left.xor(L::load(from.add(j * L::BLOCKS)));
            of_left.add(first + j, left);
            of_right.add(first + j, right);
            left.and(kept).store(from.add(j * L::BLOCKS));
            right.and(kept).store(to.add(j * L::BLOCKS));
        }
    }
}

/// Hashes of nodes added up tree by tree.
#[inline(always)]
unsafe fn sum<L: Lanes>(keys: &Schedule, nodes: &[u128], sums: &mut [u128; TREES]) {
    assert!(nodes.len().is_multiple_of(TREES));
    unsafe {
        let keys = broadcast::<L>(keys);
        let mut all = Sums::zero(keys[0]);
        let (from, whole) = (nodes.as_ptr(), STEP * L::BLOCKS);
        let steps = nodes.len() / whole * whole;
        for at in (0..steps).step_by(whole) {
            for (j, hash) in hashes::<L, STEP>(&keys, from.add(at)).into_iter().enumerate() {
                all.add(j, hash);
            }
        }
        for (j, at) in (steps..nodes.len()).step_by(L::BLOCKS).enumerate() {
            let [hash] = hashes::<L, 1>(&keys, from.add(at));
            all.add(j, hash);
        }
        all.add_to(sums);
    }
}

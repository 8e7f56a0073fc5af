//! All-but-one of 2^k seeds, k <= 8: the tree of Goldreich, Goldwasser and Micali, punctured by k base OTs.
//!
//! Conventions. A node's children are `ccr(s)` (even) and `ccr_right(s)` (odd). A leaf's number is its path, the first
//! level in the highest bit. The punctured leaf's number is the k choice bits, the first level's the highest. Per level
//! the dealer sends both sums of the level's nodes of one side, `sum_side ^ pad_(1 - side)`; the choice bit's pad opens
//! the *other* side's sum, from which the sibling of the missing node follows.

use crate::delta::{mask, wide};
use crate::hash::Trees;
use crate::mutation;
use privet_prg::{Seed, Wiped};

/// Leaves of one tree, secret.
pub(crate) type Leaves = Wiped<u128>;

/// Expands a root; gives all leaves and appends each level's two masked sums to `message`.
pub(crate) fn deal(hash: &Trees, root: u128, pads: &[[Seed; 2]], message: &mut Vec<u8>) -> Leaves {
    let mut nodes = Wiped::new(vec![root]);
    for pads in pads {
        nodes = children(hash, &nodes);
        for side in 0..2 {
            let pad = u128::from_le_bytes(*pads[1 - side].expose());
            let pad = if mutation::active("level-sums-unmasked") { 0 } else { pad };
            message.extend((sum(&nodes, side) ^ pad).to_le_bytes());
        }
    }
    nodes
}

/// All leaves but the one that `choices` names (bit 0 the last level's), whose place holds some value that says nothing.
/// `sums` holds two blocks a level.
pub(crate) fn punctured(hash: &Trees, choices: u64, chosen: &[Seed], sums: &[u128]) -> Leaves {
    let depth = chosen.len();
    let mut nodes = Wiped::new(vec![0]);
    for (level, (pad, sums)) in chosen.iter().zip(sums.as_chunks::<2>().0).enumerate() {
        nodes = children(hash, &nodes);
        let missing = choices >> (depth - 1 - level);
        let choice = wide(mask(missing));
        // The side that was not chosen, as the pad of the choice masks it; selected without a branch.
        let known = (sums[0] & choice) | (sums[1] & !choice);
        let odd = !choice;
        let other = (sum(&nodes, 0) & !odd) | (sum(&nodes, 1) & odd);
        let repair = known ^ u128::from_le_bytes(*pad.expose()) ^ other;
        for (at, node) in nodes.iter_mut().enumerate() {
            *node ^= repair & wide(equal(at as u64, missing ^ 1));
        }
    }
    nodes
}

fn children(hash: &Trees, parents: &[u128]) -> Leaves {
    let (mut even, mut odd) = (Wiped::copy_of(parents), Wiped::copy_of(parents));
    hash.ccr(&mut even);
    hash.ccr_right(&mut odd);
    Wiped::new(even.iter().zip(odd.iter()).flat_map(|(e, o)| [*e, *o]).collect())
}

fn sum(nodes: &[u128], side: usize) -> u128 {
    nodes.iter().skip(side).step_by(2).fold(0, |a, b| a ^ b)
}

/// All ones where `a = b`, both below 2^63.
fn equal(a: u64, b: u64) -> u64 {
    let difference = a ^ b;
    mask(difference.wrapping_sub(1) >> 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leaves_but_one_agree() {
        let hash = Trees::of_round(&Seed::from_bytes([9; 16]), 0);
        let mut prg = Seed::from_bytes([1; 16]).stream();
        for depth in [1usize, 2, 4, 8] {
            for missing in 0..1u64 << depth {
                let pads: Vec<[Seed; 2]> = (0..depth).map(|_| [prg.seed(), prg.seed()]).collect();
                let pick = |(level, pair): (usize, &[Seed; 2])| {
                    pair[(missing >> (depth - 1 - level) & 1) as usize].clone()
                };
                let chosen: Vec<Seed> = pads.iter().enumerate().map(pick).collect();
                let mut message = Vec::new();
                let all = deal(&hash, 77, &pads, &mut message);
                let sums: Vec<u128> =
                    message.as_chunks::<16>().0.iter().map(|b| u128::from_le_bytes(*b)).collect();
                let found = punctured(&hash, missing, &chosen, &sums);
                for (at, (a, f)) in all.iter().zip(found.iter()).enumerate() {
                    assert_eq!(a == f, at as u64 != missing, "depth {depth}, missing {missing}, leaf {at}");
                }
            }
        }
    }
}

//! Seeds of which the receiver has all but one: single points ([`crate::spcot`]), each block hashed.
//!
//! Of `width` transfers a tree is made, with 2^width leaves. The sender has all of them, and the receiver all but one: there it has that
//! XOR Delta. Hashed as blocks of transfers are, the leaf that it lacks looks uniform to it. Which one it lacks follows from its
//! random choices, and the sender does not know it.

use crate::cot::{ReceiverCots, SenderCots};
use crate::cpu::Path;
use crate::error::{Malformed, exact};
use crate::hash::{Pads, Trees};
use crate::mutation;
use crate::spcot::{LANES, Quad, expand, masked, punctured, sums};
use privet_prg::{Prg, Wiped};
use zeroize::Zeroizing;

const SUMS: &str = "sums of seeds";
/// Bytes of a block.
const BLOCK: usize = 16;

/// Trees that share a key of their hash. AGREEMENT. SECURITY: a search tests so many seeds of each level at once.
const TREES: u64 = 1 << 10;

/// A receiver's seeds, those of one tree after those of the other.
pub struct ReceiverSeeds {
    /// All seeds. In place of what the receiver lacks there is another block.
    pub seeds: Wiped<u128>,
    /// Of each tree which one it lacks. Secret.
    pub lacking: Wiped<u64>,
}

/// Bytes of the message that serves so many trees.
pub fn message_bytes(width: u32, trees: usize) -> usize {
    BLOCK * width as usize * trees
}

/// Trees of one call, [`LANES`] side by side.
struct Grove {
    width: usize,
    trees: usize,
    /// The number of the first one.
    first: u64,
    hash: Pads,
}

impl Grove {
    fn new(width: u32, transfers: usize, first: u64, hash: &Pads) -> Grove {
        let width = width as usize;
        assert!(width > 0 && transfers.is_multiple_of(width), "{transfers} transfers, {width} to a tree");
        Grove { width, trees: transfers / width, first, hash: hash.of_seeds(width as u32) }
    }

    /// Where each four trees begin, and the hash of them.
    fn quads(&self) -> impl Iterator<Item = (usize, Trees)> {
        (0..self.trees).step_by(LANES).map(|at| (at, self.hash.trees((self.first + at as u64) / TREES)))
    }

    /// Of each level a block of each of four trees; 0 past the last tree.
    fn levels(&self, blocks: &[u128], at: usize) -> Zeroizing<Vec<Quad>> {
        let block = |level: usize, l: usize| {
            if at + l < self.trees { blocks[level * self.trees + at + l] } else { 0 }
        };
        let quad = |level: usize| std::array::from_fn(|l| block(level, l));
        Zeroizing::new((0..self.width).map(quad).collect())
    }

    /// Leaves of four trees to where seeds lie.
    fn put(&self, leaves: &[u128], at: usize, seeds: &mut [u128]) {
        for (l, seeds) in seeds[at << self.width..].chunks_mut(1 << self.width).take(LANES).enumerate() {
            seeds.iter_mut().zip(leaves[l..].iter().step_by(LANES)).for_each(|(seed, leaf)| *seed = *leaf);
        }
    }

    /// Leaves hashed.
    fn hashed(&self, seeds: &mut [u128]) {
        self.hash.tccr(self.first << self.width, seeds);
    }
}

impl SenderCots {
    /// Each `width` transfers made to 2^width seeds, and the message by which the receiver gets all but one.
    ///
    /// # Panics
    /// Where trees do not take all of the transfers.
    #[must_use = "the receiver must get the message"]
    pub fn into_seeds(self, width: u32, prg: &mut Prg) -> (Wiped<u128>, Vec<u8>) {
        let grove = Grove::new(width, self.len(), self.first, &self.hash);
        let (delta, trees) = (self.delta.block(), grove.trees);
        let mut seeds = Wiped::zeros(trees << width);
        let mut message = vec![0; message_bytes(width, trees)];
        let mut parents = Wiped::zeros(LANES << (width - 1));
        let mut leaves = Wiped::zeros(LANES << width);
        for (at, hash) in grove.quads() {
            let mut roots = Zeroizing::new([0; LANES]);
            prg.fill_blocks(&mut *roots);
            if mutation::active("seeds-repeat") {
                *roots = [1; LANES];
            }
            let base = grove.levels(&self.blocks, at);
            sums(&hash, delta, &roots, &mut parents, |level, sum| {
                let sums = masked(sum, &base[level]);
                let out = message[BLOCK * (level * trees + at)..].chunks_mut(BLOCK);
                out.zip(sums).take(trees - at).for_each(|(out, sum)| out.copy_from_slice(&sum.to_le_bytes()));
            });
            expand(&hash, delta, &roots, &mut leaves);
            grove.put(&leaves, at, &mut seeds);
        }
        grove.hashed(&mut seeds);
        (seeds, message)
    }
}

impl ReceiverCots {
    /// The same seeds, but for one of each tree.
    ///
    /// # Panics
    /// Where trees do not take all of the transfers.
    pub fn into_seeds(self, width: u32, message: &[u8]) -> Result<ReceiverSeeds, Malformed> {
        let grove = Grove::new(width, self.len(), self.first, &self.hash);
        let trees = grove.trees;
        let bytes = exact(SUMS, message, message_bytes(width, trees))?;
        let sums: Vec<u128> = bytes.as_chunks::<BLOCK>().0.iter().map(|b| u128::from_le_bytes(*b)).collect();
        let mut seeds = Wiped::zeros(trees << width);
        let mut leaves = Wiped::zeros(LANES << width);
        for (at, hash) in grove.quads() {
            let (base, sums) = (grove.levels(&self.blocks, at), grove.levels(&sums, at));
            punctured(Path::detect(), &hash, &base, &sums, &mut leaves);
            grove.put(&leaves, at, &mut seeds);
        }
        grove.hashed(&mut seeds);
        let choice = |level: usize, tree: usize| self.blocks[level * trees + tree] as u64 & 1;
        let lacking =
            |tree: usize| (0..grove.width).fold(0, |place, level| place | (choice(level, tree) ^ 1) << level);
        Ok(ReceiverSeeds { seeds, lacking: (0..trees).map(lacking).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::deal;
    use privet_prg::Seed;

    #[test]
    fn the_receiver_has_all_seeds_but_one() {
        for (width, trees) in [(1, 1), (1, 9), (2, 4), (4, 0), (4, 1), (4, 1030), (5, 6)] {
            let (sender, receiver) = deal(&Seed::random(), width as usize * trees);
            let (all, message) = sender.into_seeds(width, &mut Seed::random().stream());
            assert_eq!(message.len(), message_bytes(width, trees));
            let found = receiver.into_seeds(width, &message).unwrap();
            assert_eq!((all.len(), found.lacking.len()), (trees << width, trees));
            let mut seen = all.to_vec();
            seen.sort_unstable();
            assert!(seen.windows(2).all(|two| two[0] != two[1]), "seeds that repeat");
            for (tree, lacking) in found.lacking.iter().enumerate() {
                for j in 0..1usize << width {
                    let at = tree << width | j;
                    assert_eq!(all[at] == found.seeds[at], j as u64 != *lacking, "{width} {tree} {j}");
                }
            }
            if trees > 1000 {
                let mean = found.lacking.iter().sum::<u64>() as f64 / trees as f64;
                assert!((6.5..8.5).contains(&mean), "places are random: {mean}");
            }
        }
    }

    #[test]
    fn a_message_of_another_length_is_refused() {
        let (_, receiver) = deal(&Seed::random(), 8);
        let error = receiver.into_seeds(4, &[0; 127]).map(drop).unwrap_err();
        assert!(matches!(error, Malformed::Length { expected: 128, found: 127, .. }), "{error}");
    }
}

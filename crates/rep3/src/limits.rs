//! How much a party takes on at a time: where an operation is cut into blocks, and when what was stated is verified.
//!
//! This is the one place that decides. Gates and prices both ask it, so that what a run is declared to cost is what it costs.

use crate::{Rep3, Security};
use std::ops::Range;

/// The same at all parties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Elements that a gate takes at a time.
    pub block: usize,
    /// Bytes of statements above which they are verified, between two blocks and after every node.
    pub statements: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { block: Rep3::BLOCK, statements: 128 << 20 }
    }
}

impl Limits {
    /// The elements of every block of n; one block where there is no element.
    pub fn blocks(&self, n: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let block = self.block;
        (0..n.max(1)).step_by(block).map(move |start| start..n.min(start.saturating_add(block)))
    }

    /// Elements of weights up to which layers are prepared once a session although messages are proved: four words an element
    /// are held then, and two when each run prepares them.
    const PREPARED: usize = 1 << 25;

    /// Whether the layers of a model with so many weights are prepared once a session.
    pub fn prepares(security: Security, weights: usize) -> bool {
        security == Security::SemiHonest || weights <= Limits::PREPARED
    }

    /// Whether so many bytes of statements are verified before anything else is stated.
    pub fn are_many(&self, bytes: u64) -> bool {
        bytes > self.statements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_all_elements_in_order() {
        for (n, block) in [(0, 64), (1, 64), (64, 64), (65, 64), (1000, 128), (7, usize::MAX)] {
            let blocks: Vec<_> = Limits { block, statements: 0 }.blocks(n).collect();
            assert_eq!(blocks.len(), n.div_ceil(block).max(1), "{n} in blocks of {block}");
            assert!(blocks.iter().all(|b| b.len() <= block));
            assert!((blocks[0].start, blocks[blocks.len() - 1].end) == (0, n));
            assert!(blocks.windows(2).all(|b| b[0].end == b[1].start && b[0].len() == block));
        }
    }
}

//! The correlation of one direction.

use crate::mutation;
use privet_prg::Prg;
use std::hint::black_box;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A secret odd block: 127 random bits and a lowest bit of 1.
///
/// The sender of correlated OTs draws one a session and direction and tells nobody. The lowest bit carries the choice:
/// the sender's blocks have 0 there, so the receiver's have its choice bit.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Delta(u128);

impl Delta {
    /// A fresh one from the sender's own randomness.
    pub fn draw(prg: &mut Prg) -> Delta {
        let mut block = [0];
        prg.fill_blocks(&mut block);
        if mutation::active("delta-repeats") {
            block[0] = 0x5eed_5eed_5eed_5eed;
        }
        let delta = Delta(block[0] | 1);
        block.zeroize();
        delta
    }

    /// The block.
    pub(crate) fn block(&self) -> u128 {
        self.0
    }

    /// Bit `i`, as all ones or zero.
    pub(crate) fn mask(&self, i: usize) -> u64 {
        mask((self.0 >> i) as u64)
    }
}

impl std::fmt::Debug for Delta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Delta(..)")
    }
}

/// All ones where the lowest bit is set; the compiler cannot see that there are two values only, so it makes no branch.
#[inline(always)]
pub(crate) fn mask(bit: u64) -> u64 {
    black_box(bit & 1).wrapping_neg()
}

/// As [`mask`], for a block.
#[inline(always)]
pub(crate) fn wide(mask: u64) -> u128 {
    (mask as u128) << 64 | mask as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    #[test]
    fn every_draw_is_odd_and_another() {
        let draws: Vec<u128> =
            (0..8).map(|i| Delta::draw(&mut Seed::from_bytes([i; 16]).stream()).block()).collect();
        for (i, delta) in draws.iter().enumerate() {
            assert!(delta & 1 == 1 && !draws[..i].contains(delta) && delta.count_ones() > 30);
        }
    }
}

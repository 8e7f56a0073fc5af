//! Masks made of secret bits.
//!
//! `x & (b & 1).wrapping_neg()` is no branch as it is written, but LLVM may turn it into one (it did for a dealer's
//! thresholds). The compiler cannot see through [`black_box`], so it cannot know that a mask has two values only.
//! `tests/timing.rs` measures whether that holds.

use std::hint::black_box;

/// All ones where the lowest bit is set.
#[inline(always)]
pub(crate) fn mask64(bit: u64) -> u64 {
    black_box(bit & 1).wrapping_neg()
}

/// All ones where the lowest bit is set.
#[inline(always)]
pub(crate) fn mask128(bit: u128) -> u128 {
    let half = mask64(bit as u64);
    (half as u128) << 64 | half as u128
}

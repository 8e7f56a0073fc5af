//! Comparison from one half-tree DPF: XOR shares of `1{x < alpha}` for public `x` and dealt `alpha`.
//!
//! Guo et al., EUROCRYPT 2023 (half-tree); prefix parity read-out as in the project's docs/fss.md.
//! [`spec`] is the plain definition of one key, [`cpu`] evaluates and deals batches.

pub mod cpu;
pub mod spec;

/// A batch of comparison keys over one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareShape {
    /// n, bits of the domain; 1..=64. Domains under 7 bits are served by one leaf of 128 points.
    pub bits: u32,
    /// Keys in the batch.
    pub count: usize,
}

/// Keys to a block of the level-major layout.
pub const BLOCK: usize = 64;
/// Points to a leaf: log2 of the leaf's 128 bits.
pub const LEAF_BITS: u32 = 7;

impl CompareShape {
    /// Tree levels above the leaf: `max(n, 7) - 7`.
    pub const fn depth(&self) -> usize {
        self.bits.saturating_sub(LEAF_BITS) as usize
    }

    /// Bytes of one party's keys: `16 * (depth + 2)` each.
    ///
    /// Layout: blocks of [`BLOCK`] keys (the last one holds what remains, `b` keys); in a block, `b`
    /// root seeds, then for every level `b` correction words, then `b` leaf words; all 16 bytes, little
    /// endian. The lowest bit of a seed is its control bit. Cutting a batch at a multiple of [`BLOCK`]
    /// therefore leaves two valid batches.
    pub const fn key_bytes(&self) -> usize {
        16 * (self.depth() + 2) * self.count
    }

    /// AES calls of one party's evaluation: `depth + 1` a key.
    pub const fn aes_calls(&self) -> usize {
        (self.depth() + 1) * self.count
    }

    /// Whether `v` is a point of the domain.
    pub const fn contains(&self, v: u64) -> bool {
        self.bits >= 64 || v >> self.bits == 0
    }
}

/// Marker for the documentation of the key layout; see [`CompareShape::key_bytes`].
#[derive(Clone, Copy, Debug)]
pub struct CompareKeys;

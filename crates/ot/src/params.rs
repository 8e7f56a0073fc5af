//! Parameters of Ferret. Each set is a literal; what follows from it is computed.
//!
//! SECURITY: `trees`, `log_k`, `depth`, [`GATHERS`]. AGREEMENT: all of a set. Evidence: `scripts/lpn_estimate.py`, which
//! prints the bits of every attack named there for every set here; docs/ot.md has its output.

use crate::spcot::LANES;

/// Blocks of the table that an output adds: the weight of a row of the code.
pub const GATHERS: usize = 10;

/// A set: LPN of dimension 2^log_k with regular noise, one noisy output in each of `trees` runs of 2^depth.
///
/// `trees` is a multiple of four and at most what emp-ot's table of July 2026 has (850, 1170, 1520, 1900), as the hybrid
/// attack becomes cheaper with more outputs of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// For people.
    pub name: &'static str,
    /// t, noisy outputs.
    pub trees: usize,
    /// Binary logarithm of the dimension.
    pub log_k: u32,
    /// Binary logarithm of the outputs of a tree.
    pub depth: u32,
}

/// A table of 1 MiB, 1.4 bits a transfer: the fastest.
/// `scripts/lpn_estimate.py`: 128.7 bits, the hybrid attack.
pub const B10: Parameters = Parameters { name: "b10", trees: 848, log_k: 16, depth: 10 };
/// A table of 2 MiB, 0.7 bits a transfer: the default.
/// `scripts/lpn_estimate.py`: 128.2 bits, the hybrid attack.
pub const B11: Parameters = Parameters { name: "b11", trees: 1168, log_k: 17, depth: 11 };
/// A table of 4 MiB, 0.4 bits a transfer.
/// `scripts/lpn_estimate.py`: 128.1 bits, the hybrid attack.
pub const B12: Parameters = Parameters { name: "b12", trees: 1520, log_k: 18, depth: 12 };
/// A table of 8 MiB, 0.2 bits a transfer: the least bytes.
/// `scripts/lpn_estimate.py`: 128.2 bits, the hybrid attack.
pub const B13: Parameters = Parameters { name: "b13", trees: 1900, log_k: 19, depth: 13 };

impl Parameters {
    /// Every set.
    pub const ALL: [Parameters; 4] = [B10, B11, B12, B13];

    /// Blocks of the table: the dimension.
    pub const fn k(&self) -> usize {
        1 << self.log_k
    }

    /// Outputs of a round.
    pub const fn n(&self) -> usize {
        self.trees << self.depth
    }

    /// Transfers that a round uses up: the table, and one a level of every tree.
    pub const fn reserve(&self) -> usize {
        self.k() + self.trees * self.depth as usize
    }

    /// Transfers that a round gives, once the next round's reserve is set aside.
    pub const fn usable(&self) -> usize {
        self.n() - self.reserve()
    }

    /// Bytes of a round's message, from the sender.
    pub const fn message_bytes(&self) -> usize {
        16 * self.trees * self.depth as usize
    }

    pub(crate) const fn groups(&self) -> usize {
        assert!(self.trees.is_multiple_of(LANES) && self.log_k <= crate::lpn::INDEX_BITS);
        self.trees / LANES
    }

    pub(crate) const fn group_outputs(&self) -> usize {
        LANES << self.depth
    }
}

//! What something uses: counted at both sides, and declared by gates. The tests hold one to the other.

use crate::context::Side;
use crate::material::{Kind, Made, Need, transfers};
use privet_ring::Ring;

/// Material, bytes and steps. Indices are numbers of sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Material, in the order in which it is read.
    pub(crate) needs: Vec<Need>,
    /// Bytes that a side sends.
    pub bytes: [u64; 2],
    /// Messages, or two that pass at once.
    pub steps: u64,
}

impl Uses {
    /// Material of one kind for n elements, with what is sent when it is used.
    pub(crate) fn of(of: impl Into<Kind>, n: usize, bytes: [u64; 2], steps: u64) -> Uses {
        Uses { needs: vec![Need { of: of.into(), n }], bytes, steps }
    }

    /// One after the other.
    pub fn then(mut self, next: Uses) -> Uses {
        self.needs.extend(next.needs);
        let bytes = [0, 1].map(|i| self.bytes[i] + next.bytes[i]);
        Uses { needs: self.needs, bytes, steps: self.steps + next.steps }
    }

    /// In the same steps.
    pub fn beside(self, next: Uses) -> Uses {
        let steps = self.steps.max(next.steps);
        Uses { steps, ..self.then(next) }
    }

    /// Correlated OTs that the material is made of: in which the server has both strings, and in which the client has.
    pub fn transfers(&self) -> [usize; 2] {
        transfers(&self.needs)
    }

    /// What is sent and computed beside transfers while the material is made.
    pub(crate) fn made(&self) -> Made {
        self.needs.iter().map(Need::made).fold(Made::default(), Made::then)
    }

    /// AES blocks that the server computes in a run, as estimates count its work.
    pub(crate) fn blocks(&self) -> u64 {
        self.needs.iter().map(Need::blocks).sum()
    }

    /// Bytes of either side's record.
    pub fn stored(&self) -> [u64; 2] {
        Side::ALL.map(|side| self.needs.iter().map(|need| need.bytes(side)).sum())
    }
}

/// Bytes of a plane.
pub(crate) fn plane_bytes(n: usize) -> u64 {
    n.div_ceil(8) as u64
}

/// Bytes of elements.
pub(crate) fn word_bytes(bits: u32, n: usize) -> u64 {
    if bits == 0 { 0 } else { Ring::new(bits).packed_bytes(n) as u64 }
}

//! What something uses: counted at both sides, and declared by gates. The tests hold one to the other.

use privet_ring::Ring;

/// Transfers, bytes and steps. Indices are numbers of sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Correlated OTs in which this side has both strings.
    pub transfers: [usize; 2],
    /// Bytes that it sends.
    pub bytes: [u64; 2],
    /// Messages, or two that pass at once.
    pub steps: u64,
}

impl Uses {
    /// One after the other.
    pub fn then(self, next: Uses) -> Uses {
        let steps = self.steps + next.steps;
        Uses { steps, ..self.beside(next) }
    }

    /// In the same steps.
    pub fn beside(self, other: Uses) -> Uses {
        let add = |i: usize| (self.transfers[i] + other.transfers[i], self.bytes[i] + other.bytes[i]);
        let (server, client) = (add(0), add(1));
        Uses {
            transfers: [server.0, client.0],
            bytes: [server.1, client.1],
            steps: self.steps.max(other.steps),
        }
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

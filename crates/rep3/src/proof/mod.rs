//! What each party remembers of a run in order to prove its messages, and to check the others' (docs/rep3.md, section 6).

mod column;

use crate::PartyId;
pub(crate) use column::Column;
use privet_ring::Ring;

/// Where the statements live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algebra {
    /// Z_2, 64 statements a word.
    Bits,
    /// Z_2^k, one statement a word.
    Ring(Ring),
}

/// One party's view of a batch of statements `sum over t of u_t v_t + s_B + s_A = 0`, word by word. All columns of a
/// batch have the same length.
pub(crate) enum View {
    /// The prover's.
    Prover {
        /// Known to the party before as well.
        u: Vec<Column>,
        /// Known to the party after as well; as many as `u`.
        v: Vec<Column>,
    },
    /// The party before the prover.
    Before {
        /// As the prover's.
        u: Vec<Column>,
        /// `s_B`.
        s: Column,
    },
    /// The party after the prover.
    After {
        /// As the prover's.
        v: Vec<Column>,
        /// `s_A`.
        s: Column,
    },
}

/// A batch of statements about one prover's messages.
pub(crate) struct Claim {
    pub algebra: Algebra,
    pub prover: PartyId,
    pub view: View,
}

/// All claims since the last verification; every party has the same ones in the same order, each its own view.
#[derive(Default)]
pub(crate) struct Transcript {
    claims: Vec<Claim>,
}

impl Transcript {
    /// Remember a batch of statements.
    pub fn push(&mut self, algebra: Algebra, prover: PartyId, view: View) {
        self.claims.push(Claim { algebra, prover, view });
    }
    /// The statements, for tests that look at them one by one.
    #[cfg(test)]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }
}

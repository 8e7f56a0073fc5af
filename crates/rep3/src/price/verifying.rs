//! What verification costs as a run goes on, beside the rounds of the protocol where it may.

use super::claims::Piece;
use super::{Claims, Talk};
use crate::limits::{Limits, Verified};

/// What is verified so far, and what is not.
#[derive(Default)]
pub(super) struct Verifying {
    /// Rounds are those in which the protocol does nothing.
    talk: Talk,
    claims: Claims,
    /// Of the verification that is under way: the rounds that it has left, and the bytes that it is about.
    left: u64,
    under_way: u64,
}

impl Verifying {
    /// The protocol comes to the end of a piece.
    pub fn after(&mut self, limits: &Limits, Piece { rounds, claims }: Piece) {
        if rounds > 0 {
            self.claims.told_ahead();
        }
        self.left = self.left.saturating_sub(rounds);
        if self.left == 0 {
            self.under_way = 0;
        }
        self.claims.add(claims);
        match limits.verified(self.claims.bytes, self.under_way) {
            Verified::Later => {}
            Verified::Beside => {
                let bytes = self.claims.bytes;
                let Talk { sent, rounds } = std::mem::take(&mut self.claims).verification();
                let before = std::mem::replace(&mut self.left, rounds);
                self.under_way = if rounds == 0 { 0 } else { bytes };
                self.talk = self.talk.then(Talk { sent, rounds: before });
            }
            Verified::Now => self.all(),
        }
    }

    /// All that is left: what is stated by now, in the rounds of the one that is under way and as many more as it takes.
    fn all(&mut self) {
        let Talk { sent, rounds } = std::mem::take(&mut self.claims).verification();
        let left = std::mem::take(&mut self.left);
        self.under_way = 0;
        self.talk = self.talk.then(Talk { sent, rounds: rounds.max(left) });
    }

    /// Of a whole run.
    pub fn talk(mut self) -> Talk {
        self.all();
        self.talk
    }
}

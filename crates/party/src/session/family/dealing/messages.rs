//! What parties and dealer say to each other, as control messages.

use crate::session::control::Id;
use serde::{Deserialize, Serialize};

/// A party's request to the dealer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DealRequest {
    /// Name of the deal; both parties give the same.
    pub deal: Id,
    /// Hash of the plan that the keys are for, hexadecimal.
    pub plan: String,
    /// Add to this session; a new one otherwise.
    pub session: Option<Id>,
    /// How many records.
    pub runs: u64,
    /// So many sessions more, of as many records, to be opened on the same connection ([`OpenRequest`]).
    /// They are new ones: only a deal without `session` can have checks.
    pub checks: u64,
}

/// A party's choice, once it holds all keys of a deal with checks: open every session but one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// The one that stays closed, in the order they were dealt.
    pub keep: u64,
}

/// The dealer's answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum OpenReply {
    /// The master seeds of all sessions but the kept one, hexadecimal, in the order they were dealt. All
    /// keys of these sessions follow from them, so they must never be used.
    Opened {
        /// The seeds.
        seeds: Vec<String>,
    },
    /// The dealer does not open them.
    Refused {
        /// Cause and remedy.
        reason: String,
    },
}

/// What a party found in the opened sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The first difference, if there is one; names places, never values.
    pub fault: Option<String>,
}

/// The dealer's answer; the session's keys and the records follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum DealReply {
    /// Here they come.
    Dealing {
        /// The session.
        session: Id,
        /// Numbers of the records, in the order they follow.
        indices: Vec<u64>,
    },
    /// The dealer does not know the session: it was restarted since.
    Forgotten,
    /// The dealer cannot.
    Refused {
        /// Cause and remedy.
        reason: String,
    },
}

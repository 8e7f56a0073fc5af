//! What party 0 orders, and how the others answer.

use super::control::Id;
use serde::{Deserialize, Serialize};

/// Party 0's orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Have ready what runs use up.
    Prepare {
        /// The client's request.
        id: Id,
        /// Name of the deal, new every time.
        deal: Id,
        /// Add to this session; a new one otherwise.
        session: Option<Id>,
        /// For how many runs.
        runs: u64,
        /// Sessions to open and check; where there are any, `session` is none.
        checks: u64,
    },
    /// Begin a session.
    Begin {
        /// The client's request.
        id: Id,
        /// The session.
        session: Id,
    },
    /// Begin a session whose model is a party's own: it shares the weights of its node file.
    BeginFrom {
        /// The party that owns the model.
        owner: u8,
        /// The session.
        session: Id,
    },
    /// Run.
    Run {
        /// The clients' requests.
        ids: Vec<Id>,
        /// The session.
        session: Id,
        /// Number of the run in the session, used once.
        index: u64,
    },
}

impl Order {
    /// The clients' requests that it is about.
    pub fn requests(&self) -> Vec<Id> {
        match self {
            Order::Prepare { id, .. } | Order::Begin { id, .. } => vec![*id],
            Order::BeginFrom { .. } => Vec::new(),
            Order::Run { ids, .. } => ids.clone(),
        }
    }

    /// What parties compare to see that they were given the same order.
    pub fn digest(&self) -> [u8; 32] {
        // Plain data always has a JSON form.
        *blake3::hash(&serde_json::to_vec(self).unwrap_or_default()).as_bytes()
    }
}

/// A party's answer to an order. Nobody acts on it before party 0 said [`Go::Go`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Consent {
    /// It has checked the order and holds what it needs.
    Ready,
    /// The order's session is not open here.
    NoSession,
    /// It will not.
    Declined {
        /// Cause and remedy.
        reason: String,
    },
}

/// Party 0's last word, to each party that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Go {
    /// All are ready: do it.
    Go,
    /// Somebody has lost the session: keep the clients' requests, another order for them may come.
    Again,
    /// Somebody declined.
    Off {
        /// Cause and remedy.
        reason: String,
    },
}

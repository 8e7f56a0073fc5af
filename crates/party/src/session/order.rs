//! What party 0 orders, and how the others answer.

use super::control::{Amount, Id};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most requests that one order is about: one of each place, of which a deployment has fewer.
const MOST_REQUESTS: usize = 8192;

/// Party 0's orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Have ready what runs use up.
    Prepare {
        /// The client's request.
        id: Id,
        /// The plan.
        plan: String,
        /// What.
        what: Preparation,
    },
    /// Begin a session.
    Begin {
        /// The client's request.
        id: Id,
        /// The plan.
        plan: String,
        /// The session.
        session: Id,
    },
    /// Begin a session that needs no client: the model is a party's own, which shares the weights of its node file,
    /// or the plan has no weights.
    BeginFrom {
        /// The plan.
        plan: String,
        /// The party that owns the model; none where there are no weights.
        owner: Option<u8>,
        /// The session.
        session: Id,
    },
    /// Run.
    Run {
        /// The clients' requests.
        ids: Vec<Id>,
        /// The plan.
        plan: String,
        /// The session.
        session: Id,
        /// Number of the run in the session, used once.
        index: u64,
        /// Where the plan reads states: which.
        from: Option<Start>,
        /// The plan's public numbers, in the rings of their nodes.
        publics: BTreeMap<String, u64>,
    },
    /// Begin a training.
    BeginTraining {
        /// The owners' requests.
        ids: Vec<Id>,
        /// Its name, new every time.
        training: Id,
        /// Steps from one checkpoint to the next; 0 for none.
        checkpoint_every: u64,
    },
    /// Go on with a training where all parties can.
    Resume {
        /// The client's request.
        id: Id,
        /// The training.
        training: Id,
    },
}

/// What is to be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// Name of the deal, new every time, the same at all parties.
    pub deal: Id,
    /// Add to this session; a new one otherwise. None where sessions are opened and checked: one that is open would be
    /// revealed by that.
    pub session: Option<Id>,
    /// How much, as the client asked.
    pub amount: Amount,
}

/// The states that a run starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The training.
    pub training: Id,
    /// Which of its states.
    pub version: Version,
}

/// Names the states after a step. Two parties' states of one version belong together: both come from the same first values
/// by the same runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Steps since the beginning.
    pub step: u64,
    /// A digest of the orders of all these runs: a step that is done a second time, because a party failed in the first or
    /// after a checkpoint was restored, gives other shares and has another trail.
    pub trail: Id,
}

impl Version {
    /// That of a training which begins.
    pub fn first(training: Id) -> Version {
        Version { step: 0, trail: training }
    }

    /// That after the run of `order`.
    pub fn after(self, order: &Order) -> Version {
        let mut hasher = blake3::Hasher::new_derive_key("privet trail of a training");
        hasher.update(&self.step.to_le_bytes()).update(&self.trail.0).update(&order.digest());
        let mut trail = [0; 16];
        trail.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Version { step: self.step + 1, trail: Id(trail) }
    }
}

impl Order {
    /// The plan that it is about, where it is about one.
    pub fn plan(&self) -> Option<&str> {
        match self {
            Order::Prepare { plan, .. }
            | Order::Begin { plan, .. }
            | Order::BeginFrom { plan, .. }
            | Order::Run { plan, .. } => Some(plan),
            Order::BeginTraining { .. } | Order::Resume { .. } => None,
        }
    }

    /// The clients' requests that it is about.
    pub fn requests(&self) -> Vec<Id> {
        match self {
            Order::Prepare { id, .. } | Order::Begin { id, .. } | Order::Resume { id, .. } => vec![*id],
            Order::BeginFrom { .. } => Vec::new(),
            Order::Run { ids, .. } | Order::BeginTraining { ids, .. } => ids.clone(),
        }
    }

    /// Refuses an order that no honest party 0 gives, whatever is open here. Every party calls this first: what comes
    /// after counts on it.
    pub fn well_formed(&self) -> Result<(), &'static str> {
        let ids = self.requests();
        if ids.len() > MOST_REQUESTS {
            return Err("it names more requests than a deployment has places");
        }
        if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
            return Err("it names a request twice");
        }
        match self {
            Order::Prepare { what: Preparation { session: Some(_), amount, .. }, .. }
                if amount.checks > 0 =>
            {
                Err("it has keys of an open session checked, which would reveal them")
            }
            _ => Ok(()),
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
    /// What this run uses up is not here, and will not come.
    Lacks {
        /// Cause and remedy.
        reason: String,
    },
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
    /// Somebody has lost the session, or what the run uses up: keep the clients' requests, another order for them may come.
    Again,
    /// Somebody declined.
    Off {
        /// Cause and remedy.
        reason: String,
    },
}

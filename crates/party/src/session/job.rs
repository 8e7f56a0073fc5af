//! Why a job failed, whatever the family.

use super::control::TalkError;
use super::owner::OwnerError;
use crate::config::Place;
use crate::tensors::TensorsError;
use privet_net::NetError;
use privet_plan::EncodeError;
use thiserror::Error;

/// Why a request failed. Messages name causes, steps and files, never values: clients and other parties are told them.
#[derive(Debug, Error)]
pub enum JobError {
    /// A connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// The protocol family's own reasons.
    #[error("{0}")]
    Family(Box<dyn std::error::Error + Send + Sync>),
    /// A client told the parties different things.
    #[error("the client asked the parties for different things: its program is broken")]
    OtherRequest,
    /// Party 0 told the parties different things.
    #[error(
        "party 0 gave this party and party {0} different orders, or party {0} says so: one of them is broken or cheats"
    )]
    OtherOrder(u8),
    /// A client that spoke to some parties only.
    #[error("party {0} did not hear from the client: it must connect to all parties")]
    NotAsked(u8),
    /// Sharing tensors.
    #[error("{0}")]
    Owner(#[from] OwnerError),
    /// Another party declined.
    #[error("party {party} declined: {reason}")]
    Declined {
        /// Which.
        party: u8,
        /// Its cause and remedy.
        reason: String,
    },
    /// What party 0 said when another party declined.
    #[error("the job was called off: {0}")]
    CalledOff(String),
    /// Another party is away.
    #[error("party {party} is not connected (waited {seconds} s): start it, and see `privet doctor`")]
    NoPeer {
        /// Which.
        party: u8,
        /// How long was waited.
        seconds: u64,
    },
    /// A party of a number that this deployment does not have.
    #[error("party {0} has no part in this job")]
    NoParty(u8),
    /// Another party cannot be reached.
    #[error("party {me} cannot reach party {party}: {cause}")]
    Unreachable {
        /// This party.
        me: u8,
        /// The other.
        party: u8,
        /// Why.
        cause: NetError,
    },
    /// A client without the role.
    #[error("{0} has no role in this: see [roles] in the deployment file")]
    NoRole(Place),
    /// No session.
    #[error("no session is open: the model owner must share the model first")]
    NotOpen,
    /// The model's owner has not been given the model.
    #[error("this party owns the model, but its node file names no `weights` file: add it and restart")]
    NoWeights,
    /// The weights file.
    #[error("the weights file cannot be used: {0}")]
    Tensors(#[from] TensorsError),
    /// The weights do not fit the plan.
    #[error("the weights do not fit the plan: {0}")]
    Encode(#[from] EncodeError),
    /// A party was restarted, or gave the session up.
    #[error(
        "a party was restarted or ended the session, so the open session is lost: the model owner must share the \
         model again (where keys are prepared, with keys of a new session)"
    )]
    SessionLost,
}

impl From<NetError> for JobError {
    fn from(e: NetError) -> Self {
        JobError::Talk(e.into())
    }
}

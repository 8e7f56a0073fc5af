//! Why a job failed, whatever the family. The text is for clients and the other parties; what an event says of it is in
//! `events/reasons`.

use super::access::AccessError;
use super::checkpoint::CheckpointError;
use super::control::{At, Id, TalkError};
use super::family::FamilyError;
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
    Family(Box<dyn FamilyError>),
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
    /// A request that needs others as well.
    #[error(
        "{place} did not ask for the same within {seconds} s: all who have a part in it ask at about the same time \
         (`timeouts.step` bounds this wait)"
    )]
    Absent {
        /// Who is missing.
        place: Place,
        /// How long was waited.
        seconds: u64,
    },
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
    /// This party lacks what a run uses up; another run may do.
    #[error("{0}")]
    Lacks(Box<dyn FamilyError>),
    /// Another party lacks it.
    #[error("party {party} declined: {reason}")]
    PeerLacks {
        /// Which.
        party: u8,
        /// Its cause and remedy.
        reason: String,
    },
    /// What party 0 said when another party declined.
    #[error("the job was called off: {0}")]
    CalledOff(String),
    /// The thread of a preparation has panicked.
    #[error(
        "the preparation's thread panicked, as the party's log says: report this as a bug, then prepare again"
    )]
    PreparationPanicked,
    /// Party 0 ordered a preparation before the last one had ended here.
    #[error("party {party} is still busy with the last preparation: ask again when it has ended")]
    StillPreparing {
        /// Which.
        party: u8,
    },
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
    /// Who asked may not.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// An order that no honest party 0 gives.
    #[error("party 0 gave an order that makes no sense ({0}): it is broken or cheats")]
    Malformed(&'static str),
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
    /// Public numbers of a run are missing or out of range.
    #[error("{0}")]
    Publics(EncodeError),
    /// Callers that take part in one job do not mean the same.
    #[error("{second} and {first} ask for different things in one job: {what}; agree first, then ask again")]
    Differ {
        /// One.
        first: Place,
        /// Another.
        second: Place,
        /// In what they differ; for public numbers without them.
        what: String,
    },
    /// There are no states.
    #[error("there are no states to train or to start from: this plan or program has none")]
    NoStates,
    /// A run of a plan with states without a step.
    #[error("this plan reads states: a run of it says which training and step it starts from")]
    NoStep,
    /// No training in memory.
    #[error(
        "this party holds no training: begin one, or resume yours from its checkpoints (a party that was restarted \
         holds none)"
    )]
    NoTraining,
    /// Another training, or another step.
    #[error(
        "{wanted} is not here: this party holds steps {held} of training {training}; ask for the status, then go on at \
         the step that all parties have, or resume the training", training = training.short()
    )]
    OtherStep {
        /// Asked for.
        wanted: At,
        /// In memory.
        training: Id,
        /// Its steps.
        held: String,
    },
    /// The same step of another history.
    #[error("this party's states of that step do not belong to party 0's: resume the training")]
    OtherTrail,
    /// Nothing to resume from.
    #[error(
        "no step of training {training} is at all parties: {have} (a step that was done again after a failure counts as \
         another one){refused}; begin the training anew", training = training.short()
    )]
    NoCommonStep {
        /// The training.
        training: Id,
        /// What every party has.
        have: String,
        /// What this party refused, each with a semicolon before it.
        refused: String,
    },
    /// A checkpoint.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint's shares.
    #[error("the checkpoint cannot be restored: {0}")]
    Restore(String),
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

//! What a protocol family has to bring to be served: the party's side ([`Family`]), and the side of those who own
//! tensors or receive results ([`Outside`]). The service, orders, requests and reports are the same for all families.

#[cfg(feature = "clear")]
#[path = "../../../../../tests/clear/mod.rs"]
pub(crate) mod clear;
pub mod dealing;
pub mod fss;
pub(crate) mod heot;
mod masked;
mod records;
pub(crate) mod rep3;
pub(crate) mod semi2k;

use super::control::{Id, KeyStream};
use super::job::JobError;
use super::order::Preparation;
use super::owner::{OwnerError, Piece, Shared};
use super::peers::Others;
use super::work::Work;
use crate::config::Place;
use crate::events::{JobEvents, Why};
use privet_family::{NodeStats, Opening};
use privet_net::{Channel, TcpChannel};
use privet_plan::Program;
use privet_plan::ir::Type;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;
use zeroize::Zeroizing;

/// Encoded tensors by name, in the rings of their nodes.
pub(crate) type Encoded = BTreeMap<String, Vec<u64>>;

/// A party's shares of a program's states, by name.
pub(super) trait Held: Clone + Default + Send + 'static {
    /// Take over what a run made of some of them.
    fn replace(&mut self, updates: Self);
}

/// What a run is given.
pub(super) struct Given<'a, F: Family> {
    /// What the owners shared for it.
    pub inputs: F::Tensors,
    /// This party's shares of states, those that the plan reads among them.
    pub states: &'a F::States,
    /// The plan's public numbers, in the rings of their nodes.
    pub publics: &'a BTreeMap<String, u64>,
    /// Where the run's events go.
    pub job: &'a JobEvents,
}

/// A family's own reason for which a job fails. Clients and other parties are told its text, events its [`Why`].
pub(crate) trait FamilyError: std::error::Error + Why + Send + Sync {}

impl<E: std::error::Error + Why + Send + Sync> FamilyError for E {}

/// What a run gave a party.
pub(super) struct Ran<S> {
    /// From shared inputs to shares of the outputs.
    pub online: Duration,
    /// Costs of every node.
    pub nodes: Vec<NodeStats>,
    /// Costs of verification.
    pub checks: NodeStats,
    /// What was opened before the outputs.
    pub openings: Vec<Opening>,
    /// What the receiver of each output is sent, in the plan's order.
    pub outputs: Vec<Vec<u8>>,
    /// What takes the place of the states that the plan updates.
    pub updates: S,
}

/// What a preparation gave a party.
pub(super) struct Made<T> {
    /// Bytes of keys that came.
    pub key_bytes: u64,
    /// What the family takes over.
    pub made: T,
}

/// A party's part in a preparation, which takes its time while runs go on: it has what it needs, and shares no lock with
/// them for long.
pub(super) trait Preparer: Send + 'static {
    /// What the family takes over at the end.
    type Made: Send + 'static;

    /// Do it. Where parties may be at it for long before they talk, each gives signs ([`Work::sign`]), and they wait for
    /// each other with [`Work::all_done`], which they do at the end in any case. What is stored before that counts only if it
    /// is of use however the preparation ends.
    fn run(self, work: &mut Work<'_>) -> Result<Made<Self::Made>, JobError>;
}

/// A party's side of a protocol family for one plan: its keys, its session, its runs. The engine calls it in the order of orders:
/// what only checks or takes (`may_*`, `claim`) before the parties agreed, the rest after.
pub(super) trait Family: Send + Sized + 'static {
    /// What a party holds of the owners' tensors until they are used.
    type Tensors: Default;
    /// What it keeps of states from run to run. It belongs to no session: every run of every plan may use it.
    type States: Held;
    /// Its part in a preparation.
    type Preparer: Preparer;

    /// Prepared sessions that nobody began.
    fn prepared(&self) -> usize;
    /// The session that is open.
    fn open_session(&self) -> Option<Id>;
    /// Runs for which the open session has keys left; none where runs use nothing up, or no session is open.
    fn runs_left(&self) -> Option<usize>;
    /// How a preparation goes on that was asked for as a stream; none where there was none.
    fn key_stream(&self) -> Option<KeyStream> {
        None
    }
    /// The open session is over; so is a claim on a run.
    fn close(&mut self);
    /// The claimed run will not take place.
    fn give_up_claim(&mut self);
    /// All parties agreed on the claimed run and go on with it: its number is used, however it ends.
    fn go_on(&mut self) {}

    /// The session that can be begun next.
    fn next_session(&self) -> Result<Id, JobError>;
    /// The number of the open session's next run.
    fn next_run(&self) -> Result<u64, JobError>;

    /// The session that what is prepared now, with so many checks, would be added to; none where it needs a new one.
    fn session_to_extend(&self, checks: u64) -> Option<Id> {
        self.open_session().filter(|_| checks == 0)
    }

    /// Whether it can prepare what is asked for.
    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError>;
    /// Whether a session can be begun; nothing is used up.
    fn may_begin(&self, session: Id) -> Result<(), JobError>;
    /// Take run `index` of the open session, once and for all, or (where nothing is used up before all agree) until
    /// [`Family::give_up_claim`]. [`JobError::Lacks`] where it is not there, and others may be.
    fn claim(&mut self, index: u64) -> Result<(), JobError>;

    /// What has ready what runs use up. Until it has ended there is no other, while runs and beginnings go on.
    fn preparer(&mut self, what: &Preparation) -> Result<Self::Preparer, JobError>;
    /// A preparation has ended; without anything made where it failed.
    fn preparation_ended(&mut self, what: &Preparation, made: Option<<Self::Preparer as Preparer>::Made>);
    /// Begin a session: the open one is over. Its weights are shared next.
    fn begin(&mut self, session: Id, others: &mut Others) -> Result<(), JobError>;
    /// Let the owner on `channel` send its tensors.
    fn grant(&self, kind: Shared, pieces: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError>;
    /// Receive its tensors.
    fn receive(
        &self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Self::Tensors,
    ) -> Result<(), JobError>;
    /// Whether sessions can begin without the weights of this party's node file, of which the family holds what it made. Once it
    /// is so it stays so; then [`Family::share_own`] is given none.
    fn holds_own_weights(&self) -> bool {
        false
    }
    /// This party owns these weights itself: share them with the others, which grant and receive.
    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Self::Tensors,
    ) -> Result<(), JobError>;
    /// Open the session that was begun, once the parties have found that their weights fit together.
    fn open(&mut self, weights: Self::Tensors, others: &mut Others) -> Result<(), JobError>;
    /// The claimed run, once the parties have found that their inputs fit together. After it, this party may show its
    /// shares of the outputs to their receivers, and put the updates in the place of states.
    fn run(&mut self, given: Given<Self>, others: &mut Others) -> Result<Ran<Self::States>, JobError>;

    /// Shares of states of what their owners have sent. Whatever the plan: states are the program's.
    fn hold(&self, tensors: Self::Tensors) -> Self::States;
    /// The parties find that their states fit together, as far as a party can tell; `what` is public and says which they
    /// are.
    fn compare(
        &self,
        program: &Program,
        what: &[u8],
        states: &Self::States,
        others: &mut Others,
    ) -> Result<(), JobError>;
    /// Shares of all states of a program, for a checkpoint.
    fn save(&self, program: &Program, states: &Self::States) -> Result<Zeroizing<Vec<u8>>, JobError>;
    /// From [`Family::save`]'s bytes, which may have been changed. The error says how.
    fn restore(&self, program: &Program, bytes: &[u8]) -> Result<Self::States, String>;
}

/// A result that cannot be put together.
#[derive(Debug, Error)]
#[error("result `{name}`: {cause}")]
pub struct ResultError {
    /// The output.
    pub name: String,
    /// Why; names parties, never values.
    pub cause: String,
}

/// A family as seen by those who own tensors or receive results.
pub(crate) trait Outside: Send + Sync {
    /// Share tensors of a kind with all parties, in order on `channels`, as their owner at this place.
    fn share(
        &self,
        owner: &Place,
        channels: &mut [TcpChannel],
        kind: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError>;
    /// Bytes that a party sends for an output.
    fn result_bytes(&self, ty: &Type) -> usize;
    /// The output, from what all parties sent, in order.
    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError>;
}

//! What a protocol family has to bring to be served: the party's side ([`Family`]), and the side of those who own
//! tensors or receive results ([`Outside`]). The service, orders, requests and reports are the same for all families.

pub mod fss;
mod rep3;

use super::control::Id;
use super::job::JobError;
use super::owner::{OwnerError, Shared};
use super::peers::Others;
use crate::config::Protocol;
use privet_family::{NodeStats, Opening};
use privet_net::{Channel, TcpChannel};
use privet_plan::Plan;
use privet_plan::ir::Type;
use std::collections::BTreeMap;
use thiserror::Error;

pub(super) use fss::Fss;
pub(super) use rep3::Rep3;

/// Encoded tensors by name, in the rings of their nodes.
pub(super) type Encoded = BTreeMap<String, Vec<u64>>;

/// What is to be prepared.
#[derive(Clone, Debug)]
pub(super) struct Preparation {
    /// Name of the deal, the same at all parties.
    pub deal: Id,
    /// Add to this session; a new one otherwise.
    pub session: Option<Id>,
    /// For how many runs.
    pub runs: u64,
    /// Sessions to open and check.
    pub checks: u64,
}

/// What a run gave a party.
pub(super) struct Ran {
    /// Seconds from shared inputs to shares of the outputs.
    pub online_s: f64,
    /// Costs of every node.
    pub nodes: Vec<NodeStats>,
    /// Costs of verification.
    pub checks: NodeStats,
    /// What was opened before the outputs.
    pub openings: Vec<Opening>,
    /// What the receiver of each output is sent, in the plan's order.
    pub outputs: Vec<Vec<u8>>,
}

/// A party's side of a protocol family: its keys, its session, its runs. The engine calls it in the order of orders:
/// what only checks or takes (`may_*`, `claim`) before the parties agreed, the rest after.
pub(super) trait Family: Send + Sized + 'static {
    /// What a party holds of the owners' tensors until they are used.
    type Tensors: Default;

    /// Prepared sessions that nobody began.
    fn prepared(&self) -> usize;
    /// The session that is open.
    fn open_session(&self) -> Option<Id>;
    /// Runs for which the open session has keys left; none where runs use nothing up, or no session is open.
    fn runs_left(&self) -> Option<usize>;
    /// The open session is over; so is a claim on a run.
    fn close(&mut self);
    /// The claimed run will not take place; its number stays used.
    fn give_up_claim(&mut self);

    /// The session that can be begun next.
    fn next_session(&self) -> Result<Id, JobError>;
    /// The number of the open session's next run.
    fn next_run(&self) -> Result<u64, JobError>;

    /// Whether it can prepare what is asked for.
    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError>;
    /// Whether a session can be begun; nothing is used up.
    fn may_begin(&self, session: Id) -> Result<(), JobError>;
    /// Take run `index` of the open session, once and for all.
    fn claim(&mut self, index: u64) -> Result<(), JobError>;

    /// Have ready what runs use up; gives the bytes of keys that came.
    fn prepare(&mut self, what: &Preparation, others: &mut Others) -> Result<u64, JobError>;
    /// Begin a session: the open one is over. Its weights are shared next.
    fn begin(&mut self, session: Id, others: &mut Others) -> Result<(), JobError>;
    /// Let the owner on `channel`, who has `roles`, send its tensors.
    fn grant(&self, kind: Shared, roles: &[&str], channel: &mut dyn Channel) -> Result<(), JobError>;
    /// Receive its tensors.
    fn receive(
        &self,
        kind: Shared,
        roles: &[&str],
        channel: &mut dyn Channel,
        tensors: &mut Self::Tensors,
    ) -> Result<(), JobError>;
    /// This party owns `encoded` itself: share them with the others, which grant and receive.
    fn share_own(
        &self,
        kind: Shared,
        roles: &[&str],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Self::Tensors,
    ) -> Result<(), JobError>;
    /// Open the session that was begun, once the parties have found that their weights fit together.
    fn open(&mut self, weights: Self::Tensors, others: &mut Others) -> Result<(), JobError>;
    /// The claimed run, once the parties have found that their inputs fit together. After it, this party may show its
    /// shares of the outputs to their receivers.
    fn run(&mut self, inputs: Self::Tensors, others: &mut Others) -> Result<Ran, JobError>;
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
pub(super) trait Outside: Send + Sync {
    /// Share the tensors of a kind that `roles` own with all parties, in order on `channels`.
    fn share(
        &self,
        channels: &mut [TcpChannel],
        plan: &Plan,
        kind: Shared,
        roles: &[&str],
        encoded: &Encoded,
    ) -> Result<(), OwnerError>;
    /// Bytes that a party sends for an output.
    fn result_bytes(&self, ty: &Type) -> usize;
    /// The output, from what all parties sent, in order.
    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError>;
}

/// The side of owners and receivers.
pub(super) fn outside(protocol: Protocol) -> Box<dyn Outside> {
    match protocol {
        Protocol::Fss => Box::new(fss::FssOutside),
        Protocol::Rep3 => Box::new(rep3::Rep3Outside),
    }
}

//! `rep3`: three parties, replicated shares. Nothing is prepared: the parties agree on keys when a session begins,
//! keep them in memory alone, and derive those of each run from its number, which is always the next.

mod owner;
mod reasons;
mod registered;

use owner::Rep3Outside;
pub(crate) use registered::REGISTERED;

use super::{Encoded, Family, Given, Held, Made, Preparer, Ran};
use crate::config::Security;
use crate::events::{Count, Event, Why};
use crate::session::control::{Id, Reply, Talk, say};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::owner::{Piece, Shared, granted};
use crate::session::peers::Others;
use crate::session::work::Work;
use owner::{malformed, send};
use privet_kernels::Device;
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Output;
use privet_plan::{Plan, Program};
use privet_rep3::{
    Digests, Evaluator, Keys, Party, PartyId, Portion, Revealed, RunError, Share, SharedWeights, StateError,
    StateKinds, States, Wiping,
};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;
use zeroize::Zeroizing;

/// The use of a session's keys that the sharing of weights is; runs are numbered from 1.
const WEIGHTS: u64 = 0;

/// The family's own reasons for which a job fails.
#[derive(Debug, Error)]
enum Rep3Error {
    #[error("{0}")]
    Run(#[from] RunError),
    #[error("{0}")]
    States(#[from] StateError),
    #[error("rep3 has no dealer that could be checked: prepare without checks, or not at all")]
    NoDealer,
    #[error(
        "party 0 ordered run {index} of a session of which run {next} is next here: a connection broke while the parties \
         agreed on a run, or party 0 does not follow the protocol; this party's session is over, ask again for a new one"
    )]
    OutOfTurn { index: u64, next: u64 },
    #[error("this session has had all its runs: share the model again")]
    NoMoreRuns,
}

impl From<Rep3Error> for JobError {
    fn from(e: Rep3Error) -> JobError {
        JobError::Family(Box::new(e))
    }
}

impl From<RunError> for JobError {
    fn from(e: RunError) -> JobError {
        Rep3Error::Run(e).into()
    }
}

struct OpenSession {
    id: Id,
    keys: Keys,
    weights: SharedWeights,
    /// The number of the last run that all parties agreed on; [`WEIGHTS`] before the first.
    last: u64,
    /// Runs that ended without a result after their coins may have been known.
    failed: u64,
}

impl OpenSession {
    fn next(&self) -> Result<u64, JobError> {
        Ok(self.last.checked_add(1).ok_or(Rep3Error::NoMoreRuns)?)
    }
}

/// One of the three parties.
pub(in crate::session) struct Rep3 {
    me: PartyId,
    security: Security,
    plan: Arc<Plan>,
    device: Arc<dyn Device>,
    begun: Option<(Id, Keys)>,
    open: Option<OpenSession>,
    claimed: Option<u64>,
    /// What the run before left, until the next one or until this party closes.
    wiping: Wiping,
}

/// Shares of owners' tensors, with what the holders of each component compare.
#[derive(Default)]
pub(in crate::session) struct Portions {
    shares: BTreeMap<String, Share>,
    digests: Digests,
}

impl Portions {
    fn take_in(&mut self, name: &str, ring: Ring, share: Share) {
        self.digests.add(name, ring, &share);
        self.shares.insert(name.to_owned(), share);
    }
}

impl Rep3 {
    pub fn new(me: PartyId, security: Security, plan: Arc<Plan>, device: Arc<dyn Device>) -> Rep3 {
        Rep3 { me, security, plan, device, begun: None, open: None, claimed: None, wiping: Wiping::default() }
    }

    /// The connections to the parties before and after.
    fn neighbours<'a>(
        &self,
        others: &'a mut Others,
    ) -> Result<(&'a mut TcpChannel, &'a mut TcpChannel), JobError> {
        others.pair(self.me.prev().index() as u8, self.me.next().index() as u8)
    }
}

impl Held for States {
    fn replace(&mut self, mut updates: States) {
        self.append(&mut updates);
    }
}

/// The preparation of a family whose runs use up nothing.
pub(in crate::session) struct Nothing;

impl Preparer for Nothing {
    type Made = ();

    fn run(self, work: &mut Work<'_>) -> Result<Made<()>, JobError> {
        work.progress.emit(|job| Event::NothingToPrepare { job });
        Ok(Made { key_bytes: 0, made: () })
    }
}

impl Family for Rep3 {
    type Tensors = Portions;
    type States = States;
    type Preparer = Nothing;

    fn prepared(&self) -> usize {
        0
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|o| o.id)
    }

    fn runs_left(&self) -> Option<usize> {
        None
    }

    fn close(&mut self) {
        self.open = None;
        self.claimed = None;
        self.wiping = Wiping::default();
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        Ok(Id::fresh())
    }

    fn next_run(&self) -> Result<u64, JobError> {
        self.open.as_ref().ok_or(JobError::NotOpen)?.next()
    }

    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        if what.amount.checks == 0 { Ok(()) } else { Err(Rep3Error::NoDealer.into()) }
    }

    fn may_begin(&self, _: Id) -> Result<(), JobError> {
        Ok(())
    }

    /// Every party counts for itself, so party 0 cannot choose a number. It is used once all agreed ([`Family::go_on`]): what is
    /// called off before that leaves all parties at the same count. Parties that lost count need another session.
    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let next = self.next_run()?;
        if index != next {
            self.close();
            return Err(Rep3Error::OutOfTurn { index, next }.into());
        }
        self.claimed = Some(index);
        Ok(())
    }

    /// Two runs under the same keys would mask different values alike, so nothing is done under a number's keys before it counts
    /// as used.
    fn go_on(&mut self) {
        if let (Some(open), Some(index)) = (&mut self.open, self.claimed) {
            open.last = index;
        }
    }

    fn preparer(&mut self, _: &Preparation) -> Result<Nothing, JobError> {
        Ok(Nothing)
    }

    fn preparation_ended(&mut self, _: &Preparation, _: Option<()>) {}

    fn begin(&mut self, session: Id, others: &mut Others) -> Result<(), JobError> {
        self.close();
        let (prev, next) = self.neighbours(others)?;
        self.begun = Some((session, Keys::agree(self.me, prev, next)?));
        Ok(())
    }

    fn grant(&self, _: Shared, _: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        Ok(say(channel, Talk::Reply, &Reply::Share { seeds: BTreeMap::new() })?)
    }

    fn receive(
        &self,
        _: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Portions,
    ) -> Result<(), JobError> {
        for Piece { name, ty, .. } in pieces {
            let (ring, n) = (Ring::new(ty.bits), ty.len());
            let bytes = channel.recv_up_to(&Talk::Tensor.step(), Portion::max_len(ring, n))?;
            let portion = Portion::decode(ring, n, &bytes).map_err(|e| malformed(name, e))?;
            tensors.take_in(name, ring, portion.expand(ring, n));
        }
        Ok(())
    }

    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Portions,
    ) -> Result<(), JobError> {
        let rest = PartyId::ALL.into_iter().filter(|&p| p != self.me);
        for party in rest {
            granted(others.to(party.index() as u8)?)?;
        }
        for piece in pieces {
            let Piece { name, ty, .. } = piece;
            let ring = Ring::new(ty.bits);
            let portions = Portion::of(ring, piece.of(encoded)?);
            for (party, portion) in PartyId::ALL.into_iter().zip(portions) {
                if party == self.me {
                    tensors.take_in(name, ring, portion.expand(ring, ty.len()));
                } else {
                    send(others.to(party.index() as u8)?, ring, &portion)?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, weights: Portions, others: &mut Others) -> Result<(), JobError> {
        let (id, keys) = self.begun.take().ok_or(JobError::NotOpen)?;
        let (prev, next) = self.neighbours(others)?;
        let device = self.device.as_ref();
        let mut cx = Party::new(self.me, self.security, device, keys.derive(WEIGHTS), prev, next);
        cx.enter(0, "session");
        cx.compare("shared weights", weights.digests)?;
        let weights = SharedWeights::new(&mut cx, &self.plan, weights.shares)?;
        self.open = Some(OpenSession { id, keys, weights, last: WEIGHTS, failed: 0 });
        Ok(())
    }

    fn run(&mut self, given: Given<Rep3>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let Given { mut inputs, states, publics, job } = given;
        self.go_on();
        self.wiping = Wiping::default();
        let index = self.claimed.take().ok_or(JobError::NotOpen)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let (prev, next) = self.neighbours(others)?;
        let device = self.device.as_ref();
        let mut cx = Party::new(self.me, self.security, device, open.keys.derive(index), prev, next);
        cx.enter(0, "run");
        cx.compare("shared inputs", inputs.digests)?;
        let shares: HashMap<usize, Share> = Shared::Inputs
            .all(&self.plan)
            .into_iter()
            .filter_map(|p| Some((p.node, inputs.shares.remove(&p.name)?)))
            .collect();

        let start = Instant::now();
        let given = privet_rep3::Given { inputs: shares, states: states.clone(), publics: publics.clone() };
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let ran = evaluator.run(&mut cx, given, &mut job.progress(&self.plan));
        let outcome = match ran {
            Ok(outcome) => outcome,
            Err(e) => {
                if let Some(open) = &mut self.open {
                    open.failed += 1;
                    let (failed, all) = (Count::of(open.failed), Count::of(open.last));
                    job.emit(|job| Event::RunsFailed { job, failed, all });
                }
                if is_a_finding(&e) {
                    job.emit(|job| Event::Deviation { job, reason: e.why() });
                }
                let spent = self.open.as_ref().is_some_and(|open| open.weights.are_spent());
                if is_a_finding(&e) || spent {
                    self.close();
                }
                return Err(e.into());
            }
        };
        let online = start.elapsed();
        self.wiping = outcome.wiping;
        let revealed = |(o, share): (&Output, &Share)| {
            let mut bytes = Vec::new();
            Revealed::of(share).encode(Ring::new(self.plan.nodes[o.value].ty.bits), &mut bytes);
            bytes
        };
        Ok(Ran {
            online,
            nodes: outcome.nodes,
            checks: outcome.checks,
            openings: Vec::new(),
            outputs: self.plan.outputs.iter().zip(&outcome.outputs).map(revealed).collect(),
            updates: outcome.states,
        })
    }

    fn hold(&self, tensors: Portions) -> States {
        tensors.shares
    }

    /// The two holders of each component compare digests, under keys of their own: no session need be open.
    fn compare(
        &self,
        program: &Program,
        what: &[u8],
        states: &States,
        others: &mut Others,
    ) -> Result<(), JobError> {
        let digests = kinds(program)?.digests(what, states).map_err(Rep3Error::from)?;
        let (prev, next) = self.neighbours(others)?;
        let keys = Keys::agree(self.me, prev, next)?;
        let device = self.device.as_ref();
        let mut cx = Party::new(self.me, self.security, device, keys.derive(WEIGHTS), prev, next);
        cx.enter(0, "training");
        Ok(cx.compare("states", digests)?)
    }

    fn save(&self, program: &Program, states: &States) -> Result<Zeroizing<Vec<u8>>, JobError> {
        Ok(Zeroizing::new(kinds(program)?.encode(states).map_err(Rep3Error::from)?))
    }

    fn restore(&self, program: &Program, bytes: &[u8]) -> Result<States, String> {
        let kinds = kinds(program).map_err(|e| e.to_string())?;
        kinds.decode(bytes).map_err(|e| e.to_string())
    }
}

/// How shares of a program's states are written.
fn kinds(program: &Program) -> Result<StateKinds, JobError> {
    Ok(StateKinds::of(program.plans.iter().map(|p| &p.plan)).map_err(Rep3Error::from)?)
}

/// True for an error that an honest party's connection or machine does not cause. People should look at it before the
/// parties go on, so the session does not outlive it.
fn is_a_finding(e: &RunError) -> bool {
    !matches!(
        e,
        RunError::Net(_)
            | RunError::Pack { .. }
            | RunError::Missing(_)
            | RunError::Inconsistent { .. }
            | RunError::Spent
    )
}

#[cfg(test)]
mod tests;

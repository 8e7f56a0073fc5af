//! `fss`: two parties, a dealer, masked values. Keys come from the dealer and rest in the store; a run uses up one
//! record of them.

mod checks;
pub mod deal;
pub mod keys;
mod prepare;
mod reasons;
mod registered;
mod stream;

pub(crate) use registered::REGISTERED;

use super::dealing::fetch::FetchError;
use super::masked::{self, Frames, Masked};
use super::{Encoded, Family, Given, Ran};
use crate::events::{Event, Events, Why};
use crate::session::control::{Amount, Id, KeyStream};
use crate::session::job::JobError;
use crate::session::links::Links;
use crate::session::order::Preparation;
use crate::session::owner::{Piece, Shared};
use crate::session::peers::Others;
use crate::store::format::RecordId;
use crate::store::{ClaimedRecord, Fresh, SessionId, Store, StoreError, hex};
use checks::CheckError;
use keys::SessionKeys;
use prepare::{Dealt, Keep};
use privet_family::NodeStats;
use privet_fss::{Eval, EvalError, Evaluator, MIN_CHECKS, MaskedWeights, PartyId, PartySeed, Secret, States};
use privet_kernels::Device;
use privet_net::Channel;
use privet_plan::ir::Output;
use privet_plan::{Plan, Program};
use privet_prg::{HashKeys, Seed};
use privet_ring::{Ring, pack};
use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use stream::{Stream, StreamError};
use thiserror::Error;
use zeroize::Zeroizing;

/// The family's own reasons for which a job fails.
#[derive(Debug, Error)]
enum FssError {
    #[error("{0}")]
    Eval(#[from] EvalError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("no keys from the dealer ({came} of {all} records came): {cause}")]
    Dealer {
        came: u64,
        all: u64,
        #[source]
        cause: FetchError,
    },
    #[error("no checked keys: {0}")]
    Checked(#[from] CheckError),
    #[error("{0}")]
    Stream(#[from] StreamError),
    #[error("no keys are left for another run: prepare more")]
    NoKeys,
    #[error(
        "a stream of keys cannot be checked, because opening needs all of them at once: prepare with checks, without a stream"
    )]
    CheckedStream,
    #[error(
        "this deployment demands {least} checks of the dealer (`min_checks` in deployment.toml), and a stream of keys cannot be \
         checked: prepare with checks, without a stream"
    )]
    UncheckedStream { least: u64 },
    #[error(
        "this deployment demands {least} checks of the dealer (`min_checks` in deployment.toml), and {asked} were asked for: \
         prepare with {least} checks or more"
    )]
    FewChecks { asked: u64, least: u64 },
    #[error("further keys of an open session cannot be checked: prepare them with checks, for a new session")]
    CheckedSession,
}

impl From<FssError> for JobError {
    fn from(e: FssError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

impl From<StoreError> for JobError {
    fn from(e: StoreError) -> JobError {
        FssError::Store(e).into()
    }
}

/// A session that was begun, whose weights are shared next.
struct Begun {
    keys: SessionKeys,
    /// Checks that it passed.
    checks: u64,
}

struct OpenSession {
    id: Id,
    /// Checks that it passed.
    checks: u64,
    hash: HashKeys,
    weights: MaskedWeights,
}

/// One of the two parties.
pub(in crate::session) struct Fss {
    party: u8,
    links: Arc<Links>,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    device: Arc<dyn Device>,
    store: Arc<Mutex<Store>>,
    begun: Option<Begun>,
    open: Option<OpenSession>,
    claimed: Option<(RecordId, ClaimedRecord)>,
    /// The last one that was asked for, also when it has ended.
    stream: Option<Stream>,
    events: Events,
}

impl Fss {
    /// For one plan, with its keys in `store`.
    pub fn new(
        party: u8,
        links: Arc<Links>,
        plan: Arc<Plan>,
        store: Store,
        device: Arc<dyn Device>,
        events: Events,
    ) -> Fss {
        let plan_hash = plan.hash();
        let (begun, open, claimed, stream) = (None, None, None, None);
        let store = Arc::new(Mutex::new(store));
        Fss { party, links, plan, plan_hash, device, store, begun, open, claimed, stream, events }
    }

    fn session_id(&self, session: Id) -> SessionId {
        SessionId { session: session.0, party: self.party, plan: self.plan_hash }
    }

    /// Checks that the deployment demands of all keys.
    fn least_checks(&self) -> u64 {
        self.links.config.deployment.parameters.get(&MIN_CHECKS)
    }

    /// Sessions that nobody began and whose checks suffice.
    fn fresh_sessions(&self) -> Result<Vec<Fresh>, StoreError> {
        let mut sessions = self.store().fresh_sessions(&self.plan_hash)?;
        sessions.retain(|s| s.checks >= self.least_checks());
        Ok(sessions)
    }

    fn peer(&self) -> u8 {
        1 - self.party
    }

    /// Held for single calls: a preparation uses the same store meanwhile.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seed under which tensors of a kind are masked now.
    fn seed(&self, kind: Shared) -> Result<&Seed, JobError> {
        match kind {
            Shared::Weights => self.begun.as_ref().map(|b| &b.keys.seed).ok_or(JobError::NotOpen),
            // States are not masked: nobody asks.
            Shared::Inputs | Shared::States => {
                self.claimed.as_ref().map(|(_, r)| &r.header.seed).ok_or(FssError::NoKeys.into())
            }
        }
    }

    /// The stream of a session's records.
    fn stream_of(&self, session: Id) -> Option<&Stream> {
        self.stream.as_ref().filter(|s| s.session == session)
    }

    /// Why there are no keys for a run.
    fn no_keys(&self) -> FssError {
        match self.stream.as_ref().and_then(Stream::failure) {
            Some(reason) => StreamError::Ended { reason }.into(),
            None => FssError::NoKeys,
        }
    }
}

impl Family for Fss {
    type Tensors = Masked;
    type States = States;
    type Preparer = Dealt;

    fn prepared(&self) -> usize {
        self.fresh_sessions().map_or(0, |s| s.len())
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|o| o.id)
    }

    fn runs_left(&self) -> Option<usize> {
        let open = self.open.as_ref()?.id;
        // In this order: a record that comes in between is counted twice, and not missed.
        let to_come = self.stream_of(open).map_or(0, |s| s.to_come() as usize);
        Some(to_come + self.store().records(&open.0).map_or(0, |r| r.len()))
    }

    fn key_stream(&self) -> Option<KeyStream> {
        self.stream.as_ref().map(Stream::status)
    }

    /// A session that was begun is never begun again, so its keys are worth nothing.
    fn close(&mut self) {
        self.claimed = None;
        let over =
            self.open.take().map(|o| o.id).or_else(|| self.begun.take().map(|b| Id(b.keys.id.session)));
        let Some(session) = over else { return };
        if self.stream_of(session).is_some() {
            self.stream = None;
        }
        let dropped = self.store().drop_session(&session.0);
        if let Err(e) = dropped {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let mut sessions = self.store().fresh_sessions(&self.plan_hash)?;
        sessions.retain(|s| !s.records.is_empty());
        // Checked keys come before others, whoever had those prepared; of equals the one whose records still come, if there is
        // one: it lasts longest.
        let order = |s: &&Fresh| (Reverse(s.checks), self.stream_of(Id(s.session)).is_none());
        let session = Id(sessions.iter().min_by_key(order).ok_or_else(|| self.no_keys())?.session);
        self.may_begin(session)?;
        Ok(session)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        // Before the store is asked: a record that comes in between is in either.
        let coming = self.stream_of(open.id).and_then(Stream::next);
        let stored = self.store().records(&open.id.0)?.first().copied();
        Ok(stored.or(coming).ok_or_else(|| self.no_keys())?)
    }

    fn session_to_extend(&self, checks: u64) -> Option<Id> {
        // Opening an open session would reveal what it hides, and what was checked stays checked.
        self.open.as_ref().filter(|open| checks == 0 && open.checks == 0).map(|open| open.id)
    }

    /// Each party sees to the deployment's demand by itself, whoever asks for less.
    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        let (asked, least) = (what.amount.checks, self.least_checks());
        match what.amount {
            Amount { stream: true, .. } if asked > 0 => Err(FssError::CheckedStream.into()),
            Amount { stream: true, .. } if least > 0 => Err(FssError::UncheckedStream { least }.into()),
            _ if asked < least => Err(FssError::FewChecks { asked, least }.into()),
            _ if what.session.is_some() && what.session != self.session_to_extend(asked) => {
                Err(FssError::CheckedSession.into())
            }
            _ => Ok(()),
        }
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        self.store().may_begin(&self.session_id(session), self.least_checks())?;
        Ok(())
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open.as_ref().ok_or(JobError::NotOpen)?.id;
        let id = self.session_id(session).record(index);
        let patience = self.links.config.deployment.timeouts.step;
        if let Some(stream) = self.stream_of(session) {
            stream.await_record(index, patience).map_err(|e| match e {
                StreamError::Ended { .. } => JobError::Lacks(Box::new(e)),
                e => FssError::from(e).into(),
            })?;
            for passed in stream.asked_for(index) {
                self.store().drop_record(&session.0, passed)?;
            }
        }
        let claimed = self.store().claim(&id).map_err(|e| match e {
            StoreError::Missing { .. } => JobError::Lacks(Box::new(e)),
            e => e.into(),
        })?;
        self.claimed = Some((id, claimed));
        Ok(())
    }

    /// A stream takes the place of the one before, whose records stay.
    fn preparer(&mut self, what: &Preparation) -> Result<Dealt, JobError> {
        if what.amount.stream {
            self.stream = None;
        }
        Ok(Dealt {
            party: self.party,
            links: self.links.clone(),
            plan: self.plan.clone(),
            device: self.device.clone(),
            store: self.store.clone(),
            what: *what,
        })
    }

    fn preparation_ended(&mut self, _: &Preparation, made: Option<Keep>) {
        if let Some(Keep { stream, forgotten }) = made {
            // Both parties hear that, and both go on with a new session, for which the model is shared again.
            if forgotten.is_some() && forgotten == self.open_session() {
                self.close();
            }
            self.stream = stream.or(self.stream.take());
        }
        // Records that came for a session which ended meanwhile are worth nothing.
        let held = self.open_session().or_else(|| self.begun.as_ref().map(|b| Id(b.keys.id.session)));
        let cleared = self.store().clear_ended(held.map(|id| id.0).as_ref());
        if let Err(e) = cleared {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        let (id, least) = (self.session_id(session), self.least_checks());
        let file = self.store().begin_session(&id, least)?;
        let refused = |source| {
            let path = self.store().session_dir(&session.0).display().to_string();
            StoreError::Format { what: format!("session {}", session.short()), path, source }
        };
        self.begun = Some(Begun { keys: SessionKeys::of_file(&file).map_err(refused)?, checks: file.checks });
        Ok(())
    }

    fn grant(&self, kind: Shared, pieces: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        let seed = if kind == Shared::States { None } else { Some(self.seed(kind)?) };
        masked::grant(pieces, seed, channel)
    }

    fn receive(
        &self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        Ok(tensors.receive(kind, pieces, channel, self.party == 1)?)
    }

    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        masked::share_own(pieces, encoded, self.seed(Shared::Weights)?, false, others, tensors)
    }

    fn open(&mut self, masked: Masked, others: &mut Others) -> Result<(), JobError> {
        let shared = self.begun.as_ref().ok_or(JobError::NotOpen)?.keys.shared_name();
        masked.compare(&shared, others)?;
        let Begun { keys, checks } = self.begun.take().ok_or(JobError::NotOpen)?;
        let seed = PartySeed::new(PartyId::BOTH[self.party as usize & 1], keys.seed);
        let weights = MaskedWeights::new(&self.plan, self.device.as_ref(), seed, masked.tensors())
            .map_err(FssError::Eval)?;
        self.open = Some(OpenSession { id: Id(keys.id.session), checks, hash: keys.hash, weights });
        Ok(())
    }

    fn run(&mut self, given: Given<Fss>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let Given { inputs: masked, states, publics, job } = given;
        let (id, mut record) = self.claimed.take().ok_or(FssError::NoKeys)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        masked.compare(&record.header.set, others)?;
        let inputs = masked.inputs(&Shared::Inputs.all(&self.plan));
        let peer = others.to(self.peer())?;

        let start = Instant::now();
        let party = PartyId::BOTH[self.party as usize & 1];
        let seed = record.header.seed.clone();
        let mut keys = Frames(&mut record);
        let mut cx = Eval::new(party, self.device.as_ref(), &open.hash, id.index, seed, &mut keys, peer);
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let given = privet_fss::Given { inputs, publics: publics.clone(), states };
        let done = evaluator.run(&mut cx, given, &mut job.progress(&self.plan)).map_err(FssError::Eval)?;
        let online = start.elapsed();
        let packed = |(o, share): (&Output, &Secret)| {
            let mut bytes = Vec::new();
            pack(Ring::new(self.plan.nodes[o.value].ty.bits), share, &mut bytes);
            bytes
        };
        Ok(Ran {
            online,
            nodes: done.nodes,
            checks: NodeStats::default(),
            openings: cx.openings().to_vec(),
            outputs: self.plan.outputs.iter().zip(&done.outputs).map(packed).collect(),
            updates: done.updates,
        })
    }

    fn hold(&self, tensors: Masked) -> States {
        tensors.states()
    }

    /// Two parties that trust each other to follow the protocol have nothing to compare: any two shares fit together.
    fn compare(&self, _: &Program, _: &[u8], _: &States, _: &mut Others) -> Result<(), JobError> {
        Ok(())
    }

    fn save(&self, program: &Program, states: &States) -> Result<Zeroizing<Vec<u8>>, JobError> {
        masked::save(program, states)
    }

    fn restore(&self, program: &Program, bytes: &[u8]) -> Result<States, String> {
        masked::restore(program, bytes)
    }
}

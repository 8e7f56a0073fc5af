//! `heot`: party 0 is the server and has the weights in clear, party 1 is the client whose run it is. What a run uses up are two
//! records: material, which the parties make at any time, and masks, which need the session's hints. Both rest in the parties'
//! stores. Hints stay in memory. The server's serve all its sessions with a plan, whoever the client is.

mod hints;
mod owner;
mod prepare;
mod reasons;
mod registered;
mod session;

pub(crate) use registered::REGISTERED;

use super::masked::{self, Frames, Masked, MaskedError};
use super::records::exchange;
use super::{Encoded, Family, Given, Ran};
use crate::events::{Event, Events, Why};
use crate::session::control::Id;
use crate::session::job::JobError;
use crate::session::links::Links;
use crate::session::order::Preparation;
use crate::session::owner::{Piece, Shared, granted};
use crate::session::peers::Others;
use crate::store::{ClaimedRecord, Fresh, SessionId, Store, StoreError};
use crate::sys;
use hints::Pool;
use prepare::{Maker, Masks, TOGETHER, further_masks};
use privet_family::{NodeStats, Secret, States};
use privet_heot::{Cx, RunError, Session, Side};
use privet_net::Channel;
use privet_plan::ir::Output;
use privet_plan::{Plan, Program};
use privet_ring::{Ring, pack};
use session::{Kind, coins, shared_name};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;
use zeroize::Zeroizing;

/// The family's own reasons for which a job fails.
#[derive(Debug, Error)]
enum HeotError {
    #[error("{0}")]
    Run(#[from] RunError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("no records are left for another run: prepare more")]
    NoRecords,
    #[error("records of heot cannot be checked by opening them: prepare without checks")]
    NoChecks,
    #[error("heot prepares records at once, and not as a stream: prepare without a stream")]
    NoStream,
    #[error(
        "the parties hold different hints at the weights: run the same version of privet at both, and prepare anew"
    )]
    OtherHints,
    #[error("the other party listed records that nobody can number: it runs another version or is broken")]
    Numbers,
    #[error("party 0 alone may own weights: it computes with them in clear, and nobody else may know them")]
    NotTheServer,
    #[error("the server has no weights to make hints of: set `weights` in its node.toml")]
    NoWeights,
    #[error("the hints of this session serve no more runs: prepare anew, and the next session has new ones")]
    HintsUsedUp,
}

impl From<HeotError> for JobError {
    fn from(e: HeotError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

/// A session that is open.
struct Open {
    id: Id,
    name: [u8; 16],
    session: Arc<Session>,
}

/// What a run uses up.
struct Claimed {
    material: ClaimedRecord,
    masks: ClaimedRecord,
}

/// One of the two parties.
pub(in crate::session) struct Heot {
    side: Side,
    links: Arc<Links>,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    store: Store,
    /// The server's, which other clients' sessions share.
    hints: Arc<Pool>,
    begun: Option<(Id, [u8; 16])>,
    open: Option<Open>,
    claimed: Option<Claimed>,
    events: Events,
}

impl Heot {
    /// For one plan, with its records in `store`, and at the server with the plan's hints.
    fn new(
        side: Side,
        links: Arc<Links>,
        plan: Arc<Plan>,
        store: Store,
        hints: Arc<Pool>,
        events: Events,
    ) -> Heot {
        let plan_hash = plan.hash();
        let (begun, open, claimed) = (None, None, None);
        Heot { side, links, plan, plan_hash, store, hints, begun, open, claimed, events }
    }

    fn session_id(&self, session: Id) -> SessionId {
        SessionId { session: session.0, party: self.side as u8, plan: self.plan_hash }
    }

    fn peer<'a>(&self, others: &'a mut Others) -> Result<&'a mut dyn Channel, JobError> {
        Ok(others.to(self.side.other() as u8)?)
    }

    /// Sessions that can be begun.
    fn fresh_sessions(&self) -> Result<Vec<Fresh>, StoreError> {
        let mut sessions = self.store.fresh_sessions(&self.plan_hash)?;
        sessions.retain(|s| !s.records.is_empty() && self.may_begin(Id(s.session)).is_ok());
        Ok(sessions)
    }

    /// Runs of a session of which a record of this kind is here.
    fn having(&self, session: Id, kind: Kind) -> Result<Vec<u64>, StoreError> {
        Ok(self.store.records(&session.0)?.into_iter().filter_map(|index| kind.run(index)).collect())
    }

    /// Runs of the open session that can take place: both records are here, and its hints serve them.
    fn ready(&self, open: &Open) -> Result<Vec<u64>, StoreError> {
        let masks = self.having(open.id, Kind::Masks)?;
        let mut runs = self.having(open.id, Kind::Material)?;
        runs.retain(|run| masks.binary_search(run).is_ok());
        runs.truncate(usize::try_from(open.session.runs_left()).unwrap_or(usize::MAX));
        Ok(runs)
    }

    /// Hints pass, and masks for all material that both parties have of the session that begins: those of the first runs with them.
    fn open_with_masks(&self, (id, name): (Id, &[u8; 16]), others: &mut Others) -> Result<Session, JobError> {
        let (session, plan) = (self.session_id(id), &self.plan);
        let channel = self.peer(others)?;
        let own = self.having(id, Kind::Material).map_err(HeotError::from)?;
        let runs = session::common(&own, channel)?;
        let link = session::link(&self.links.config.deployment.parameters, channel)?;
        let (first, further) = runs.split_at(runs.len().min(TOGETHER));
        let shelf = self.store.shelf().map_err(HeotError::from)?;
        let mut masks = Masks::of(name, &shelf, &session, first)?;
        let opened = match self.side {
            Side::Client => {
                let (threads, spool) =
                    (self.links.config.node.thread_count(), hints::spool(self.store.dir()));
                masks.kept(|keeps| Session::join(plan, threads, spool, keeps, channel))
            }
            Side::Server => {
                let hints = self.hints.hints(runs.len().max(1), link)?;
                let opened = masks.kept(|keeps| Session::serve(plan, Arc::clone(&hints), keeps, channel));
                opened.inspect(|_| self.hints.whole(&hints))
            }
        };
        let opened = opened.map_err(HeotError::from)?;
        // no record gets its name before
        let ours = shared_name(&session, name, &opened);
        if exchange(vec![&mut *channel], &ours)? != [ours] {
            return Err(HeotError::OtherHints.into());
        }
        masks.whole(channel)?;
        for runs in further.chunks(TOGETHER) {
            further_masks(plan, (name, &opened), &shelf, &session, runs, channel)?;
        }
        Ok(opened)
    }
}

impl Family for Heot {
    type Tensors = Masked;
    type States = States;
    type Preparer = Maker;

    fn prepared(&self) -> usize {
        self.fresh_sessions().map_or(0, |s| s.len())
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|open| open.id)
    }

    fn runs_left(&self) -> Option<usize> {
        let open = self.open.as_ref()?;
        Some(self.ready(open).map_or(0, |runs| runs.len()))
    }

    /// A session that was begun is never begun again, so its records are worth nothing.
    fn close(&mut self) {
        self.claimed = None;
        let over = self.open.take().map(|open| open.id).or_else(|| self.begun.take().map(|(id, _)| id));
        let Some(session) = over else { return };
        if let Err(e) = self.store.drop_session(&session.0) {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let first = self.fresh_sessions().map_err(HeotError::from)?.into_iter().next();
        Ok(first.map(|s| Id(s.session)).ok_or(HeotError::NoRecords)?)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let runs = self.ready(open).map_err(HeotError::from)?;
        Ok(runs.first().copied().ok_or(HeotError::NoRecords)?)
    }

    /// Hints that serve no more runs than are prepared get no further ones: a new session has new hints.
    fn session_to_extend(&self, checks: u64) -> Option<Id> {
        let open = self.open.as_ref().filter(|_| checks == 0)?;
        let prepared = self.ready(open).map_or(0, |runs| runs.len()) as u64;
        (open.session.runs_left() > prepared).then_some(open.id)
    }

    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        match (what.amount.checks > 0, what.amount.stream) {
            (true, _) => Err(HeotError::NoChecks.into()),
            (false, true) => Err(HeotError::NoStream.into()),
            (false, false) => Ok(()),
        }
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        let file = self.store.may_begin(&self.session_id(session), 0).map_err(HeotError::from)?;
        session::name_of(&file)?;
        Ok(())
    }

    /// Both records are used up, and one of the runs that the hints serve; or nothing is, where one of them is not here or not whole.
    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.session_id(self.open_session().ok_or(JobError::NotOpen)?);
        let ids = [Kind::Material, Kind::Masks].map(|kind| session.record(kind.index(index)));
        let lacks = |e| match e {
            StoreError::Missing { .. } => JobError::Lacks(Box::new(e)),
            e => HeotError::from(e).into(),
        };
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        // counted first: where the records turn out not to be there, the hints serve one run less than they could
        if !open.session.take_run() {
            return Err(HeotError::HintsUsedUp.into());
        }
        let [material, masks] = self.store.claim_all(&ids).map_err(lacks)?;
        self.claimed = Some(Claimed { material, masks });
        Ok(())
    }

    fn preparer(&mut self, what: &Preparation) -> Result<Maker, JobError> {
        Maker::new(self, what)
    }

    fn preparation_ended(&mut self, _: &Preparation, _: Option<()>) {
        // Records that came for a session which ended meanwhile are worth nothing.
        let held = self.open_session().or_else(|| self.begun.as_ref().map(|(id, _)| *id));
        if let Err(e) = self.store.clear_ended(held.map(|id| id.0).as_ref()) {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        let file = self.store.begin_session(&self.session_id(session), 0).map_err(HeotError::from)?;
        self.begun = Some((session, session::name_of(&file)?));
        Ok(())
    }

    fn grant(&self, _: Shared, pieces: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        // nothing is masked: owners split
        masked::grant(pieces, None, channel)
    }

    /// Weights come to the server alone, in clear; of inputs each side gets its share.
    fn receive(
        &self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        match (kind, self.side) {
            (Shared::Weights, Side::Client) => Ok(()),
            (Shared::Weights, Side::Server) => Ok(tensors.receive(kind, pieces, channel, false)?),
            (Shared::Inputs | Shared::States, side) => {
                Ok(tensors.receive(Shared::States, pieces, channel, side == Side::Client)?)
            }
        }
    }

    /// What was made of them once serves all sessions: they are read again where the process is started again.
    fn holds_own_weights(&self) -> bool {
        self.hints.has_weights()
    }

    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        if self.side != Side::Server {
            return Err(HeotError::NotTheServer.into());
        }
        granted(self.peer(others)?)?;
        if self.hints.has_weights() {
            return Ok(());
        }
        for piece in pieces {
            let mut bytes = Zeroizing::new(Vec::new());
            pack(Ring::new(piece.ty.bits), piece.of(encoded)?, &mut bytes);
            tensors.take_in(piece, &bytes)?;
        }
        Ok(())
    }

    fn open(&mut self, weights: Masked, others: &mut Others) -> Result<(), JobError> {
        let (id, name) = *self.begun.as_ref().ok_or(JobError::NotOpen)?;
        if self.side == Side::Server {
            self.hints.give(weights.tensors())?;
            // weights as they were read take four times the room
            sys::give_back_freed_memory();
        }
        let session = self.open_with_masks((id, &name), others)?;
        // and so does what hints and masks were made with
        sys::give_back_freed_memory();
        self.begun = None;
        self.open = Some(Open { id, name, session: Arc::new(session) });
        Ok(())
    }

    fn run(&mut self, given: Given<Heot>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let Given { inputs, states: _, publics, job } = given;
        let Claimed { mut material, mut masks } = self.claimed.take().ok_or(HeotError::NoRecords)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let channel = self.peer(others)?;
        let sets = [material.header.set, masks.header.set];
        if exchange(vec![&mut *channel], sets.as_flattened())? != [sets.as_flattened()] {
            return Err(MaskedError::OtherSet.into());
        }
        let shares = inputs.states();
        let share = |p: Piece| Some((p.node, shares.get(&p.name)?.to_vec()));
        let inputs = Shared::Inputs.all(&self.plan).into_iter().filter_map(share).collect();

        let start = Instant::now();
        let (mut material, mut masks) = (Frames(&mut material), Frames(&mut masks));
        let threads = self.links.config.node.thread_count();
        let mut cx = Cx::new(self.side, channel, &mut material, coins(&sets), 0).with_threads(threads);
        let given = privet_heot::Given { inputs, publics: publics.clone(), masks: &mut masks };
        let progress = &mut job.progress(&self.plan);
        let done = privet_heot::run(&mut cx, &self.plan, &open.session, given, progress);
        let done = done.map_err(HeotError::from)?;
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
            openings: Vec::new(),
            outputs: self.plan.outputs.iter().zip(&done.outputs).map(packed).collect(),
            updates: States::new(),
        })
    }

    fn hold(&self, tensors: Masked) -> States {
        tensors.states()
    }

    /// Plans with states are refused: there are none to compare.
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

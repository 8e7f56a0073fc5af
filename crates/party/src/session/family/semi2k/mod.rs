//! `semi2k`: two parties or more, masked values, of whom all but one may see together what they see. What runs use up are records:
//! the parties prepare them among themselves, or, where the deployment says so, a dealer makes them. They rest in the parties'
//! stores, and a run uses up one.

mod deal;
mod joint;
mod prepare;
mod reasons;
mod registered;
mod session;

pub(crate) use registered::REGISTERED;

use super::dealing::fetch::FetchError;
use super::masked::{self, Frames, Masked};
use super::{Encoded, Family, Given, Ran};
use crate::events::{Event, Events, Why};
use crate::session::access::party_with_the_model;
use crate::session::control::Id;
use crate::session::job::JobError;
use crate::session::links::Links;
use crate::session::order::Preparation;
use crate::session::owner::{Piece, Shared};
use crate::session::peers::Others;
use crate::store::format::FormatError;
use crate::store::{ClaimedRecord, Fresh, SessionId, Store, StoreError};
use prepare::Maker;
use privet_family::{NodeStats, Secret, States};
use privet_kernels::Device;
use privet_net::Channel;
use privet_plan::ir::Output;
use privet_plan::{Plan, Program};
use privet_prg::Seed;
use privet_ring::{Ring, pack};
use privet_semi2k::{Eval, EvalError, Evaluator, MaskedWeights, PartySeed, PrepareError, Public};
use session::{By, SessionKeys};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;
use zeroize::Zeroizing;

/// The family's own reasons for which a job fails.
#[derive(Debug, Error)]
enum Semi2kError {
    #[error("{0}")]
    Eval(#[from] EvalError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("a record cannot be read: {0}; prepare more")]
    Record(#[from] FormatError),
    #[error("the parties could not prepare ({came} of {all} records came): {cause}")]
    Prepare {
        came: u64,
        all: u64,
        #[source]
        cause: PrepareError,
    },
    #[error("no records from the dealer ({came} of {all} records came): {cause}")]
    Dealer {
        came: u64,
        all: u64,
        #[source]
        cause: Box<FetchError>,
    },
    #[error("no records are left for another run: prepare more")]
    NoRecords,
    #[error(
        "{}: remove the store's files or the setting, and prepare anew",
        match .0 {
            By::Parties => "a dealer made this session's records and knows their masks, and this deployment has none (`helper`)",
            By::Dealer => "the parties prepared this session among themselves, and this deployment has a dealer (`helper`)",
        }
    )]
    Made(By),
    #[error(
        "this session's records are for weights that {}, and that is another now: prepare anew",
        match .0 {
            Some(owner) => format!("party {owner} owns"),
            None => "no party owns".to_owned(),
        }
    )]
    OtherOwner(Option<u8>),
    #[error("records of semi2k cannot be checked by opening them: prepare without checks")]
    NoChecks,
    #[error("semi2k prepares records at once, and not as a stream: prepare without a stream")]
    NoStream,
}

impl From<Semi2kError> for JobError {
    fn from(e: Semi2kError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

/// A session that is open.
struct Open {
    id: Id,
    keys: SessionKeys,
    weights: MaskedWeights,
}

/// One of the parties.
pub(in crate::session) struct Semi2k {
    me: u8,
    parties: usize,
    by: By,
    /// The party that owns all weights, if there is one, and the parties prepare among themselves: it masks them alone.
    owner: Option<u8>,
    links: Arc<Links>,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    device: Arc<dyn Device>,
    store: Store,
    begun: Option<(Id, SessionKeys)>,
    open: Option<Open>,
    claimed: Option<ClaimedRecord>,
    events: Events,
}

impl Semi2k {
    /// For one plan, with its records in `store`.
    fn new(
        me: u8,
        links: Arc<Links>,
        plan: Arc<Plan>,
        store: Store,
        device: Arc<dyn Device>,
        events: Events,
    ) -> Semi2k {
        let deployment = &links.config.deployment;
        let (parties, by, plan_hash) =
            (deployment.parties.len(), By::of(deployment.dealer.is_some()), plan.hash());
        let owner = match by {
            // a plan without weights has no owner, and several are none that masks all
            By::Parties => party_with_the_model(&deployment.roles, &plan).ok().flatten(),
            By::Dealer => None,
        };
        let (begun, open, claimed) = (None, None, None);
        Semi2k { me, parties, by, owner, links, plan, plan_hash, device, store, begun, open, claimed, events }
    }

    fn session_id(&self, session: Id) -> SessionId {
        SessionId { session: session.0, party: self.me, plan: self.plan_hash }
    }

    /// Sessions that can be begun: prepared in the deployment's way, and by nobody begun.
    fn fresh_sessions(&self) -> Result<Vec<Fresh>, StoreError> {
        let mut sessions = self.store.fresh_sessions(&self.plan_hash)?;
        sessions.retain(|s| !s.records.is_empty() && self.may_begin(Id(s.session)).is_ok());
        Ok(sessions)
    }

    /// The seed under which this party masks tensors of a kind now; it masks no states, nor weights that another party owns.
    fn seed(&self, kind: Shared) -> Result<Option<&Seed>, JobError> {
        match kind {
            Shared::Weights => {
                let own = &self.begun.as_ref().ok_or(JobError::NotOpen)?.1.own;
                Ok(Some(own).filter(|_| self.owner.is_none_or(|owner| owner == self.me)))
            }
            Shared::Inputs => Ok(Some(&self.claimed.as_ref().ok_or(Semi2kError::NoRecords)?.header.seed)),
            Shared::States => Ok(None),
        }
    }
}

impl Family for Semi2k {
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
        Some(self.store.records(&open.id.0).map_or(0, |r| r.len()))
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
        let first = self.fresh_sessions().map_err(Semi2kError::from)?.into_iter().next();
        Ok(first.map(|s| Id(s.session)).ok_or(Semi2kError::NoRecords)?)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let records = self.store.records(&open.id.0).map_err(Semi2kError::from)?;
        Ok(records.first().copied().ok_or(Semi2kError::NoRecords)?)
    }

    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        match (what.amount.checks > 0, what.amount.stream) {
            (true, _) => Err(Semi2kError::NoChecks.into()),
            (false, true) => Err(Semi2kError::NoStream.into()),
            (false, false) => Ok(()),
        }
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        let file = self.store.may_begin(&self.session_id(session), 0).map_err(Semi2kError::from)?;
        SessionKeys::of_file(&file, self.by, self.owner)?;
        Ok(())
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open_session().ok_or(JobError::NotOpen)?;
        let id = self.session_id(session).record(index);
        self.claimed = Some(self.store.claim(&id).map_err(|e| match e {
            StoreError::Missing { .. } => JobError::Lacks(Box::new(e)),
            e => Semi2kError::from(e).into(),
        })?);
        Ok(())
    }

    fn preparer(&mut self, what: &Preparation) -> Result<Maker, JobError> {
        Maker::new(self, what)
    }

    fn preparation_ended(&mut self, _: &Preparation, made: Option<prepare::Ready>) {
        if let Some(made) = made {
            // All parties hear that, and all go on with a new session, for which the model is shared again.
            if made.forgotten.is_some() && made.forgotten == self.open_session() {
                self.close();
            }
        }
        // Records that came for a session which ended meanwhile are worth nothing.
        let held = self.open_session().or_else(|| self.begun.as_ref().map(|(id, _)| *id));
        if let Err(e) = self.store.clear_ended(held.map(|id| id.0).as_ref()) {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        // Looked at before it is used up, so that a session of the other way stays as it is.
        self.may_begin(session)?;
        let file = self.store.begin_session(&self.session_id(session), 0).map_err(Semi2kError::from)?;
        self.begun = Some((session, SessionKeys::of_file(&file, self.by, self.owner)?));
        Ok(())
    }

    fn grant(&self, kind: Shared, pieces: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        masked::grant(pieces, self.seed(kind)?, channel)
    }

    fn receive(
        &self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        Ok(tensors.receive(kind, pieces, channel, usize::from(self.me) + 1 == self.parties)?)
    }

    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        let (_, keys) = self.begun.as_ref().ok_or(JobError::NotOpen)?;
        masked::share_own(pieces, encoded, &keys.own, self.owner.is_some(), others, tensors)
    }

    fn open(&mut self, masked: Masked, others: &mut Others) -> Result<(), JobError> {
        let (id, keys) = self.begun.as_ref().ok_or(JobError::NotOpen)?;
        masked.compare(&keys.shared_name(&self.session_id(*id)), others)?;
        let (id, keys) = self.begun.take().ok_or(JobError::NotOpen)?;
        let seed = keys.seed(self.me);
        let weights = MaskedWeights::new(&self.plan, self.device.as_ref(), seed, masked.tensors())
            .map_err(Semi2kError::Eval)?;
        self.open = Some(Open { id, keys, weights });
        Ok(())
    }

    fn run(&mut self, given: Given<Semi2k>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let Given { inputs: masked, states, publics, job } = given;
        let mut record = self.claimed.take().ok_or(Semi2kError::NoRecords)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        masked.compare(&record.header.set, others)?;
        let inputs = masked.inputs(&Shared::Inputs.all(&self.plan));

        let start = Instant::now();
        let seed = PartySeed::new(usize::from(self.me), record.header.seed.clone());
        let public = Public::new(&open.keys.public, record.header.id.index);
        let mut frames = Frames(&mut record);
        let peers = others.all().map(|(_, channel)| channel as &mut dyn Channel).collect();
        let mut cx = Eval::new(self.device.as_ref(), public, seed, &mut frames, peers);
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let given = privet_semi2k::Given { inputs, publics: publics.clone(), states };
        let done = evaluator.run(&mut cx, given, &mut job.progress(&self.plan)).map_err(Semi2kError::Eval)?;
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

    /// Parties that trust each other to follow the protocol have nothing to compare: any shares fit together.
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

//! `fss`: two parties, a dealer, masked values. Keys come from the dealer and rest in the store; a run uses up one
//! record of them.

mod checks;
pub mod deal;
pub mod dealer;
mod fetch;
mod known;
pub mod messages;
mod owner;
mod stream;

pub(super) use owner::FssOutside;

use super::{Encoded, Family, Given, Held, Ran};
use crate::config::{Node, Place};
use crate::session::control::{Amount, Id, KeyStream, Reply, Talk, say};
use crate::session::job::JobError;
use crate::session::links::{Links, Purpose};
use crate::session::order::Preparation;
use crate::session::owner::{OwnerError, Piece, Shared, states as states_of};
use crate::session::party::Log;
use crate::session::peers::Others;
use crate::store::format::RecordId;
use crate::store::{ClaimedRecord, SessionKeys, SessionName, Space, Store, StoreError, hex};
use crate::sys;
use checks::{CheckError, Checker};
use fetch::{FetchError, fetch};
use messages::DealRequest;
use owner::{granted_seeds, mask_each, mask_seeds};
use privet_family::NodeStats;
use privet_fss::{Eval, EvalError, Evaluator, MaskedWeights, PartyId, States, expand_state};
use privet_kernels::Device;
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Output;
use privet_plan::{Plan, Program};
use privet_prg::{Seed, TreeHash};
use privet_ring::{Ring, pack, unpack};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
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
    #[error("no keys from the dealer: {0}")]
    Dealer(FetchError),
    #[error("no checked keys: {0}")]
    Checked(#[from] CheckError),
    #[error("{0}")]
    Stream(#[from] StreamError),
    #[error(
        "this party has no share of state `{0}`: begin the training again, or resume it from a checkpoint"
    )]
    NoState(String),
    #[error("no keys are left for another run: prepare more")]
    NoKeys,
    #[error(
        "a stream of keys cannot be checked, because opening needs all of them at once: prepare with checks, without a stream"
    )]
    CheckedStream,
    #[error("the two parties received different tensors from an owner: its connection or program is broken")]
    Disagree,
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

struct Open {
    id: Id,
    hash: TreeHash,
    weights: MaskedWeights,
}

/// One of the two parties.
pub(in crate::session) struct Fss {
    party: u8,
    links: Arc<Links>,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    device: Arc<dyn Device>,
    store: Store,
    begun: Option<SessionKeys>,
    open: Option<Open>,
    claimed: Option<(RecordId, ClaimedRecord)>,
    /// The last one that was asked for, also when it has ended.
    stream: Option<Stream>,
    log: Log,
}

/// What owners have sent: masked tensors, which both parties are to hold alike, or shares of states.
#[derive(Default)]
pub(in crate::session) struct Masked {
    tensors: BTreeMap<String, Vec<u64>>,
    states: States,
    digest: blake3::Hasher,
}

impl Masked {
    fn take_in(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), OwnerError> {
        self.digest.update(piece.name.as_bytes()).update(bytes);
        self.tensors.insert(piece.name.clone(), elements(piece, bytes)?);
        Ok(())
    }

    /// Both parties must hold the same; it is public to both, so its digest is.
    fn compare(&self, peer: &mut dyn Channel) -> Result<(), JobError> {
        let ours = self.digest.finalize();
        let theirs = peer.exchange(&Talk::Digest.step(), ours.as_bytes().to_vec(), 32)?;
        if theirs == ours.as_bytes() { Ok(()) } else { Err(FssError::Disagree.into()) }
    }
}

/// The packed elements of a tensor.
fn elements(piece: &Piece, bytes: &[u8]) -> Result<Vec<u64>, OwnerError> {
    unpack(Ring::new(piece.ty.bits), bytes, piece.ty.len())
        .map_err(|e| OwnerError::Form { name: piece.name.clone(), cause: e.to_string() })
}

impl Held for States {
    fn replace(&mut self, updates: States) {
        States::replace(self, updates);
    }
}

impl Fss {
    /// The room that a node gives to the keys of all plans.
    pub fn space(node: &Node) -> Arc<Space> {
        let machine = || sys::total_memory_bytes().map_or(1 << 30, |bytes| bytes / 8);
        let (disk, memory) =
            (node.disk_budget.map(|b| b.0), node.memory_budget.map_or_else(machine, |b| b.0));
        Arc::new(Space::new(&node.store, disk, memory))
    }

    /// For one plan, with its keys in `store`.
    pub fn new(
        party: u8,
        links: Arc<Links>,
        plan: Arc<Plan>,
        store: Store,
        device: Arc<dyn Device>,
        log: Log,
    ) -> Fss {
        let plan_hash = plan.hash();
        let (begun, open, claimed, stream) = (None, None, None, None);
        Fss { party, links, plan, plan_hash, device, store, begun, open, claimed, stream, log }
    }

    fn peer(&self) -> u8 {
        1 - self.party
    }

    /// The seed under which tensors of a kind are masked now.
    fn seed(&self, kind: Shared) -> Result<&Seed, JobError> {
        match kind {
            Shared::Weights => self.begun.as_ref().map(|k| &k.seed).ok_or(JobError::NotOpen),
            // States are not masked: nobody asks.
            Shared::Inputs | Shared::States => {
                self.claimed.as_ref().map(|(_, r)| &r.header.seed).ok_or(FssError::NoKeys.into())
            }
        }
    }

    fn dial_dealer(&self) -> Result<TcpChannel, FetchError> {
        Ok(self.links.dial(&Place::Dealer, Purpose::Keys)?)
    }

    /// Have the dealer deal what `get` receives from it.
    fn deal<T>(
        &mut self,
        request: &DealRequest,
        get: impl Fn(&mut Fss, TcpChannel, &DealRequest) -> Result<T, FetchError>,
    ) -> Result<T, JobError> {
        let ask = |fss: &mut Fss, request: &DealRequest| {
            let dealer = fss.dial_dealer()?;
            get(fss, dealer, request)
        };
        match ask(self, request) {
            // A dealer that was restarted knows the open session no more. Both parties hear that, and both
            // go on with a new session, for which the model is shared again.
            Err(e @ FetchError::Forgotten) if request.session.is_some() => {
                (self.log)(&format!("the open session is over ({e}); asking for a new one"));
                self.close();
                let anew = DealRequest { deal: request.deal.again(), session: None, ..request.clone() };
                Ok(ask(self, &anew).map_err(FssError::Dealer)?)
            }
            fetched => Ok(fetched.map_err(FssError::Dealer)?),
        }
    }

    fn fetch(&mut self, request: &DealRequest) -> Result<u64, JobError> {
        self.deal(request, |fss, mut dealer, request| {
            Ok(fetch(&mut dealer, &fss.store.shelf()?, fss.party, &fss.plan_hash, request)?.1)
        })
    }

    /// Have keys come while runs use them up; gives the bytes of the first record, once it is there.
    fn begin_stream(&mut self, request: &DealRequest) -> Result<u64, JobError> {
        // An earlier one is over. Its records stay.
        self.stream = None;
        let ahead = self.links.config.node.ahead;
        let stream = self.deal(request, |fss, mut dealer, request| {
            let shelf = fss.store.shelf()?;
            say(&mut dealer, Talk::Deal, request)?;
            let deal = fetch::begin(&mut dealer, &shelf, fss.party, &fss.plan_hash, request)?;
            Ok(Stream::begin(dealer, shelf, deal, ahead))
        })?;
        let bytes = stream.await_first().map_err(FssError::Stream)?;
        self.stream = Some(stream);
        Ok(bytes)
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

    /// The parties talk while they check: any error ends their connection, and so tells the other.
    fn fetch_checked(&mut self, request: &DealRequest, peer: &mut dyn Channel) -> Result<u64, FssError> {
        let mut dealer = self.dial_dealer().map_err(CheckError::from)?;
        let checker = Checker { party: self.party, plan: &self.plan, device: &self.device };
        let (_, bytes) = checker.fetch(&mut dealer, peer, &mut self.store, request)?;
        (self.log)(&format!("opened {} sessions of the dealer: their keys are right", request.checks));
        Ok(bytes)
    }
}

impl Family for Fss {
    type Tensors = Masked;
    type States = States;

    fn prepared(&self) -> usize {
        self.store.fresh_sessions(&self.plan_hash).map_or(0, |s| s.len())
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|o| o.id)
    }

    fn runs_left(&self) -> Option<usize> {
        let open = self.open.as_ref()?.id;
        let stored = self.store.records(&open.0).map_or(0, |r| r.len());
        Some(stored + self.stream_of(open).map_or(0, |s| s.to_come() as usize))
    }

    fn key_stream(&self) -> Option<KeyStream> {
        self.stream.as_ref().map(Stream::status)
    }

    /// A session that was begun is never begun again, so its keys are worth nothing.
    fn close(&mut self) {
        self.claimed = None;
        let over = self.open.take().map(|o| o.id).or_else(|| self.begun.take().map(|k| Id(k.session)));
        let Some(session) = over else { return };
        if self.stream_of(session).is_some() {
            self.stream = None;
        }
        if let Err(e) = self.store.drop_session(&session.0) {
            (self.log)(&format!("the keys of an ended session could not be removed: {e}"));
        }
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let mut sessions = self.store.fresh_sessions(&self.plan_hash)?;
        sessions.retain(|(_, records)| !records.is_empty());
        // The one whose records still come, if there is one: it lasts longest.
        let streamed = |(session, _): &&(SessionName, _)| self.stream_of(Id(*session)).is_some();
        let session = sessions.iter().find(streamed).or(sessions.first());
        Ok(session.map(|(session, _)| Id(*session)).ok_or_else(|| self.no_keys())?)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let stored = self.store.records(&open.id.0)?.first().copied();
        let coming = || self.stream_of(open.id).and_then(Stream::next);
        Ok(stored.or_else(coming).ok_or_else(|| self.no_keys())?)
    }

    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        if what.amount.stream && what.amount.checks > 0 {
            Err(FssError::CheckedStream.into())
        } else {
            Ok(())
        }
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        Ok(self.store.may_begin(&session.0, self.party, &self.plan_hash)?)
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open.as_ref().ok_or(JobError::NotOpen)?.id;
        let id = RecordId { session: session.0, index, party: self.party, plan: self.plan_hash };
        let patience = self.links.config.deployment.timeouts.step;
        if let Some(stream) = self.stream_of(session) {
            stream.await_record(index, patience).map_err(|e| match e {
                StreamError::Ended { .. } => JobError::Lacks(Box::new(e)),
                e => FssError::from(e).into(),
            })?;
            for passed in stream.asked_for(index) {
                self.store.drop_record(&session.0, passed)?;
            }
        }
        let claimed = self.store.claim(&id).map_err(|e| match e {
            StoreError::Missing { .. } => JobError::Lacks(Box::new(e)),
            e => e.into(),
        })?;
        self.claimed = Some((id, claimed));
        Ok(())
    }

    fn prepare(&mut self, what: &Preparation, others: &mut Others) -> Result<u64, JobError> {
        let start = Instant::now();
        let Preparation { deal, session, amount: Amount { runs, checks, stream } } = *what;
        let request = DealRequest { deal, plan: hex(&self.plan_hash), session, runs, checks };
        let bytes = match checks {
            0 if stream => self.begin_stream(&request)?,
            0 => self.fetch(&request)?,
            _ => self.fetch_checked(&request, others.to(self.peer())?)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let what = if stream { "the first keys of a stream" } else { "keys" };
        (self.log)(&format!("stored {what} for {runs} runs, {bytes} bytes, in {seconds:.2} s"));
        Ok(bytes)
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        self.begun = Some(self.store.begin_session(&session.0, self.party, &self.plan_hash)?);
        Ok(())
    }

    /// The seeds of this party's shares of the masks of the owner's tensors; none for states, which have no mask.
    fn grant(&self, kind: Shared, pieces: &[Piece], channel: &mut dyn Channel) -> Result<(), JobError> {
        let seeds = match kind {
            Shared::States => BTreeMap::new(),
            Shared::Inputs | Shared::Weights => mask_seeds(pieces, self.seed(kind)?),
        };
        let seeds = seeds.into_iter().map(|(name, seed)| (name, hex(seed.expose()))).collect();
        Ok(say(channel, Talk::Reply, &Reply::Share { seeds })?)
    }

    fn receive(
        &self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        for piece in pieces {
            let (ring, n) = (Ring::new(piece.ty.bits), piece.ty.len());
            let seeded = kind == Shared::States && self.party == 0;
            let expected = if seeded { Seed::BYTES } else { ring.packed_bytes(n) };
            let bytes = Zeroizing::new(channel.recv(&Talk::Tensor.step(), expected)?);
            match (kind, bytes.first_chunk()) {
                (Shared::Inputs | Shared::Weights, _) => tensors.take_in(piece, &bytes)?,
                (Shared::States, Some(seed)) if seeded => {
                    tensors.states.insert(&*piece.name, expand_state(&Seed::from_bytes(*seed), ring, n));
                }
                (Shared::States, _) => tensors.states.insert(&*piece.name, elements(piece, &bytes)?),
            }
        }
        Ok(())
    }

    /// Only the other party must grant its masks and get the sums. This party then knows the whole masks of its own
    /// tensors, which tells it nothing new.
    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        let peer = others.to(self.peer())?;
        let own = mask_seeds(pieces, self.seed(Shared::Weights)?);
        let seeds = [granted_seeds(peer)?, own];
        mask_each(pieces, encoded, seeds, &mut |piece, bytes| {
            tensors.take_in(piece, &bytes)?;
            Ok(peer.send(&Talk::Tensor.step(), bytes)?)
        })?;
        Ok(())
    }

    fn open(&mut self, masked: Masked, others: &mut Others) -> Result<(), JobError> {
        masked.compare(others.to(self.peer())?)?;
        let keys = self.begun.take().ok_or(JobError::NotOpen)?;
        let weights = MaskedWeights::new(&self.plan, self.device.as_ref(), keys.seed, masked.tensors)
            .map_err(FssError::Eval)?;
        self.open = Some(Open { id: Id(keys.session), hash: TreeHash::new(keys.hash), weights });
        Ok(())
    }

    fn run(&mut self, given: Given<Fss>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let Given { inputs: mut masked, states, publics } = given;
        let (id, mut record) = self.claimed.take().ok_or(FssError::NoKeys)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let peer = others.to(self.peer())?;
        masked.compare(peer)?;
        let inputs: HashMap<usize, Vec<u64>> = Shared::Inputs
            .all(&self.plan)
            .into_iter()
            .filter_map(|p| Some((p.node, masked.tensors.remove(&p.name)?)))
            .collect();

        let start = Instant::now();
        let party = PartyId::BOTH[self.party as usize & 1];
        let seed = record.header.seed.clone();
        let mut cx = Eval::new(party, self.device.as_ref(), &open.hash, id.index, seed, &mut record, peer);
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let given = privet_fss::Given { inputs, publics: publics.clone(), states };
        let done = evaluator.run(&mut cx, given, &mut |_| {}).map_err(FssError::Eval)?;
        let online_s = start.elapsed().as_secs_f64();
        let packed = |(o, share): (&Output, &Vec<u64>)| {
            let mut bytes = Vec::new();
            pack(Ring::new(self.plan.nodes[o.value].ty.bits), share, &mut bytes);
            bytes
        };
        Ok(Ran {
            online_s,
            nodes: done.nodes,
            checks: NodeStats::default(),
            openings: cx.openings().to_vec(),
            outputs: self.plan.outputs.iter().zip(&done.outputs).map(packed).collect(),
            updates: done.updates,
        })
    }

    fn hold(&self, tensors: Masked) -> States {
        tensors.states
    }

    /// Two parties that trust each other to follow the protocol have nothing to compare: any two shares fit together.
    fn compare(&self, _: &Program, _: &[u8], _: &States, _: &mut Others) -> Result<(), JobError> {
        Ok(())
    }

    fn save(&self, program: &Program, states: &States) -> Result<Zeroizing<Vec<u8>>, JobError> {
        let mut bytes = Zeroizing::new(Vec::new());
        for Piece { name, ty, .. } in states_of(program) {
            let share = states.get(&name).filter(|s| s.len() == ty.len());
            pack(Ring::new(ty.bits), share.ok_or(FssError::NoState(name))?, &mut bytes);
        }
        Ok(bytes)
    }

    fn restore(&self, program: &Program, mut bytes: &[u8]) -> Result<States, String> {
        let mut states = States::new();
        for piece in states_of(program) {
            let size = Ring::new(piece.ty.bits).packed_bytes(piece.ty.len());
            let (share, rest) = bytes.split_at_checked(size).ok_or("its shares are cut off")?;
            states.insert(&*piece.name, elements(&piece, share).map_err(|e| e.to_string())?);
            bytes = rest;
        }
        if bytes.is_empty() { Ok(states) } else { Err("something follows its shares".into()) }
    }
}

//! What a party does with its keys: prepare, begin a session, run.

use super::checks::{CheckError, Checker};
use super::control::{DealRequest, Id, Order, PartyRun, Reply, Request, Talk, TalkError, say};
use super::fetch::{FetchError, fetch};
use super::links::{Links, Purpose};
use super::owner::{OwnerError, Shared, encode, grant_masks, receive_masked, share_own};
use super::party::{Caller, Log};
use crate::config::Place;
use crate::store::format::RecordId;
use crate::store::{ClaimedRecord, SessionKeys, Store, StoreError};
use crate::sys;
use crate::tensors::{self, TensorsError};
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_fss::{Eval, EvalError, Evaluator, MaskedWeights, PartyId};
use privet_kernels::Device;
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::{EncodeError, Plan};
use privet_prg::TreeHash;
use privet_ring::{Ring, pack};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum JobError {
    /// A connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// The protocol.
    #[error("{0}")]
    Eval(#[from] EvalError),
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The dealer.
    #[error("no keys from the dealer: {0}")]
    Dealer(FetchError),
    /// Keys with checks.
    #[error("no checked keys: {0}")]
    Checked(#[from] CheckError),
    /// A client told the parties different things.
    #[error("the client asked the two parties for different things: its program is broken")]
    OtherRequest,
    /// Sharing tensors.
    #[error("{0}")]
    Owner(#[from] OwnerError),
    /// The other party declined.
    #[error("the other party declined: {0}")]
    Peer(String),
    /// The other party is away.
    #[error("party {party} is not connected (waited {seconds} s): start it, and see `privet doctor`")]
    NoPeer {
        /// Which.
        party: u8,
        /// How long was waited.
        seconds: u64,
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
    /// The other party was restarted.
    #[error(
        "the other party was restarted and the open session is lost: the model owner must share the model \
         again, with keys of a new session (prepare more if there are none)"
    )]
    SessionLost,
    /// No keys left.
    #[error("no keys are left for another run: prepare more")]
    NoKeys,
    /// Owner told the parties different things.
    #[error("the two parties received different tensors from an owner: its connection or program is broken")]
    Disagree,
}

impl JobError {
    /// What the other party may be told: causes name steps and files, never values.
    pub fn public(&self) -> String {
        self.to_string()
    }
}

impl From<NetError> for JobError {
    fn from(e: NetError) -> Self {
        JobError::Talk(e.into())
    }
}

struct Open {
    id: Id,
    hash: TreeHash,
    weights: MaskedWeights,
}

/// Keys, session and device of one party.
pub(super) struct Engine {
    party: u8,
    links: Arc<Links>,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    device: Arc<dyn Device>,
    store: Store,
    open: Option<Open>,
    claimed: Option<(RecordId, ClaimedRecord)>,
    log: Log,
}

impl Engine {
    pub fn new(
        party: u8,
        links: Arc<Links>,
        plan: Arc<Plan>,
        device: Arc<dyn Device>,
        store: Store,
        log: Log,
    ) -> Engine {
        log(&format!("device: {}", device.name()));
        let plan_hash = plan.hash();
        Engine { party, links, plan, plan_hash, device, store, open: None, claimed: None, log }
    }

    /// Sessions that nobody began, and runs left in the open one.
    pub fn holdings(&self) -> (usize, Option<usize>) {
        let sessions = self.store.fresh_sessions(&self.plan_hash).map_or(0, |s| s.len());
        let left = |o: &Open| self.store.records(&o.id.0).map_or(0, |r| r.len());
        (sessions, self.open.as_ref().map(left))
    }

    /// The places that must take part in a run: owners of inputs and receivers of outputs.
    pub fn places_of_a_run(&self) -> Vec<Place> {
        let owners = Shared::Inputs.all(&self.plan).into_iter().map(|(.., owner)| owner);
        let roles = owners.chain(self.plan.outputs.iter().map(|o| o.to.as_str()));
        let mut places: Vec<Place> =
            roles.filter_map(|r| self.links.config.deployment.roles.get(r).cloned()).collect();
        places.sort();
        places.dedup();
        places
    }

    /// The roles of a place.
    fn roles(&self, place: &Place) -> Vec<&'static str> {
        let all = self.links.config.deployment.roles.all();
        all.into_iter().filter(|(_, p)| *p == place).map(|(role, _)| role).collect()
    }

    /// Party 0 turns requests into an order.
    pub fn plan_order(&self, callers: &[Caller]) -> Result<Order, JobError> {
        let Some(first) = callers.first() else { return Err(JobError::NotOpen) };
        match first.request {
            Request::Prepare { id, runs, checks } => {
                // An open session cannot be checked any more: opening it would reveal what it hides.
                let session = self.open.as_ref().map(|o| o.id).filter(|_| checks == 0);
                Ok(Order::Prepare { id, deal: Id::fresh(), session, runs, checks })
            }
            Request::ShareWeights { id } => Ok(Order::Begin { id, session: self.next_session()? }),
            Request::Run { .. } | Request::Status { .. } => {
                if let Some(c) = callers.iter().find(|c| !self.places_of_a_run().contains(&c.place)) {
                    return Err(JobError::NoRole(c.place.clone()));
                }
                let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
                let index = *self.store.records(&open.id.0)?.first().ok_or(JobError::NoKeys)?;
                let ids = callers.iter().map(|c| c.request.id()).collect();
                Ok(Order::Run { ids, session: open.id, index })
            }
        }
    }

    /// A party checks an order, and takes what it needs for it. Nothing has been sent that depends on keys.
    pub fn consent(&mut self, order: &Order, callers: &[Caller]) -> Result<(), JobError> {
        match order {
            Order::Prepare { runs, checks, .. } => match callers.first().map(|c| &c.request) {
                Some(Request::Prepare { runs: r, checks: c, .. }) if (r, c) == (runs, checks) => Ok(()),
                _ => Err(JobError::OtherRequest),
            },
            Order::Begin { .. } => self.model_owner(callers),
            Order::Confirm { session } => match self.open_session() == Some(*session) {
                true => Ok(()),
                false => Err(JobError::NotOpen),
            },
            Order::BeginFrom { owner, .. } => match self.model_owner_party() {
                Some(party) if party == *owner => Ok(()),
                _ => Err(JobError::NoRole(Place::Party(*owner))),
            },
            Order::Run { session, index, .. } => {
                if self.open_session() != Some(*session) {
                    return Err(JobError::NotOpen);
                }
                self.claim(*index)
            }
        }
    }

    /// The session that is open.
    pub fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|o| o.id)
    }

    /// Party 0 was declined: whatever was wrong with the record there, it is used up here as well, so that
    /// the next run takes the next one. A session that the other party has not open is over.
    pub fn declined(&mut self, order: &Order) {
        match order {
            Order::Run { index, .. } => {
                let _ = self.claim(*index);
                self.claimed = None;
            }
            Order::Confirm { .. } => {
                self.open = None;
                self.claimed = None;
            }
            _ => {}
        }
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open.as_ref().ok_or(JobError::NotOpen)?.id.0;
        let id = RecordId { session, index, party: self.party, plan: self.plan_hash };
        if self.claimed.as_ref().is_some_and(|(c, _)| *c == id) {
            return Ok(());
        }
        self.claimed = Some((id, self.store.claim(&id)?));
        Ok(())
    }

    fn model_owner(&self, callers: &[Caller]) -> Result<(), JobError> {
        let owners = Shared::Weights.all(&self.plan);
        let Some(caller) = callers.first() else { return Err(JobError::NotOpen) };
        let roles = self.roles(&caller.place);
        match owners.iter().all(|(.., owner)| roles.contains(owner)) {
            true => Ok(()),
            false => Err(JobError::NoRole(caller.place.clone())),
        }
    }

    /// Both parties do what was ordered.
    pub fn execute(
        &mut self,
        order: &Order,
        callers: &mut [Caller],
        peer: &mut TcpChannel,
    ) -> Result<(), JobError> {
        match order {
            Order::Prepare { deal, session, runs, checks, .. } => {
                let request = DealRequest { deal: *deal, session: *session, runs: *runs, checks: *checks };
                self.prepare(&request, callers, peer)
            }
            Order::Begin { session, .. } => {
                self.model_owner(callers)?;
                self.begin(*session, callers, peer)
            }
            Order::BeginFrom { owner, session } => self.begin_from(*owner, *session, peer),
            Order::Confirm { .. } => Ok(()),
            Order::Run { index, .. } => self.run(*index, callers, peer),
        }
    }

    /// The party that owns the model, if a party does.
    fn model_owner_party(&self) -> Option<u8> {
        match self.links.config.deployment.roles.model_owner {
            Place::Party(party) => Some(party),
            _ => None,
        }
    }

    /// What has to happen before a run can: begin the next session, where a party owns the model and the
    /// open session (if any) has no keys left.
    pub fn order_before_run(&self) -> Result<Option<Order>, JobError> {
        let Some(owner) = self.model_owner_party() else { return Ok(None) };
        if let Some(open) = &self.open
            && !self.store.records(&open.id.0)?.is_empty()
        {
            return Ok(None);
        }
        Ok(Some(Order::BeginFrom { owner, session: self.next_session()? }))
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let sessions = self.store.fresh_sessions(&self.plan_hash)?;
        let session = sessions.into_iter().find(|(_, records)| !records.is_empty());
        session.map(|(session, _)| Id(session)).ok_or(JobError::NoKeys)
    }

    fn begin_from(&mut self, owner: u8, session: Id, peer: &mut TcpChannel) -> Result<(), JobError> {
        self.open = None;
        let keys = self.store.begin_session(&session.0, self.party, &self.plan_hash)?;
        let roles = self.roles(&Place::Party(owner));
        let mut digest = blake3::Hasher::new();
        let masked = if owner == self.party {
            let path = self.links.config.node.weights.as_deref().ok_or(JobError::NoWeights)?;
            let weights = encode(&self.plan, Shared::Weights, &roles, &tensors::load(path)?)?;
            share_own(peer, &self.plan, Shared::Weights, &roles, &weights, &keys.seed, &mut digest)?
        } else {
            grant_masks(peer, &self.plan, Shared::Weights, &roles, &keys.seed)?;
            receive_masked(peer, &self.plan, Shared::Weights, &roles, &mut digest)?
        };
        compare_digests(peer, &digest)?;
        self.opened(session, keys, masked)
    }

    fn opened(
        &mut self,
        id: Id,
        keys: SessionKeys,
        masked: BTreeMap<String, Vec<u64>>,
    ) -> Result<(), JobError> {
        let weights = MaskedWeights::new(&self.plan, self.device.as_ref(), keys.seed, masked)?;
        self.open = Some(Open { id, hash: TreeHash::new(keys.hash), weights });
        (self.log)("the model is shared; the session is open");
        Ok(())
    }

    fn prepare(
        &mut self,
        request: &DealRequest,
        callers: &mut [Caller],
        peer: &mut TcpChannel,
    ) -> Result<(), JobError> {
        let start = Instant::now();
        let DealRequest { runs, checks, .. } = *request;
        let key_bytes = if checks > 0 {
            // The parties talk while they check: any error ends their connection, and so tells the other.
            let mut dealer = self.dial_dealer().map_err(CheckError::from)?;
            let checker = Checker { party: self.party, plan: &self.plan, device: &self.device };
            let (_, bytes) = checker.fetch(&mut dealer, peer, &mut self.store, request)?;
            (self.log)(&format!("opened {checks} sessions of the dealer: their keys are right"));
            bytes
        } else {
            let fetched = self.dial_dealer().and_then(|mut dealer| {
                fetch(&mut dealer, &self.store.shelf()?, self.party, &self.plan_hash, request)
            });
            match fetched {
                // A dealer that was restarted knows the open session no more. Both parties hear that, and both
                // go on with a new session, for which the model is shared again.
                Err(e @ FetchError::Forgotten) if request.session.is_some() => {
                    (self.log)(&format!("the open session is over ({e}); asking for a new one"));
                    self.open = None;
                    let again = DealRequest { deal: request.deal.again(), session: None, ..request.clone() };
                    return self.prepare(&again, callers, peer);
                }
                fetched => fetched.map_err(JobError::Dealer)?.1,
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        (self.log)(&format!("stored keys for {runs} runs, {key_bytes} bytes, in {seconds:.2} s"));
        let prepared = Reply::Prepared { seconds, key_bytes };
        callers.iter_mut().try_for_each(|c| Ok(say(&mut c.channel, Talk::Reply, &prepared)?))
    }

    fn dial_dealer(&self) -> Result<TcpChannel, FetchError> {
        Ok(self.links.dial(&Place::Dealer, Purpose::Keys)?)
    }

    fn begin(&mut self, session: Id, callers: &mut [Caller], peer: &mut TcpChannel) -> Result<(), JobError> {
        self.open = None;
        let keys: SessionKeys = self.store.begin_session(&session.0, self.party, &self.plan_hash)?;
        let Some(owner) = callers.first_mut() else { return Err(JobError::NotOpen) };
        let masked = self.receive(Shared::Weights, &keys.seed, std::slice::from_mut(owner), peer)?;
        self.opened(session, keys, masked)?;
        Ok(say(&mut owner.channel, Talk::Reply, &Reply::Done { account: None })?)
    }

    /// Let the owners among the callers share tensors, and make sure that both parties got the same.
    fn receive(
        &self,
        kind: Shared,
        seed: &privet_prg::Seed,
        callers: &mut [Caller],
        peer: &mut TcpChannel,
    ) -> Result<BTreeMap<String, Vec<u64>>, JobError> {
        // In the order of places, the same at both parties.
        callers.sort_by(|a, b| a.place.cmp(&b.place));
        for c in callers.iter_mut() {
            let roles = self.roles(&c.place);
            grant_masks(&mut c.channel, &self.plan, kind, &roles, seed)?;
        }
        let (mut tensors, mut digest) = (BTreeMap::new(), blake3::Hasher::new());
        for c in callers.iter_mut() {
            let roles = self.roles(&c.place);
            tensors.extend(receive_masked(&mut c.channel, &self.plan, kind, &roles, &mut digest)?);
        }
        compare_digests(peer, &digest)?;
        Ok(tensors)
    }

    fn run(&mut self, index: u64, callers: &mut [Caller], peer: &mut TcpChannel) -> Result<(), JobError> {
        self.claim(index)?;
        let Some((_, mut record)) = self.claimed.take() else { return Err(JobError::NoKeys) };
        let seed = record.header.seed.clone();
        let mut masked = self.receive(Shared::Inputs, &seed, callers, peer)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let inputs: HashMap<usize, Vec<u64>> = Shared::Inputs
            .all(&self.plan)
            .into_iter()
            .filter_map(|(v, name, _)| Some((v, masked.remove(name)?)))
            .collect();

        let start = Instant::now();
        let party = PartyId::BOTH[self.party as usize & 1];
        let mut cx = Eval::new(party, self.device.as_ref(), &open.hash, seed, &mut record, peer);
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let (shares, nodes) = evaluator.run(&mut cx, inputs, &mut |_| {})?;
        let online_s = start.elapsed().as_secs_f64();

        let mut openings = cx.openings().to_vec();
        openings.extend(self.plan.outputs.iter().map(|o| {
            let ty = &self.plan.nodes[o.value].ty;
            Opening {
                step: Talk::Result as u32,
                what: format!("output {}", o.name),
                bits: ty.len() as u64 * ty.bits as u64,
                kind: OpeningKind::Revealed { to: o.to.clone() },
            }
        }));
        let peak_rss_bytes = sys::peak_rss_bytes().unwrap_or(0);
        let account = PartyRun {
            protocol: self.links.config.deployment.protocol,
            security: self.links.config.deployment.security,
            online_s,
            nodes,
            checks: NodeStats::default(),
            openings,
            peak_rss_bytes,
            encrypted: self.links.encrypted(),
        };
        for c in callers.iter_mut() {
            say(&mut c.channel, Talk::Reply, &Reply::Done { account: Some(Box::new(account.clone())) })?;
            let roles = self.roles(&c.place);
            for (o, share) in self.plan.outputs.iter().zip(&shares) {
                if roles.contains(&o.to.as_str()) {
                    let mut bytes = Vec::new();
                    pack(Ring::new(self.plan.nodes[o.value].ty.bits), share, &mut bytes);
                    c.channel.send(&Talk::Result.step(), bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// Both parties must hold the same masked tensors; they are public to both, so their digest is.
fn compare_digests(peer: &mut TcpChannel, digest: &blake3::Hasher) -> Result<(), JobError> {
    let ours = digest.finalize();
    let theirs = peer.exchange(&Talk::Digest.step(), ours.as_bytes().to_vec(), 32)?;
    if theirs == ours.as_bytes() { Ok(()) } else { Err(JobError::Disagree) }
}

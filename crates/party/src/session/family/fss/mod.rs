//! `fss`: two parties, a dealer, masked values. Keys come from the dealer and rest in the store; a run uses up one
//! record of them.

mod checks;
pub mod deal;
pub mod dealer;
mod fetch;
pub mod messages;
mod owner;

pub(super) use owner::FssOutside;

use super::{Encoded, Family, Preparation, Ran};
use crate::config::Place;
use crate::session::control::{Id, Reply, Talk, say};
use crate::session::job::JobError;
use crate::session::links::{Links, Purpose};
use crate::session::owner::{OwnerError, Shared};
use crate::session::party::Log;
use crate::session::peers::Others;
use crate::store::format::RecordId;
use crate::store::{ClaimedRecord, SessionKeys, Store, StoreError, hex};
use checks::{CheckError, Checker};
use fetch::{FetchError, fetch};
use messages::DealRequest;
use owner::{granted_seeds, mask_each, mask_seeds};
use privet_family::NodeStats;
use privet_fss::{Eval, EvalError, Evaluator, MaskedWeights, PartyId};
use privet_kernels::Device;
use privet_net::{Channel, TcpChannel};
use privet_plan::Plan;
use privet_plan::ir::Type;
use privet_prg::{Seed, TreeHash};
use privet_ring::{Ring, pack, unpack};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

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
    #[error("no keys are left for another run: prepare more")]
    NoKeys,
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
    log: Log,
}

/// Masked tensors, which both parties are to hold alike.
#[derive(Default)]
pub(in crate::session) struct Masked {
    tensors: BTreeMap<String, Vec<u64>>,
    digest: blake3::Hasher,
}

impl Masked {
    fn take_in(&mut self, name: &str, ty: &Type, bytes: &[u8]) -> Result<(), OwnerError> {
        self.digest.update(name.as_bytes()).update(bytes);
        let tensor = unpack(Ring::new(ty.bits), bytes, ty.len())
            .map_err(|e| OwnerError::Form { name: name.to_owned(), cause: e.to_string() })?;
        self.tensors.insert(name.to_owned(), tensor);
        Ok(())
    }

    /// Both parties must hold the same; it is public to both, so its digest is.
    fn compare(&self, peer: &mut dyn Channel) -> Result<(), JobError> {
        let ours = self.digest.finalize();
        let theirs = peer.exchange(&Talk::Digest.step(), ours.as_bytes().to_vec(), 32)?;
        if theirs == ours.as_bytes() { Ok(()) } else { Err(FssError::Disagree.into()) }
    }
}

impl Fss {
    pub fn new(
        party: u8,
        links: Arc<Links>,
        plan: Arc<Plan>,
        device: Arc<dyn Device>,
        log: Log,
    ) -> Result<Fss, StoreError> {
        let node = &links.config.node;
        let store = Store::open(&node.store)?.with_budget(node.disk_budget.map(|b| b.0));
        let plan_hash = plan.hash();
        let (begun, open, claimed) = (None, None, None);
        Ok(Fss { party, links, plan, plan_hash, device, store, begun, open, claimed, log })
    }

    fn peer(&self) -> u8 {
        1 - self.party
    }

    /// The seed under which tensors of a kind are masked now.
    fn seed(&self, kind: Shared) -> Result<&Seed, JobError> {
        match kind {
            Shared::Weights => self.begun.as_ref().map(|k| &k.seed).ok_or(JobError::NotOpen),
            Shared::Inputs => {
                self.claimed.as_ref().map(|(_, r)| &r.header.seed).ok_or(FssError::NoKeys.into())
            }
        }
    }

    fn dial_dealer(&self) -> Result<TcpChannel, FetchError> {
        Ok(self.links.dial(&Place::Dealer, Purpose::Keys)?)
    }

    fn fetch(&mut self, request: &DealRequest) -> Result<u64, JobError> {
        let fetched = self.dial_dealer().and_then(|mut dealer| {
            fetch(&mut dealer, &self.store.shelf()?, self.party, &self.plan_hash, request)
        });
        match fetched {
            // A dealer that was restarted knows the open session no more. Both parties hear that, and both
            // go on with a new session, for which the model is shared again.
            Err(e @ FetchError::Forgotten) if request.session.is_some() => {
                (self.log)(&format!("the open session is over ({e}); asking for a new one"));
                self.close();
                self.fetch(&DealRequest { deal: request.deal.again(), session: None, ..request.clone() })
            }
            fetched => Ok(fetched.map_err(FssError::Dealer)?.1),
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

    fn prepared(&self) -> usize {
        self.store.fresh_sessions(&self.plan_hash).map_or(0, |s| s.len())
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|o| o.id)
    }

    fn runs_left(&self) -> Option<usize> {
        self.open.as_ref().map(|o| self.store.records(&o.id.0).map_or(0, |r| r.len()))
    }

    fn close(&mut self) {
        self.open = None;
        self.claimed = None;
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let sessions = self.store.fresh_sessions(&self.plan_hash)?;
        let session = sessions.into_iter().find(|(_, records)| !records.is_empty());
        Ok(session.map(|(session, _)| Id(session)).ok_or(FssError::NoKeys)?)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        Ok(*self.store.records(&open.id.0)?.first().ok_or(FssError::NoKeys)?)
    }

    fn may_prepare(&self, _: &Preparation) -> Result<(), JobError> {
        Ok(())
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        Ok(self.store.may_begin(&session.0, self.party, &self.plan_hash)?)
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open.as_ref().ok_or(JobError::NotOpen)?.id.0;
        let id = RecordId { session, index, party: self.party, plan: self.plan_hash };
        self.claimed = Some((id, self.store.claim(&id)?));
        Ok(())
    }

    fn prepare(&mut self, what: &Preparation, others: &mut Others) -> Result<u64, JobError> {
        let start = Instant::now();
        let Preparation { deal, session, runs, checks } = *what;
        let request = DealRequest { deal, session, runs, checks };
        let bytes = match checks {
            0 => self.fetch(&request)?,
            _ => self.fetch_checked(&request, others.to(self.peer())?)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        (self.log)(&format!("stored keys for {runs} runs, {bytes} bytes, in {seconds:.2} s"));
        Ok(bytes)
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        self.begun = Some(self.store.begin_session(&session.0, self.party, &self.plan_hash)?);
        Ok(())
    }

    /// The seeds of this party's shares of the masks of the owner's tensors.
    fn grant(&self, kind: Shared, roles: &[&str], channel: &mut dyn Channel) -> Result<(), JobError> {
        let seeds = mask_seeds(&self.plan, kind, roles, self.seed(kind)?);
        let seeds = seeds.into_iter().map(|(name, seed)| (name, hex(seed.expose()))).collect();
        Ok(say(channel, Talk::Reply, &Reply::Share { seeds })?)
    }

    fn receive(
        &self,
        kind: Shared,
        roles: &[&str],
        channel: &mut dyn Channel,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        for (v, name) in kind.owned(&self.plan, roles) {
            let ty = &self.plan.nodes[v].ty;
            let bytes = channel.recv(&Talk::Tensor.step(), Ring::new(ty.bits).packed_bytes(ty.len()))?;
            tensors.take_in(name, ty, &bytes)?;
        }
        Ok(())
    }

    /// Only the other party must grant its masks and get the sums. This party then knows the whole masks of its own
    /// tensors, which tells it nothing new.
    fn share_own(
        &self,
        kind: Shared,
        roles: &[&str],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Masked,
    ) -> Result<(), JobError> {
        let peer = others.to(self.peer())?;
        let own = mask_seeds(&self.plan, kind, roles, self.seed(kind)?);
        let seeds = [granted_seeds(peer)?, own];
        mask_each(&self.plan, kind, roles, encoded, seeds, &mut |name, ty, bytes| {
            tensors.take_in(name, ty, &bytes)?;
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

    fn run(&mut self, mut masked: Masked, others: &mut Others) -> Result<Ran, JobError> {
        let (_, mut record) = self.claimed.take().ok_or(FssError::NoKeys)?;
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let peer = others.to(self.peer())?;
        masked.compare(peer)?;
        let inputs: HashMap<usize, Vec<u64>> = Shared::Inputs
            .all(&self.plan)
            .into_iter()
            .filter_map(|(v, name, _)| Some((v, masked.tensors.remove(name)?)))
            .collect();

        let start = Instant::now();
        let party = PartyId::BOTH[self.party as usize & 1];
        let seed = record.header.seed.clone();
        let mut cx = Eval::new(party, self.device.as_ref(), &open.hash, seed, &mut record, peer);
        let evaluator = Evaluator::new(&self.plan, &open.weights);
        let (shares, nodes) = evaluator.run(&mut cx, inputs, &mut |_| {}).map_err(FssError::Eval)?;
        let online_s = start.elapsed().as_secs_f64();
        let packed = |(o, share): (&privet_plan::ir::Output, &Vec<u64>)| {
            let mut bytes = Vec::new();
            pack(Ring::new(self.plan.nodes[o.value].ty.bits), share, &mut bytes);
            bytes
        };
        Ok(Ran {
            online_s,
            nodes,
            checks: NodeStats::default(),
            openings: cx.openings().to_vec(),
            outputs: self.plan.outputs.iter().zip(&shares).map(packed).collect(),
        })
    }
}

//! `clear`: a family without secrecy, for tests alone. It proves that whoever adds a family touches nothing but the registry
//! and `Cargo.toml`: any number of parties from two to five, additive shares, and records that the parties prepare among
//! themselves. **Every party learns every value.** It is compiled with the feature `clear` of `privet-party`, and never into
//! a release.

mod facts;
mod prepare;
mod protocol;
mod registered;

pub(crate) use registered::REGISTERED;

use super::{Encoded, Family, Given, Held, Outside, Ran, ResultError};
use crate::config::Place;
use crate::events::{Event, Events, Name, Reason, Why, reason};
use crate::session::control::{Id, Reply, Talk, say};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::owner::{OwnerError, Piece, Shared, granted, states as states_of};
use crate::session::peers::Others;
use crate::store::format::{FormatError, RecordId};
use crate::store::{ClaimedRecord, SessionId, Store, StoreError};
use prepare::Maker;
use privet_family::NodeStats;
use privet_net::{Channel, TcpChannel};
use privet_plan::ir::Type;
use privet_plan::{Plan, Program};
use privet_prg::Seed;
use privet_ring::{Ring, pack, unpack};
use protocol::{ProtocolError, Shares, Step};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;
use zeroize::Zeroizing;

/// The family's own reasons for which a job fails.
#[derive(Debug, Error)]
enum ClearError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("a record cannot be read: {0}; prepare more")]
    Record(#[from] FormatError),
    #[error("no records are left for another run: prepare more")]
    NoRecords,
    #[error("clear has no dealer that could be checked, and no stream: prepare without either")]
    Plainly,
    #[error("the parties hold records that were not made together: prepare anew")]
    OtherSet,
    #[error("this party has no share of `{0}`: its owner must share it again")]
    NoShare(String),
}

impl Why for ClearError {
    fn why(&self) -> Reason {
        match self {
            ClearError::Store(e) => e.why(),
            ClearError::Protocol(_) => reason!("clear.protocol", "another party sent what nobody can read"),
            ClearError::Record(_) => reason!("clear.record", "a record cannot be read: prepare more"),
            ClearError::NoRecords => {
                reason!("clear.no_records", "no records are left for another run: prepare more")
            }
            ClearError::Plainly => reason!("clear.plainly", "clear has neither a dealer nor a stream"),
            ClearError::OtherSet => {
                reason!("clear.other_set", "the parties hold records that were not made together")
            }
            ClearError::NoShare(name) => {
                reason!("clear.no_share", "this party has no share of `{name}`", name = Name::of(name))
            }
        }
    }
}

impl From<ClearError> for JobError {
    fn from(e: ClearError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

/// A party's shares of states, by name.
#[derive(Clone, Default)]
pub(in crate::session) struct States(Shares);

impl Held for States {
    fn replace(&mut self, mut updates: States) {
        self.0.append(&mut updates.0);
    }
}

struct Open {
    id: Id,
    weights: Shares,
    /// The number of the next record that is made for it.
    next: u64,
}

/// One of the parties, for one plan.
pub(in crate::session) struct Clear {
    me: u8,
    parties: usize,
    plan: Arc<Plan>,
    plan_hash: [u8; 32],
    store: Store,
    begun: Option<Id>,
    open: Option<Open>,
    claimed: Option<ClaimedRecord>,
    events: Events,
}

impl Clear {
    fn new(me: u8, parties: usize, plan: Arc<Plan>, store: Store, events: Events) -> Clear {
        let plan_hash = plan.hash();
        Clear { me, parties, plan, plan_hash, store, begun: None, open: None, claimed: None, events }
    }

    fn session(&self, session: Id) -> SessionId {
        SessionId { session: session.0, party: self.me, plan: self.plan_hash }
    }
}

/// Send the same to all other parties, and receive as much from each, in the order of their numbers.
fn exchange(others: &mut Others, payload: Vec<u8>, len: usize) -> Result<Vec<Vec<u8>>, JobError> {
    let parties = others.parties();
    let each = |party| Ok(others.to(party)?.exchange(&Talk::Digest.step(), payload.clone(), len)?);
    parties.into_iter().map(each).collect()
}

impl Family for Clear {
    type Tensors = Shares;
    type States = States;
    type Preparer = Maker;

    fn prepared(&self) -> usize {
        self.store.fresh_sessions(&self.plan_hash).map_or(0, |s| s.len())
    }

    fn open_session(&self) -> Option<Id> {
        self.open.as_ref().map(|open| open.id)
    }

    fn runs_left(&self) -> Option<usize> {
        let open = self.open.as_ref()?;
        Some(self.store.records(&open.id.0).map_or(0, |r| r.len()))
    }

    fn close(&mut self) {
        self.claimed = None;
        let Some(over) = self.open.take().map(|open| open.id).or(self.begun.take()) else { return };
        if let Err(e) = self.store.drop_session(&over.0) {
            self.events.emit(Event::KeysLeftBehind { reason: e.why() });
        }
    }

    fn give_up_claim(&mut self) {
        self.claimed = None;
    }

    fn next_session(&self) -> Result<Id, JobError> {
        let sessions = self.store.fresh_sessions(&self.plan_hash).map_err(ClearError::from)?;
        let first = sessions.into_iter().find(|s| !s.records.is_empty());
        Ok(first.map(|s| Id(s.session)).ok_or(ClearError::NoRecords)?)
    }

    fn next_run(&self) -> Result<u64, JobError> {
        let open = self.open.as_ref().ok_or(JobError::NotOpen)?;
        let records = self.store.records(&open.id.0).map_err(ClearError::from)?;
        Ok(records.first().copied().ok_or(ClearError::NoRecords)?)
    }

    fn may_prepare(&self, what: &Preparation) -> Result<(), JobError> {
        match what.amount.checks > 0 || what.amount.stream {
            true => Err(ClearError::Plainly.into()),
            false => Ok(()),
        }
    }

    fn may_begin(&self, session: Id) -> Result<(), JobError> {
        self.store.may_begin(&self.session(session), 0).map_err(ClearError::from)?;
        Ok(())
    }

    fn claim(&mut self, index: u64) -> Result<(), JobError> {
        let session = self.open_session().ok_or(JobError::NotOpen)?;
        let id: RecordId = self.session(session).record(index);
        self.claimed = Some(self.store.claim(&id).map_err(|e| match e {
            StoreError::Missing { .. } => JobError::Lacks(Box::new(e)),
            e => ClearError::from(e).into(),
        })?);
        Ok(())
    }

    fn preparer(&mut self, what: &Preparation) -> Result<Maker, JobError> {
        Maker::new(self, what)
    }

    fn preparation_ended(&mut self, _: &Preparation, made: Option<(Id, u64)>) {
        if let (Some((session, next)), Some(open)) = (made, &mut self.open)
            && open.id == session
        {
            open.next = next;
        }
    }

    fn begin(&mut self, session: Id, _: &mut Others) -> Result<(), JobError> {
        self.close();
        self.store.begin_session(&self.session(session), 0).map_err(ClearError::from)?;
        self.begun = Some(session);
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
        tensors: &mut Shares,
    ) -> Result<(), JobError> {
        for Piece { name, ty, .. } in pieces {
            let (ring, n) = (Ring::new(ty.bits), ty.len());
            let bytes = channel.recv(&Talk::Tensor.step(), ring.packed_bytes(n))?;
            let form = |cause| OwnerError::Form { name: name.clone(), cause };
            tensors.insert(name.clone(), unpack(ring, &bytes, n).map_err(|e| form(e.to_string()))?);
        }
        Ok(())
    }

    fn share_own(
        &self,
        pieces: &[Piece],
        encoded: &Encoded,
        others: &mut Others,
        tensors: &mut Shares,
    ) -> Result<(), JobError> {
        for party in others.parties() {
            granted(others.to(party)?)?;
        }
        for piece in pieces {
            let ring = Ring::new(piece.ty.bits);
            let shares = protocol::split(ring, piece.of(encoded)?, self.parties, &Seed::random());
            for (party, share) in (0..).zip(shares) {
                if party == self.me {
                    tensors.insert(piece.name.clone(), share);
                } else {
                    others.to(party)?.send(&Talk::Tensor.step(), packed(ring, &share))?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, weights: Shares, _: &mut Others) -> Result<(), JobError> {
        let id = self.begun.take().ok_or(JobError::NotOpen)?;
        let records = self.store.records(&id.0).map_err(ClearError::from)?;
        self.open = Some(Open { id, weights, next: records.last().map_or(0, |last| last + 1) });
        Ok(())
    }

    fn run(&mut self, given: Given<Clear>, others: &mut Others) -> Result<Ran<States>, JobError> {
        let mut record = self.claimed.take().ok_or(ClearError::NoRecords)?;
        let weights = &self.open.as_ref().ok_or(JobError::NotOpen)?.weights;
        let start = Instant::now();
        let set = record.header.set;
        if exchange(others, set.to_vec(), set.len())?.iter().any(|theirs| theirs[..] != set) {
            return Err(ClearError::OtherSet.into());
        }
        let seeds = record.take(16 * self.parties).map_err(ClearError::from)?;
        let mut common = [0; 16];
        common.copy_from_slice(&blake3::hash(seeds).as_bytes()[..16]);
        let mut held = weights.clone();
        held.extend(given.states.0.clone());
        let step = Step {
            plan: &self.plan,
            me: usize::from(self.me),
            parties: self.parties,
            common: &Seed::from_bytes(common),
            inputs: &given.inputs,
            weights: &held,
            publics: given.publics,
        };
        let payload = step.shares().map_err(ClearError::NoShare)?;
        let len = payload.len();
        let theirs = exchange(others, payload, len)?;
        let (outputs, updates) = step.finish(&theirs).map_err(ClearError::from)?;
        let mut nodes = vec![NodeStats::default(); self.plan.nodes.len()];
        if let Some(first) = nodes.first_mut() {
            first.seconds = start.elapsed().as_secs_f64();
            (first.rounds, first.key_bytes) = (2, 16 * self.parties as u64);
            first.sent_bytes = ((len + set.len()) * (self.parties - 1)) as u64;
        }
        let rings = self.plan.outputs.iter().map(|o| Ring::new(self.plan.nodes[o.value].ty.bits));
        Ok(Ran {
            online: start.elapsed(),
            nodes,
            checks: NodeStats::default(),
            openings: Vec::new(),
            outputs: rings.zip(&outputs).map(|(ring, share)| packed(ring, share)).collect(),
            updates: States(updates),
        })
    }

    fn hold(&self, tensors: Shares) -> States {
        States(tensors)
    }

    fn compare(&self, _: &Program, _: &[u8], _: &States, _: &mut Others) -> Result<(), JobError> {
        Ok(())
    }

    fn save(&self, program: &Program, states: &States) -> Result<Zeroizing<Vec<u8>>, JobError> {
        let mut bytes = Zeroizing::new(Vec::new());
        for Piece { name, ty, .. } in states_of(program) {
            let share = states.0.get(&name).filter(|s| s.len() == ty.len());
            pack(Ring::new(ty.bits), share.ok_or(ClearError::NoShare(name))?, &mut bytes);
        }
        Ok(bytes)
    }

    fn restore(&self, program: &Program, mut bytes: &[u8]) -> Result<States, String> {
        let mut states = States::default();
        for Piece { name, ty, .. } in states_of(program) {
            let ring = Ring::new(ty.bits);
            let (share, rest) =
                bytes.split_at_checked(ring.packed_bytes(ty.len())).ok_or("its shares are cut off")?;
            states.0.insert(name, unpack(ring, share, ty.len()).map_err(|e| e.to_string())?);
            bytes = rest;
        }
        if bytes.is_empty() { Ok(states) } else { Err("something follows its shares".into()) }
    }
}

fn packed(ring: Ring, share: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(ring, share, &mut bytes);
    bytes
}

/// Owners add up to their tensors, receivers add the parts of a result up.
struct ClearOutside;

impl Outside for ClearOutside {
    fn share(
        &self,
        _: &Place,
        channels: &mut [TcpChannel],
        _: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), OwnerError> {
        channels.iter_mut().try_for_each(|c| granted(c).map(drop))?;
        for piece in pieces {
            let ring = Ring::new(piece.ty.bits);
            let shares = protocol::split(ring, piece.of(encoded)?, channels.len(), &Seed::random());
            for (channel, share) in channels.iter_mut().zip(&shares) {
                channel.send(&Talk::Tensor.step(), packed(ring, share))?;
            }
        }
        Ok(())
    }

    fn result_bytes(&self, ty: &Type) -> usize {
        Ring::new(ty.bits).packed_bytes(ty.len())
    }

    fn combine(&self, name: &str, ty: &Type, sent: &[Vec<u8>]) -> Result<Vec<u64>, ResultError> {
        let ring = Ring::new(ty.bits);
        let share = |bytes: &Vec<u8>| unpack(ring, bytes, ty.len());
        let shares = sent.iter().map(share).collect::<Result<Vec<_>, _>>();
        let shares = shares.map_err(|e| ResultError { name: name.to_owned(), cause: e.to_string() })?;
        Ok(protocol::sum(ring, ty.len(), &shares))
    }
}

#[cfg(test)]
mod tests;

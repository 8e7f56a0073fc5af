//! Dealer checks by cut and choose (AriaNN, section 2.2), over whole sessions: `docs/dealer-checks.md`.

pub mod coin;
mod compare;
pub mod open;

pub use compare::compare;

use super::deal::DealerSession;
use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::session::family::dealing::fetch::{FetchError, receive};
use crate::session::family::dealing::messages::{DealRequest, OpenReply, OpenRequest, Verdict};
use crate::session::work::{Attended, Progress};
use crate::store::{Shelf, Store, StoreError, unhex};
use privet_kernels::Device;
use privet_net::{Channel, NetError};
use privet_plan::Plan;
use privet_prg::Seed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

pub use privet_fss::MAX_CHECKS;

/// Why checked keys were not accepted. After any of these all sessions of the deal are burnt.
#[derive(Debug, Error)]
pub enum CheckError {
    /// Getting the keys.
    #[error("{0}")]
    Fetch(#[from] FetchError),
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// The dealer cheats, or is broken.
    #[error("the dealer's keys are wrong (session {session}, {at}): do not use this dealer")]
    Wrong {
        /// Start of the session's name, hexadecimal.
        session: String,
        /// The part that differs: record and frame.
        at: String,
    },
    /// The parties were given different sessions, or other seeds for them.
    #[error(
        "the dealer's sessions or their openings are not the same at both parties: do not use this dealer"
    )]
    Disagree,
    /// The dealer does not open its sessions.
    #[error("the dealer did not open the sessions to be checked ({0}): do not use these keys or this dealer")]
    NotOpened(String),
    /// The other party's coin.
    #[error("the other party did not reveal what it committed to in the coin toss: it is broken or cheats")]
    Coin,
    /// No other party.
    #[error("keys cannot be checked by one party alone: look at the parties in deployment.toml")]
    Alone,
    /// What the other party found.
    #[error("the other party refuses the keys: {0}")]
    Peer(String),
}

impl From<NetError> for CheckError {
    fn from(e: NetError) -> Self {
        CheckError::Talk(e.into())
    }
}

/// Whom a check talks to.
pub trait Company {
    /// The dealer.
    fn dealer(&mut self) -> &mut dyn Channel;
    /// The other party, once both have finished what comes before ([`Company::both_done`]).
    fn peer(&mut self) -> Result<&mut dyn Channel, CheckError>;
    /// How far it is, for others to see.
    fn progress(&self) -> Progress;
    /// This party got further with what takes long.
    fn worked(&mut self);
    /// Wait until the other party is as far.
    fn both_done(&mut self) -> Result<(), NetError>;
}

/// A party beside the dealer: of two, the only other one.
pub struct Both<'w, 'a> {
    /// The dealer, in company.
    pub dealer: Attended<'w, 'a>,
    /// The other party.
    pub peer: u8,
}

impl Company for Both<'_, '_> {
    fn dealer(&mut self) -> &mut dyn Channel {
        &mut self.dealer
    }

    fn peer(&mut self) -> Result<&mut dyn Channel, CheckError> {
        match self.dealer.work.to(self.peer) {
            Ok(channel) => Ok(channel),
            Err(_) => Err(CheckError::Alone),
        }
    }

    fn progress(&self) -> Progress {
        self.dealer.work.progress.clone()
    }

    fn worked(&mut self) {
        self.dealer.work.resume();
        // Where the other party is gone, the next wait for it says so.
        let _ = self.dealer.work.sign();
    }

    fn both_done(&mut self) -> Result<(), NetError> {
        self.dealer.work.all_done()
    }
}

/// A party that checks a deal.
pub struct Checker<'a> {
    /// Which.
    pub party: u8,
    /// The plan.
    pub plan: &'a Arc<Plan>,
    /// Where opened sessions are dealt again.
    pub device: &'a Arc<dyn Device>,
}

impl Checker<'_> {
    /// Fetch `checks + 1` sessions, open all but one of them, and put that one into the store; gives its name
    /// and the bytes that came. Otherwise no session of the deal can ever be begun.
    pub fn fetch(
        &self,
        company: &mut dyn Company,
        store: &Mutex<Store>,
        request: &DealRequest,
    ) -> Result<(Id, u64), CheckError> {
        let shelf = lock(store).checking_shelf()?;
        let mut sessions = Vec::new();
        let result = self.steps(company, store, &shelf, request, &mut sessions).and_then(|(kept, bytes)| {
            lock(store).adopt_session(&kept.0)?;
            Ok((kept, bytes))
        });
        // The cause is told even where cleaning up fails as well; what stays behind is in no run's reach, and
        // is removed before the next check and at the next start.
        let burnt = match &result {
            Ok(_) => Ok(()),
            Err(_) => sessions.iter().try_for_each(|s| lock(store).burn_session(&s.0)),
        };
        let cleaned = burnt.and_then(|()| lock(store).clear_checking());
        let accepted = result?;
        cleaned?;
        Ok(accepted)
    }

    fn steps(
        &self,
        company: &mut dyn Company,
        store: &Mutex<Store>,
        shelf: &Shelf,
        request: &DealRequest,
        sessions: &mut Vec<Id>,
    ) -> Result<(Id, u64), CheckError> {
        let bytes = self.receive_all(company, shelf, request, sessions)?;
        company.both_done()?;
        // The exchange is also what both wait for: before it one party may lack keys, after it none does,
        // and only then is the coin tossed.
        let context = context(request, sessions);
        same(company.peer()?, &context)?;
        let keep = coin::toss(company.peer()?, self.party, &context, sessions.len() as u64)?;
        let kept = *sessions.get(keep as usize).ok_or(CheckError::Coin)?;
        let opened: Vec<Id> = sessions.iter().copied().filter(|s| *s != kept).collect();
        // Burnt before the dealer is asked: an opened session has no secrets.
        for session in &opened {
            lock(store).burn_session(&session.0)?;
        }
        say(company.dealer(), Talk::Open, &OpenRequest { keep })?;
        let masters = masters(company.dealer(), opened.len())?;
        same(company.peer()?, &digest(&context, &masters))?;
        let found = opened.iter().zip(masters).try_for_each(|(name, master)| {
            let dealt = DealerSession::from_master(2, self.plan.clone(), self.device.clone(), master);
            compare(shelf.dir(), &name.0, &dealt, self.party, request.runs, &mut || company.worked())
        });
        company.both_done()?;
        let verdict = Verdict { fault: found.as_ref().err().map(CheckError::to_string) };
        say(company.peer()?, Talk::Verdict, &verdict)?;
        let theirs: Verdict = hear(company.peer()?, Talk::Verdict)?;
        found?;
        match theirs.fault {
            None => Ok((kept, bytes)),
            Some(fault) => Err(CheckError::Peer(fault)),
        }
    }

    fn receive_all(
        &self,
        company: &mut dyn Company,
        shelf: &Shelf,
        request: &DealRequest,
        sessions: &mut Vec<Id>,
    ) -> Result<u64, CheckError> {
        let (plan, progress) = (self.plan.hash(), company.progress());
        let dealer = company.dealer();
        let mut total = 0;
        say(dealer, Talk::Deal, request)?;
        for _ in 0..=request.checks {
            // The shelf refuses a name from an earlier deal, or from this one: it stays burnt, or stays usable.
            let (session, bytes) = receive(dealer, shelf, self.party, &plan, request, &progress)?;
            sessions.push(session);
            total += bytes;
        }
        Ok(total)
    }
}

/// Held for single calls: runs take records from the same store meanwhile.
fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the coin decides on: this deal, and its sessions in order.
fn context(request: &DealRequest, sessions: &[Id]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("privet dealer check: dealt sessions v1");
    hash.update(&request.deal.0).update(&request.runs.to_le_bytes());
    for session in sessions {
        hash.update(&session.0);
    }
    *hash.finalize().as_bytes()
}

fn digest(context: &[u8; 32], masters: &[Seed]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("privet dealer check: opened seeds v1");
    hash.update(context);
    for master in masters {
        hash.update(master.expose());
    }
    *hash.finalize().as_bytes()
}

fn same(peer: &mut dyn Channel, ours: &[u8; 32]) -> Result<(), CheckError> {
    match peer.exchange(&Talk::Digest.step(), ours.to_vec(), ours.len())? == ours {
        true => Ok(()),
        false => Err(CheckError::Disagree),
    }
}

fn masters(dealer: &mut dyn Channel, count: usize) -> Result<Vec<Seed>, CheckError> {
    let seeds = match hear(dealer, Talk::Open)? {
        OpenReply::Opened { seeds } => seeds,
        OpenReply::Refused { reason } => return Err(CheckError::NotOpened(reason)),
    };
    let masters: Option<Vec<Seed>> = seeds.iter().map(|s| unhex(s).map(Seed::from_bytes)).collect();
    match masters {
        Some(masters) if masters.len() == count => Ok(masters),
        _ => Err(CheckError::NotOpened("it sent other seeds than it was asked for".into())),
    }
}

#[cfg(test)]
mod tests;

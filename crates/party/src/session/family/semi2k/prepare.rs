//! A party's part in a preparation of records: among the parties, or by a dealer.

use super::joint::Together;
use super::session::By;
use super::{Semi2k, Semi2kError};
use crate::events::{Bytes, Count, Event};
use crate::session::control::{Amount, Id};
use crate::session::family::dealing::fetch::{FetchError, fetch};
use crate::session::family::dealing::messages::DealRequest;
use crate::session::family::{Made, Preparer};
use crate::session::job::JobError;
use crate::session::links::Links;
use crate::session::order::Preparation;
use crate::session::work::Work;
use crate::store::hex;
use privet_semi2k::source;
use std::sync::Arc;

/// The preparation of records.
pub(in crate::session) struct Maker {
    by: By,
    links: Arc<Links>,
    together: Together,
}

/// What a party takes over at the end.
pub(in crate::session) struct Ready {
    /// The session that the dealer knows no more; what came is a new one's.
    pub forgotten: Option<Id>,
}

impl Maker {
    /// For a new session, or the one that is open.
    pub fn new(family: &Semi2k, what: &Preparation) -> Result<Maker, JobError> {
        let (keys, next) = match (what.session, &family.open) {
            (None, _) => (None, 0),
            (Some(session), Some(open)) if open.id == session => {
                let next = family.store.next_record(&session.0).map_err(Semi2kError::from)?;
                (Some(open.keys.clone()), next)
            }
            (Some(_), _) => return Err(JobError::NotOpen),
        };
        let together = Together {
            id: family.session_id(what.session.unwrap_or(what.deal)),
            plan: family.plan.clone(),
            shelf: family.store.shelf().map_err(Semi2kError::from)?,
            what: *what,
            keys,
            owner: family.owner,
            next,
            source: source(&family.links.config.deployment.parameters),
            threads: family.links.config.node.thread_count(),
        };
        Ok(Maker { by: family.by, links: family.links.clone(), together })
    }

    /// Records from the dealer; gives their bytes, and what is there.
    fn dealt(&self, work: &mut Work<'_>) -> Result<(u64, Ready), JobError> {
        let Preparation { deal, session, amount: Amount { runs, .. } } = self.together.what;
        let plan = hex(&self.together.plan.hash());
        let request = DealRequest { deal, plan, session, runs, checks: 0 };
        let (got, forgotten) = match self.fetch(&request, work) {
            // A dealer that was restarted knows the open session no more.
            Err(FetchError::Forgotten) if session.is_some() => {
                work.progress.emit(|job| Event::DealerForgot { job });
                let anew = DealRequest { deal: deal.again(), session: None, ..request };
                (self.fetch(&anew, work), session)
            }
            got => (got, None),
        };
        let (_, bytes) = got.map_err(|cause| {
            let shown = work.progress.shown();
            Semi2kError::Dealer { came: shown.came, all: shown.came + shown.to_come, cause: Box::new(cause) }
        })?;
        Ok((bytes, Ready { forgotten }))
    }

    fn fetch(&self, request: &DealRequest, work: &mut Work<'_>) -> Result<(Id, u64), FetchError> {
        let Together { shelf, id, .. } = &self.together;
        let progress = work.progress.clone();
        let (got, dealer) = self.links.with_dealer(|dealer| {
            fetch(&mut work.attend(dealer), shelf, id.party, &id.plan, request, &progress)
        })?;
        self.links.keep_to_dealer(dealer);
        Ok(got)
    }
}

impl Preparer for Maker {
    type Made = Ready;

    fn run(self, work: &mut Work<'_>) -> Result<Made<Ready>, JobError> {
        let runs = self.together.what.amount.runs;
        work.progress.expect(runs);
        let (bytes, ready) = match self.by {
            By::Dealer => self.dealt(work)?,
            By::Parties => self.together.prepare(work)?,
        };
        let (runs, keys) = (Count::of(runs), Bytes::of(bytes));
        work.progress.emit(|job| Event::KeysStored { job, runs, keys });
        Ok(Made { key_bytes: bytes, made: ready })
    }
}

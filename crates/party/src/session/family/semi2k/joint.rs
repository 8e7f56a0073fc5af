//! Records that the parties prepare among themselves: they walk the plan together, record by record.

use super::session::{By, SessionKeys};
use super::{Semi2kError, prepare::Ready};
use crate::session::family::records::{Agreed, Pending, channels};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::work::{Progress, Work};
use crate::store::format::Header;
use crate::store::{SessionId, Shelf};
use privet_family::keys::KeyError;
use privet_plan::Plan;
use privet_prg::Seed;
use privet_semi2k::{Begun, JointSession, PrepareError, RecordSink};
use std::sync::Arc;

/// Uses of what the parties agree on.
const CONTEXT: &str = "privet semi2k: what parties agree on v1";

/// A party's part in records that all prepare together.
pub(super) struct Together {
    pub id: SessionId,
    pub plan: Arc<Plan>,
    pub shelf: Shelf,
    pub what: Preparation,
    /// Of a session that is open; a new one gets its keys here.
    pub keys: Option<SessionKeys>,
    /// The party that masks the weights alone, as it owns them.
    pub owner: Option<u8>,
    /// The least number that is free here.
    pub next: u64,
    /// How transfers are made; none: as suits the ways between the parties.
    pub source: Option<privet_ot::Source>,
    /// Threads that encryption computes with.
    pub threads: usize,
}

/// From which all parties draw alike in a new session. A party that follows the protocol draws before it hears the others.
fn public(agreed: &Agreed, id: &SessionId) -> Seed {
    Seed::from_bytes(agreed.derive("public seed of the session", id, 0))
}

impl Together {
    /// Prepare; gives the bytes of the records, and what is there.
    pub fn prepare(&self, work: &mut Work<'_>) -> Result<(u64, Ready), JobError> {
        // They talk from here on: nobody has anything to do alone.
        work.all_done()?;
        let made = self.talk(work);
        work.resume();
        made
    }

    fn talk(&self, work: &mut Work<'_>) -> Result<(u64, Ready), JobError> {
        let agreed = Agreed::among(work, self.id.party, self.next, self.what.amount.runs, CONTEXT)?;
        let keys = self.keys(&agreed);
        let file = keys.file(self.id);
        let shelved = match &self.keys {
            None => self.shelf.new_session(&file, self.what.amount.runs),
            Some(_) => self.shelf.further_records(&file, &agreed.numbers),
        };
        shelved.map_err(Semi2kError::from)?;
        let own = keys.seed(self.id.party);
        let (records, public) = (agreed.numbers.len(), keys.public.clone());
        let (source, threads) = (self.source, self.threads);
        let started = JointSession::start(&self.plan, own, public, records, source, threads, channels(work));
        let mut session = started.map_err(|e| self.failed(e, work))?;
        let mut bytes = 0;
        for numbers in agreed.numbers.chunks(session.at_once()) {
            let begun = session.begin(numbers, channels(work)).map_err(|e| self.failed(e, work))?;
            for begun in begun {
                let set = agreed.set(&self.id, begun.number());
                bytes += self.record(&mut session, set, begun, work)?;
            }
        }
        Ok((bytes, Ready { forgotten: None }))
    }

    fn failed(&self, cause: PrepareError, work: &Work<'_>) -> Semi2kError {
        Semi2kError::Prepare { came: work.progress.shown().came, all: self.what.amount.runs, cause }
    }

    /// Of the session that is open, or of a new one.
    fn keys(&self, agreed: &Agreed) -> SessionKeys {
        let new = || {
            let (own, public) = (Seed::random(), public(agreed, &self.id));
            SessionKeys { by: By::Parties, owner: self.owner, own, public }
        };
        self.keys.clone().unwrap_or_else(new)
    }

    /// Prepare a record; gives its bytes.
    fn record(
        &self,
        session: &mut JointSession<'_>,
        set: [u8; 16],
        begun: Begun,
        work: &mut Work<'_>,
    ) -> Result<u64, JobError> {
        let index = begun.number();
        let header = Header { id: self.id.record(index), set, seed: begun.seed().clone() };
        let mut pending = Pending::new(&self.shelf, &header)?;
        let progress = work.progress.clone();
        let mut sink = Sink { record: &mut pending, progress };
        let prepared = session.record(begun, channels(work), &mut sink, &mut |_| {});
        prepared.map_err(|e| self.failed(e, work))?;
        let bytes = pending.whole(channels(work))?;
        work.progress.came();
        Ok(bytes)
    }
}

/// This party's record, frame by frame.
struct Sink<'a> {
    record: &'a mut Pending,
    progress: Progress,
}

impl RecordSink for Sink<'_> {
    fn put(&mut self, _: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        self.record.counted(frame, &self.progress)
    }
}

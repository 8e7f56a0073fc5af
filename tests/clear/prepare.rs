//! Records that the parties make among themselves: every party draws a seed for each and tells it to all.

use super::{Clear, ClearError};
use crate::session::control::{Id, Talk};
use crate::session::family::{Made, Preparer};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::work::Work;
use crate::store::format::{Header, RecordWriter};
use crate::store::{SessionFile, SessionId, Shelf};
use privet_net::Channel;
use privet_prg::Seed;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// A party's part in making records.
pub(in crate::session) struct Maker {
    id: SessionId,
    shelf: Shelf,
    what: Preparation,
    /// The least number that is free here.
    next: u64,
}

impl Maker {
    pub(super) fn new(clear: &Clear, what: &Preparation) -> Result<Maker, JobError> {
        let next = match (what.session, &clear.open) {
            (None, _) => 0,
            (Some(session), Some(open)) if open.id == session => open.next,
            (Some(_), _) => return Err(JobError::NotOpen),
        };
        let id = clear.session(what.session.unwrap_or(what.deal));
        let shelf = clear.store.shelf().map_err(ClearError::from)?;
        Ok(Maker { id, shelf, what: *what, next })
    }

    /// What the store keeps of the session. A family with secrets would keep a seed here.
    fn file(&self) -> SessionFile {
        let own = blake3::hash(&[&self.id.session[..], &[self.id.party]].concat());
        SessionFile { id: self.id, checks: 0, keys: Zeroizing::new(own.as_bytes()[..16].to_vec()) }
    }

    /// The numbers of the records: for an open session above all that any party has seen.
    fn numbers(&self, work: &mut Work<'_>) -> Result<Vec<u64>, JobError> {
        let runs = self.what.amount.runs;
        if self.what.session.is_none() {
            self.shelf.new_session(&self.file(), runs).map_err(ClearError::from)?;
            return Ok((0..runs).collect());
        }
        let theirs = exchange(work, self.next.to_le_bytes().to_vec(), 8)?;
        let seen = theirs.values().map(|b| u64::from_le_bytes(b.first_chunk().copied().unwrap_or_default()));
        let first = seen.fold(self.next, u64::max);
        let numbers: Vec<u64> = (first..first.saturating_add(runs)).collect();
        self.shelf.further_records(&self.file(), &numbers).map_err(ClearError::from)?;
        Ok(numbers)
    }

    /// Make record `index`; the coins of its run are all parties' seeds together.
    fn make(&self, index: u64, work: &mut Work<'_>) -> Result<u64, JobError> {
        let own = Seed::random();
        let mut seeds = exchange(work, own.expose().to_vec(), 16)?;
        seeds.insert(self.id.party, own.expose().to_vec());
        let all: Vec<u8> = seeds.into_values().flatten().collect();
        let mut set = [0; 16];
        set.copy_from_slice(&blake3::hash(&all).as_bytes()[..16]);
        let header = Header { id: self.id.record(index), set, seed: own };
        let file = self.shelf.record(&self.id.session, index).map_err(ClearError::from)?;
        let written = RecordWriter::new(file, &header).and_then(|mut w| {
            w.frame(&all)?;
            w.finish()
        });
        written.map_err(|e| ClearError::Record(e.into()))?.commit().map_err(ClearError::from)?;
        work.progress.came();
        work.progress.got(all.len() as u64);
        Ok(all.len() as u64)
    }
}

impl Preparer for Maker {
    /// The session, and the least number that is free in it now.
    type Made = (Id, u64);

    fn run(self, work: &mut Work<'_>) -> Result<Made<(Id, u64)>, JobError> {
        work.progress.expect(self.what.amount.runs);
        // They talk from here on: nobody has anything to do alone.
        work.all_done()?;
        let numbers = self.numbers(work)?;
        let next = numbers.last().map_or(self.next, |last| last + 1);
        let made = numbers.into_iter().map(|index| self.make(index, work)).sum::<Result<u64, _>>();
        work.resume();
        Ok(Made { key_bytes: made?, made: (Id(self.id.session), next) })
    }
}

/// Send the same to all other parties, and receive as much from each.
fn exchange(work: &mut Work<'_>, payload: Vec<u8>, len: usize) -> Result<BTreeMap<u8, Vec<u8>>, JobError> {
    let parties = work.parties();
    let each = |party| Ok((party, work.to(party)?.exchange(&Talk::Digest.step(), payload.clone(), len)?));
    parties.into_iter().map(each).collect()
}

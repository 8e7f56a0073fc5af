//! Records that the parties prepare among themselves, whatever is in them.
//!
//! The parties agree on numbers that are new at all of them, and on names that follow from what each of them drew. A record gets
//! its name in a store once every party has told all others that its own is whole. Where a party dies before that, nobody has the
//! record; where one dies after it, at most that one lacks it, and runs pass it over.

use crate::events::{Reason, Why, reason};
use crate::session::control::Talk;
use crate::session::job::JobError;
use crate::session::work::{Progress, Work};
use crate::store::format::{FormatError, Header, RecordWriter};
use crate::store::{PendingFile, SessionId, Shelf, StoreError};
use privet_family::keys::KeyError;
use privet_net::Channel;
use privet_prg::Seed;
use std::io::{BufWriter, Write};
use thiserror::Error;

/// What a record's bytes are gathered in on their way to a file.
const BUFFER: usize = 1 << 20;

/// Why records do not come about.
#[derive(Debug, Error)]
pub(in crate::session) enum RecordsError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("a record cannot be written: {0}")]
    Record(#[from] FormatError),
    #[error("another party announced what nobody can number: it runs another version or is broken")]
    Numbers,
}

impl From<RecordsError> for JobError {
    fn from(e: RecordsError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

impl Why for RecordsError {
    fn why(&self) -> Reason {
        match self {
            RecordsError::Store(e) => e.why(),
            RecordsError::Record(_) => reason!("records.record", "a record cannot be written"),
            RecordsError::Numbers => reason!(
                "records.numbers",
                "another party announced what nobody can number: it runs another version or is broken",
            ),
        }
    }
}

/// What all parties know alike of a preparation.
pub(super) struct Agreed {
    /// Numbers of the records: above all that any party has seen of the session.
    pub numbers: Vec<u64>,
    /// What each party drew, in the order of their numbers.
    nonces: Vec<u8>,
    context: &'static str,
}

impl Agreed {
    /// Party `me` says which number is free here and what it drew, and hears the others. `context` names the family's uses.
    pub fn among(
        work: &mut Work<'_>,
        me: u8,
        next: u64,
        runs: u64,
        context: &'static str,
    ) -> Result<Agreed, JobError> {
        let drawn = Seed::random();
        let ours = [&next.to_le_bytes()[..], drawn.expose()].concat();
        let mut said = exchange(channels(work), &ours)?;
        said.insert(usize::from(me), ours);
        Ok(Agreed::new(&said, runs, context)?)
    }

    /// From what the parties said, in order: their least free number, and what they drew.
    fn new(said: &[Vec<u8>], runs: u64, context: &'static str) -> Result<Agreed, RecordsError> {
        let (mut first, mut nonces) = (0, Vec::new());
        for said in said {
            let (next, nonce) = said.split_first_chunk().ok_or(RecordsError::Numbers)?;
            first = u64::max(first, u64::from_le_bytes(*next));
            nonces.extend_from_slice(nonce);
        }
        let end = first.checked_add(runs).ok_or(RecordsError::Numbers)?;
        Ok(Agreed { numbers: (first..end).collect(), nonces, context })
    }

    /// 16 bytes for a use, that follow from what all parties drew.
    pub fn derive(&self, what: &'static str, id: &SessionId, number: u64) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_derive_key(self.context);
        hash.update(what.as_bytes()).update(&id.session).update(&id.plan);
        hash.update(&number.to_le_bytes()).update(&self.nonces);
        let mut bytes = [0; 16];
        hash.finalize_xof().fill(&mut bytes);
        bytes
    }

    /// The public name of the set that the parties' records of a number are.
    pub fn set(&self, id: &SessionId, index: u64) -> [u8; 16] {
        self.derive("set of records", id, index)
    }
}

/// Connections to all other parties, in order.
pub(super) fn channels<'a>(work: &'a mut Work<'_>) -> Vec<&'a mut dyn Channel> {
    work.all().map(|(_, channel)| channel as &mut dyn Channel).collect()
}

/// Send the same to all other parties, and receive as much from each, in their order.
pub(super) fn exchange(mut channels: Vec<&mut dyn Channel>, ours: &[u8]) -> Result<Vec<Vec<u8>>, JobError> {
    let step = Talk::Digest.step();
    for channel in &mut channels {
        channel.send(&step, ours.to_vec())?;
    }
    channels.into_iter().map(|channel| Ok(channel.recv(&step, ours.len())?)).collect()
}

/// A record on its way to a file.
pub(super) struct Pending {
    writer: RecordWriter<BufWriter<PendingFile>>,
    set: [u8; 16],
    bytes: u64,
}

impl Pending {
    /// Begins it.
    pub fn new(shelf: &Shelf, header: &Header) -> Result<Pending, RecordsError> {
        let file = shelf.record(&header.id.session, header.id.index)?;
        let opened = RecordWriter::new(BufWriter::with_capacity(BUFFER, file), header);
        Ok(Pending { writer: opened.map_err(FormatError::from)?, set: header.set, bytes: 0 })
    }

    /// Appends a frame.
    pub fn frame(&mut self, frame: &[u8]) -> Result<(), KeyError> {
        self.bytes += frame.len() as u64;
        Ok(self.writer.frame(frame)?)
    }

    /// The same, which a preparation's progress counts.
    pub fn counted(&mut self, frame: &[u8], progress: &Progress) -> Result<(), KeyError> {
        progress.got(frame.len() as u64);
        self.frame(frame)
    }

    /// This party's record is whole. It gets its name once every other party has said the same. Gives its bytes.
    pub fn whole(self, channels: Vec<&mut dyn Channel>) -> Result<u64, JobError> {
        let mut buffered = self.writer.finish().map_err(FormatError::from).map_err(RecordsError::from)?;
        buffered.flush().map_err(FormatError::from).map_err(RecordsError::from)?;
        let file =
            buffered.into_inner().map_err(|e| RecordsError::from(FormatError::from(e.into_error())))?;
        if exchange(channels, &self.set)?.iter().any(|theirs| theirs[..] != self.set[..]) {
            return Err(RecordsError::Numbers.into());
        }
        file.commit().map_err(RecordsError::from)?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(all: &[(u64, u8)], runs: u64) -> Result<Agreed, RecordsError> {
        let one = |(next, nonce): &(u64, u8)| [&next.to_le_bytes()[..], &[*nonce; Seed::BYTES]].concat();
        Agreed::new(&all.iter().map(one).collect::<Vec<_>>(), runs, "privet test")
    }

    #[test]
    fn numbers_are_above_all_that_any_party_has_seen() {
        assert_eq!(agreed(&[(3, 1), (7, 2), (0, 3)], 2).unwrap().numbers, [7, 8]);
        assert!(agreed(&[(0, 1), (u64::MAX, 2)], 1).is_err(), "they would begin again");
        assert!(Agreed::new(&[vec![0; 7]], 1, "privet test").is_err());
    }

    #[test]
    fn names_are_alike_at_all_parties_and_follow_from_what_each_drew() {
        let id = SessionId { session: [1; 16], party: 0, plan: [2; 32] };
        let agreed = |all: &[(u64, u8)]| agreed(all, 1).unwrap();
        let ours = agreed(&[(0, 1), (0, 2), (0, 3)]);
        assert_eq!(ours.set(&id, 5), ours.set(&SessionId { party: 2, ..id }, 5));
        let others = [
            ours.set(&id, 6),
            ours.set(&SessionId { session: [9; 16], ..id }, 5),
            ours.set(&SessionId { plan: [9; 32], ..id }, 5),
            ours.derive("another use", &id, 5),
        ];
        assert!(others.iter().all(|other| *other != ours.set(&id, 5)));
        for odd in 0..3 {
            let mut all = [(0, 1), (0, 2), (0, 3)];
            all[odd].1 = 9;
            assert!(agreed(&all).set(&id, 5) != ours.set(&id, 5), "party {odd}'s");
            assert!(agreed(&all).derive("another use", &id, 0) != ours.derive("another use", &id, 0));
        }
    }
}

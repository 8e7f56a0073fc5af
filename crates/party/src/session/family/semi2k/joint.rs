//! Records that the parties prepare among themselves.
//!
//! The parties agree on numbers that are new at all of them, and on names that follow from what each of them drew. Then they walk
//! the plan together, record by record. A record gets its name in a store once every party has told all others that its own is
//! whole. Where a party dies before that, nobody has the record; where one dies after it, at most that one lacks it, and runs pass
//! it over.

use super::session::{By, SessionKeys};
use super::{Semi2kError, prepare::Ready};
use crate::session::control::{Id, Talk};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::work::{Progress, Work};
use crate::store::format::{Header, RecordWriter};
use crate::store::{PendingFile, SessionId, Shelf};
use privet_family::keys::KeyError;
use privet_net::Channel;
use privet_plan::Plan;
use privet_prg::Seed;
use privet_semi2k::{Begun, JointSession, PartySeed, PrepareError, RecordSink};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// What a record's bytes are gathered in on their way to a file.
const BUFFER: usize = 1 << 20;

/// A party's part in records that all prepare together.
pub(super) struct Together {
    pub id: SessionId,
    pub plan: Arc<Plan>,
    pub shelf: Shelf,
    pub what: Preparation,
    /// Of a session that is open; a new one gets its keys here.
    pub keys: Option<SessionKeys>,
    /// The least number that is free here.
    pub next: u64,
    /// Threads that encryption computes with.
    pub threads: usize,
}

/// What all parties know alike of a preparation.
struct Agreed {
    /// Numbers of the records: above all that any party has seen of the session.
    numbers: Vec<u64>,
    /// What each party drew, in the order of their numbers.
    nonces: Vec<u8>,
}

impl Agreed {
    /// From what the parties said: their least free number, and what they drew.
    fn new(said: &BTreeMap<u8, Vec<u8>>, runs: u64) -> Result<Agreed, Semi2kError> {
        let (mut first, mut nonces) = (0, Vec::new());
        for said in said.values() {
            let (next, nonce) = said.split_first_chunk().ok_or(Semi2kError::Numbers)?;
            first = u64::max(first, u64::from_le_bytes(*next));
            nonces.extend_from_slice(nonce);
        }
        let end = first.checked_add(runs).ok_or(Semi2kError::Numbers)?;
        Ok(Agreed { numbers: (first..end).collect(), nonces })
    }

    /// 16 bytes for a use, that follow from what all parties drew.
    fn derive(&self, what: &'static str, id: &SessionId, number: u64) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_derive_key("privet semi2k: what parties agree on v1");
        hash.update(what.as_bytes()).update(&id.session).update(&id.plan);
        hash.update(&number.to_le_bytes()).update(&self.nonces);
        let mut bytes = [0; 16];
        hash.finalize_xof().fill(&mut bytes);
        bytes
    }

    /// From which all parties draw alike in a new session. A party that follows the protocol draws before it hears the others.
    fn public(&self, id: &SessionId) -> Seed {
        Seed::from_bytes(self.derive("public seed of the session", id, 0))
    }

    /// The public name of the set that the parties' records of a number are.
    fn set(&self, id: &SessionId, index: u64) -> [u8; 16] {
        self.derive("set of records", id, index)
    }
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
        let agreed = self.agree(work)?;
        let keys = self.keys(&agreed);
        let file = keys.file(self.id);
        let shelved = match &self.keys {
            None => self.shelf.new_session(&file, self.what.amount.runs),
            Some(_) => self.shelf.further_records(&file, &agreed.numbers),
        };
        shelved.map_err(Semi2kError::from)?;
        let own = PartySeed::new(usize::from(self.id.party), keys.own.clone());
        let (records, public) = (agreed.numbers.len(), keys.public.clone());
        let started = JointSession::start(&self.plan, own, public, records, self.threads, channels(work));
        let mut session = started.map_err(|e| self.failed(e, work))?;
        let mut bytes = 0;
        for numbers in agreed.numbers.chunks(session.at_once()) {
            let begun = session.begin(numbers, channels(work)).map_err(|e| self.failed(e, work))?;
            for begun in begun {
                let set = agreed.set(&self.id, begun.number());
                bytes += self.record(&mut session, set, begun, work)?;
            }
        }
        let next = agreed.numbers.last().map_or(self.next, |last| last + 1);
        Ok((bytes, Ready { session: Id(self.id.session), next, forgotten: None }))
    }

    /// Say what is free here and what this party drew, and hear the others.
    fn agree(&self, work: &mut Work<'_>) -> Result<Agreed, JobError> {
        let drawn = Seed::random();
        let ours = [&self.next.to_le_bytes()[..], drawn.expose()].concat();
        let mut said = exchange(work, &ours)?;
        said.insert(self.id.party, ours);
        Ok(Agreed::new(&said, self.what.amount.runs)?)
    }

    fn failed(&self, cause: PrepareError, work: &Work<'_>) -> Semi2kError {
        Semi2kError::Prepare { came: work.progress.shown().came, all: self.what.amount.runs, cause }
    }

    /// Of the session that is open, or of a new one.
    fn keys(&self, agreed: &Agreed) -> SessionKeys {
        let new = || SessionKeys { by: By::Parties, own: Seed::random(), public: agreed.public(&self.id) };
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
        let file = self.shelf.record(&self.id.session, index).map_err(Semi2kError::from)?;
        let opened = RecordWriter::new(BufWriter::with_capacity(BUFFER, file), &header);
        let progress = work.progress.clone();
        let mut sink = Sink { writer: opened.map_err(unwritten)?, bytes: 0, progress };
        let prepared = session.record(begun, channels(work), &mut sink, &mut |_| {});
        prepared.map_err(|e| self.failed(e, work))?;
        let Sink { writer, bytes, .. } = sink;
        let file = writer.finish().and_then(|buffered| Ok(buffered.into_inner()?)).map_err(unwritten)?;
        whole(file, work, &set)?;
        work.progress.came();
        Ok(bytes)
    }
}

/// Connections to all other parties, in order.
fn channels<'a>(work: &'a mut Work<'_>) -> Vec<&'a mut dyn Channel> {
    work.all().map(|(_, channel)| channel as &mut dyn Channel).collect()
}

/// This party's record is whole. It gets its name once every other party has said the same.
fn whole(file: PendingFile, work: &mut Work<'_>, set: &[u8; 16]) -> Result<(), JobError> {
    let theirs = exchange(work, set)?;
    if theirs.values().any(|theirs| theirs[..] != set[..]) {
        return Err(Semi2kError::Numbers.into());
    }
    Ok(file.commit().map_err(Semi2kError::from)?)
}

/// A record that cannot be written.
fn unwritten(e: std::io::Error) -> Semi2kError {
    Semi2kError::Record(e.into())
}

/// Send the same to all other parties, and receive as much from each.
fn exchange(work: &mut Work<'_>, ours: &[u8]) -> Result<BTreeMap<u8, Vec<u8>>, JobError> {
    let (step, parties) = (Talk::Digest.step(), work.parties());
    for &party in &parties {
        work.to(party)?.send(&step, ours.to_vec())?;
    }
    parties.into_iter().map(|party| Ok((party, work.to(party)?.recv(&step, ours.len())?))).collect()
}

/// This party's record, frame by frame.
struct Sink<W> {
    writer: RecordWriter<W>,
    bytes: u64,
    progress: Progress,
}

impl<W: Write> RecordSink for Sink<W> {
    fn put(&mut self, _: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        self.bytes += frame.len() as u64;
        self.progress.got(frame.len() as u64);
        Ok(self.writer.frame(frame)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[(u64, u8)]) -> BTreeMap<u8, Vec<u8>> {
        let one = |(next, nonce): &(u64, u8)| [&next.to_le_bytes()[..], &[*nonce; Seed::BYTES]].concat();
        (0..).zip(all.iter().map(one)).collect()
    }

    #[test]
    fn numbers_are_above_all_that_any_party_has_seen() {
        let agreed = Agreed::new(&said(&[(3, 1), (7, 2), (0, 3)]), 2).unwrap();
        assert_eq!(agreed.numbers, [7, 8]);
        assert!(Agreed::new(&said(&[(0, 1), (u64::MAX, 2)]), 1).is_err(), "they would begin again");
        let short = BTreeMap::from([(0, vec![0; 7])]);
        assert!(Agreed::new(&short, 1).is_err());
    }

    #[test]
    fn names_are_alike_at_all_parties_and_follow_from_what_each_drew() {
        let id = SessionId { session: [1; 16], party: 0, plan: [2; 32] };
        let agreed = |all: &[(u64, u8)]| Agreed::new(&said(all), 1).unwrap();
        let ours = agreed(&[(0, 1), (0, 2), (0, 3)]);
        assert_eq!(ours.set(&id, 5), ours.set(&SessionId { party: 2, ..id }, 5));
        let others = [
            ours.set(&id, 6),
            ours.set(&SessionId { session: [9; 16], ..id }, 5),
            ours.set(&SessionId { plan: [9; 32], ..id }, 5),
            *ours.public(&id).expose(),
        ];
        assert!(others.iter().all(|other| *other != ours.set(&id, 5)));
        for odd in 0..3 {
            let mut all = [(0, 1), (0, 2), (0, 3)];
            all[odd].1 = 9;
            assert!(agreed(&all).set(&id, 5) != ours.set(&id, 5), "party {odd}'s");
            assert!(agreed(&all).public(&id).expose() != ours.public(&id).expose(), "party {odd}'s");
        }
    }
}

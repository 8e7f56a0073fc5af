//! What parties sent.

use crate::hook::Hook;
use privet_net::{Channel, NetError, Step};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A message that a party sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The step it was sent at.
    pub step: Step,
    /// The number of the party it was sent to.
    pub to: usize,
    /// The payload, without frames.
    pub bytes: Vec<u8>,
}

/// What every party sent, each party's messages in its own order over all its links. Clones are the same log.
#[derive(Clone, Debug)]
pub struct Log(Vec<Arc<Mutex<Vec<Sent>>>>);

impl Log {
    pub(crate) fn new(parties: usize) -> Log {
        Log((0..parties).map(|_| Arc::default()).collect())
    }

    pub(crate) fn recorder(&self, from: usize, to: usize) -> Recorder {
        Recorder { to, log: self.0[from].clone() }
    }

    /// What a party sent so far.
    pub fn of(&self, party: usize) -> Vec<Sent> {
        self.0[party].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What all parties sent so far, by party.
    pub fn all(&self) -> Vec<Vec<Sent>> {
        (0..self.0.len()).map(|party| self.of(party)).collect()
    }
}

/// The hook that writes a log.
#[derive(Debug)]
pub struct Recorder {
    to: usize,
    log: Arc<Mutex<Vec<Sent>>>,
}

impl Hook for Recorder {
    fn send(&mut self, link: &mut dyn Channel, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        let sent = Sent { step: step.clone(), to: self.to, bytes: payload.clone() };
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
        link.send(step, payload)
    }
}

/// Payload bytes of messages.
pub fn bytes<'a>(sent: impl IntoIterator<Item = &'a Sent>) -> u64 {
    sent.into_iter().map(|sent| sent.bytes.len() as u64).sum()
}

/// Rounds of a protocol whose rounds are steps: how many different ones messages have.
pub fn rounds<'a>(sent: impl IntoIterator<Item = &'a Sent>) -> u64 {
    sent.into_iter().map(|sent| sent.step.id).collect::<BTreeSet<u32>>().len() as u64
}

/// BLAKE3, in hexadecimal digits, of messages in order: each is a head, the length in 8 bytes, and the payload. Heads
/// of one call are all of one length, so that the digest is of the list and of nothing else.
pub fn digest<'a, const HEAD: usize>(
    messages: impl IntoIterator<Item = ([u8; HEAD], &'a [u8])>,
) -> blake3::Hash {
    let mut hash = blake3::Hasher::new();
    for (head, bytes) in messages {
        hash.update(&head).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    hash.finalize()
}

/// Compares what a test found, line by line, with the `recorded` contents of the file at `path`; with
/// `PRIVET_UPDATE_VECTORS` in the environment writes the file instead.
///
/// # Panics
/// Where a line differs, comes or goes.
#[track_caller]
pub fn as_recorded(path: &Path, recorded: &str, found: &str) {
    if std::env::var_os("PRIVET_UPDATE_VECTORS").is_some() {
        return std::fs::write(path, found).expect("the vectors' file can be written");
    }
    for (found, recorded) in found.lines().zip(recorded.lines()) {
        assert_eq!(found, recorded, "the wire changed; see the head of this test's file");
    }
    let lines = [found, recorded].map(|text| text.lines().count());
    assert_eq!(lines[0], lines[1], "cases came or went; see the head of this test's file");
}

//! A store with a session and records, as all these tests have it.
#![allow(dead_code, reason = "each test binary uses a part")]

use privet_prg::Seed;
use privet_store::format::{FormatError, Header, RecordId, RecordReader, RecordWriter};
use privet_store::{SessionFile, SessionId, Shelf, Store, StoreError, hex, pending_record, write_session};
use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::time::Duration;

pub const SESSION: [u8; 16] = [0xA1; 16];
pub const PLAN: [u8; 32] = [0x5B; 32];

pub fn id(index: u64, party: u8) -> RecordId {
    session_id(party).record(index)
}

pub fn session_id(party: u8) -> SessionId {
    SessionId { session: SESSION, party, plan: PLAN }
}

pub fn header(id: RecordId) -> Header {
    Header { id, set: [6; 16], seed: Seed::from_bytes([9; 16]) }
}

pub fn record(id: RecordId, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = RecordWriter::new(Vec::new(), &header(id)).unwrap();
    frames.iter().for_each(|f| writer.frame(f).unwrap());
    writer.finish().unwrap()
}

pub fn open(
    bytes: &[u8],
    wanted: &RecordId,
) -> Result<RecordReader<impl privet_store::format::Frames + use<>>, FormatError> {
    RecordReader::open(Cursor::new(bytes.to_vec()), Some(wanted))
}

/// Everything in a record, or why not.
pub fn read(bytes: &[u8], wanted: &RecordId, lengths: &[usize]) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = open(bytes, wanted).map_err(|e| e.to_string())?;
    lengths.iter().map(|&n| reader.take(n).map(<[u8]>::to_vec).map_err(|e| e.to_string())).collect()
}

pub fn lengths(frames: &[Vec<u8>]) -> Vec<usize> {
    frames.iter().map(Vec::len).collect()
}

pub const SECRET: [u8; 16] = [3; 16];

pub fn session_file(party: u8) -> SessionFile {
    SessionFile { id: session_id(party), checks: 0, keys: SECRET.to_vec().into() }
}

pub fn other_session(session: [u8; 16]) -> SessionFile {
    SessionFile { id: SessionId { session, ..session_id(0) }, ..session_file(0) }
}

/// Open a store that was just closed. A child process that another test forks holds copies of all our files
/// until it executes its program, and with them the lock.
pub fn reopen(dir: &Path) -> Store {
    for _ in 0..2000 {
        match Store::open(dir) {
            Err(StoreError::Journal { .. }) => std::thread::sleep(Duration::from_millis(5)),
            other => return other.unwrap_or_else(|e| panic!("{e}")),
        }
    }
    panic!("the store stays locked");
}

/// A store with a session and records 0..n of one frame each, which holds the record's number.
pub fn fill(dir: &Path, n: u64) {
    write_session(dir, &session_file(0)).unwrap();
    fill_with(dir, 0..n);
}

pub fn fill_with(dir: &Path, records: std::ops::Range<u64>) {
    records.for_each(|i| put(dir, i, &record(id(i, 0), &[i.to_le_bytes().to_vec()])));
}

pub fn put(dir: &Path, index: u64, bytes: &[u8]) {
    let mut file = pending_record(dir, &SESSION, index).unwrap();
    file.write_all(bytes).unwrap();
    file.commit().unwrap();
}

pub fn key_file(dir: &Path, index: u64) -> std::path::PathBuf {
    dir.join(hex(&SESSION)).join(format!("{index}.keys"))
}

/// Everything below a directory, by path.
pub fn contents(dir: &Path) -> HashMap<std::path::PathBuf, Vec<u8>> {
    let mut all = HashMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => all.extend(contents(&entry)),
            false => drop(all.insert(entry.clone(), fs::read(entry).unwrap())),
        }
    }
    all
}

pub fn put_on(shelf: &Shelf, index: u64, word: u64) -> Result<(), StoreError> {
    let mut file = shelf.file(&SESSION, index)?;
    file.append(record(id(index, 0), &[word.to_le_bytes().to_vec()]))?;
    file.commit()
}

//! A session's own file: which it is, how it was checked, and the family's keys that all its records share.

use crate::error::{StoreError, io_at};
use crate::format::{FormatError, RecordId, refuse_foreign};
use crate::names::{SessionName, hex, session_name, session_path, unhex};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use zeroize::{Zeroize, Zeroizing};

const FORMAT: u32 = 2;
/// Most bytes of a family's keys of a session.
pub const MAX_KEYS: usize = 1 << 20;
/// Most bytes of a session file: keys in hexadecimal, and the rest.
const MAX_FILE: u64 = 2 * MAX_KEYS as u64 + 1024;

/// What a session belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// The session.
    pub session: SessionName,
    /// The party it is for.
    pub party: u8,
    /// The plan it was dealt for.
    pub plan: [u8; 32],
}

impl SessionId {
    /// One of its records.
    pub fn record(&self, index: u64) -> RecordId {
        RecordId { session: self.session, index, party: self.party, plan: self.plan }
    }
}

/// What a party keeps of a session beside its records.
#[derive(Clone)]
pub struct SessionFile {
    /// Whose it is.
    pub id: SessionId,
    /// Other sessions of the same deal that were opened and found right before this one was accepted; 0 without a check.
    /// This party writes what it did itself, not what it was told.
    pub checks: u64,
    /// The family's keys of the session, at most [`MAX_KEYS`] bytes; secret.
    pub keys: Zeroizing<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    session: String,
    plan: String,
    party: u8,
    checks: u64,
    keys: String,
}

impl Drop for Text {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

impl SessionFile {
    /// The file's text. Holds a secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let text = Text {
            format: FORMAT,
            session: hex(&self.id.session),
            plan: hex(&self.id.plan),
            party: self.id.party,
            checks: self.checks,
            keys: hex(&self.keys),
        };
        // Large enough from the start: what grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(512 + text.keys.len()));
        // Writing plain data into memory cannot fail.
        let _ = serde_json::to_writer(&mut *bytes, &text);
        bytes
    }

    /// Parse untrusted bytes.
    pub fn decode(bytes: &[u8]) -> Result<SessionFile, FormatError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = || FormatError::Damaged("session file");
        if bytes.len() as u64 > MAX_FILE {
            return Err(damaged());
        }
        let Version { format } = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        if format != FORMAT {
            return Err(FormatError::Version { found: format, read: FORMAT });
        }
        let text: Text = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        let read = || {
            let (session, plan) = (unhex(&text.session)?, unhex(&text.plan)?);
            let id = SessionId { session, party: text.party, plan };
            Some(SessionFile { id, checks: text.checks, keys: unhex_all(&text.keys)? })
        };
        read().ok_or_else(damaged)
    }

    /// Read the file of a session below `dir`: that of a store, or of its place for checks.
    pub fn read(dir: &Path, session: &SessionName) -> Result<SessionFile, StoreError> {
        let path = session_path(dir, session);
        let bytes = bounded(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { what: session_name(session) },
            _ => io_at(&path)(e),
        })?;
        SessionFile::decode(&bytes).map_err(|source| StoreError::Format {
            what: session_name(session),
            path: path.display().to_string(),
            source,
        })
    }

    /// The same, and refuse it where it is not that of `id`.
    pub(crate) fn read_own(dir: &Path, id: &SessionId) -> Result<SessionFile, StoreError> {
        let file = SessionFile::read(dir, &id.session)?;
        // A session's identity is that of a record, without an index.
        refuse_foreign(&file.id.record(0), &id.record(0)).map_err(|source| {
            let path = session_path(dir, &id.session).display().to_string();
            StoreError::Format { what: session_name(&id.session), path, source }
        })?;
        Ok(file)
    }
}

fn bounded(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len().min(MAX_FILE);
    let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize + 1));
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unhex_all(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    for pair in text.as_bytes().chunks(2) {
        let [byte] = unhex::<1>(std::str::from_utf8(pair).ok()?)?;
        bytes.push(byte);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> SessionFile {
        let id = SessionId { session: [1; 16], party: 7, plan: [2; 32] };
        SessionFile { id, checks: 4, keys: Zeroizing::new(vec![0xF0, 3, 0]) }
    }

    #[test]
    fn a_session_file_comes_back_as_written_for_any_party_and_keys() {
        let written = file();
        let read = SessionFile::decode(&written.encode()).unwrap();
        assert_eq!((read.id, read.checks, &*read.keys), (written.id, 4, &vec![0xF0, 3, 0]));
        let none = SessionFile { keys: Zeroizing::default(), ..file() };
        assert!(SessionFile::decode(&none.encode()).unwrap().keys.is_empty());
    }

    #[test]
    fn other_text_and_other_versions_are_refused_by_name() {
        let text = String::from_utf8(file().encode().to_vec()).unwrap();
        let error = |text: String| SessionFile::decode(text.as_bytes()).err().unwrap().to_string();
        for (from, to) in [
            ("f00300", "f0030"),
            ("f00300", "f003é"),
            ("f00300", "f003+1"),
            ("0101", "01"),
            ("\"checks\":4", "\"checks\":-4"),
            ("\"checks\":4,", ""),
            ("\"party\":7", "\"party\":256"),
            ("{", "{\"more\":1,"),
        ] {
            assert!(text.contains(from));
            assert!(error(text.replacen(from, to, 1)).contains("session file is damaged"), "{to}");
        }
        let old = error(text.replace("\"format\":2", "\"format\":1"));
        assert!(old.contains("format 1, this version reads 2"), "{old}");
        assert!(
            error(" ".repeat(MAX_FILE as usize + 1) + &text).contains("damaged"),
            "its length is bounded"
        );
    }
}

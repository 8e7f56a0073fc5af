//! Sessions that wait for their check: kept where no run finds them until they are accepted.

use super::{Shelf, Store, StoreError, create_dir, hex, io_at, record_path, session_name};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

impl Store {
    /// An empty directory, laid out like a store, for sessions to be checked, within the store's budget. What an
    /// earlier check left there is removed: it was never accepted.
    pub fn checking_shelf(&self) -> Result<Shelf, StoreError> {
        self.clear_checking()?;
        let dir = self.checking();
        create_dir(&dir)?;
        self.shelf_at(dir)
    }

    fn checking(&self) -> PathBuf {
        self.dir.join("checking")
    }

    /// Remove the sessions that were checked or refused.
    pub fn clear_checking(&self) -> Result<(), StoreError> {
        let dir = self.checking();
        match fs::remove_dir_all(&dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_at(&dir)(e)),
            _ => Ok(()),
        }
    }

    /// True when a session of that name is in the store, or was begun or burnt.
    pub fn knows(&self, session: &[u8; 16]) -> bool {
        self.journal.contains(&session_name(session)) || self.session_dir(session).exists()
    }

    /// See to it that the session can never be begun, durably. It may be burnt already.
    pub fn burn_session(&mut self, session: &[u8; 16]) -> Result<(), StoreError> {
        match self.mark(&session_name(session)) {
            Err(StoreError::Used { .. }) => Ok(()),
            other => other,
        }
    }

    /// Accept a session: from here on it can be begun.
    pub fn adopt_session(&mut self, session: &[u8; 16]) -> Result<(), StoreError> {
        if self.knows(session) {
            return Err(StoreError::Used { what: session_name(session) });
        }
        let from = self.checking().join(hex(session));
        fs::rename(&from, self.session_dir(session)).map_err(io_at(&from))?;
        File::open(&self.dir).and_then(|d| d.sync_all()).map_err(io_at(&self.dir))
    }
}

/// A session file's bytes below `dir`.
pub fn read_session_file(dir: &Path, session: &[u8; 16]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let path = dir.join(hex(session)).join("session.key");
    fs::read(&path).map(Zeroizing::new).map_err(io_at(&path))
}

/// A record file below `dir`, unmarked: for sessions that are burnt.
pub fn open_record(dir: &Path, session: &[u8; 16], index: u64) -> Result<(File, PathBuf), StoreError> {
    let path = record_path(dir, session, index);
    Ok((File::open(&path).map_err(io_at(&path))?, path))
}

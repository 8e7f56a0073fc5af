//! Sessions that wait for their check: kept where no run finds them until they are accepted.

use crate::error::{StoreError, io_at};
use crate::names::{SessionName, record_path, session_dir, session_name};
use crate::pending::name_once;
use crate::{Shelf, Store};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

impl Store {
    /// An empty directory, laid out like a store, for sessions to be checked, within the store's budget. What an
    /// earlier check left there is removed: it was never accepted.
    pub fn checking_shelf(&self) -> Result<Shelf, StoreError> {
        self.clear_checking()?;
        let dir = self.home.checking();
        crate::store::create_dir(&dir)?;
        Shelf::of(&self.home, dir)
    }

    /// Remove the sessions that were checked or refused.
    pub fn clear_checking(&self) -> Result<(), StoreError> {
        let dir = self.home.checking();
        match fs::remove_dir_all(&dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_at(&dir)(e)),
            _ => Ok(()),
        }
    }

    /// See to it that the session can never be begun, durably. It may be burnt already.
    pub fn burn_session(&mut self, session: &SessionName) -> Result<(), StoreError> {
        self.home.forget(session);
        match self.mark(&session_name(session)) {
            Err(StoreError::Used { .. }) => Ok(()),
            other => other,
        }
    }

    /// Accept a session that was checked: from here on it can be begun. Refused where the store has that name.
    pub fn adopt_session(&mut self, session: &SessionName) -> Result<(), StoreError> {
        let known = || StoreError::Known { what: session_name(session) };
        if self.home.has(session) {
            return Err(known());
        }
        let from = session_dir(&self.home.checking(), session);
        if !name_once(&from, &self.session_dir(session)).map_err(io_at(&from))? {
            return Err(known());
        }
        let dir = self.dir();
        File::open(dir).and_then(|d| d.sync_all()).map_err(io_at(dir))
    }
}

/// A record file below `dir`, unmarked: for sessions that are burnt.
pub fn open_record(dir: &Path, session: &SessionName, index: u64) -> Result<(File, PathBuf), StoreError> {
    let path = record_path(dir, session, index);
    Ok((File::open(&path).map_err(io_at(&path))?, path))
}

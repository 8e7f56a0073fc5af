//! The store of one party, locked for this process.

use crate::error::{StoreError, io_at};
use crate::format::{RecordId, RecordReader, Source};
use crate::journal::Journal;
use crate::names::{SessionName, hex, record_name, record_path, session_dir, session_name, unhex};
use crate::pending;
use crate::session::{SessionFile, SessionId};
use crate::shelf::{Home, Shelf};
use crate::space::{self, Place, Space};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A record taken for use: it is gone from the store and open here alone.
pub type ClaimedRecord = RecordReader<Source>;

/// A record that is open and not yet used.
struct Opened {
    name: String,
    reader: ClaimedRecord,
    /// Where it lies and what it takes there, unless it is in memory.
    file: Option<(PathBuf, u64)>,
}

/// A session that nobody began.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fresh {
    /// Which.
    pub session: SessionName,
    /// Checks that it passed.
    pub checks: u64,
    /// Numbers of its records, ascending.
    pub records: Vec<u64>,
}

/// The store of one party, locked for this process.
pub struct Store {
    journal: Journal,
    pub(crate) home: Home,
}

impl Store {
    /// Open or create the store at `dir`. What is left of sessions that were begun is removed: they ended with the
    /// process that began them.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        create_dir(dir)?;
        let journal = Journal::open(&dir.join("journal"))
            .map_err(|source| StoreError::Journal { path: dir.display().to_string(), source })?;
        let home = Home::new(dir, journal.names(), Arc::new(Space::new(dir, None, 0)));
        let store = Store { journal, home };
        store.clear_checking()?;
        store.clear_unusable()?;
        Ok(store)
    }

    /// Refuse to hold more than this many bytes on disk; no limit but the disk's when none.
    pub fn with_budget(self, budget: Option<u64>) -> Store {
        let space = Space::new(self.dir(), budget, self.home.space.memory_budget());
        self.within(Arc::new(space))
    }

    /// Hold up to so many bytes of streamed records in memory instead.
    pub fn with_memory(self, bytes: u64) -> Store {
        let space = Space::new(self.dir(), self.home.space.disk_budget(), bytes);
        self.within(Arc::new(space))
    }

    /// Take up room together with other stores.
    pub fn within(mut self, space: Arc<Space>) -> Store {
        self.home.space = space;
        self
    }

    /// Where new sessions and records are put, within what the budget leaves now.
    pub fn shelf(&self) -> Result<Shelf, StoreError> {
        Shelf::of(&self.home, self.home.dir.clone())
    }

    /// Where the files of a session are.
    pub fn session_dir(&self, session: &SessionName) -> PathBuf {
        session_dir(&self.home.dir, session)
    }

    /// True when a session of that name is in the store, is being checked, or was begun or burnt.
    pub fn knows(&self, session: &SessionName) -> bool {
        self.home.knows(session)
    }

    /// Begin a session: from here on no other process may. Refused when one did before, when the session passed fewer than
    /// `checks` checks, and when the file is another session's, plan's, or party's (with the other party's seed both would mask
    /// alike).
    pub fn begin_session(&mut self, id: &SessionId, checks: u64) -> Result<SessionFile, StoreError> {
        let file = self.may_begin(id, checks)?;
        self.mark(&session_name(&id.session))?;
        Ok(file)
    }

    /// Whether [`Store::begin_session`] would succeed; nothing is used up.
    pub fn may_begin(&self, id: &SessionId, checks: u64) -> Result<SessionFile, StoreError> {
        let what = session_name(&id.session);
        if self.journal.contains(&what) {
            return Err(StoreError::Used { what });
        }
        let file = SessionFile::read_own(self.dir(), id)?;
        if file.checks < checks {
            return Err(StoreError::Unchecked { what, found: file.checks, least: checks });
        }
        Ok(file)
    }

    /// Sessions for `plan` that nobody began, in the order of their names.
    pub fn fresh_sessions(&self, plan: &[u8; 32]) -> Result<Vec<Fresh>, StoreError> {
        let mut found = Vec::new();
        for session in self.sessions()? {
            let Ok(SessionFile { id, checks, .. }) = SessionFile::read(self.dir(), &session) else {
                continue;
            };
            if &id.plan == plan && !self.journal.contains(&session_name(&session)) {
                found.push(Fresh { session, checks, records: self.records(&session)? });
            }
        }
        found.sort();
        Ok(found)
    }

    /// Sessions that have a directory.
    fn sessions(&self) -> Result<Vec<SessionName>, StoreError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.dir()).map_err(io_at(self.dir()))? {
            let name = entry.map_err(io_at(self.dir()))?.file_name();
            found.extend(name.to_str().and_then(unhex::<16>).filter(|s| Some(&*hex(s)) == name.to_str()));
        }
        Ok(found)
    }

    /// Numbers of the session's records that are here and unused, ascending.
    pub fn records(&self, session: &SessionName) -> Result<Vec<u64>, StoreError> {
        let dir = self.session_dir(session);
        let mut indices: Vec<u64> = fs::read_dir(&dir)
            .map_err(io_at(&dir))?
            .filter_map(|e| e.ok()?.file_name().to_str()?.strip_suffix(".keys")?.parse().ok())
            .collect();
        indices.extend(self.home.held.records(session));
        indices.retain(|&i| !self.journal.contains(&record_name(session, i)));
        indices.sort_unstable();
        Ok(indices)
    }

    /// The least number for a further record of a session that is here: above all that were ever announced, stored, refused or used.
    pub fn next_record(&self, session: &SessionName) -> Result<u64, StoreError> {
        Ok(self.home.last_seen(session)?.map_or(0, |last| last.saturating_add(1)))
    }

    /// Take a record for use, once and for all: it is marked used, durably, and gone from the store, before the
    /// first of its keys is read. A crash after that burns it.
    pub fn claim(&mut self, id: &RecordId) -> Result<ClaimedRecord, StoreError> {
        let [record] = self.claim_all(&[*id])?;
        Ok(record)
    }

    /// Take several records that are used together, as [`Store::claim`] takes one: where one of them is not here, was used, or is not
    /// what it should be, none is used up.
    pub fn claim_all<const N: usize>(
        &mut self,
        ids: &[RecordId; N],
    ) -> Result<[ClaimedRecord; N], StoreError> {
        let mut order: Vec<usize> = (0..N).collect();
        // what is in memory is opened last, as it is taken out there
        order.sort_by_key(|i| self.home.held.has(&ids[*i].session, ids[*i].index));
        let mut opened = [const { None }; N];
        for i in order {
            opened[i] = Some(self.opened(&ids[i])?);
        }
        let mut claimed = Vec::with_capacity(N);
        for record in opened.into_iter().flatten() {
            claimed.push(self.take(record)?);
        }
        Ok(claimed.try_into().ok().expect("as many as were opened"))
    }

    /// A record that is here and was not used; nothing of it is used up.
    fn opened(&mut self, id: &RecordId) -> Result<Opened, StoreError> {
        let name = record_name(&id.session, id.index);
        if self.journal.contains(&name) {
            return Err(StoreError::Used { what: name });
        }
        if let Some(pieces) = self.home.held.take(&id.session, id.index) {
            let of = |source| StoreError::Format { what: name.clone(), path: "memory".into(), source };
            let reader = RecordReader::open_pieces(pieces, id).map_err(of)?;
            return Ok(Opened { name, reader, file: None });
        }
        let path = record_path(self.dir(), &id.session, id.index);
        let file = File::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { what: name.clone() },
            _ => StoreError::Io { path: path.display().to_string(), source },
        })?;
        let bytes = file.metadata().map_err(io_at(&path))?.len();
        let reader = RecordReader::open_mapped(file, Some(id)).map_err(|source| {
            // Out of the way of the records that follow; nothing of it was used, so the right file may still come.
            let _ = fs::rename(&path, path.with_extension("refused"));
            StoreError::Format { what: name.clone(), path: path.display().to_string(), source }
        })?;
        Ok(Opened { name, reader, file: Some((path, bytes)) })
    }

    /// Marks an open record used, durably, and removes it.
    fn take(&mut self, opened: Opened) -> Result<ClaimedRecord, StoreError> {
        let Opened { name, reader, file } = opened;
        self.mark(&name)?;
        let Some((path, bytes)) = file else { return Ok(reader) };
        fs::remove_file(&path).map_err(io_at(&path))?;
        Ok(reader.counted(self.home.space.unnamed(bytes)))
    }

    /// Remove a record that neither this nor any later run will ask for. It is marked used, durably, so that no other of its
    /// number can come.
    pub fn drop_record(&mut self, session: &SessionName, index: u64) -> Result<(), StoreError> {
        match self.mark(&record_name(session, index)) {
            Ok(()) | Err(StoreError::Used { .. }) => {}
            Err(e) => return Err(e),
        }
        if self.home.held.take(session, index).is_some() {
            return Ok(());
        }
        let path = record_path(self.dir(), session, index);
        match fs::metadata(&path) {
            Err(_) => Ok(()),
            Ok(file) => {
                fs::remove_file(&path).map_err(io_at(&path))?;
                self.home.space.give_back(Place::Disk, file.len());
                Ok(())
            }
        }
    }

    /// Remove what is left of a session that was begun and is over. One that nobody began keeps its records.
    pub fn drop_session(&self, session: &SessionName) -> Result<(), StoreError> {
        if !self.journal.contains(&session_name(session)) {
            return Ok(());
        }
        self.home.held.discard(session);
        self.home.forget(session);
        let dir = self.session_dir(session);
        if !dir.exists() {
            return Ok(());
        }
        let bytes = space::bytes_below(&dir)?;
        fs::remove_dir_all(&dir).map_err(io_at(&dir))?;
        self.home.space.give_back(Place::Disk, bytes);
        Ok(())
    }

    /// Remove what came for sessions that were begun and have ended, all but `held`, which is open in this process.
    pub fn clear_ended(&self, held: Option<&SessionName>) -> Result<(), StoreError> {
        let over = |s: &&SessionName| Some(*s) != held && self.journal.contains(&session_name(s));
        self.sessions()?.iter().filter(over).try_for_each(|s| self.drop_session(s))
    }

    /// Remove sessions that were begun, and records that were cut off.
    fn clear_unusable(&self) -> Result<(), StoreError> {
        for session in self.sessions()? {
            self.drop_session(&session)?;
            let Ok(files) = fs::read_dir(self.session_dir(&session)) else { continue };
            for file in files.filter_map(|f| Some(f.ok()?.path())) {
                if file.extension().is_some_and(|e| e == "part") && pending::is_abandoned(&file) {
                    fs::remove_file(&file).map_err(io_at(&file))?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn mark(&mut self, name: &str) -> Result<(), StoreError> {
        match self.journal.mark(name) {
            Ok(true) => {
                self.home.space.grew(name.len() as u64 + 1);
                Ok(())
            }
            Ok(false) => Err(StoreError::Used { what: name.to_owned() }),
            Err(source) => {
                Err(StoreError::Io { path: self.dir().join("journal").display().to_string(), source })
            }
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }
}

pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_at(dir))
}

//! Putting sessions and records into a store: each counts only once it is whole, only while there is room, and only where
//! nothing of that name is or was.

use crate::error::{StoreError, io_at};
use crate::held::{Held, Staged};
use crate::journal::Names;
use crate::names::{SessionName, record_name, record_path, session_dir, session_name, session_path};
use crate::pending::PendingFile;
use crate::session::SessionFile;
use crate::space::{Place, Space};
use crate::store::create_dir;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a store knows of names, shared by all who put something into it.
#[derive(Clone)]
pub(crate) struct Home {
    pub dir: PathBuf,
    pub names: Names,
    pub held: Arc<Held>,
    pub space: Arc<Space>,
    /// The highest record number of a session that was ever announced, while this process runs. That is long enough: only a
    /// session that is open takes further records, and it ends with the process that began it.
    announced: Arc<Mutex<BTreeMap<SessionName, u64>>>,
}

impl Home {
    pub fn new(dir: &Path, names: Names, space: Arc<Space>) -> Home {
        Home { dir: dir.to_owned(), names, held: Arc::default(), space, announced: Arc::default() }
    }

    pub fn checking(&self) -> PathBuf {
        self.dir.join("checking")
    }

    /// True when a session of that name is in the store, or anything of it was used or burnt.
    pub fn has(&self, session: &SessionName) -> bool {
        self.names.has_session(session) || session_dir(&self.dir, session).exists()
    }

    /// The same, or it is being checked.
    pub fn knows(&self, session: &SessionName) -> bool {
        self.has(session) || session_dir(&self.checking(), session).exists()
    }

    fn announce(&self, session: &SessionName, last: u64) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = announced.entry(*session).or_default();
        *highest = last.max(*highest);
    }

    pub fn forget(&self, session: &SessionName) {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// The highest record number of a session that was ever seen: announced, stored, refused, or used.
    pub fn last_seen(&self, session: &SessionName) -> Result<Option<u64>, StoreError> {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied();
        let dir = session_dir(&self.dir, session);
        let mut seen = announced.max(self.names.last_record(session));
        for entry in fs::read_dir(&dir).map_err(io_at(&dir))? {
            // Whatever its ending: whole, cut off or refused.
            let path = entry.map_err(io_at(&dir))?.path();
            seen = seen.max(path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()));
        }
        Ok(seen.max(self.held.records(session).into_iter().max()))
    }
}

/// A directory laid out like a store that new keys are put into.
pub struct Shelf {
    dir: PathBuf,
    home: Option<Home>,
}

impl Shelf {
    pub(crate) fn of(home: &Home, dir: PathBuf) -> Result<Shelf, StoreError> {
        // What is being checked counts as well: it is on the same disk.
        home.space.count()?;
        Ok(Shelf { dir, home: Some(home.clone()) })
    }

    /// Limited by the disk alone, and knowing only what is in the directory.
    pub fn unlimited(dir: &Path) -> Shelf {
        Shelf { dir: dir.to_owned(), home: None }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn space(&self) -> Option<&Arc<Space>> {
        self.home.as_ref().map(|home| &home.space)
    }

    pub(crate) fn held(&self) -> Option<&Held> {
        self.home.as_ref().map(|home| &*home.held)
    }

    /// Write the file of a new session with records 0 to `runs` - 1. Refused where the store knows the name: in the journal,
    /// among its sessions, or among those that are being checked.
    pub fn new_session(&self, file: &SessionFile, runs: u64) -> Result<(), StoreError> {
        let session = &file.id.session;
        if let Some(home) = &self.home {
            if home.knows(session) {
                return Err(StoreError::Known { what: session_name(session) });
            }
            runs.checked_sub(1).into_iter().for_each(|last| home.announce(session, last));
        }
        self.session(file)
    }

    /// Admit further records of a session that is here, `indices` ascending; nothing is written. Refused where what came with
    /// them is not byte for byte what the store holds of the session, where a number is not above all that were ever seen of it,
    /// and where the session was checked: its further records would not be.
    pub fn further_records(&self, file: &SessionFile, indices: &[u64]) -> Result<(), StoreError> {
        let what = || session_name(&file.id.session);
        let here = SessionFile::read_own(&self.dir, &file.id)?;
        if here.checks > 0 {
            return Err(StoreError::Checked { what: what() });
        }
        // Both are this party's own; how long they take to compare tells nobody anything.
        if here.keys != file.keys {
            return Err(StoreError::OtherSession { what: what() });
        }
        let (Some(&index), Some(&most), Some(home)) = (indices.first(), indices.last(), &self.home) else {
            return Ok(());
        };
        match home.last_seen(&file.id.session)?.filter(|&last| index <= last) {
            Some(last) => Err(StoreError::NotAbove { what: what(), index, last }),
            None => {
                home.announce(&file.id.session, most);
                Ok(())
            }
        }
    }

    /// Write a session file; one that is there must be the same.
    fn session(&self, file: &SessionFile) -> Result<(), StoreError> {
        let session = &file.id.session;
        let path = session_path(&self.dir, session);
        create_dir(&session_dir(&self.dir, session))?;
        match SessionFile::read(&self.dir, session) {
            Err(StoreError::Missing { .. }) => {}
            Ok(here) if *here.encode() == *file.encode() => return Ok(()),
            _ => return Err(StoreError::Occupied { what: session_name(session) }),
        }
        let mut pending = PendingFile::create(&path, session_name(session), self.space().cloned())?;
        pending.write_all(&file.encode()).map_err(io_at(&path))?;
        pending.commit()
    }

    /// A record that counts only once it is complete. Refused where one of that number is or was, in a file or in memory.
    pub fn record(&self, session: &SessionName, index: u64) -> Result<PendingFile, StoreError> {
        self.refuse_seen(session, index)?;
        create_dir(&session_dir(&self.dir, session))?;
        let path = record_path(&self.dir, session, index);
        PendingFile::create(&path, record_name(session, index), self.space().cloned())
    }

    fn refuse_seen(&self, session: &SessionName, index: u64) -> Result<(), StoreError> {
        let what = || record_name(session, index);
        if self.home.as_ref().is_some_and(|home| home.names.has_record(session, index)) {
            return Err(StoreError::Used { what: what() });
        }
        let held = self.held().is_some_and(|held| held.has(session, index));
        if held || record_path(&self.dir, session, index).exists() {
            return Err(StoreError::Occupied { what: what() });
        }
        Ok(())
    }

    /// Wait until a record of `bytes` has room, and begin it there: in memory if it can, on disk otherwise. Where its
    /// size is not known it begins in memory and moves when it must. None once it is not `wanted`, which is asked about once a
    /// second, and at once after [`Shelf::wake`]. Refused as by [`Shelf::record`].
    pub fn stage(
        &self,
        session: &SessionName,
        index: u64,
        bytes: Option<u64>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Staged<'_>>, StoreError> {
        self.refuse_seen(session, index)?;
        let place = match (self.space(), bytes) {
            (Some(space), Some(bytes)) => space.await_room(bytes, wanted),
            _ => Some(Place::Memory),
        };
        place.map(|place| Staged::new(self, session, index, place)).transpose()
    }

    /// Begin a record in a file, whatever room there is in memory. Refused as by [`Shelf::record`].
    pub fn file(&self, session: &SessionName, index: u64) -> Result<Staged<'_>, StoreError> {
        Staged::new(self, session, index, Place::Disk)
    }

    /// Let those that wait for room see what changed.
    pub fn wake(&self) {
        self.space().into_iter().for_each(|s| s.wake());
    }
}

/// Write a session file below `store`, limited by the disk alone; one that is there must be the same.
pub fn write_session(store: &Path, file: &SessionFile) -> Result<(), StoreError> {
    Shelf::unlimited(store).session(file)
}

/// A record file below `store` that counts only once it is complete, limited by the disk alone.
pub fn pending_record(store: &Path, session: &SessionName, index: u64) -> Result<PendingFile, StoreError> {
    Shelf::unlimited(store).record(session, index)
}

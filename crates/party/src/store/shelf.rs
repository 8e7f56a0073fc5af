//! Writing sessions and records: each counts only once it is whole, and only while there is room.

use super::held::{Held, Staged};
use super::space::{Place, Space};
use super::{SessionKeys, Store, StoreError, create_dir, hex, io_at, record_path};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A directory laid out like a store that new keys are put into.
pub struct Shelf {
    dir: PathBuf,
    pub(super) space: Option<Arc<Space>>,
    pub(super) held: Option<Arc<Held>>,
}

impl Shelf {
    /// Limited by the disk alone.
    pub fn unlimited(dir: &Path) -> Shelf {
        Shelf { dir: dir.to_owned(), space: None, held: None }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Write a session file.
    pub fn session(&self, keys: &SessionKeys) -> Result<(), StoreError> {
        let dir = self.dir.join(hex(&keys.session));
        create_dir(&dir)?;
        let mut file = PendingFile::create(&dir.join("session.key"), self.space.clone())?;
        file.write_all(&keys.encode()).map_err(io_at(&dir))?;
        file.commit()
    }

    /// A record that counts only once it is complete.
    pub fn record(&self, session: &[u8; 16], index: u64) -> Result<PendingFile, StoreError> {
        create_dir(&self.dir.join(hex(session)))?;
        PendingFile::create(&record_path(&self.dir, session, index), self.space.clone())
    }

    /// Wait until a record of `bytes` has room, and begin it there: in memory if it can, on disk otherwise. Where its
    /// size is not known it begins in memory and moves when it must. None once `stop` is set and the store was woken
    /// ([`Shelf::wake`]).
    pub fn stage(
        &self,
        session: &[u8; 16],
        index: u64,
        bytes: Option<u64>,
        stop: &AtomicBool,
    ) -> Result<Option<Staged<'_>>, StoreError> {
        let place = match (&self.space, bytes) {
            (Some(space), Some(bytes)) => space.await_room(bytes, stop),
            _ => Some(Place::Memory),
        };
        place.map(|place| Staged::new(self, session, index, place)).transpose()
    }

    /// Begin a record in a file, whatever room there is in memory.
    pub fn file(&self, session: &[u8; 16], index: u64) -> Result<Staged<'_>, StoreError> {
        Staged::new(self, session, index, Place::Disk)
    }

    /// Let those that wait for room see what changed.
    pub fn wake(&self) {
        self.space.iter().for_each(|s| s.wake());
    }
}

impl Store {
    pub(super) fn shelf_at(&self, dir: PathBuf) -> Result<Shelf, StoreError> {
        // What is being checked counts as well: it is on the same disk.
        self.space.count()?;
        Ok(Shelf { dir, space: Some(self.space.clone()), held: Some(self.held.clone()) })
    }
}

/// Write a session file below `store`, limited by the disk alone.
pub fn write_session(store: &Path, keys: &SessionKeys) -> Result<(), StoreError> {
    Shelf::unlimited(store).session(keys)
}

/// A record file below `store` that counts only once it is complete, limited by the disk alone.
pub fn pending_record(store: &Path, session: &[u8; 16], index: u64) -> Result<PendingFile, StoreError> {
    Shelf::unlimited(store).record(session, index)
}

/// Whether whoever wrote an unfinished file is gone. An empty one may have been made just now and not locked yet; it takes
/// no room.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    file.metadata().is_ok_and(|m| m.len() > 0) && file.try_lock().is_ok()
}

/// A file under a temporary name, removed when dropped before [`PendingFile::commit`].
pub struct PendingFile {
    file: Option<File>,
    path: PathBuf,
    space: Option<Arc<Space>>,
    written: u64,
}

impl PendingFile {
    fn temporary(path: &Path) -> PathBuf {
        path.with_extension("part")
    }

    /// Create beside its final name, mode 0600.
    fn create(path: &Path, space: Option<Arc<Space>>) -> Result<PendingFile, StoreError> {
        let temporary = Self::temporary(path);
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(io_at(&temporary))?;
        // Shows that somebody is writing; see `is_abandoned`.
        let _ = file.try_lock();
        space.iter().for_each(|s| s.begin_writing());
        Ok(PendingFile { file: Some(file), path: path.to_owned(), space, written: 0 })
    }

    /// Give it its final name. The directory entry is synced so that it survives a crash; the contents
    /// carry checksums, and a damaged record is refused rather than used.
    pub fn commit(mut self) -> Result<(), StoreError> {
        fs::rename(Self::temporary(&self.path), &self.path).map_err(io_at(&self.path))?;
        self.file = None; // it stays, and keeps its room
        let dir = self.path.parent().unwrap_or(Path::new("."));
        File::open(dir).and_then(|d| d.sync_all()).map_err(io_at(dir))
    }
}

impl Write for PendingFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let Some(space) = &self.space else { return file.write(buf) };
        let wanted = buf.len() as u64;
        space.take_disk(wanted)?;
        let result = file.write(buf);
        let written = *result.as_ref().unwrap_or(&0) as u64;
        if written < wanted {
            space.give_back(Place::Disk, wanted - written);
        }
        self.written += written;
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(Self::temporary(&self.path));
            self.space.iter().for_each(|s| s.give_back(Place::Disk, self.written));
        }
        self.space.iter().for_each(|s| s.end_writing());
    }
}

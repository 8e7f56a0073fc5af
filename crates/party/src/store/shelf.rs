//! Writing sessions and records: each counts only once it is whole, and only while there is room.

use super::{SessionKeys, Store, StoreError, create_dir, hex, io_at, record_path};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// The budget of a store is used up.
#[derive(Debug, Error)]
#[error(
    "the store may hold {budget} bytes (`disk_budget` in node.toml), and these keys would not fit: raise the budget, use \
     or delete what was prepared before, or prepare fewer runs at a time"
)]
struct OverBudget {
    budget: u64,
}

/// Bytes that may still be written.
struct Room {
    budget: u64,
    left: AtomicU64,
}

impl Room {
    fn take(&self, bytes: u64) -> io::Result<()> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        let over = |_| io::Error::new(io::ErrorKind::QuotaExceeded, OverBudget { budget: self.budget });
        taken.map(drop).map_err(over)
    }

    fn give_back(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A directory laid out like a store that new keys are put into.
///
/// Its room is counted down from what the store held when the shelf was made; records used since then free
/// none of it.
pub struct Shelf {
    dir: PathBuf,
    room: Option<Arc<Room>>,
}

impl Shelf {
    /// Limited by the disk alone.
    pub fn unlimited(dir: &Path) -> Shelf {
        Shelf { dir: dir.to_owned(), room: None }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Write a session file.
    pub fn session(&self, keys: &SessionKeys) -> Result<(), StoreError> {
        let dir = self.dir.join(hex(&keys.session));
        create_dir(&dir)?;
        let mut file = PendingFile::create(&dir.join("session.key"), self.room.clone())?;
        file.write_all(&keys.encode()).map_err(io_at(&dir))?;
        file.commit()
    }

    /// A record that counts only once it is complete.
    pub fn record(&self, session: &[u8; 16], index: u64) -> Result<PendingFile, StoreError> {
        create_dir(&self.dir.join(hex(session)))?;
        PendingFile::create(&record_path(&self.dir, session, index), self.room.clone())
    }
}

impl Store {
    pub(super) fn shelf_at(&self, dir: PathBuf) -> Result<Shelf, StoreError> {
        let Some(budget) = self.budget else { return Ok(Shelf { dir, room: None }) };
        // What is being checked counts as well: it is on the same disk.
        let left = AtomicU64::new(budget.saturating_sub(bytes_below(&self.dir)?));
        Ok(Shelf { dir, room: Some(Arc::new(Room { budget, left })) })
    }
}

fn bytes_below(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(io_at(dir))? {
        let entry = entry.map_err(io_at(dir))?;
        // Links are not followed: what they lead to is not the store's.
        let meta = entry.metadata().map_err(io_at(&entry.path()))?;
        bytes += if meta.is_dir() { bytes_below(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

/// Write a session file below `store`, limited by the disk alone.
pub fn write_session(store: &Path, keys: &SessionKeys) -> Result<(), StoreError> {
    Shelf::unlimited(store).session(keys)
}

/// A record file below `store` that counts only once it is complete, limited by the disk alone.
pub fn pending_record(store: &Path, session: &[u8; 16], index: u64) -> Result<PendingFile, StoreError> {
    Shelf::unlimited(store).record(session, index)
}

/// A file under a temporary name, removed when dropped before [`PendingFile::commit`].
pub struct PendingFile {
    file: Option<File>,
    path: PathBuf,
    room: Option<Arc<Room>>,
    written: u64,
}

impl PendingFile {
    fn temporary(path: &Path) -> PathBuf {
        path.with_extension("part")
    }

    /// Create beside its final name, mode 0600.
    fn create(path: &Path, room: Option<Arc<Room>>) -> Result<PendingFile, StoreError> {
        let temporary = Self::temporary(path);
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(io_at(&temporary))?;
        Ok(PendingFile { file: Some(file), path: path.to_owned(), room, written: 0 })
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
        let Some(room) = &self.room else { return file.write(buf) };
        let wanted = buf.len() as u64;
        room.take(wanted)?;
        let result = file.write(buf);
        let written = *result.as_ref().unwrap_or(&0) as u64;
        room.give_back(wanted - written);
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
            if let Some(room) = &self.room {
                room.give_back(self.written);
            }
        }
    }
}

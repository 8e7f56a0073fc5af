//! What a store holds and may hold, on disk and in memory, counted while records come and go.

use crate::error::{StoreError, io_at};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;

/// Between two looks whether room is still wanted.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Bytes by which journals may grow while a record that had room is written: runs go on and are marked meanwhile.
const JOURNAL_ROOM: u64 = 4096;

/// The budget of a store is used up.
#[derive(Clone, Copy, Debug, Error)]
#[error(
    "the store may hold {budget} bytes (`disk_budget` in node.toml), and these keys would not fit: raise the budget, use \
     or delete what was prepared before, or prepare fewer runs at a time"
)]
pub struct OverBudget {
    /// Bytes that it may hold.
    pub budget: u64,
}

/// Where keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In files, within `disk_budget`.
    Disk,
    /// In this process, within `memory_budget`.
    Memory,
}

#[derive(Default)]
struct Used {
    /// Bytes of files, as far as this process knows.
    files: u64,
    /// Bytes of files that have no name any more, because they are being used.
    unnamed: u64,
    memory: u64,
    /// Files that are being written.
    writers: usize,
}

/// The room for keys of a party. Shared by its stores, and everything that writes into them or reads from them.
pub struct Space {
    /// All stores are in this directory, or below it.
    root: PathBuf,
    disk_budget: Option<u64>,
    memory_budget: u64,
    used: Mutex<Used>,
    freed: Condvar,
}

impl Space {
    /// So many bytes of room for files below `root` (as many as the disk has when none), and for streamed records in memory.
    pub fn new(root: &Path, disk_budget: Option<u64>, memory_budget: u64) -> Space {
        let (used, freed) = (Mutex::default(), Condvar::new());
        Space { root: root.to_owned(), disk_budget, memory_budget, used, freed }
    }

    pub(crate) fn disk_budget(&self) -> Option<u64> {
        self.disk_budget
    }

    pub(crate) fn memory_budget(&self) -> u64 {
        self.memory_budget
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count the files again, since others may have removed or added some. Not while one is being written: a
    /// byte could be missed.
    pub(crate) fn count(&self) -> Result<(), StoreError> {
        if self.disk_budget.is_none() {
            return Ok(());
        }
        let mut used = self.lock();
        if used.writers == 0 {
            used.files = bytes_below(&self.root)?;
        }
        Ok(())
    }

    fn disk_left(&self, used: &Used) -> u64 {
        self.disk_budget.map_or(u64::MAX, |b| b.saturating_sub(used.files).saturating_sub(used.unnamed))
    }

    fn memory_left(&self, used: &Used) -> u64 {
        self.memory_budget.saturating_sub(used.memory)
    }

    /// Reserve bytes for a file.
    pub(crate) fn take_disk(&self, bytes: u64) -> io::Result<()> {
        let mut used = self.lock();
        match (self.disk_left(&used) >= bytes, self.disk_budget) {
            (false, Some(budget)) => Err(io::Error::new(io::ErrorKind::QuotaExceeded, OverBudget { budget })),
            _ => {
                used.files += bytes;
                Ok(())
            }
        }
    }

    /// The journal grew, whatever room there is: what is used must be marked.
    pub(crate) fn grew(&self, bytes: u64) {
        self.lock().files += bytes;
    }

    /// Reserve bytes of memory, if there is room.
    pub(crate) fn take_memory(&self, bytes: u64) -> bool {
        let mut used = self.lock();
        let fits = self.memory_left(&used) >= bytes;
        used.memory += if fits { bytes } else { 0 };
        fits
    }

    /// Wait for room for a record of `bytes`, on disk with [`JOURNAL_ROOM`] beside it; says where, memory first. None once it is not `wanted`, which is asked again
    /// and again, and at once after [`Space::wake`].
    pub(crate) fn await_room(&self, bytes: u64, wanted: &dyn Fn() -> bool) -> Option<Place> {
        let mut used = self.lock();
        loop {
            if !wanted() {
                return None;
            } else if self.memory_left(&used) >= bytes {
                return Some(Place::Memory);
            } else if self.disk_left(&used) >= bytes.saturating_add(JOURNAL_ROOM) {
                return Some(Place::Disk);
            }
            used = self.freed.wait_timeout(used, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Let those that wait look again.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.freed.notify_all();
    }

    pub(crate) fn give_back(&self, place: Place, bytes: u64) {
        {
            let mut used = self.lock();
            let from = if place == Place::Disk { &mut used.files } else { &mut used.memory };
            *from = from.saturating_sub(bytes);
        }
        self.freed.notify_all();
    }

    pub(crate) fn begin_writing(&self) {
        self.lock().writers += 1;
    }

    pub(crate) fn end_writing(&self) {
        self.lock().writers -= 1;
    }

    /// A file lost its name; its bytes are free once the guard is dropped.
    pub(crate) fn unnamed(self: &Arc<Space>, bytes: u64) -> Unnamed {
        let mut used = self.lock();
        used.files = used.files.saturating_sub(bytes);
        used.unnamed += bytes;
        Unnamed { space: self.clone(), bytes }
    }
}

/// An open file without a name: its bytes still count.
pub struct Unnamed {
    space: Arc<Space>,
    bytes: u64,
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        {
            let mut used = self.space.lock();
            used.unnamed = used.unnamed.saturating_sub(self.bytes);
        }
        self.space.freed.notify_all();
    }
}

pub(crate) fn bytes_below(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(io_at(dir))? {
        let entry = entry.map_err(io_at(dir))?;
        // Links are not followed: what they lead to is not the store's. What is gone meanwhile holds nothing.
        let Ok(meta) = entry.metadata() else { continue };
        bytes += if meta.is_dir() { bytes_below(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

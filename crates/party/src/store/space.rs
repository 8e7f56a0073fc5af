//! What a store holds and may hold, on disk and in memory, counted while records come and go.

use super::{StoreError, io_at};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// Where keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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

/// The room of a store. Shared by everything that writes into it or reads from it.
#[derive(Default)]
pub(super) struct Space {
    disk_budget: Option<u64>,
    memory_budget: u64,
    used: Mutex<Used>,
    freed: Condvar,
}

impl Space {
    /// Empty, with so many bytes of room; on disk as many as the disk has when none.
    pub fn new(disk_budget: Option<u64>, memory_budget: u64) -> Space {
        Space { disk_budget, memory_budget, ..Space::default() }
    }

    pub fn disk_budget(&self) -> Option<u64> {
        self.disk_budget
    }

    pub fn memory_budget(&self) -> u64 {
        self.memory_budget
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count the files again, since others may have removed or added some. Not while one is being written: a
    /// byte could be missed.
    pub fn count(&self, dir: &Path) -> Result<(), StoreError> {
        if self.disk_budget.is_none() {
            return Ok(());
        }
        let mut used = self.lock();
        if used.writers == 0 {
            used.files = bytes_below(dir)?;
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
    pub fn take_disk(&self, bytes: u64) -> io::Result<()> {
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
    pub fn grew(&self, bytes: u64) {
        self.lock().files += bytes;
    }

    /// Reserve bytes of memory, if there is room.
    pub fn take_memory(&self, bytes: u64) -> bool {
        let mut used = self.lock();
        let fits = self.memory_left(&used) >= bytes;
        used.memory += if fits { bytes } else { 0 };
        fits
    }

    /// Wait for room for a record of `bytes`; says where, memory first. None once `stop` is set
    /// ([`Space::wake`] makes that known).
    pub fn await_room(&self, bytes: u64, stop: &AtomicBool) -> Option<Place> {
        let mut used = self.lock();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            } else if self.memory_left(&used) >= bytes {
                return Some(Place::Memory);
            } else if self.disk_left(&used) >= bytes {
                return Some(Place::Disk);
            }
            used = self.freed.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Let those that wait look again.
    pub fn wake(&self) {
        drop(self.lock());
        self.freed.notify_all();
    }

    pub fn give_back(&self, place: Place, bytes: u64) {
        {
            let mut used = self.lock();
            let from = if place == Place::Disk { &mut used.files } else { &mut used.memory };
            *from = from.saturating_sub(bytes);
        }
        self.freed.notify_all();
    }

    pub fn begin_writing(&self) {
        self.lock().writers += 1;
    }

    pub fn end_writing(&self) {
        self.lock().writers -= 1;
    }

    /// A file lost its name; its bytes are free once the guard is dropped.
    pub fn unnamed(self: &Arc<Space>, bytes: u64) -> Unnamed {
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

pub(super) fn bytes_below(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(io_at(dir))? {
        let entry = entry.map_err(io_at(dir))?;
        // Links are not followed: what they lead to is not the store's. What is gone meanwhile holds nothing.
        let Ok(meta) = entry.metadata() else { continue };
        bytes += if meta.is_dir() { bytes_below(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

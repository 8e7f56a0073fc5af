//! The journal of used keys: what makes "single use" true across crashes.
//!
//! An entry is appended and made durable (fsync) *before* the first key of what it names is read. An entry
//! is never removed, so a key file that is put back after use is still refused.

use crate::names::{SessionName, session_name, unhex};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names that were used. A session's records are used one after the other, with few gaps: as ranges of numbers they take no
/// more memory the longer a session goes on.
#[derive(Default)]
struct Used {
    /// Last numbers of ranges, by the first.
    records: HashMap<SessionName, BTreeMap<u64, u64>>,
    others: HashSet<String>,
}

impl Used {
    /// Session and number of a record's name.
    fn record(name: &str) -> Option<(SessionName, u64)> {
        let (session, index) = name.strip_prefix("record ")?.split_once('/')?;
        Some((unhex(session)?, index.parse().ok()?))
    }

    fn contains(&self, name: &str) -> bool {
        match Self::record(name) {
            None => self.others.contains(name),
            Some((session, index)) => self.records.get(&session).is_some_and(|ranges| holds(ranges, index)),
        }
    }

    /// False when it was there before.
    fn insert(&mut self, name: &str) -> bool {
        let Some((session, index)) = Self::record(name) else { return self.others.insert(name.to_owned()) };
        let ranges = self.records.entry(session).or_default();
        if holds(ranges, index) {
            return false;
        }
        let last = index.checked_add(1).and_then(|after| ranges.remove(&after)).unwrap_or(index);
        match ranges.range_mut(..index).next_back().filter(|(_, end)| end.checked_add(1) == Some(index)) {
            Some((_, end)) => *end = last,
            None => {
                ranges.insert(index, last);
            }
        }
        true
    }
}

fn holds(ranges: &BTreeMap<u64, u64>, index: u64) -> bool {
    ranges.range(..=index).next_back().is_some_and(|(_, end)| *end >= index)
}

/// The names of a journal as of now, for those who may not write into it.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<Used>>);

impl Names {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when a record was used before.
    pub fn has_record(&self, session: &SessionName, index: u64) -> bool {
        self.lock().records.get(session).is_some_and(|ranges| holds(ranges, index))
    }

    /// True when a session was begun or burnt, or a record of it used.
    pub fn has_session(&self, session: &SessionName) -> bool {
        let used = self.lock();
        used.records.contains_key(session) || used.others.contains(&session_name(session))
    }

    /// The highest number of a session's used records.
    pub fn last_record(&self, session: &SessionName) -> Option<u64> {
        self.lock().records.get(session)?.last_key_value().map(|(_, end)| *end)
    }
}

/// An append-only list of used names, locked for one process.
pub struct Journal {
    file: File,
    used: Names,
    /// The file may end within a line.
    torn: bool,
}

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Another process holds the lock.
    #[error(
        "another privet process uses this key store: stop it, or give this one its own `store` directory"
    )]
    InUse,
}

impl Journal {
    /// Open or create, and lock until dropped.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        Self::open_with(path, |dir| File::open(dir)?.sync_all())
    }

    /// `sync_dir` makes the entries of a directory durable.
    fn open_with(
        path: &Path,
        sync_dir: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<Journal, JournalError> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::InUse),
            Err(std::fs::TryLockError::Error(e)) => return Err(e.into()),
        }
        // Syncing a file makes its lines durable, not its name: after a power cut a new journal could be gone, with
        // every line in it, while the records that they burnt are still there. Done at every start, because
        // whoever created the file may have died before doing it.
        sync_dir(path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A crash can leave a torn last line. What it was to name was not used yet (use follows the sync). Closed
        // off here, it is nobody's name, or that of another record, which is then burnt; it frees none.
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
            file.sync_data()?;
        }
        let mut used = Used::default();
        for name in text.lines() {
            used.insert(name);
        }
        Ok(Journal { file, used: Names(Arc::new(Mutex::new(used))), torn: false })
    }

    /// The names in it.
    pub(crate) fn names(&self) -> Names {
        self.used.clone()
    }

    /// True when `name` was used before.
    pub fn contains(&self, name: &str) -> bool {
        self.used.lock().contains(name)
    }

    /// Mark `name` as used, durably. False when it was used before: then it must not be used again.
    pub fn mark(&mut self, name: &str) -> std::io::Result<bool> {
        if !self.used.lock().insert(name) {
            return Ok(false);
        }
        // A write that failed (a full disk) may have left part of a line, which must not run into this one.
        let start = if self.torn { "\n" } else { "" };
        self.torn = true;
        self.file.write_all(format!("{start}{name}\n").as_bytes())?;
        self.torn = false;
        self.file.sync_data()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_be_marked_before_the_journals_name_is_durable() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        for life in 0..3 {
            let mut synced = 0;
            let journal = Journal::open_with(&path, |synced_dir| {
                assert_eq!(synced_dir, dir.path());
                assert!(path.exists(), "synced before there was anything to sync");
                assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), life);
                synced += 1;
                Ok(())
            });
            assert!(journal.unwrap().mark(&format!("record {life}")).unwrap());
            assert_eq!(synced, 1, "in life {life}");
        }
    }

    #[test]
    fn used_names_are_known_in_any_order_and_take_no_room_in_a_row() {
        let session = |s: u8| crate::names::hex(&[s; 16]);
        let record = |s, index: u64| format!("record {}/{index}", session(s));
        let mut used = Used::default();
        let orders: [&[u64]; 4] = [&[0, 1, 2, 3, 4], &[4, 3, 2, 1, 0], &[1, 3, 0, 4, 2], &[2, 0, 4, 1, 3]];
        for (s, order) in (1..).zip(orders) {
            for (i, &index) in order.iter().enumerate() {
                assert!(used.insert(&record(s, index)) && !used.insert(&record(s, index)), "{s}: {index}");
                (0..6).for_each(|n| {
                    assert_eq!(used.contains(&record(s, n)), order[..=i].contains(&n), "{s}: {n}")
                });
            }
            assert_eq!(used.records[&[s; 16]], BTreeMap::from([(0, 4)]));
        }
        for edge in [u64::MAX, 0, u64::MAX - 1, 7] {
            assert!(used.insert(&record(9, edge)) && !used.insert(&record(9, edge)));
        }
        assert_eq!(used.records[&[9; 16]], BTreeMap::from([(0, 0), (7, 7), (u64::MAX - 1, u64::MAX)]));
        // What is no record's name stays as it is.
        for name in ["", "session 00", "record 00/1", "record", &format!("record {}/x", session(1))] {
            assert!(
                !used.contains(name) && used.insert(name) && used.contains(name) && !used.insert(name),
                "{name}"
            );
        }
    }

    #[test]
    fn a_journal_whose_name_cannot_be_made_durable_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let failing = |_: &Path| Err(std::io::ErrorKind::StorageFull.into());
        let error = Journal::open_with(&dir.path().join("journal"), failing).err().unwrap();
        assert!(matches!(error, JournalError::Io(_)), "{error}");
    }
}

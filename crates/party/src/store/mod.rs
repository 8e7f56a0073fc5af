//! The preprocessing store of one evaluator: sessions, their key records, and the journal of used ones.
//!
//! ```text
//! store/journal                      used sessions and records, one a line
//! store/<session>/session.key        the session's seed and public hash keys
//! store/<session>/<index>.keys       one record, for one run
//! (memory)                           the same records, where a stream of them is used soon
//! store/checking/                    the same for sessions that are not accepted yet (dealer checks)
//! ```
//! Directories are 0700 and files 0600. A file is written under another name, synced, then renamed.

pub mod checked;
pub mod format;
mod held;
mod journal;
mod mapped;
mod shelf;
mod space;

pub use held::Staged;
pub use shelf::{PendingFile, Shelf, pending_record, write_session};
pub use space::Space;

use format::{FormatError, RecordId, RecordReader, Source};
use held::Held;
use journal::{Journal, JournalError};
use privet_prg::{HashKeys, Seed};
use serde::{Deserialize, Serialize};
use space::Place;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use zeroize::Zeroizing;

/// Why keys cannot be had. Messages name the file and the remedy.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("{path}: {source}{}", remedy(source))]
    Io {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A record was refused.
    #[error("{path}: {source}")]
    Format {
        /// The file.
        path: String,
        /// The cause.
        source: FormatError,
    },
    /// The journal.
    #[error("{path}: {source}")]
    Journal {
        /// The directory.
        path: String,
        /// The cause.
        source: JournalError,
    },
    /// Single use.
    #[error("{what} was used before and is refused: keys work once; deal new ones (`prepare`)")]
    Used {
        /// What was used.
        what: String,
    },
    /// Not there.
    #[error("{what} is not in the store: deal keys first (`prepare`), or carry the dealer's files here")]
    Missing {
        /// What is missing.
        what: String,
    },
}

fn remedy(e: &io::Error) -> &'static str {
    match e.kind() {
        // The store's own budget: the cause names its remedy.
        io::ErrorKind::QuotaExceeded if e.get_ref().is_some() => "",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": no space left for keys; free some, or prepare fewer runs at a time"
        }
        io::ErrorKind::PermissionDenied => ": the process may not write there; check owner and mode",
        _ => "",
    }
}

/// What an evaluator keeps of a session.
pub struct SessionKeys {
    /// The session.
    pub session: [u8; 16],
    /// The plan it was dealt for.
    pub plan: [u8; 32],
    /// The evaluator.
    pub party: u8,
    /// Seed of this evaluator's shares of the weights' masks.
    pub seed: Seed,
    /// Public hash keys.
    pub hash: HashKeys,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionFile {
    format: u32,
    session: String,
    plan: String,
    party: u8,
    seed: String,
    hash_inner: String,
    hash_leaf: String,
}

/// A session's public name.
pub type SessionName = [u8; 16];

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Parse exactly `N` bytes of hexadecimal.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (i, b) in out.iter_mut().enumerate() {
        *b = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

impl SessionKeys {
    /// The session file's text. Holds a secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let file = SessionFile {
            format: 1,
            session: hex(&self.session),
            plan: hex(&self.plan),
            party: self.party,
            seed: hex(self.seed.expose()),
            hash_inner: hex(&self.hash.inner),
            hash_leaf: hex(&self.hash.leaf),
        };
        Zeroizing::new(serde_json::to_vec(&file).unwrap_or_default())
    }

    /// Parse an untrusted session file.
    pub fn decode(text: &[u8]) -> Option<SessionKeys> {
        let f: SessionFile = serde_json::from_slice(text).ok()?;
        (f.format == 1 && f.party < 2).then_some(())?;
        Some(SessionKeys {
            session: unhex(&f.session)?,
            plan: unhex(&f.plan)?,
            party: f.party,
            seed: Seed::from_bytes(unhex(&f.seed)?),
            hash: HashKeys { inner: unhex(&f.hash_inner)?, leaf: unhex(&f.hash_leaf)? },
        })
    }
}

/// A record taken for use: it is gone from the store and open here alone.
pub type ClaimedRecord = RecordReader<Source>;

/// The store of one evaluator, locked for this process.
pub struct Store {
    dir: PathBuf,
    journal: Journal,
    space: Arc<Space>,
    held: Arc<Held>,
}

impl Store {
    /// Open or create the store at `dir`. What is left of sessions that were begun is removed: they ended with the
    /// process that began them.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        create_dir(dir)?;
        let journal = Journal::open(&dir.join("journal"))
            .map_err(|source| StoreError::Journal { path: dir.display().to_string(), source })?;
        let space = Arc::new(Space::new(dir, None, 0));
        let store = Store { dir: dir.to_owned(), journal, space, held: Arc::default() };
        store.clear_checking()?;
        store.clear_unusable()?;
        Ok(store)
    }

    /// Refuse to hold more than this many bytes on disk; no limit but the disk's when none.
    pub fn with_budget(self, budget: Option<u64>) -> Store {
        let memory = self.space.memory_budget();
        Store { space: Arc::new(Space::new(&self.dir, budget, memory)), ..self }
    }

    /// Hold up to so many bytes of streamed records in memory instead.
    pub fn with_memory(self, bytes: u64) -> Store {
        let disk = self.space.disk_budget();
        Store { space: Arc::new(Space::new(&self.dir, disk, bytes)), ..self }
    }

    /// Take up room together with other stores.
    pub fn within(self, space: Arc<Space>) -> Store {
        Store { space, ..self }
    }

    /// Where new sessions and records are put, within what the budget leaves now.
    pub fn shelf(&self) -> Result<Shelf, StoreError> {
        self.shelf_at(self.dir.clone())
    }

    /// Where the files of a session are.
    pub fn session_dir(&self, session: &[u8; 16]) -> PathBuf {
        self.dir.join(hex(session))
    }

    /// Begin a session: from here on no other process may. Refused when one did before, and when the file is
    /// another session's, plan's, or party's (with the other party's seed both would mask alike).
    pub fn begin_session(
        &mut self,
        session: &[u8; 16],
        party: u8,
        plan: &[u8; 32],
    ) -> Result<SessionKeys, StoreError> {
        self.may_begin(session, party, plan)?;
        let keys = self.session_keys(session, party, plan)?;
        self.mark(&session_name(session))?;
        Ok(keys)
    }

    /// Whether [`Store::begin_session`] would succeed; nothing is used up.
    pub fn may_begin(&self, session: &[u8; 16], party: u8, plan: &[u8; 32]) -> Result<(), StoreError> {
        let name = session_name(session);
        if self.journal.contains(&name) {
            return Err(StoreError::Used { what: name });
        }
        self.session_keys(session, party, plan).map(drop)
    }

    fn session_keys(
        &self,
        session: &[u8; 16],
        party: u8,
        plan: &[u8; 32],
    ) -> Result<SessionKeys, StoreError> {
        let path = self.session_dir(session).join("session.key");
        let text = Zeroizing::new(fs::read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { what: session_name(session) },
            _ => StoreError::Io { path: path.display().to_string(), source },
        })?);
        let refused = |source| StoreError::Format { path: path.display().to_string(), source };
        let keys = SessionKeys::decode(&text).ok_or_else(|| refused(FormatError::Damaged("session file")))?;
        // The file's identity is that of a record, without an index.
        let id = |session: &[u8; 16], party, plan: &[u8; 32]| RecordId {
            session: *session,
            index: 0,
            party,
            plan: *plan,
        };
        format::refuse_foreign(&id(&keys.session, keys.party, &keys.plan), &id(session, party, plan))
            .map_err(refused)?;
        Ok(keys)
    }

    /// Sessions for `plan` that nobody began, with the numbers of their records.
    pub fn fresh_sessions(&self, plan: &[u8; 32]) -> Result<Vec<(SessionName, Vec<u64>)>, StoreError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io_at(&self.dir))? {
            let path = entry.map_err(io_at(&self.dir))?.path();
            let Some(session) = path.file_name().and_then(|n| n.to_str()).and_then(unhex::<16>) else {
                continue;
            };
            let Ok(text) = fs::read(path.join("session.key")).map(Zeroizing::new) else { continue };
            let matches = SessionKeys::decode(&text).is_some_and(|k| &k.plan == plan);
            if matches && !self.journal.contains(&session_name(&session)) {
                found.push((session, self.records(&session)?));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Numbers of the session's records that are here and unused, ascending.
    pub fn records(&self, session: &[u8; 16]) -> Result<Vec<u64>, StoreError> {
        let dir = self.session_dir(session);
        let mut indices: Vec<u64> = fs::read_dir(&dir)
            .map_err(io_at(&dir))?
            .filter_map(|e| e.ok()?.file_name().to_str()?.strip_suffix(".keys")?.parse().ok())
            .collect();
        indices.extend(self.held.records(session));
        indices.retain(|&i| !self.journal.contains(&record_name(session, i)));
        indices.sort_unstable();
        Ok(indices)
    }

    /// Take a record for use, once and for all: it is marked used, durably, and gone from the store, before the
    /// first of its keys is read. A crash after that burns it.
    pub fn claim(&mut self, id: &RecordId) -> Result<ClaimedRecord, StoreError> {
        let name = record_name(&id.session, id.index);
        if self.journal.contains(&name) {
            return Err(StoreError::Used { what: name });
        }
        match self.held.take(&id.session, id.index) {
            Some(pieces) => {
                let reader = RecordReader::open_pieces(pieces, id)
                    .map_err(|source| StoreError::Format { path: name.clone(), source })?;
                self.mark(&name)?;
                Ok(reader)
            }
            None => self.claim_file(id, &name),
        }
    }

    fn claim_file(&mut self, id: &RecordId, name: &str) -> Result<ClaimedRecord, StoreError> {
        let path = record_path(&self.dir, &id.session, id.index);
        let file = File::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { what: name.to_owned() },
            _ => StoreError::Io { path: path.display().to_string(), source },
        })?;
        let bytes = file.metadata().map_err(io_at(&path))?.len();
        let reader = RecordReader::open_mapped(file, Some(id)).map_err(|source| {
            // Out of the way of the records that follow; nothing of it was used, so the right file may still come.
            let _ = fs::rename(&path, path.with_extension("refused"));
            StoreError::Format { path: path.display().to_string(), source }
        })?;
        self.mark(name)?;
        fs::remove_file(&path).map_err(io_at(&path))?;
        Ok(reader.counted(self.space.unnamed(bytes)))
    }

    /// Remove a record that neither this nor any later run will ask for. It is not marked: nothing of it was used.
    pub fn drop_record(&self, session: &[u8; 16], index: u64) -> Result<(), StoreError> {
        if self.held.take(session, index).is_some() {
            return Ok(());
        }
        let path = record_path(&self.dir, session, index);
        match fs::metadata(&path) {
            Err(_) => Ok(()),
            Ok(file) => {
                fs::remove_file(&path).map_err(io_at(&path))?;
                self.space.give_back(Place::Disk, file.len());
                Ok(())
            }
        }
    }

    /// Remove what is left of a session that was begun and is over.
    pub fn drop_session(&self, session: &[u8; 16]) -> Result<(), StoreError> {
        self.held.discard(session);
        let dir = self.session_dir(session);
        if !self.journal.contains(&session_name(session)) || !dir.exists() {
            return Ok(());
        }
        let bytes = space::bytes_below(&dir)?;
        fs::remove_dir_all(&dir).map_err(io_at(&dir))?;
        self.space.give_back(Place::Disk, bytes);
        Ok(())
    }

    /// Remove sessions that were begun, and records that were cut off.
    fn clear_unusable(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.dir).map_err(io_at(&self.dir))? {
            let path = entry.map_err(io_at(&self.dir))?.path();
            let Some(session) = path.file_name().and_then(|n| n.to_str()).and_then(unhex::<16>) else {
                continue;
            };
            self.drop_session(&session)?;
            let Ok(files) = fs::read_dir(&path) else { continue };
            for file in files.filter_map(|f| Some(f.ok()?.path())) {
                if file.extension().is_some_and(|e| e == "part") && shelf::is_abandoned(&file) {
                    fs::remove_file(&file).map_err(io_at(&file))?;
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, name: &str) -> Result<(), StoreError> {
        match self.journal.mark(name) {
            Ok(true) => {
                self.space.grew(name.len() as u64 + 1);
                Ok(())
            }
            Ok(false) => Err(StoreError::Used { what: name.to_owned() }),
            Err(source) => {
                Err(StoreError::Io { path: self.dir.join("journal").display().to_string(), source })
            }
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn session_name(session: &[u8; 16]) -> String {
    format!("session {}", hex(session))
}

fn record_name(session: &[u8; 16], index: u64) -> String {
    format!("record {}/{index}", hex(session))
}

fn record_path(store: &Path, session: &[u8; 16], index: u64) -> PathBuf {
    store.join(hex(session)).join(format!("{index}.keys"))
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.display().to_string();
    move |source| StoreError::Io { path: path.clone(), source }
}

fn create_dir(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_at(dir))
}

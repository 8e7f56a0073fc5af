//! The store of what a party may use once: sessions, their records, and the journal of used ones. It belongs to no protocol: a
//! record is [`RecordId`](format::RecordId) and frames, whatever is in them, for any number of parties.
//!
//! ```text
//! store/journal                      used sessions and records, one a line
//! store/<session>/session.key        which session it is, how it was checked, the family's keys of it
//! store/<session>/<index>.keys       one record, for one run
//! (memory)                           the same records, where a stream of them is used soon
//! store/checking/                    the same for sessions that are not accepted yet
//! ```
//! Directories are 0700 and files 0600. A file is written under another name and then named, where no file has that name:
//! nothing in a store is ever replaced. `docs/store.md` has the guarantees and why they hold.

pub mod checked;
mod error;
pub mod format;
mod held;
mod journal;
mod mapped;
mod names;
mod pending;
mod session;
mod shelf;
mod space;
mod store;

pub use error::{StoreError, in_full};
pub use held::Staged;
pub use journal::JournalError;
pub use names::{SessionName, hex, unhex};
pub use pending::PendingFile;
pub use session::{MAX_KEYS, SessionFile, SessionId};
pub use shelf::{Shelf, pending_record, write_session};
pub use space::{OverBudget, Space};
pub use store::{ClaimedRecord, Fresh, Store};

//! Why keys cannot be had.

use crate::format::FormatError;
use crate::journal::JournalError;
use std::error::Error;
use std::io;
use std::path::Path;
use thiserror::Error;

/// Why keys cannot be had. Messages name the kind and the remedy; they may travel to clients, so they name no path of this
/// machine. [`in_full`] adds the path, for this machine's terminal.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("the key store: {source}{}", remedy(source))]
    Io {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A record or session file was refused.
    #[error("{what}: {source}")]
    Format {
        /// Which.
        what: String,
        /// The file.
        path: String,
        /// The cause.
        source: FormatError,
    },
    /// The journal.
    #[error("{source}")]
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
    /// Something of that name is there, and is never replaced.
    #[error(
        "{what} is in this party's store already, and nothing there is ever replaced: whoever sent it again is broken or cheats"
    )]
    Occupied {
        /// What is there.
        what: String,
    },
    /// A name that is not new was given to a new session.
    #[error(
        "{what} was sent as a new session, but this party knows that name: whoever sent it is broken or cheats; what was \
         there before is unchanged"
    )]
    Known {
        /// The session.
        what: String,
    },
    /// Further records of a session with numbers that are not new.
    #[error(
        "records of {what} were sent with number {index}, but this party has seen number {last} of it: whoever sent them is \
         broken or cheats; what was there before is unchanged"
    )]
    NotAbove {
        /// The session.
        what: String,
        /// The first number that was sent.
        index: u64,
        /// The highest number that was ever seen.
        last: u64,
    },
    /// Further records of a session that differ from it in what all its records share.
    #[error(
        "further records of {what} came with other keys of the session: whoever sent them is broken or cheats; what was there \
         before is unchanged"
    )]
    OtherSession {
        /// The session.
        what: String,
    },
    /// Further records for a session whose records were checked.
    #[error(
        "{what} was accepted with checks, and takes no further records without: prepare with checks, which makes a new session"
    )]
    Checked {
        /// The session.
        what: String,
    },
    /// A session that passed fewer checks than are demanded.
    #[error(
        "{what} was accepted with {found} checks, and this deployment demands {least} (`min_checks`): prepare with {least} \
         checks or more"
    )]
    Unchecked {
        /// The session.
        what: String,
        /// Checks that it passed.
        found: u64,
        /// Checks that are demanded.
        least: u64,
    },
}

impl StoreError {
    fn path(&self) -> Option<&str> {
        match self {
            StoreError::Io { path, .. }
            | StoreError::Format { path, .. }
            | StoreError::Journal { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// An error's message, with the path of the store's file where one is behind it. For this machine's terminal alone.
pub fn in_full(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(path) = e.downcast_ref::<StoreError>().and_then(StoreError::path) {
            return format!("{error} [{path}]");
        }
        cause = e.source();
    }
    error.to_string()
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

pub(crate) fn io_at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.display().to_string();
    move |source| StoreError::Io { path: path.clone(), source }
}

//! Errors of the store of keys.

use crate::events::{Bytes, Count, ErrorKind, KeyFile, Name, Number, Reason, Why, reason};
use crate::store::format::FormatError;
use crate::store::{JournalError, OverBudget, StoreError};
use std::io;

/// What the system says, or the store's own budget.
fn of_io(e: &io::Error, path: &str) -> Reason {
    if let Some(over) = e.get_ref().and_then(|e| e.downcast_ref::<OverBudget>()) {
        return reason!(
            "store.over_budget",
            "the store may hold {budget} (`disk_budget` in node.toml), and these keys would not fit: raise the budget, or \
             prepare fewer runs at a time",
            budget = Bytes::of(over.budget),
        );
    }
    reason!(
        "store.files",
        "the key store, {file}: {kind}; look at the room, the owner and the mode there",
        file = KeyFile::of(path),
        kind = ErrorKind::from(e),
    )
}

impl Why for StoreError {
    fn why(&self) -> Reason {
        match self {
            StoreError::Io { path, source } => of_io(source, path),
            StoreError::Format { path, source, .. } => format(source, path),
            StoreError::Journal { path, source } => match source {
                JournalError::Io(e) => of_io(e, path),
                JournalError::InUse => reason!(
                    "store.in_use",
                    "another privet process uses this key store: stop it, or give this one its own `store` directory",
                ),
            },
            StoreError::Used { what } => reason!(
                "store.used",
                "{what} was used before and is refused: keys work once",
                what = KeyFile::named(what),
            ),
            StoreError::Missing { what } => reason!(
                "store.missing",
                "{what} is not in the store: deal keys first (`prepare`), or carry the dealer's files here",
                what = KeyFile::named(what),
            ),
            StoreError::Occupied { what } => reason!(
                "store.occupied",
                "{what} is in this party's store already, and nothing there is ever replaced: whoever sent it again is broken or \
                 cheats",
                what = KeyFile::named(what),
            ),
            StoreError::Known { what } => reason!(
                "store.known",
                "{what} was sent as a new session, but this party knows that name: whoever sent it is broken or cheats",
                what = KeyFile::named(what),
            ),
            StoreError::NotAbove { what, index, last } => reason!(
                "store.not_above",
                "records of {what} were sent with number {index}, but this party has seen number {last} of it: whoever sent them \
                 is broken or cheats",
                what = KeyFile::named(what),
                index = Number::of(*index),
                last = Number::of(*last),
            ),
            StoreError::OtherSession { what } => reason!(
                "store.other_session",
                "further records of {what} came with other keys of the session: whoever sent them is broken or cheats",
                what = KeyFile::named(what),
            ),
            StoreError::Checked { what } => reason!(
                "store.checked",
                "{what} was accepted with checks, and takes no further records without: prepare with checks",
                what = KeyFile::named(what),
            ),
            StoreError::Unchecked { what, found, least } => reason!(
                "store.unchecked",
                "{what} was accepted with {found} checks, and this deployment demands {least} (`min_checks`)",
                what = KeyFile::named(what),
                found = Count::of(*found),
                least = Count::of(*least),
            ),
        }
    }
}

fn format(e: &FormatError, path: &str) -> Reason {
    let file = || KeyFile::of(path);
    match e {
        FormatError::Io(e) => of_io(e, path),
        FormatError::NotARecord => {
            reason!("store.not_a_record", "{file} is no key record of privet", file = file())
        }
        FormatError::Version { found, read } => reason!(
            "store.version",
            "{file} has format {found}, this version reads {read}: deal new keys with this version",
            file = file(),
            found = Count::of(u64::from(*found)),
            read = Count::of(u64::from(*read)),
        ),
        FormatError::Damaged(part) => reason!(
            "store.damaged",
            "{file}: its {part} is damaged: deal new keys",
            file = file(),
            part = Name::of(part),
        ),
        FormatError::Truncated { found } => reason!(
            "store.truncated",
            "{file} is truncated ({found}): writing it was cut off; deal new keys",
            file = file(),
            found = Bytes::of(*found),
        ),
        FormatError::EndsEarly => {
            reason!("store.ends_early", "{file} ends before the plan does: deal new keys", file = file())
        }
        FormatError::Frame(frame) => reason!(
            "store.frame",
            "{file}: frame {frame} is damaged: the disk or a copy changed it; deal new keys",
            file = file(),
            frame = Number::of(*frame),
        ),
        FormatError::Foreign { what, .. } => reason!(
            "store.foreign",
            "{file} belongs to another {what}: put back the right file",
            file = file(),
            what = Name::of(what),
        ),
    }
}

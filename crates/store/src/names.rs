//! What sessions and records are called: in the journal, in file names, in errors.

use std::path::{Path, PathBuf};

/// A session's public name.
pub type SessionName = [u8; 16];

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Parse exactly `N` bytes of hexadecimal.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (i, b) in out.iter_mut().enumerate() {
        *b = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

/// A session in the journal.
pub(crate) fn session_name(session: &SessionName) -> String {
    format!("session {}", hex(session))
}

/// A record in the journal.
pub(crate) fn record_name(session: &SessionName, index: u64) -> String {
    format!("record {}/{index}", hex(session))
}

/// Where a session's files are, below a store or the place for checks.
pub(crate) fn session_dir(below: &Path, session: &SessionName) -> PathBuf {
    below.join(hex(session))
}

/// Where a record is.
pub(crate) fn record_path(below: &Path, session: &SessionName, index: u64) -> PathBuf {
    session_dir(below, session).join(format!("{index}.keys"))
}

/// Where a session's own file is.
pub(crate) fn session_path(below: &Path, session: &SessionName) -> PathBuf {
    session_dir(below, session).join("session.key")
}

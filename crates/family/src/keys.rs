//! What is prepared before a run, as a stream of frames.
//!
//! The plan fixes the sequence of frames and their lengths for whoever writes and whoever reads, so a frame carries neither
//! type nor length of its own here; the store or the channel below adds checks.

use thiserror::Error;

/// Why what is prepared cannot be written or read.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The stream is not what the plan says.
    #[error("{0}")]
    Corrupt(String),
}

/// Where a party takes frames from, each exactly once.
pub trait KeySource {
    /// The next frame, which must have `len` bytes (over 0).
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError>;
}

/// Largest number of keys or words to a frame such that it stays near [`FRAME_BYTES`]; a multiple of 64
/// so that blocks of the comparison layout stay whole.
pub fn frame_elements(bytes_each: usize) -> usize {
    (FRAME_BYTES / bytes_each.max(1)).next_multiple_of(64)
}

/// Target size of a frame: a few fit a core's second-level cache, and the cost of handling one is
/// small against the work on it.
pub const FRAME_BYTES: usize = 512 << 10;

/// Streams in memory, for tests and for counting.
#[derive(Default)]
pub struct MemoryKeys {
    frames: std::collections::VecDeque<Vec<u8>>,
    current: Vec<u8>,
}

impl MemoryKeys {
    /// Bytes that wait to be read.
    pub fn bytes(&self) -> usize {
        self.frames.iter().map(Vec::len).sum()
    }

    /// One frame more.
    pub fn push(&mut self, frame: Vec<u8>) {
        self.frames.push_back(frame);
    }

    /// The frames that wait to be read.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(Vec::as_slice)
    }
}

impl KeySource for MemoryKeys {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.current =
            self.frames.pop_front().ok_or_else(|| KeyError::Corrupt("the key stream has ended".into()))?;
        if self.current.len() != len {
            let found = self.current.len();
            return Err(KeyError::Corrupt(format!("a key frame of {found} bytes where {len} were due")));
        }
        Ok(&self.current)
    }
}

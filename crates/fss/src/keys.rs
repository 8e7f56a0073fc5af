//! The stream of key frames between dealer and evaluators.
//!
//! The plan fixes the sequence of frames and their lengths on both sides, so a frame carries neither
//! type nor length of its own here; the store or the channel below adds checks (`privet-party`).

use thiserror::Error;

/// Why keys cannot be written or read.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The stream is not what the plan says.
    #[error("{0}")]
    Corrupt(String),
}

/// Where the dealer puts frames.
pub trait KeySink {
    /// Append `frames[b]` to the stream of evaluator b; an empty frame leaves that stream as it is.
    ///
    /// The sink may keep a buffer and leave another one in its place, with any contents: frames are large,
    /// and a copy of each would cost a dealer as much as dealing it.
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError>;
}

/// Where an evaluator takes frames from, each exactly once.
pub trait KeySource {
    /// The next frame, which must have `len` bytes (over 0).
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError>;
}

/// Largest number of keys or words to a frame such that it stays near [`FRAME_BYTES`]; a multiple of 64
/// so that blocks of the comparison layout stay whole.
pub(crate) fn frame_elements(bytes_each: usize) -> usize {
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

    /// The frames that wait to be read.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(Vec::as_slice)
    }
}

impl KeySink for [MemoryKeys; 2] {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (keys, frame) in self.iter_mut().zip(frames) {
            if !frame.is_empty() {
                keys.frames.push_back(std::mem::take(frame));
            }
        }
        Ok(())
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

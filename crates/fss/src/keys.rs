//! The streams of key frames between dealer and evaluators.

pub(crate) use privet_family::keys::frame_elements;
pub use privet_family::keys::{FRAME_BYTES, KeyError, KeySource, MemoryKeys};

/// Where the dealer puts frames.
pub trait KeySink {
    /// Append `frames[b]` to the stream of evaluator b; an empty frame leaves that stream as it is.
    ///
    /// The sink may keep a buffer and leave another one in its place, with any contents: frames are large,
    /// and a copy of each would cost a dealer as much as dealing it.
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError>;
}

impl KeySink for [MemoryKeys; 2] {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (keys, frame) in self.iter_mut().zip(frames) {
            if !frame.is_empty() {
                keys.push(std::mem::take(frame));
            }
        }
        Ok(())
    }
}

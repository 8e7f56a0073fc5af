//! What a record holds: frames of one kind each, whose sizes follow from the plan for whoever writes and whoever reads.

use crate::preprocess::Kept;
use privet_family::keys::{KeyError, KeySource, MemoryKeys};
use privet_ring::{Ring, pack, unpack};

/// Where frames go.
pub trait RecordSink {
    /// Append a frame, which is not empty, to the record of the seat at `place`. The sink may keep the buffer.
    fn put(&mut self, place: usize, frame: &mut Vec<u8>) -> Result<(), KeyError>;
}

impl RecordSink for Vec<MemoryKeys> {
    fn put(&mut self, place: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        self[place].push(std::mem::take(frame));
        Ok(())
    }
}

/// The bytes of a frame of the seat at `place`.
pub fn frame(kept: &Kept, place: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    match kept {
        Kept::Bits(bits) => pack(Ring::R64, &bits.shares()[place], &mut frame),
        Kept::Words(words) => pack(words.ring(), &words.shares()[place], &mut frame),
        Kept::Public(ring, value) => pack(*ring, value, &mut frame),
    }
    frame
}

/// The next `n` elements, packed.
pub(crate) fn elements(source: &mut dyn KeySource, ring: Ring, n: usize) -> Result<Vec<u64>, KeyError> {
    let frame = source.take(ring.packed_bytes(n))?;
    unpack(ring, frame, n).map_err(|e| KeyError::Corrupt(e.to_string()))
}

//! Masks of words of bits that a party has sent: made again from the key where they are read, so that no memory holds them until then.

use crate::mutation;
use privet_prg::Prg;
use privet_ring::Ring;
use std::ops::Range;
use std::sync::Arc;

/// Words of a stream.
#[derive(Clone)]
pub(crate) struct Mask {
    /// It stands where it stood before anything was drawn.
    stream: Arc<Prg>,
    start: usize,
    words: usize,
    /// The fault that takes it away.
    fault: &'static str,
}

impl Mask {
    /// The next words of a stream, from an even one on, counted from where it stands. Where the fault `fault` is active they are 0.
    pub fn of(stream: &Arc<Prg>, start: usize, words: usize, fault: &'static str) -> Mask {
        Mask { stream: stream.clone(), start, words, fault }
    }

    /// Words.
    pub fn len(&self) -> usize {
        self.words
    }

    /// The words `range`. Panics where it begins at an odd word, or ends behind the last one.
    pub fn put(&self, range: Range<usize>, out: &mut [u64]) {
        assert!(range.end <= self.words && range.len() == out.len(), "words that are not of the mask");
        self.stream.again(self.start + range.start).fill(Ring::R64, out);
        mutation::mask(self.fault, [out]);
    }
}

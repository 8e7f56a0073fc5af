//! Planes and elements as they lie in messages, written and read chunk by chunk. A plane is whole bytes.

use crate::planes;
use crate::uses::plane_bytes;

/// Planes of n elements on their way out.
pub(crate) struct Outgoing {
    n: usize,
    each: usize,
    bytes: Vec<u8>,
}

impl Outgoing {
    /// So many planes.
    pub fn new(count: usize, n: usize) -> Outgoing {
        let each = plane_bytes(n) as usize;
        Outgoing { n, each, bytes: vec![0; count * each] }
    }

    /// Words of a plane, from element `first` on: a multiple of 64. Bits past the last element are not sent.
    pub fn put(&mut self, plane: usize, first: usize, words: &[u64]) {
        let room = &mut self.bytes[plane * self.each..][first / 8..self.each];
        let (whole, rest) = room.as_chunks_mut::<8>();
        whole.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
        let past = whole.len();
        if let (Some(word), false) = (words.get(past), rest.is_empty()) {
            rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
        }
        if let (Some(last), true) = (room.last_mut(), !self.n.is_multiple_of(8)) {
            *last &= (1 << (self.n % 8)) - 1;
        }
    }

    /// The message.
    pub fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Planes of n elements that came.
pub(crate) struct Incoming {
    each: usize,
    bytes: Vec<u8>,
}

impl Incoming {
    /// None where a bit past the last element is 1: nobody who follows the protocol sends that.
    pub fn new(n: usize, bytes: Vec<u8>) -> Option<Incoming> {
        let each = plane_bytes(n) as usize;
        let clean = |plane: &[u8]| n.is_multiple_of(8) || plane[each - 1] >> (n % 8) == 0;
        bytes.chunks_exact(each.max(1)).all(clean).then_some(Incoming { each, bytes })
    }

    /// Words of a plane, from element `first` on: a multiple of 64.
    pub fn get(&self, plane: usize, first: usize, out: &mut [u64]) {
        let bytes = &self.bytes[plane * self.each..][first / 8..self.each];
        let (whole, rest) = bytes.as_chunks::<8>();
        out.iter_mut().zip(whole).for_each(|(word, from)| *word = u64::from_le_bytes(*from));
        if let (Some(word), false) = (out.get_mut(whole.len()), rest.is_empty()) {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            *word = u64::from_le_bytes(last);
        }
    }

    /// The same, of some planes: each in `words(n)` words of its own.
    pub fn chunk(&self, planes: std::ops::Range<usize>, first: usize, n: usize) -> Vec<u64> {
        let each = planes::words(n);
        let mut out = vec![0; planes.len() * each];
        planes.zip(out.chunks_exact_mut(each.max(1))).for_each(|(plane, out)| self.get(plane, first, out));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_come_as_they_went_whatever_their_length() {
        for n in [1, 3, 8, 63, 64, 65, 127, 128, 200] {
            let word = |plane: u64, i: u64| (0x9e37_79b9_7f4a_7c15u64).wrapping_mul(1 + plane + 7 * i);
            let mut all: Vec<Vec<u64>> =
                (0..3).map(|p| (0..planes::words(n) as u64).map(|i| word(p, i)).collect()).collect();
            let mut out = Outgoing::new(3, n);
            for (p, words) in all.iter().enumerate() {
                // past the last element there is something, which must not be sent
                for (i, piece) in words.chunks(2).enumerate() {
                    out.put(p, 128 * i, piece);
                }
            }
            all.iter_mut().for_each(|words| planes::tidy(words, n));
            let sent = out.bytes();
            assert_eq!(sent.len(), 3 * n.div_ceil(8));
            let came = Incoming::new(n, sent.clone()).expect("zeros past the last");
            for (p, words) in all.iter().enumerate() {
                for first in (0..n).step_by(64) {
                    let here = came.chunk(p..p + 1, first, n - first);
                    assert_eq!(here, words[first / 64..], "{n} elements, plane {p} from {first}");
                }
            }
            if !n.is_multiple_of(8) {
                let mut wrong = sent;
                wrong[n.div_ceil(8) - 1] |= 0x80;
                assert!(Incoming::new(n, wrong).is_none());
            }
        }
    }
}

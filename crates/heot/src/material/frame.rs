//! What a side keeps of correlations: bits in planes and ring elements, chunk by chunk, used up by who takes it.

use crate::planes;
use privet_prg::Wiped;
use privet_ring::{Ring, pack};
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// What a side keeps of an element: so many bits in planes, then ring elements, each entry so many of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    planes: usize,
    elements: Vec<(Ring, usize)>,
}

impl Shape {
    /// Bits in planes, and one ring element for each ring.
    pub fn of(planes: usize, rings: Vec<Ring>) -> Shape {
        Shape { planes, elements: rings.into_iter().map(|ring| (ring, 1)).collect() }
    }

    /// Several ring elements to each entry.
    pub fn of_many(elements: Vec<(Ring, usize)>) -> Shape {
        Shape { planes: 0, elements }
    }

    /// Words of n elements.
    pub(super) fn words(&self, n: usize) -> usize {
        self.planes * planes::words(n)
            + self.elements.iter().map(|(ring, each)| packed_words(*ring, each * n)).sum::<usize>()
    }
}

fn packed_words(ring: Ring, n: usize) -> usize {
    planes::words(n * ring.bits() as usize)
}

/// One side's material of a chunk. Wiped on drop.
pub(crate) struct Frame {
    /// The first element of it.
    pub first: usize,
    /// How many elements it has.
    pub n: usize,
    shape: Shape,
    words: Wiped<u64>,
}

impl Frame {
    /// To be filled in.
    pub(super) fn zeros(shape: Shape, first: usize, n: usize) -> Frame {
        Frame { first, n, words: Wiped::zeros(shape.words(n)), shape }
    }

    /// As it was written.
    pub(super) fn read(shape: &Shape, first: usize, n: usize, bytes: &[u8]) -> Frame {
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Frame { first, n, shape: shape.clone(), words }
    }

    /// Words of a plane.
    fn each(&self) -> usize {
        planes::words(self.n)
    }

    /// Plane i.
    pub fn plane(&self, i: usize) -> &[u64] {
        debug_assert!(i < self.shape.planes);
        &self.words[i * self.each()..][..self.each()]
    }

    /// Plane i, to be filled in.
    pub fn plane_mut(&mut self, i: usize) -> &mut [u64] {
        debug_assert!(i < self.shape.planes);
        let each = self.each();
        &mut self.words[i * each..][..each]
    }

    /// Where the i-th ring element of all lies.
    fn place(&self, i: usize) -> (Ring, usize, std::ops::Range<usize>) {
        let sizes = self.shape.elements.iter().map(|(ring, each)| packed_words(*ring, each * self.n));
        let first = self.shape.planes * self.each() + sizes.take(i).sum::<usize>();
        let (ring, each) = self.shape.elements[i];
        (ring, each * self.n, first..first + packed_words(ring, each * self.n))
    }

    /// Whether another one has the same elements and the same shape.
    #[cfg(feature = "mutations")]
    pub fn is_like(&self, other: &Frame) -> bool {
        (self.first, self.n, &self.shape) == (other.first, other.n, &other.shape)
    }

    #[cfg(feature = "mutations")]
    pub fn copy(&self) -> Frame {
        Frame { first: self.first, n: self.n, shape: self.shape.clone(), words: self.words.clone() }
    }

    /// As it is written: words, the lowest byte first.
    pub(super) fn bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 * self.words.len()));
        pack(Ring::R64, &self.words, &mut bytes);
        bytes
    }

    /// The i-th ring element of all, or the i-th several of them.
    pub fn elements(&self, i: usize) -> Wiped<u64> {
        let (ring, count, at) = self.place(i);
        unpack(ring, &self.words[at], count)
    }

    /// Sets the i-th ring element of all, or the i-th several.
    pub fn set_elements(&mut self, i: usize, values: &[u64]) {
        let (ring, count, at) = self.place(i);
        debug_assert_eq!(values.len(), count);
        pack_into(ring, values, &mut self.words[at]);
    }
}

/// Elements without gaps, in whole words.
fn pack_into(ring: Ring, values: &[u64], out: &mut [u64]) {
    let (bits, mut have, mut word) = (ring.bits(), 0, 0u128);
    let mut out = out.iter_mut();
    let mut put = |word: u128| out.next().map(|to| *to = word as u64);
    for value in values {
        word |= u128::from(ring.wrap(*value)) << have;
        have += bits;
        if have >= 64 {
            put(word);
            (word, have) = (word >> 64, have - 64);
        }
    }
    put(word);
}

/// The inverse of [`pack_into`].
fn unpack(ring: Ring, words: &[u64], n: usize) -> Wiped<u64> {
    let bits = ring.bits() as usize;
    let at = |i: usize| {
        let (word, shift) = (i * bits / 64, i * bits % 64);
        let above = words.get(word + 1).map_or(0, |above| above << 1 << (63 - shift));
        ring.wrap(words[word] >> shift | above)
    };
    (0..n).map(at).collect()
}

/// A side's material for a step of a gate: of n elements, chunk by chunk. It has no `Clone`, and is used up by who takes it.
#[must_use = "material that is dropped is lost at both sides"]
pub(crate) struct Material<K> {
    frames: Vec<Frame>,
    of: PhantomData<K>,
}

impl<K> Material<K> {
    /// Of all chunks.
    pub(super) fn of(frames: Vec<Frame>) -> Material<K> {
        Material { frames, of: PhantomData }
    }

    /// Chunk by chunk, to look at what goes out first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }
}

impl<K> IntoIterator for Material<K> {
    type Item = Frame;
    type IntoIter = std::vec::IntoIter<Frame>;

    /// Chunk by chunk; each is wiped once it was used.
    fn into_iter(self) -> Self::IntoIter {
        self.frames.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    #[test]
    fn elements_lie_without_gaps_in_whole_words() {
        let mut prg = Seed::random().stream();
        for bits in [1, 2, 7, 12, 25, 31, 32, 33, 37, 63, 64] {
            for n in [1, 2, 63, 64, 65, 200] {
                let (ring, wide) = (Ring::new(bits), prg.elements(Ring::R64, n));
                let mut words = vec![0; packed_words(ring, n)];
                pack_into(ring, &wide, &mut words);
                let expected: Vec<u64> = wide.iter().map(|x| ring.wrap(*x)).collect();
                assert_eq!(unpack(ring, &words, n)[..], expected, "{n} of {bits} bits");
            }
        }
    }
}

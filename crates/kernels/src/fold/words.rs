//! Words that kernels read, which may be sums that nobody has written down.

use super::GROUP;

/// Words of bits: as they stand, or the sum (xor) of two vectors of them.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    first: &'a [u64],
    second: Option<&'a [u64]>,
}

impl<'a> Words<'a> {
    /// The sum of two vectors. Panics where they are not equally long.
    pub fn sum([first, second]: [&'a [u64]; 2]) -> Words<'a> {
        assert_eq!(first.len(), second.len(), "number of words");
        Words { first, second: Some(second) }
    }

    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(self) -> usize {
        self.first.len()
    }

    /// Whether these are the same words, not others that are equal.
    #[cfg(target_arch = "x86_64")]
    fn is(self, other: Words) -> bool {
        let at = |words: &[u64]| (words.as_ptr(), words.len());
        at(self.first) == at(other.first) && self.second.map(at) == other.second.map(at)
    }

    /// The words from `at` on, at most `n`.
    pub(super) fn part(self, at: usize, n: usize) -> Words<'a> {
        let part = |words: &'a [u64]| &words[at..words.len().min(at + n)];
        Words { first: part(self.first), second: self.second.map(part) }
    }

    /// `N` words from `at` on, a multiple of 8: where they stand, or in `room`, with zeros behind the last.
    #[inline(always)]
    pub(super) fn some<'r, const N: usize>(self, at: usize, room: &'r mut [u64; N]) -> &'r [u64; N]
    where
        'a: 'r,
    {
        let first = &self.first[at..];
        let Some(second) = self.second else { return some(first, room) };
        let second = &second[at..];
        match (first.first_chunk::<N>(), second.first_chunk::<N>()) {
            (Some(first), Some(second)) => {
                let rows = room.as_chunks_mut::<8>().0.iter_mut();
                for ((sum, a), b) in rows.zip(first.as_chunks::<8>().0).zip(second.as_chunks::<8>().0) {
                    #[cfg(target_arch = "x86_64")]
                    for words in [a, b] {
                        crate::near::ahead(words);
                    }
                    *sum = std::array::from_fn(|i| a[i] ^ b[i]);
                }
            }
            _ => {
                room.fill(0);
                room.iter_mut().zip(first.iter().zip(second)).for_each(|(sum, (a, b))| *sum = a ^ b);
            }
        }
        room
    }
}

#[cfg(target_arch = "x86_64")]
impl Words<'_> {
    /// The words from `at` on, as many as there is room for, with zeros behind the last.
    #[inline(always)]
    pub(super) fn put(self, at: usize, room: &mut [u64; GROUP]) {
        let Words { first, second } = self.part(at, GROUP);
        room[..first.len()].copy_from_slice(first);
        room[first.len()..].fill(0);
        if let Some(second) = second {
            room.iter_mut().zip(second).for_each(|(sum, word)| *sum ^= word);
        }
    }
}

/// The first `N` words where they stand, or, where there are fewer, in `room` with zeros behind them.
#[inline(always)]
pub(super) fn some<'a, const N: usize>(words: &'a [u64], room: &'a mut [u64; N]) -> &'a [u64; N] {
    match words.first_chunk() {
        Some(whole) => whole,
        None => {
            room[..words.len()].copy_from_slice(words);
            room[words.len()..].fill(0);
            room
        }
    }
}

/// Sums of products of words, and a weight for every group of them.
pub struct WordTerms<'a> {
    /// Words of every operand.
    pub words: usize,
    /// Both operands of every term.
    pub terms: Vec<(Words<'a>, Words<'a>)>,
    /// As many as there are groups; a last group need not be whole.
    pub weights: &'a [u64],
}

impl WordTerms<'_> {
    /// Whether both have one term with the same left operand: kernels for AVX-512 read it once for both.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn has_left_of(&self, other: &WordTerms) -> bool {
        let ([(u, _)], [(v, _)]) = (&self.terms[..], &other.terms[..]) else { return false };
        u.is(*v)
    }

    /// Whether operands are as long as they should be, and weights as many.
    pub(super) fn is_even(&self) -> bool {
        self.words.div_ceil(GROUP) == self.weights.len()
            && self.terms.iter().all(|(u, v)| u.len() == self.words && v.len() == self.words)
    }
}

impl<'a> From<&'a [u64]> for Words<'a> {
    fn from(first: &'a [u64]) -> Words<'a> {
        Words { first, second: None }
    }
}

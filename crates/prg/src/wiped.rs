//! Secret words that are zeroed when they are dropped, and taken again by whoever needs as many.
//!
//! A layer under encryption makes and drops ten thousand polynomials, a comparison among parties a string for every bit. Memory
//! that is new each time costs more than what is computed in it: the system clears it page by page, it is zeroed on request, and
//! wiped at last. So a thread keeps what it wiped, up to [`KEPT`] bytes, until it ends: zeros already, and still near.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// Bytes that a thread keeps of words, among them a block of answers under encryption.
const KEPT: usize = 64 << 20;
/// Bytes that a thread keeps of blocks of 128 bits.
const KEPT_BLOCKS: usize = 8 << 20;
/// Bytes of a buffer that is kept: small ones cost nothing, large ones are made seldom.
const SIZES: std::ops::RangeInclusive<usize> = 1 << 12..=1 << 20;

/// Wiped buffers of a thread, by length: all are zeros.
pub struct Kept<T> {
    bytes: usize,
    buffers: HashMap<usize, Vec<Vec<T>>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { bytes: 0, buffers: HashMap::new() }
    }
}

/// A kind of word.
///
/// # Safety
/// Any bytes are a word, and a word is nothing but its bytes.
pub unsafe trait Word: Copy + Default {
    /// Bytes that a thread keeps.
    const KEPT: usize;

    /// With what this thread keeps of the kind; nothing where the thread is about to end.
    fn with_kept<R>(with: impl FnOnce(&mut Kept<Self>) -> R) -> Option<R>;
}

macro_rules! word {
    ($of:ty, $kept:expr) => {
        // SAFETY: an integer.
        unsafe impl Word for $of {
            const KEPT: usize = $kept;

            fn with_kept<R>(with: impl FnOnce(&mut Kept<$of>) -> R) -> Option<R> {
                thread_local! {
                    static WIPED: RefCell<Kept<$of>> = RefCell::default();
                }
                WIPED.try_with(|kept| with(&mut kept.borrow_mut())).ok()
            }
        }
    };
}

word!(u64, KEPT);
word!(u128, KEPT_BLOCKS);

/// So many zeros.
pub fn zeros<T: Word>(n: usize) -> Vec<T> {
    let kept = T::with_kept(|kept| {
        let buffer = kept.buffers.get_mut(&n)?.pop()?;
        kept.bytes -= size_of_val(&buffer[..]);
        Some(buffer)
    });
    kept.flatten().unwrap_or_else(|| vec![T::default(); n])
}

/// Zero words in place, in one pass of whole registers.
pub fn clear<T: Word>(words: &mut [T]) {
    words.fill(T::default());
    // Zeros that nobody reads before memory is given back would be left out: here somebody may.
    std::hint::black_box(words);
}

/// Bytes from which on zeros go past the caches.
const FAR: usize = 128 << 10;

/// Zero words in place that nobody takes again soon. Zeros of long ones go past the caches: what is overwritten need not be read first, and
/// what is near stays there.
pub fn clear_far<T: Word>(words: &mut [T]) {
    if size_of_val(words) < FAR {
        return clear(words);
    }
    stream_zeros(words);
    std::hint::black_box(words);
}

#[cfg(target_arch = "x86_64")]
fn stream_zeros<T: Word>(words: &mut [T]) {
    use std::arch::x86_64::{__m128i, _mm_setzero_si128, _mm_sfence, _mm_stream_si128};
    // SAFETY: any bytes are words (`Word`), and any are such a register's.
    let (first, registers, last) = unsafe { words.align_to_mut::<__m128i>() };
    first.fill(T::default());
    last.fill(T::default());
    for register in registers {
        // SAFETY: a register's place, which is aligned; every x86-64 has SSE2.
        unsafe { _mm_stream_si128(register, _mm_setzero_si128()) };
    }
    // SAFETY: every x86-64 has SSE. These stores come before all that follow.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn stream_zeros<T: Word>(words: &mut [T]) {
    words.fill(T::default());
}

/// Zero all that the vector has room for; it may be kept for [`zeros`].
pub fn wipe<T: Word>(mut words: Vec<T>) {
    // what was cut off lies behind
    words.resize(words.capacity(), T::default());
    let bytes = size_of_val(&words[..]);
    if !SIZES.contains(&bytes) {
        return clear_far(&mut words);
    }
    clear(&mut words);
    T::with_kept(|kept| {
        if kept.bytes + bytes <= T::KEPT {
            kept.bytes += bytes;
            kept.buffers.entry(words.len()).or_default().push(words);
        }
    });
}

/// Secret words, wiped on drop and never printed.
#[derive(Default)]
pub struct Wiped<T: Word>(Vec<T>);

impl<T: Word> Wiped<T> {
    /// These, from now on.
    pub fn new(words: Vec<T>) -> Wiped<T> {
        Wiped(words)
    }

    /// As many zeros.
    pub fn zeros(n: usize) -> Wiped<T> {
        Wiped(zeros(n))
    }

    /// None yet, and room for so many.
    pub fn with_room(n: usize) -> Wiped<T> {
        let mut words = zeros(n);
        words.clear();
        Wiped(words)
    }

    /// A copy.
    pub fn copy_of(words: &[T]) -> Wiped<T> {
        let mut copy = Wiped::with_room(words.len());
        copy.extend_from_slice(words);
        copy
    }

    /// The words unguarded.
    pub fn expose(mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

impl<T: Word> Drop for Wiped<T> {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.0));
    }
}

impl<T: Word> Clone for Wiped<T> {
    fn clone(&self) -> Wiped<T> {
        Wiped::copy_of(self)
    }
}

impl<T: Word> FromIterator<T> for Wiped<T> {
    fn from_iter<I: IntoIterator<Item = T>>(words: I) -> Wiped<T> {
        let words = words.into_iter();
        let mut all = Wiped::with_room(words.size_hint().0);
        all.extend(words);
        all
    }
}

impl<T: Word> Deref for Wiped<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Word> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Word> AsMut<[T]> for Wiped<T> {
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Word> std::fmt::Debug for Wiped<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wiped(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        let held = |kept: &mut Kept<u64>| {
            let all = kept.buffers.iter().map(|(n, buffers)| 8 * n * buffers.len()).sum();
            assert_eq!(kept.bytes, all);
            assert!(kept.buffers.values().flatten().flatten().all(|w| *w == 0), "kept are zeros");
            all
        };
        u64::with_kept(held).unwrap()
    }

    #[test]
    fn what_was_wiped_is_zeros_and_never_printed() {
        assert_eq!(format!("{:?}", Wiped::new(vec![3u64; 2])), "Wiped(..)");
        for n in [1, 512, 513, 4096, 1 << 17, (1 << 17) + 1] {
            drop(Wiped::new(vec![7u64; n]));
            let mut cut = Wiped::new(vec![9u64; n]);
            cut.truncate(n / 2);
            drop(cut);
            kept();
            let all: Vec<Wiped<u64>> = (0..3).map(|_| Wiped::zeros(n)).collect();
            assert!(all.iter().all(|words| words.len() == n && words.iter().all(|w| *w == 0)), "{n}");
        }
        let mut some = Wiped::with_room(4096);
        some.extend_from_slice(&[1u64, 2]);
        assert_eq!(
            (some.clone().expose(), some.iter().copied().collect::<Wiped<u64>>().len()),
            (vec![1, 2], 2)
        );
    }

    #[test]
    fn long_words_are_cleared_wherever_they_begin() {
        let mut words = vec![u64::MAX; FAR / 8 + 9];
        for first in 0..5 {
            words.fill(u64::MAX);
            let end = words.len() - first % 3;
            clear_far(&mut words[first..end]);
            assert!(
                words[..first].iter().chain(&words[end..]).all(|w| *w == u64::MAX),
                "what is beside stays"
            );
            assert!(words[first..end].iter().all(|w| *w == 0), "from {first}");
        }
        let mut blocks = vec![u128::MAX; FAR / 16 + 1];
        clear_far(&mut blocks[1..]);
        assert!(blocks[0] == u128::MAX && blocks[1..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_thread_keeps_a_bounded_number_of_bytes() {
        for n in [512, 4096, 1 << 17, 1 << 20] {
            let all: Vec<Wiped<u64>> = (0..2 * KEPT / (8 * n)).map(|_| Wiped::zeros(n)).collect();
            drop(all);
            assert!(kept() <= KEPT);
        }
    }
}

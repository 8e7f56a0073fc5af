//! Secret words that are zeroed when they are dropped, and taken again by whoever needs as many zeros.
//!
//! A layer makes and drops ten thousand polynomials. Memory that is new each time costs more than their transforms: the
//! system clears it page by page, it is zeroed on request, and wiped at last. So a thread keeps what it wiped, up to
//! [`KEPT`] bytes, until it ends: zeros already, and still near.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// Bytes that a thread keeps.
const KEPT: usize = 64 << 20;
/// Words below which nothing is kept.
const LEAST: usize = 1 << 9;

/// Wiped buffers of a thread, by length.
#[derive(Default)]
struct Kept {
    bytes: usize,
    buffers: HashMap<usize, Vec<Vec<u64>>>,
}

thread_local! {
    static WIPED: RefCell<Kept> = RefCell::default();
}

/// So many zeros.
pub(crate) fn zeros(n: usize) -> Vec<u64> {
    let kept = WIPED.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let buffer = kept.buffers.get_mut(&n)?.pop()?;
        kept.bytes -= size_of_val(&buffer[..]);
        Some(buffer)
    });
    kept.ok().flatten().unwrap_or_else(|| vec![0; n])
}

/// Wipe the words, in one pass of whole registers; they may be kept for [`zeros`].
pub(crate) fn wipe(mut words: Vec<u64>) {
    words.fill(0);
    // Zeros that nobody reads before memory is given back would be left out: here somebody may.
    std::hint::black_box(&mut words[..]);
    let bytes = size_of_val(&words[..]);
    if words.len() < LEAST {
        return;
    }
    // a thread that ends keeps nothing
    let _ = WIPED.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.bytes + bytes <= KEPT {
            kept.bytes += bytes;
            kept.buffers.entry(words.len()).or_default().push(words);
        }
    });
}

/// Secret words, wiped on drop and never printed.
pub(crate) struct Small(Vec<u64>);

impl Small {
    /// These, from now on.
    pub(crate) fn new(words: Vec<u64>) -> Small {
        Small(words)
    }

    /// As many zeros.
    pub(crate) fn zeros(n: usize) -> Small {
        Small(zeros(n))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.0));
    }
}

impl Deref for Small {
    type Target = Vec<u64>;

    fn deref(&self) -> &Vec<u64> {
        &self.0
    }
}

impl DerefMut for Small {
    fn deref_mut(&mut self) -> &mut Vec<u64> {
        &mut self.0
    }
}

impl std::fmt::Debug for Small {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Small(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wiped_is_zeros_and_never_printed() {
        assert_eq!(format!("{:?}", Small::new(vec![3; 2])), "Small(..)");
        for n in [1, LEAST, LEAST + 1, 8 * LEAST] {
            drop(Small::new(vec![7; n]));
            let (first, second) = (Small::zeros(n), Small::zeros(n));
            assert!(first.len() == n && second.len() == n);
            assert!(first.iter().chain(second.iter()).all(|w| *w == 0), "{n}");
        }
    }

    #[test]
    fn a_thread_keeps_a_bounded_number_of_bytes() {
        for n in [LEAST, 3 * LEAST, 1 << 20] {
            let all: Vec<Small> = (0..2 * KEPT / (8 * n)).map(|_| Small::zeros(n)).collect();
            drop(all);
            let held: usize = WIPED.with(|kept| {
                kept.borrow().buffers.iter().map(|(n, buffers)| 8 * n * buffers.len()).sum()
            });
            assert!(held <= KEPT && held == WIPED.with(|kept| kept.borrow().bytes), "{held}");
        }
    }
}

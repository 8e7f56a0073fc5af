//! Memory that is read soon, brought near before.
//!
//! What a proof is about lies in many columns, read once and long after they were written. A processor foresees reads within a page
//! alone, and pages are short.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Words between what is read and what is brought near meanwhile: a page of 4 KiB.
const AHEAD: usize = 512;

/// Begin to bring eight words, a page behind the first one of `words`, into the first-level cache. They need not belong to anything.
#[inline(always)]
pub(crate) fn ahead(words: &[u64]) {
    // SAFETY: every x86-64 has SSE, and no address is read.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(AHEAD).cast()) };
}

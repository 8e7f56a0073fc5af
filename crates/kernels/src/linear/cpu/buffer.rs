use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, the alignment that vector and tile loads want.
const LINE: usize = 64;
/// A huge page: streams over packed weights would miss the address cache at every small one.
const HUGE: usize = 2 << 20;

/// Bytes that start on a cache line, all zero at first; large ones lie on huge pages where the system has them.
pub(super) struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: a buffer owns its bytes as a vector does.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(super) fn zeros(len: usize) -> Buffer {
        let align = if len >= HUGE / 2 { HUGE } else { LINE };
        let layout = Layout::from_size_align(len.next_multiple_of(align).max(LINE), align)
            .expect("packed weights fit the address space");
        // SAFETY: the size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if align == HUGE {
            // SAFETY: advice on memory just allocated, of whole pages; a refusal changes nothing.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        // SAFETY: all of the allocation. Written only after the advice, so that the pages come huge.
        unsafe { start.write_bytes(0, layout.size()) };
        Buffer { start, layout, len }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout and not freed before.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes of the allocation.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; the buffer is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

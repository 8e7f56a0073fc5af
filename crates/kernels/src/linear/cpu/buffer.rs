use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, the alignment that vector and tile loads want.
const LINE: usize = 64;
/// A huge page: streams over packed weights would miss the address cache at every small one.
const HUGE: usize = 2 << 20;

/// Bytes of large buffers that a thread keeps for the next ones of about their size.
const KEPT: usize = 64 << 20;

thread_local! {
    /// Large buffers that were dropped, the last one last. Operands that are no weights are packed anew for every product,
    /// and to get their pages from the system takes longer than to pack them.
    static SPARE: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

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
        let Some(mut spare) = Buffer::spare(len) else { return Buffer::fresh(len) };
        spare.fill(0);
        spare
    }

    /// For who writes all of it: what this thread had in a buffer before may still be there.
    pub(super) fn unwritten(len: usize) -> Buffer {
        Buffer::spare(len).unwrap_or_else(|| Buffer::fresh(len))
    }

    fn fresh(len: usize) -> Buffer {
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

    fn is_large(&self) -> bool {
        self.layout.align() == HUGE
    }

    /// Back to the system, whatever is kept.
    fn free(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: allocated with this layout and not freed before; it is not dropped again.
        unsafe { dealloc(this.start.as_ptr(), this.layout) };
    }

    /// A kept buffer with room for `len` bytes, of which no more than half stays unused.
    fn spare(len: usize) -> Option<Buffer> {
        let fits = |b: &Buffer| b.layout.size() >= len && b.layout.size() / 2 <= len;
        let take = |spare: &RefCell<Vec<Buffer>>| {
            let mut spare = spare.borrow_mut();
            let at = spare.iter().rposition(fits)?;
            Some(spare.remove(at))
        };
        let mut spare = SPARE.try_with(take).ok().flatten()?;
        spare.len = len;
        Some(spare)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (start, layout) = (self.start, self.layout);
        if self.is_large() && layout.size() <= KEPT {
            // Those that were kept longest make room. They are dropped after the borrow, as they come here again.
            let keep = |spare: &RefCell<Vec<Buffer>>| {
                let mut spare = spare.try_borrow_mut().ok()?;
                spare.push(Buffer { start, layout, len: 0 });
                let mut room = KEPT;
                let kept = spare.iter().rev().take_while(|b| {
                    room = room.saturating_sub(b.layout.size());
                    room > 0
                });
                let gone = spare.len() - kept.count();
                Some(spare.drain(..gone).collect::<Vec<Buffer>>())
            };
            if let Ok(Some(gone)) = SPARE.try_with(keep) {
                gone.into_iter().for_each(Buffer::free);
                return;
            }
        }
        // SAFETY: allocated with this layout and not freed before.
        unsafe { dealloc(start.as_ptr(), layout) };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        SPARE.with_borrow(|spare| spare.iter().map(|b| b.layout.size()).sum())
    }

    #[test]
    fn large_buffers_are_used_again_and_come_clean() {
        let mut first = Buffer::zeros(5 << 20);
        first.fill(7);
        let start = first.start;
        drop(first);
        assert_eq!(kept(), 6 << 20);
        let second = Buffer::zeros(4 << 20);
        assert_eq!((second.start, second.len), (start, 4 << 20));
        assert!(second.iter().all(|b| *b == 0));
        drop(second);
        drop(Buffer::zeros(1 << 20));
        assert_eq!(kept(), 8 << 20, "one that is much larger does not serve");
        drop(Buffer::zeros(100));
        assert_eq!(kept(), 8 << 20, "small ones are the allocator's");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let all: Vec<Buffer> = (0..12).map(|_| Buffer::zeros(10 << 20)).collect();
        drop(all);
        assert!(kept() <= KEPT && kept() >= 50 << 20, "{}", kept());
        drop(Buffer::zeros(KEPT + 1));
        assert!(kept() <= KEPT);
        drop(Buffer::zeros(40 << 20));
        assert!(kept() <= KEPT && kept() >= 40 << 20, "{}", kept());
    }
}

//! An allocator that looks at every block that is freed: whether what was secret is still in it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of a mark: what secrets are made of in a test that looks for them, and nothing else is.
pub const MARK: usize = 16;

/// The allocator of a test's binary, which has one test alone, as it sees what all threads free:
///
/// ```
/// use privet_testkit::Freed;
///
/// #[global_allocator]
/// static FREED: Freed = Freed::with(*b"\xE7a secret mark!\xE7");
///
/// let (once, wiped) = (b"\xE7a secret mark!\xE7".to_vec(), vec![0u8; 16]);
/// assert_eq!(FREED.seen(|| drop((once, wiped))), 1);
/// ```
pub struct Freed {
    mark: [u8; MARK],
    watching: AtomicBool,
    seen: AtomicUsize,
}

impl Freed {
    /// Looks for this mark.
    pub const fn with(mark: [u8; MARK]) -> Freed {
        Freed { mark, watching: AtomicBool::new(false), seen: AtomicUsize::new(0) }
    }

    /// Blocks that were freed with the mark in them while `body` ran.
    pub fn seen(&self, body: impl FnOnce()) -> usize {
        self.seen.store(0, Ordering::SeqCst);
        self.watching.store(true, Ordering::SeqCst);
        body();
        self.watching.store(false, Ordering::SeqCst);
        self.seen.load(Ordering::SeqCst)
    }
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Freed {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed, so that a block may be read whole when it is freed.
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.watching.load(Ordering::SeqCst) {
            // SAFETY: it is the caller's until it is freed below, and was initialised when it was allocated.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            if bytes.windows(MARK).any(|window| window == self.mark) {
                self.seen.fetch_add(1, Ordering::SeqCst);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

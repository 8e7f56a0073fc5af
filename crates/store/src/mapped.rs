//! Reading a record file through memory-mapped windows: no copy, and resident memory bounded by a window.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use zeroize::Zeroizing;

/// Bytes that a reader hands out in order.
pub trait Frames {
    /// The next `len` bytes; an error of kind `UnexpectedEof` where there are fewer.
    fn next(&mut self, len: usize) -> io::Result<&[u8]>;
}

/// Through a buffer, from any reader.
pub struct Buffered<R> {
    input: R,
    buffer: Zeroizing<Vec<u8>>,
}

impl<R> Buffered<R> {
    /// From the reader's present position.
    pub fn new(input: R) -> Self {
        Buffered { input, buffer: Zeroizing::default() }
    }
}

impl<R: Read> Frames for Buffered<R> {
    fn next(&mut self, len: usize) -> io::Result<&[u8]> {
        if self.buffer.len() < len {
            // A new one: what grows leaves copies behind.
            self.buffer = Zeroizing::new(vec![0; len]);
        }
        let bytes = &mut self.buffer[..len];
        self.input.read_exact(bytes)?;
        Ok(bytes)
    }
}

/// Bytes of a window: many frames, and small beside any process.
const WINDOW: usize = 8 << 20;

/// Through windows of a file that nobody else can reach any more.
///
/// The file must be unlinked and opened by this process alone, as [`crate::Store::claim`] does: then nobody
/// can truncate it under the mapping.
pub struct Mapped {
    file: File,
    position: u64,
    end: u64,
    window: Option<Window>,
}

impl Mapped {
    /// From `position` to `end`, both within the file.
    pub fn new(file: File, position: u64, end: u64) -> Self {
        Mapped { file, position, end, window: None }
    }
}

impl Frames for Mapped {
    fn next(&mut self, len: usize) -> io::Result<&[u8]> {
        let start = self.position;
        let stop = start.checked_add(len as u64).filter(|&s| s <= self.end);
        let stop = stop.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !self.window.as_ref().is_some_and(|w| w.start <= start && stop <= w.start + w.len as u64) {
            self.window = None;
            let page = start & !4095;
            let size = ((stop - page) as usize).max(WINDOW).min((self.end - page) as usize);
            self.window = Some(Window::map(&self.file, page, size)?);
        }
        self.position = stop;
        let Some(window) = &self.window else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let offset = (start - window.start) as usize;
        Ok(&window.bytes()[offset..offset + len])
    }
}

/// A read-only mapping of part of a file, undone on drop.
struct Window {
    base: *const u8,
    len: usize,
    start: u64,
}

// SAFETY: a window is plain memory that nobody writes.
unsafe impl Send for Window {}

impl Window {
    fn map(file: &File, start: u64, len: usize) -> io::Result<Window> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; `start` is a multiple of the page size.
        let base = unsafe {
            let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            libc::mmap(std::ptr::null_mut(), len, protection, flags, file.as_raw_fd(), start as libc::off_t)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: advice about the mapping just made.
        unsafe { libc::madvise(base, len, libc::MADV_SEQUENTIAL) };
        Ok(Window { base: base.cast(), len, start })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes and lives as long as `self`; the file behind it is
        // unlinked and open here alone, so nobody shortens or changes it.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.base.cast_mut().cast(), self.len) };
    }
}

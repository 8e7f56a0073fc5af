use std::ops::{Deref, DerefMut};

/// One cache line, the alignment that vector and tile loads want.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes that start on a cache line, all zero at first; the length is a multiple of 64.
pub(super) struct Buffer(Vec<Line>);

impl Buffer {
    pub(super) fn zeros(bytes: usize) -> Buffer {
        debug_assert!(bytes.is_multiple_of(64), "packed layouts are made of whole lines");
        Buffer(vec![Line([0; 64]); bytes.div_ceil(64)])
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `Line` is 64 plain bytes without padding, so the vector is len * 64 initialised bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 64) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; every byte pattern is a valid `Line`.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 64) }
    }
}

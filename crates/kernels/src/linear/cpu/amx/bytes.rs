//! Limbs of A times single bytes: weights below 256 have one limb, so k bits take ceil(k/8) products instead of up to 36.

use super::pass::{self, Ahead, Step};
use super::{Amx, DEPTH, SLOTS, Sums, TILE, fold};
use crate::linear::cpu::kernel::{Kernel, Tile};
use crate::linear::cpu::limbs;
use std::mem::MaybeUninit;

/// The weight of every limb of A, as a shift.
const SHIFTS: [u32; 8] = [0, 8, 16, 24, 32, 40, 48, 56];
/// Limbs of one pass.
const PASS: usize = 4;

const _: () = assert!(SHIFTS.len() <= SLOTS);

/// [`Amx`] where every element of B is a byte.
#[derive(Clone, Copy)]
pub(in crate::linear::cpu) struct AmxBytes(Amx);

impl AmxBytes {
    /// As for [`Amx::new`].
    pub(in crate::linear::cpu) fn new(bits: u32) -> AmxBytes {
        AmxBytes(Amx::new(bits))
    }
}

impl Kernel for AmxBytes {
    const ROWS: usize = Amx::ROWS;
    const COLS: usize = Amx::COLS;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = Amx::BLOCK_STEPS;
    const BLOCK_TILES: usize = Amx::BLOCK_TILES;

    fn a_step(&self) -> usize {
        self.0.a_step()
    }

    fn b_step(&self) -> usize {
        TILE
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        self.0.pack_a(rows, out);
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        for q in 0..DEPTH / 4 {
            // SAFETY: this kernel is only made where the extensions are there.
            unsafe { limbs::pack_quad(&block[4 * q * stride..], stride, 1, &mut out[64 * q..]) };
        }
    }

    fn enter(&self, rows: usize) -> impl Sized {
        self.0.enter(rows)
    }

    fn multiply(&self, rows: usize, a: &[u8], b: &[u8], steps: usize, ahead: &[u8], tile: &mut Tile) {
        let limbs = self.0.limbs;
        let step = Step { a: limbs * TILE, b: TILE };
        assert!(steps > 0 && steps <= Self::BLOCK_STEPS);
        assert!(a.len() >= steps * step.a && b.len() >= steps * step.b);
        let mut ahead = Ahead { start: ahead.as_ptr(), lines: ahead.len().div_ceil(64 * steps) };
        let mut sums = MaybeUninit::<Sums>::uninit();
        // SAFETY: bounds as just checked; the driver holds the guard of `enter`; the passes store an accumulator a limb,
        // and `fold` reads `rows` rows of each.
        unsafe {
            let out: *mut u32 = sums.as_mut_ptr().cast();
            for first in (0..limbs).step_by(PASS) {
                let (a, out) = (a.as_ptr().add(first * TILE), out.add(first * TILE / 4));
                match limbs - first {
                    1 => pass::low_1(a, b.as_ptr(), step, steps, ahead, out),
                    2 => pass::byte_2(a, b.as_ptr(), step, steps, ahead, out),
                    3 => pass::byte_3(a, b.as_ptr(), step, steps, ahead, out),
                    _ => pass::byte_4(a, b.as_ptr(), step, steps, ahead, out),
                }
                ahead = Ahead::NOTHING;
            }
            fold(sums.as_ptr().cast(), &SHIFTS[..limbs], rows, tile);
        }
    }
}

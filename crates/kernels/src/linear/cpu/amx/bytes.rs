//! Limbs of A times single bytes: weights below 256 have one limb, so k bits take ceil(k/8) products instead of up to 36.

use super::pass::{self, Ahead, Step};
use super::{Amx, DEPTH, Sums, TILE, fold};
use crate::linear::cpu::kernel::{Kernel, Rows, Tile};
use crate::linear::cpu::limbs;
use std::mem::MaybeUninit;

/// Limbs of one pass.
const PASS: usize = 4;

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
    const FEWER: Option<usize> = None;

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

    fn multiply(
        &self,
        [rows, _]: [usize; 2],
        a: &[u8],
        b: &[u8],
        steps: usize,
        ahead: &[u8],
        tile: &mut Tile,
    ) {
        let sums = self.sums(a, b, steps, ahead);
        // SAFETY: the passes have stored an accumulator a limb.
        unsafe { self.fold::<false>(&sums, tile.rows(rows)) }
    }

    fn multiply_add(&self, a: &[u8], b: &[u8], steps: usize, ahead: &[u8], _tile: &mut Tile, out: Rows) {
        let sums = self.sums(a, b, steps, ahead);
        // SAFETY: as for `multiply`.
        unsafe { self.fold::<true>(&sums, out) }
    }
}

impl AmxBytes {
    /// An accumulator a limb. The driver holds the guard of `enter`.
    #[inline(always)]
    fn sums(&self, a: &[u8], b: &[u8], steps: usize, ahead: &[u8]) -> MaybeUninit<Sums> {
        let limbs = self.0.limbs;
        let step = Step { a: limbs * TILE, b: TILE };
        assert!(steps > 0 && steps <= Self::BLOCK_STEPS);
        assert!(a.len() >= steps * step.a && b.len() >= steps * step.b);
        let mut ahead = Ahead { start: ahead.as_ptr(), lines: ahead.len().div_ceil(64 * steps) };
        let mut sums = MaybeUninit::<Sums>::uninit();
        // SAFETY: bounds as just checked; the tiles are configured; the passes store an accumulator a limb.
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
        }
        sums
    }

    /// # Safety
    /// `sums` holds an accumulator a limb.
    unsafe fn fold<const ADD: bool>(&self, sums: &MaybeUninit<Sums>, out: Rows) {
        /// The accumulator of every limb of A.
        const fn slots<const L: usize>() -> [[usize; 2]; L] {
            let mut slots = [[0; 2]; L];
            let mut l = 0;
            while l < L {
                slots[l] = [l; 2];
                l += 1;
            }
            slots
        }
        let sums = sums.as_ptr().cast();
        // SAFETY: by this function's contract.
        unsafe {
            match self.0.limbs {
                1 => fold::<1, ADD>(sums, &slots(), out),
                2 => fold::<2, ADD>(sums, &slots(), out),
                3 => fold::<3, ADD>(sums, &slots(), out),
                4 => fold::<4, ADD>(sums, &slots(), out),
                5 => fold::<5, ADD>(sums, &slots(), out),
                6 => fold::<6, ADD>(sums, &slots(), out),
                7 => fold::<7, ADD>(sums, &slots(), out),
                _ => fold::<8, ADD>(sums, &slots(), out),
            }
        }
    }
}

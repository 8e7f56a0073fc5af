//! Limb products on AMX int8 tiles.
//!
//! An element of k bits is L = ceil(k/8) byte limbs; modulo 2^k only the products of limbs i and j with i + j < L
//! count (36 for 64 bits). All products of one diagonal i + j weigh 2^(8(i+j)) and add up in one 32-bit tile.
//! A step is 64 deep; packed, each limb of it is one tile of 1024 bytes (A: 16 rows of 64 positions; B: 16 rows of
//! 16 columns of 4 positions, as TDPBUUD wants it).

mod pass;

use super::kernel::{Kernel, Panel, Rows, Tile};
use super::limbs;
use pass::{Ahead, Step};
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

const DEPTH: usize = 64;
const TILE: usize = 1024;
/// Accumulators of one multiplication, over all its passes.
const SLOTS: usize = 10;

// A sum of 8 products of bytes a position stays below 2^32.
const _: () = assert!(8 * 255 * 255 * (Amx::BLOCK_STEPS * DEPTH) as u64 <= u32::MAX as u64);

/// Tiles for rings of `limbs` bytes.
#[derive(Clone, Copy)]
pub(super) struct Amx {
    limbs: usize,
}

/// What this machine or its kernel lacks for AMX; asks the kernel once for the use of the tile registers.
pub(super) fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<&'static str>> = OnceLock::new();
    *MISSING.get_or_init(|| {
        let leaf = __cpuid_count(7, 0).edx;
        if leaf >> 24 & 1 == 0 || leaf >> 25 & 1 == 0 {
            return Some("AMX int8");
        }
        if !limbs::supported() {
            return Some("AVX-512 VBMI beside AMX");
        }
        const SYS_ARCH_PRCTL: libc::c_long = 158;
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // SAFETY: this call takes two integers and changes nothing but which state the kernel saves.
        let refused = unsafe { libc::syscall(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) } != 0;
        refused.then_some("the kernel's permission for AMX tiles (Linux 5.16 or newer)")
    })
}

impl Amx {
    /// Only where [`missing`] finds nothing.
    pub(super) fn new(bits: u32) -> Amx {
        debug_assert!(missing().is_none());
        Amx { limbs: bits.div_ceil(8) as usize }
    }

    /// All limb products of one tile, accumulators stored one after the other to `out`.
    ///
    /// # Safety
    /// The tiles are configured; `a` and `b` hold `steps` packed steps, `steps` > 0; `out` has room for [`SLOTS`] tiles.
    unsafe fn passes(&self, a: *const u8, b: *const u8, steps: usize, ahead: Ahead, out: *mut u32) {
        let step = Step { a: self.limbs * TILE, b: self.limbs * TILE };
        // SAFETY: by this function's contract; a pass reads only limbs below `self.limbs`.
        unsafe {
            match self.limbs {
                1 => pass::low_1(a, b, step, steps, ahead, out),
                2 => pass::low_2(a, b, step, steps, ahead, out),
                3 => pass::low_3(a, b, step, steps, ahead, out),
                4 => pass::low_4(a, b, step, steps, ahead, out),
                5 => pass::low_5(a, b, step, steps, ahead, out),
                6 => pass::low_6(a, b, step, steps, ahead, out),
                7 => {
                    pass::high_7(a, b, step, steps, ahead, out);
                    pass::low_2(a, b, step, steps, Ahead::NOTHING, out.add(5 * TILE / 4));
                }
                _ => {
                    pass::high_8(a, b, step, steps, ahead, out);
                    pass::low_3(a, b, step, steps, Ahead::NOTHING, out.add(5 * TILE / 4));
                }
            }
        }
    }
}

impl Kernel for Amx {
    const ROWS: usize = 16;
    const COLS: usize = 16;
    const DEPTH: usize = DEPTH;
    const BLOCK_STEPS: usize = 16;
    const BLOCK_TILES: usize = 8;
    const FEWER: Option<usize> = None;

    fn a_step(&self) -> usize {
        self.limbs * TILE
    }

    fn b_step(&self) -> usize {
        self.limbs * TILE
    }

    fn pack_a(&self, rows: &[&[u64]], out: &mut [u8]) {
        for (i, row) in rows.iter().enumerate() {
            let mut padded = [0; DEPTH];
            let full = row.first_chunk().unwrap_or_else(|| {
                padded[..row.len()].copy_from_slice(row);
                &padded
            });
            // SAFETY: this kernel is only made where the extensions are there.
            unsafe { limbs::pack_row(full, self.limbs, &mut out[64 * i..]) };
        }
    }

    fn pack_b(&self, block: &[u64], stride: usize, out: &mut [u8]) {
        for q in 0..DEPTH / 4 {
            // SAFETY: this kernel is only made where the extensions are there.
            unsafe { limbs::pack_quad(&block[4 * q * stride..], stride, self.limbs, &mut out[64 * q..]) };
        }
    }

    fn enter(&self, rows: usize) -> impl Sized {
        Configured::new(rows)
    }

    fn multiply(
        &self,
        [rows, _]: [usize; 2],
        a: Panel,
        b: Panel,
        depth: usize,
        ahead: &[u8],
        tile: &mut Tile,
    ) {
        let sums = self.sums(a.words, b.words, depth.div_ceil(DEPTH), ahead);
        // SAFETY: a pass has stored as many accumulators as there are slots of diagonals.
        unsafe { self.fold::<false>(&sums, tile.rows(rows)) }
    }

    fn multiply_add(&self, a: Panel, b: Panel, depth: usize, ahead: &[u8], _tile: &mut Tile, out: Rows) {
        let sums = self.sums(a.words, b.words, depth.div_ceil(DEPTH), ahead);
        // SAFETY: as for `multiply`.
        unsafe { self.fold::<true>(&sums, out) }
    }
}

impl Amx {
    /// All accumulators, as far as there are any. The driver holds the guard of `enter`.
    #[inline(always)]
    fn sums(&self, a: &[u8], b: &[u8], steps: usize, ahead: &[u8]) -> MaybeUninit<Sums> {
        let bytes = steps * self.limbs * TILE;
        assert!(steps > 0 && steps <= Self::BLOCK_STEPS && a.len() >= bytes && b.len() >= bytes);
        let ahead = Ahead { start: ahead.as_ptr(), lines: ahead.len().div_ceil(64 * steps) };
        let mut sums = MaybeUninit::<Sums>::uninit();
        // SAFETY: bounds as just checked; the tiles are configured.
        unsafe { self.passes(a.as_ptr(), b.as_ptr(), steps, ahead, sums.as_mut_ptr().cast()) };
        sums
    }

    /// # Safety
    /// `sums` holds what [`Amx::passes`] stores.
    unsafe fn fold<const ADD: bool>(&self, sums: &MaybeUninit<Sums>, out: Rows) {
        let sums = sums.as_ptr().cast();
        // SAFETY: by this function's contract; the tables name only slots that the passes store.
        unsafe {
            match self.limbs {
                1 => fold::<1, ADD>(sums, &[[0; 2]], out),
                2 => fold::<2, ADD>(sums, &[[0; 2], [1, 2]], out),
                3 => fold::<3, ADD>(sums, &[[4; 2], [2, 3], [0, 1]], out),
                4 => fold::<4, ADD>(sums, &[[0; 2], [1; 2], [2; 2], [3, 4]], out),
                5 => fold::<5, ADD>(sums, &[[0; 2], [1; 2], [2; 2], [3; 2], [4; 2]], out),
                6 => fold::<6, ADD>(sums, &[[0; 2], [1; 2], [2; 2], [3; 2], [4; 2], [5; 2]], out),
                7 => fold::<7, ADD>(sums, &[[5; 2], [6, 7], [0; 2], [1; 2], [2; 2], [3; 2], [4; 2]], out),
                _ => {
                    let diagonals = [[9; 2], [7, 8], [5, 6], [0; 2], [1; 2], [2; 2], [3; 2], [4; 2]];
                    fold::<8, ADD>(sums, &diagonals, out)
                }
            }
        }
    }
}

/// Room for every accumulator, rows on cache lines.
type Sums = [Line; SLOTS * TILE / 64];

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "written and read as words through pointers")] [u32; 16]);

/// `out = sum over diagonals d of sums << 8 d`, or what is added to it, where diagonal d is in the slots `diagonals[d]`: two that are
/// to be added up, or twice the same one.
///
/// Diagonals d and d + 4 are 32 bits apart, so a pair of them interleaved is their sum. Two slots of a diagonal together stay below
/// 2^32, as a multiplication's depth is bounded so that a whole diagonal does.
///
/// # Safety
/// AVX-512F is there; `sums` holds as many rows of 16 words as there are of `out` for each slot, tiles 1024 bytes apart.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn fold<const L: usize, const ADD: bool>(sums: *const u32, diagonals: &[[usize; 2]; L], out: Rows) {
    let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let zero = _mm512_setzero_si512();
    for i in 0..out.count {
        // SAFETY: row i of the slot is in bounds by this function's contract.
        let load = |slot: usize| unsafe { _mm512_load_si512(sums.add(slot * TILE / 4 + 16 * i).cast()) };
        let diagonal = |d: usize| match diagonals.get(d) {
            Some([a, b]) if a == b => load(*a),
            Some([a, b]) => _mm512_add_epi32(load(*a), load(*b)),
            None => zero,
        };
        let (mut low, mut high) = (zero, zero);
        for d in (0..L.min(4)).rev() {
            let (a, b) = (diagonal(d), diagonal(d + 4));
            low = _mm512_add_epi64(_mm512_slli_epi64::<8>(low), _mm512_unpacklo_epi32(a, b));
            high = _mm512_add_epi64(_mm512_slli_epi64::<8>(high), _mm512_unpackhi_epi32(a, b));
        }
        let mut a = _mm512_permutex2var_epi64(low, first, high);
        let mut b = _mm512_permutex2var_epi64(low, second, high);
        // SAFETY: row i has sixteen words, by the contract of `Rows`.
        unsafe {
            let (left, right) = (out.start.add(i * out.stride), out.start.add(i * out.stride + 8));
            if ADD {
                a = _mm512_add_epi64(a, _mm512_loadu_si512(left.cast()));
                b = _mm512_add_epi64(b, _mm512_loadu_si512(right.cast()));
            }
            _mm512_storeu_si512(left.cast(), a);
            _mm512_storeu_si512(right.cast(), b);
        }
    }
}

/// This thread's tile configuration; released on drop, so that the kernel need not save tiles for good.
struct Configured;

#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    column_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Configured {
    /// B (tmm7) has 16 rows; accumulators and A have `rows`, which shortens every product.
    fn new(rows: usize) -> Configured {
        let mut config =
            Config { palette: 1, start_row: 0, reserved: [0; 14], column_bytes: [0; 16], rows: [0; 16] };
        config.column_bytes[..8].fill(64);
        config.rows[..7].fill(rows as u8);
        config.rows[7] = 16;
        // SAFETY: tiles are permitted (`missing`), the configuration is valid for palette 1 with rows 1..=16.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly, preserves_flags)) };
        Configured
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: back to the initial state; no tile holds anything that is still wanted.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}

/// Byte products a second that one thread's tile unit does with operands in registers: the limit of this path.
/// Only where [`missing`] finds nothing.
pub(crate) fn peak(seconds: f64) -> f64 {
    const ROUNDS: usize = 10_000;
    let _state = Configured::new(16);
    // Shares are uniform, and the unit's clock depends on its operands: zeros would overstate the limit.
    let mut operands = [0; 2 * TILE];
    privet_prg::Seed::random().stream().fill_bytes(&mut operands);
    crate::probe::rate(seconds, || {
        // SAFETY: the tiles are configured.
        unsafe { pass::registers_only(&operands, ROUNDS) };
        (ROUNDS * 6 * 16 * 16 * 64) as f64
    })
}

//! Blocks of 64 elements, turned round by swapping halves, quarters, ... of their bits (Hacker's Delight, section 7-3),
//! several blocks side by side in a vector register; or by 8x8 bit matrices where the processor has them.

#[cfg(target_arch = "x86_64")]
mod gfni;

use crate::CpuCap;
use std::fmt;

/// How planes are computed; all paths give the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsPath {
    /// Whatever vectors the target guarantees.
    Portable,
    /// Compiled for AVX2.
    Avx2,
    /// Bytes and 8x8 bit matrices on 512-bit registers.
    Gfni,
}

impl BitsPath {
    /// Every path, slowest first.
    pub const ALL: [BitsPath; 3] = [BitsPath::Portable, BitsPath::Avx2, BitsPath::Gfni];

    /// Whether this machine can run the path.
    pub fn available(self) -> bool {
        match self {
            BitsPath::Portable => true,
            #[cfg(target_arch = "x86_64")]
            BitsPath::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            BitsPath::Gfni => crate::avx512::available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest path of this machine within `cap`.
    pub fn detect(cap: CpuCap) -> BitsPath {
        let allowed = |p: &BitsPath| p.least_cap() <= cap && p.available();
        BitsPath::ALL.into_iter().rev().find(allowed).unwrap_or(BitsPath::Portable)
    }

    fn least_cap(self) -> CpuCap {
        match self {
            BitsPath::Portable => CpuCap::Portable,
            BitsPath::Avx2 => CpuCap::Avx2,
            BitsPath::Gfni => CpuCap::Avx512,
        }
    }

    /// See [`super::spec::planes`]. Panics when this machine cannot run the path.
    pub fn planes(self, values: &[u64], places: &[usize], out: &mut [u64]) {
        assert!(self.available(), "the CPU path {self} is not available here; take BitsPath::detect");
        assert!(places.len() <= 64, "{} bits of 64-bit elements", places.len());
        match self {
            BitsPath::Portable => planes(values, places, out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            BitsPath::Avx2 => unsafe { avx2(values, places, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            BitsPath::Gfni => unsafe { gfni::planes(values, places, out) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("not available"),
        }
    }
}

impl fmt::Display for BitsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BitsPath::Portable => "portable bits",
            BitsPath::Avx2 => "AVX2 bits",
            BitsPath::Gfni => "GFNI bits",
        })
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(values: &[u64], places: &[usize], out: &mut [u64]) {
    planes(values, places, out);
}

/// Blocks turned round side by side: whole registers a row.
const SIDE: usize = 8;

type Rows = [[u64; SIDE]; 64];

#[inline(always)]
fn planes(values: &[u64], places: &[usize], out: &mut [u64]) {
    let words = values.len().div_ceil(64);
    let mut rows: Rows = [[0; SIDE]; 64];
    for (first, values) in values.chunks(64 * SIDE).enumerate().map(|(i, v)| (i * SIDE, v)) {
        let side = values.len().div_ceil(64);
        if values.len() < 64 * SIDE {
            rows = [[0; SIDE]; 64];
        }
        for (b, block) in values.chunks(64).enumerate() {
            for (row, v) in rows.iter_mut().zip(block) {
                row[b] = *v;
            }
        }
        turn(&mut rows);
        for (row, place) in rows.iter().zip(places) {
            let at = place * words + first;
            out[at..at + side].copy_from_slice(&row[..side]);
        }
    }
}

/// Every column of `rows` is a 64 x 64 matrix of bits, word i its row i: transpose them all.
#[inline(always)]
fn turn(rows: &mut Rows) {
    stage::<32>(rows, 0x0000_0000_ffff_ffff);
    stage::<16>(rows, 0x0000_ffff_0000_ffff);
    stage::<8>(rows, 0x00ff_00ff_00ff_00ff);
    stage::<4>(rows, 0x0f0f_0f0f_0f0f_0f0f);
    stage::<2>(rows, 0x3333_3333_3333_3333);
    stage::<1>(rows, 0x5555_5555_5555_5555);
}

/// Swap the upper half of the bits of row i with the lower half of those of row i + `D`, in groups of 2`D` rows and bits.
#[inline(always)]
fn stage<const D: usize>(rows: &mut Rows, low: u64) {
    for group in rows.chunks_exact_mut(2 * D) {
        let (upper, lower) = group.split_at_mut(D);
        for (a, b) in upper.iter_mut().zip(lower) {
            for (a, b) in a.iter_mut().zip(b) {
                let t = (*a >> D ^ *b) & low;
                *a ^= t << D;
                *b ^= t;
            }
        }
    }
}

//! AES in counter mode and the fixed-key hash on registers of one, two or four blocks, eight registers to a step. The cipher's own
//! batches go through memory and calls, which costs several times what the AES does.

mod lanes;
#[cfg(test)]
mod tests;
mod trees;

use crate::CpuCap;
use crate::hash::{Level, TREES};
use lanes::Lanes;
use std::arch::x86_64::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Registers to a step: as many as hide the latency of a round.
const STEP: usize = 8;

/// How wide registers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 128 bits: AES-NI.
    One,
    /// 256 bits, as of machines with VAES and no AVX-512.
    Two,
    /// 512 bits.
    Four,
}

impl Width {
    /// The widest of this machine within a cap.
    pub fn detect(cap: CpuCap) -> Option<Width> {
        let widths = [
            (Width::Four, CpuCap::Avx512, __m512i::available()),
            (Width::Two, CpuCap::Vaes, __m256i::available()),
            (Width::One, CpuCap::Aesni, __m128i::available()),
        ];
        widths.into_iter().find(|(_, least, here)| cap >= *least && *here).map(|(width, ..)| width)
    }
}

/// A key of AES-128 on this machine's registers. It exists only where its width was detected.
#[derive(Clone)]
pub(crate) struct Rounds {
    width: Width,
    keys: Schedule,
}

/// The key schedule of FIPS 197, section 5.2.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct Schedule([__m128i; 11]);

impl Rounds {
    /// Of this key. The width must have been detected.
    ///
    /// # Safety
    /// [`Width::detect`] gave the width.
    pub unsafe fn new(width: Width, key: &[u8; 16]) -> Rounds {
        // SAFETY: all widths need the instructions.
        Rounds { width, keys: unsafe { expand(key) } }
    }

    /// `AES(first), AES(first + 1), ...`, the counter in the low half of the plaintext block, zero in the high one.
    pub fn keystream(&self, first: u64, out: &mut [[u8; 16]]) {
        // SAFETY: a width is there only where its instructions are.
        unsafe {
            match self.width {
                Width::One => keystream_of_one(&self.keys, first, out),
                Width::Two => keystream_of_two(&self.keys, first, out),
                Width::Four => keystream_of_four(&self.keys, first, out),
            }
        }
    }

    /// `block -> AES(sigma(block)) ^ sigma(block)` on every block, in place.
    pub fn hash(&self, blocks: &mut [u128]) {
        // SAFETY: as above.
        unsafe {
            match self.width {
                Width::One => hash_of_one(&self.keys, blocks),
                Width::Two => hash_of_two(&self.keys, blocks),
                Width::Four => hash_of_four(&self.keys, blocks),
            }
        }
    }

    /// A level of half-trees, see [`crate::TreeHash::children`].
    pub fn children(&self, level: Level<'_>) {
        // SAFETY: as above.
        unsafe {
            match self.width {
                Width::One => trees::children_of_one(&self.keys, level),
                Width::Two => trees::children_of_two(&self.keys, level),
                Width::Four => trees::children_of_four(&self.keys, level),
            }
        }
    }

    /// Hashes of nodes of half-trees added up, see [`crate::TreeHash::sum`].
    pub fn sum(&self, nodes: &[u128], sums: &mut [u128; TREES]) {
        // SAFETY: as above.
        unsafe {
            match self.width {
                Width::One => trees::sum_of_one(&self.keys, nodes, sums),
                Width::Two => trees::sum_of_two(&self.keys, nodes, sums),
                Width::Four => trees::sum_of_four(&self.keys, nodes, sums),
            }
        }
    }
}

#[target_feature(enable = "aes,avx")]
fn expand(key: &[u8; 16]) -> Schedule {
    #[target_feature(enable = "aes,avx")]
    fn next<const RCON: i32>(k: __m128i) -> __m128i {
        let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<RCON>(k));
        let k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
        _mm_xor_si128(_mm_xor_si128(k, _mm_slli_si128::<8>(k)), word)
    }
    // SAFETY: 16 bytes.
    let k0 = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    Schedule([k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, next::<0x36>(k9)])
}

#[target_feature(enable = "aes,avx")]
fn hash_of_one(keys: &Schedule, blocks: &mut [u128]) {
    // SAFETY: enabled here.
    unsafe { hash::<__m128i>(keys, blocks) }
}

#[target_feature(enable = "avx2,vaes")]
fn hash_of_two(keys: &Schedule, blocks: &mut [u128]) {
    // SAFETY: enabled here.
    unsafe { hash::<__m256i>(keys, blocks) }
}

#[target_feature(enable = "avx512f,vaes")]
fn hash_of_four(keys: &Schedule, blocks: &mut [u128]) {
    // SAFETY: enabled here.
    unsafe { hash::<__m512i>(keys, blocks) }
}

#[target_feature(enable = "aes,avx")]
fn keystream_of_one(keys: &Schedule, first: u64, out: &mut [[u8; 16]]) {
    // SAFETY: enabled here.
    unsafe { keystream::<__m128i>(keys, first, out) }
}

#[target_feature(enable = "avx2,vaes")]
fn keystream_of_two(keys: &Schedule, first: u64, out: &mut [[u8; 16]]) {
    // SAFETY: enabled here.
    unsafe { keystream::<__m256i>(keys, first, out) }
}

#[target_feature(enable = "avx512f,vaes")]
fn keystream_of_four(keys: &Schedule, first: u64, out: &mut [[u8; 16]]) {
    // SAFETY: enabled here.
    unsafe { keystream::<__m512i>(keys, first, out) }
}

/// Every round key in all places.
#[inline(always)]
unsafe fn broadcast<L: Lanes>(keys: &Schedule) -> [L; 11] {
    // SAFETY: of this and of all functions below: the caller enables the instructions of L.
    unsafe {
        let mut wide = [L::broadcast(keys.0[0]); 11];
        for (wide, k) in wide.iter_mut().zip(&keys.0) {
            *wide = L::broadcast(*k);
        }
        wide
    }
}

/// In place and by loops: `array::map` would be a call of its own, with the registers in memory.
#[inline(always)]
unsafe fn encrypt<L: Lanes, const N: usize>(keys: &[L; 11], y: &mut [L; N]) {
    unsafe {
        for y in y.iter_mut() {
            *y = y.xor(keys[0]);
        }
        for k in &keys[1..10] {
            for y in y.iter_mut() {
                *y = y.round(*k);
            }
        }
        for y in y.iter_mut() {
            *y = y.last_round(keys[10]);
        }
    }
}

#[inline(always)]
unsafe fn hash<L: Lanes>(keys: &Schedule, blocks: &mut [u128]) {
    unsafe {
        let keys = broadcast::<L>(keys);
        let mut steps = blocks.chunks_exact_mut(STEP * L::BLOCKS);
        for step in &mut steps {
            let at = step.as_mut_ptr();
            for (j, hash) in hashes::<L, STEP>(&keys, at).into_iter().enumerate() {
                hash.store(at.add(j * L::BLOCKS));
            }
        }
        for part in steps.into_remainder().chunks_mut(L::BLOCKS) {
            let (at, n) = (part.as_mut_ptr(), part.len());
            let m = if n == L::BLOCKS { L::load(at) } else { L::load_part(at, n) }.sigma();
            let mut y = [m];
            encrypt(&keys, &mut y);
            let y = y[0].xor(m);
            if n == L::BLOCKS { y.store(at) } else { y.store_part(at, n) }
        }
    }
}

/// Hashes of N registers.
#[inline(always)]
unsafe fn hashes<L: Lanes, const N: usize>(keys: &[L; 11], at: *const u128) -> [L; N] {
    unsafe {
        let mut masked = [keys[0]; N];
        for (j, m) in masked.iter_mut().enumerate() {
            *m = L::load(at.add(j * L::BLOCKS)).sigma();
        }
        let mut y = masked;
        encrypt(keys, &mut y);
        for (y, m) in y.iter_mut().zip(masked) {
            *y = y.xor(m);
        }
        y
    }
}

#[inline(always)]
unsafe fn keystream<L: Lanes>(keys: &Schedule, first: u64, out: &mut [[u8; 16]]) {
    unsafe {
        let keys = broadcast::<L>(keys);
        let mut counter = L::counters(first);
        let mut steps = out.chunks_exact_mut(STEP * L::BLOCKS);
        for step in &mut steps {
            let at: *mut u128 = step.as_mut_ptr().cast();
            let mut y = [counter; STEP];
            for (j, y) in y.iter_mut().enumerate() {
                *y = y.ahead((L::BLOCKS * j) as u64);
            }
            encrypt(&keys, &mut y);
            for (j, y) in y.into_iter().enumerate() {
                y.store(at.add(j * L::BLOCKS));
            }
            counter = counter.ahead((STEP * L::BLOCKS) as u64);
        }
        for part in steps.into_remainder().chunks_mut(L::BLOCKS) {
            let (at, n): (*mut u128, _) = (part.as_mut_ptr().cast(), part.len());
            let mut y = [counter];
            encrypt(&keys, &mut y);
            if n == L::BLOCKS {
                y[0].store(at)
            } else {
                y[0].store_part(at, n)
            }
            counter = counter.ahead(L::BLOCKS as u64);
        }
    }
}

//! Batches of comparison keys on the CPU.
//!
//! A path handles one whole block of [`BLOCK`] keys; the driver here cuts batches into blocks and pads
//! the last one. `x` is public; thresholds, seeds, control bits and outputs are secret and only ever
//! masked, never branched on or used as an index.

#[cfg(target_arch = "x86_64")]
mod aesni;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vaes;

use super::{BLOCK, CompareShape, LEAF_BITS};
use crate::secret::mask64;
use crate::{CompareOut, CpuCap};
use portable::Portable;
use privet_prg::TreeHash;
use privet_ring::BitVec;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// How blocks are computed; all paths give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparePath {
    /// No intrinsics here; runs anywhere.
    Portable,
    /// AES-NI on 128-bit registers.
    AesNi,
    /// VAES on 512-bit registers.
    Vaes,
}

impl ComparePath {
    /// Every path, slowest first.
    pub const ALL: [ComparePath; 3] = [ComparePath::Portable, ComparePath::AesNi, ComparePath::Vaes];

    /// Whether this machine can run the path.
    pub fn available(self) -> bool {
        match self {
            ComparePath::Portable => true,
            #[cfg(target_arch = "x86_64")]
            ComparePath::AesNi => aesni::available(),
            #[cfg(target_arch = "x86_64")]
            ComparePath::Vaes => vaes::available(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest path of this machine within `cap`.
    pub fn detect(cap: CpuCap) -> ComparePath {
        let allowed = |p: &ComparePath| p.least_cap() <= cap && p.available();
        ComparePath::ALL.into_iter().rev().find(allowed).unwrap_or(ComparePath::Portable)
    }

    fn least_cap(self) -> CpuCap {
        match self {
            ComparePath::Portable => CpuCap::Portable,
            ComparePath::AesNi => CpuCap::Aesni,
            ComparePath::Vaes => CpuCap::Avx512,
        }
    }

    /// Panics when this machine cannot run the path: the intrinsics would be undefined behaviour.
    fn block<'a>(self, hash: &'a TreeHash) -> Box<dyn Block + 'a> {
        assert!(self.available(), "the CPU path {self} is not available here; take ComparePath::detect");
        match self {
            ComparePath::Portable => Box::new(Portable(hash)),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            ComparePath::AesNi => Box::new(unsafe { aesni::AesNi::new(hash) }),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: available, as just checked.
            ComparePath::Vaes => Box::new(unsafe { vaes::Vaes::new(hash) }),
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("not available"),
        }
    }
}

impl fmt::Display for ComparePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComparePath::Portable => "portable AES",
            ComparePath::AesNi => "AES-NI",
            ComparePath::Vaes => "VAES-512",
        })
    }
}

/// The dealer's secrets of one block.
struct Deal {
    alpha: [u64; BLOCK],
    roots: [u128; BLOCK],
    deltas: [u128; BLOCK],
}

impl Drop for Deal {
    fn drop(&mut self) {
        self.alpha.zeroize();
        self.roots.zeroize();
        self.deltas.zeroize();
    }
}

/// One block's output bits; bit `j` belongs to key `j`. `eq` is zero unless asked for.
#[derive(Default)]
struct BlockOut {
    lt: u64,
    eq: u64,
}

/// A path: one block of [`BLOCK`] keys, `BLOCK` 16-byte words to a row, root row, level rows, leaf row.
trait Block {
    fn eval(&self, bits: u32, key: &[u8], x: &[u64; BLOCK], want_eq: bool) -> BlockOut;
    fn deal(&self, bits: u32, deal: &Deal, key0: &mut [u8], key1: &mut [u8]);
}

/// The bits of a point that choose the way down, most significant first.
fn levels(bits: u32) -> impl Iterator<Item = u32> {
    (LEAF_BITS..bits.max(LEAF_BITS)).rev()
}

/// `1 << (alpha mod 128)` without a shift by a secret amount: LLVM may turn a 128-bit shift into a branch.
fn one_hot(alpha: u64) -> u128 {
    let bit = 1u64 << (alpha & 63);
    let high = mask64(alpha >> 6);
    ((bit & high) as u128) << 64 | (bit & !high) as u128
}

/// Deal both parties' keys; see [`crate::Device::compare_gen`], whose contract this is.
///
/// Panics when a slice's length does not fit `shape`. A threshold outside the domain is a programming
/// error (checked in debug builds): its bits above the domain are ignored.
#[expect(clippy::too_many_arguments, reason = "one call a batch; each is a plain slice")]
pub fn generate(
    path: ComparePath,
    hash: &TreeHash,
    shape: CompareShape,
    alpha: &[u64],
    roots: &[u128],
    deltas: &[u128],
    key0: &mut [u8],
    key1: &mut [u8],
) {
    let n = shape.count;
    assert!((1..=64).contains(&shape.bits), "a comparison domain has 1 to 64 bits, not {}", shape.bits);
    assert!(alpha.len() == n && roots.len() == n && deltas.len() == n, "one threshold, root and delta a key");
    assert!(key0.len() == shape.key_bytes() && key1.len() == shape.key_bytes(), "key buffers of key_bytes()");
    debug_assert!(alpha.iter().all(|&a| shape.contains(a)), "a threshold is outside the domain");
    let block = path.block(hash);
    let full = key_row(shape) * BLOCK;
    let keys = key0.chunks_mut(full).zip(key1.chunks_mut(full));
    let secrets = alpha.chunks(BLOCK).zip(roots.chunks(BLOCK)).zip(deltas.chunks(BLOCK));
    for ((key0, key1), ((alpha, roots), deltas)) in keys.zip(secrets) {
        let deal = Deal { alpha: pad(alpha), roots: pad(roots), deltas: pad(deltas) };
        if alpha.len() == BLOCK {
            block.deal(shape.bits, &deal, key0, key1);
        } else {
            let mut wide = [Zeroizing::new(vec![0; full]), Zeroizing::new(vec![0; full])];
            let [wide0, wide1] = &mut wide;
            block.deal(shape.bits, &deal, wide0, wide1);
            copy_rows(&wide[0], BLOCK, key0, alpha.len());
            copy_rows(&wide[1], BLOCK, key1, alpha.len());
        }
    }
}

/// Walk a batch to the public points `x`; see [`crate::Device::compare_eval`], whose contract this is.
///
/// Panics when a slice's length does not fit `shape`. A point outside the domain is a programming error
/// (checked in debug builds): its bits above the domain are ignored.
pub fn eval(
    path: ComparePath,
    hash: &TreeHash,
    shape: CompareShape,
    key: &[u8],
    x: &[u64],
    want_eq: bool,
) -> CompareOut {
    assert!((1..=64).contains(&shape.bits), "a comparison domain has 1 to 64 bits, not {}", shape.bits);
    assert!(x.len() == shape.count && key.len() == shape.key_bytes(), "one point and one key an element");
    debug_assert!(x.iter().all(|&x| shape.contains(x)), "a point is outside the domain");
    let block = path.block(hash);
    let full = key_row(shape) * BLOCK;
    let words = shape.count.div_ceil(BLOCK);
    let (mut lt, mut eq) = (Vec::with_capacity(words), Vec::with_capacity(words));
    for (key, x) in key.chunks(full).zip(x.chunks(BLOCK)) {
        let out = if let Ok(x) = x.try_into() {
            block.eval(shape.bits, key, x, want_eq)
        } else {
            let mut wide = Zeroizing::new(vec![0; full]);
            copy_rows(key, x.len(), &mut wide, BLOCK);
            block.eval(shape.bits, &wide, &pad(x), want_eq)
        };
        lt.push(out.lt);
        eq.push(out.eq);
    }
    let eq = if want_eq { BitVec::from_words(shape.count, eq) } else { BitVec::default() };
    CompareOut { lt: BitVec::from_words(shape.count, lt), eq }
}

/// Bytes of one key.
fn key_row(shape: CompareShape) -> usize {
    16 * (shape.depth() + 2)
}

/// Up to a block's worth of values, zeros behind.
fn pad<T: Copy + Default>(v: &[T]) -> [T; BLOCK] {
    let mut out = [T::default(); BLOCK];
    out[..v.len()].copy_from_slice(v);
    out
}

/// Copy rows of `from_width` words to rows of `to_width` words, as many words of each as fit.
fn copy_rows(from: &[u8], from_width: usize, to: &mut [u8], to_width: usize) {
    let width = 16 * from_width.min(to_width);
    for (to, from) in to.chunks_exact_mut(16 * to_width).zip(from.chunks_exact(16 * from_width)) {
        to[..width].copy_from_slice(&from[..width]);
    }
}

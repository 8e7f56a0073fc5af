//! Which instructions the wide loops use. LOCAL: the parties may differ; all paths give the same bytes.
//!
//! Every wide loop is written once, in plain Rust over `u64` lanes, and compiled for the target's baseline, for AVX2, and for
//! AVX-512, where the compiler takes 512-bit registers. AES comes from `privet_prg`, which chooses by itself.

use privet_kernels::CpuCap;
use std::sync::OnceLock;

/// How wide loops are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// For the target's baseline.
    Portable,
    /// For AVX2.
    Avx2,
    /// For AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Path {
    /// Every path that this machine has, slowest first.
    #[cfg(test)]
    pub fn all() -> Vec<Path> {
        [CpuCap::Portable, CpuCap::Avx2, CpuCap::Avx512].into_iter().filter_map(Path::of).collect()
    }

    /// The path of a level, where this machine has it.
    fn of(level: CpuCap) -> Option<Path> {
        match level {
            CpuCap::Portable | CpuCap::Aesni => Some(Path::Portable),
            CpuCap::Avx2 | CpuCap::Vaes => avx2().then_some(Path::Avx2),
            CpuCap::Avx512 | CpuCap::Amx => avx512().then_some(Path::Avx512),
        }
    }

    /// The fastest within what `PRIVET_CPU` allows.
    ///
    /// # Panics
    /// Where `PRIVET_CPU` holds no level.
    pub fn detect() -> Path {
        static FOUND: OnceLock<Path> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let cap = CpuCap::from_env().unwrap_or_else(|e| panic!("{e}"));
            let within = CpuCap::ALL.into_iter().rev().filter(|level| *level <= cap);
            within.filter_map(Path::of).next().unwrap_or(Path::Portable)
        })
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

#[cfg(target_arch = "x86_64")]
fn avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
}

#[cfg(not(target_arch = "x86_64"))]
fn avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn avx512() -> bool {
    false
}

/// `by_path!(fn name(path, args...) = body)`: a function that runs `body` compiled for the path.
macro_rules! by_path {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(path: crate::cpu::Path, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
            fn avx512($($arg: $type),*) {
                $body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $type),*) {
                $body($($arg),*)
            }
            match path {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `Path::of` gives this path only where the machine has it.
                crate::cpu::Path::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                crate::cpu::Path::Avx2 => unsafe { avx2($($arg),*) },
                _ => $body($($arg),*),
            }
        }
    };
}
pub(crate) use by_path;

/// The same memory as words, two a block, the low half first.
#[inline(always)]
pub(crate) fn words(blocks: &mut [u128]) -> &mut [u64] {
    const { assert!(cfg!(target_endian = "little"), "blocks are read as words in little-endian order") };
    // SAFETY: the same memory for the same time, no stricter alignment, every bit pattern is a word.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), 2 * blocks.len()) }
}

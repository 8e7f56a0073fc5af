use super::Lane;
use super::scalar::Scalar;
use privet_kernels::CpuCap;
use std::fmt;

/// Which registers the kernels of this crate use; all give the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HePath {
    /// One word at a time; runs anywhere.
    Portable,
    /// Four words, products in double precision with AVX2 and FMA.
    Avx2,
    /// Eight words with the 52-bit multipliers of AVX-512 IFMA.
    Ifma,
}

impl HePath {
    /// Every path, slowest first.
    pub const ALL: [HePath; 3] = [HePath::Portable, HePath::Avx2, HePath::Ifma];

    /// Whether this machine can run the path.
    pub fn available(self) -> bool {
        match self {
            HePath::Portable => true,
            #[cfg(target_arch = "x86_64")]
            HePath::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            HePath::Ifma => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The fastest path of this machine within `cap`.
    pub fn detect(cap: CpuCap) -> HePath {
        let least = |p: &HePath| match p {
            HePath::Portable => CpuCap::Portable,
            HePath::Avx2 => CpuCap::Avx2,
            HePath::Ifma => CpuCap::Avx512,
        };
        let allowed = |p: &HePath| least(p) <= cap && p.available();
        HePath::ALL.into_iter().rfind(allowed).unwrap_or(HePath::Portable)
    }

    /// Run a kernel on this path's registers. Panics where this machine lacks them.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        assert!(self.available(), "the CPU path {self} is not available here; take HePath::detect");
        match self {
            HePath::Portable => kernel.run(Scalar),
            // SAFETY: available, as just checked.
            #[cfg(target_arch = "x86_64")]
            HePath::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: available, as just checked.
            #[cfg(target_arch = "x86_64")]
            HePath::Ifma => unsafe { ifma(kernel) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("checked"),
        }
    }
}

/// Work that is the same on registers of any width. `run` must be `inline(always)`, and what it calls: only then it is
/// compiled for the processor of the path.
pub(crate) trait Kernel {
    /// Do it.
    fn run<L: Lane>(self, lane: L);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<K: Kernel>(kernel: K) {
    // SAFETY: the caller checked the processor.
    kernel.run(unsafe { super::avx2::Avx2::new() });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn ifma<K: Kernel>(kernel: K) {
    // SAFETY: the caller checked the processor.
    kernel.run(unsafe { super::ifma::Ifma::new() });
}

impl fmt::Display for HePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HePath::Portable => "portable NTT",
            HePath::Avx2 => "AVX2-FMA NTT",
            HePath::Ifma => "IFMA-512 NTT",
        })
    }
}

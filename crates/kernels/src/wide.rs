//! Loops that the compiler makes, for the widest registers that this machine has.
//!
//! A program that runs on every x86-64 has registers of two words. What a protocol does to every element, a sum, a difference, a choice, is a
//! loop in its own code, and takes a half or a third of the time with wider ones.

use crate::fold::FoldPath;
use privet_prg::CpuCap;
use std::sync::LazyLock;

/// As for folds: what a kernel may use, loops may use. A variable that says nothing sensible is an error elsewhere ([`crate::try_cpu`]).
static PATH: LazyLock<FoldPath> =
    LazyLock::new(|| FoldPath::detect(CpuCap::from_env().unwrap_or(CpuCap::Portable)));

/// The value of an expression, whose loops are made for the widest registers that this machine has, within the cap of `PRIVET_CPU`. That is so
/// of what the compiler puts in its place: not of functions that it calls by a pointer, nor of long ones.
#[macro_export]
macro_rules! wide {
    ($body:expr) => {
        $crate::in_wide_registers(
            #[inline(always)]
            || $body,
        )
    };
}

/// What [`wide!`] makes of its expression.
#[doc(hidden)]
#[inline]
pub fn in_wide_registers<R>(f: impl FnOnce() -> R) -> R {
    match *PATH {
        FoldPath::Portable => f(),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this path is one of this machine's.
        FoldPath::Avx2 => unsafe { avx2(f) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this path is one of this machine's.
        FoldPath::Avx512 => unsafe { avx512(f) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => f(),
    }
}

/// Where [`FoldPath::Avx2`] is available.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Where [`FoldPath::Avx512`] is available.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn avx512<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_do_the_same_on_every_path() {
        let x: Vec<u64> = (0..1003).map(|i: u64| i.wrapping_mul(u64::MAX / 7)).collect();
        let f = || x.iter().map(|x| (x & 0xff00ff).wrapping_mul(*x).wrapping_sub(x >> 3)).collect::<Vec<_>>();
        let expected = f();
        assert_eq!(wide!(f()), expected);
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: available, as just checked.
            assert!(!FoldPath::Avx2.available() || unsafe { avx2(f) } == expected);
            // SAFETY: available, as just checked.
            assert!(!FoldPath::Avx512.available() || unsafe { avx512(f) } == expected);
        }
    }
}

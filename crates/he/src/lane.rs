//! Registers of 64-bit words: what the kernels of this crate need of a processor.

mod dispatch;
mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod ifma;

pub use dispatch::HePath;
pub(crate) use dispatch::Kernel;

use crate::word::Factor;

/// Bits of a limb: what an IFMA multiplier takes.
pub(crate) const LIMB: u32 = 52;

/// How the words of two registers stand in memory: in order, or word j of the first one beside its partner at
/// distance `t` in the second one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// One register after the other.
    Memory,
    /// Pairs at this distance, a power of two below the width.
    Pairs(usize),
}

/// Registers of `WIDTH` words. No method's time depends on the words.
pub(crate) trait Lane: Copy {
    /// A register.
    type V: Copy;
    /// Words of a register.
    const WIDTH: usize;

    /// The same word everywhere.
    fn splat(self, word: u64) -> Self::V;
    /// The first `WIDTH` words. Panics where there are fewer.
    fn load(self, words: &[u64]) -> Self::V;
    /// Into the first `WIDTH` words. Panics where there are fewer.
    fn store(self, words: &mut [u64], v: Self::V);
    /// The first `WIDTH / t` words, each `t` times. Panics where there are fewer.
    fn spread(self, words: &[u64], t: usize) -> Self::V;
    /// Two registers of pairs from one order into another.
    fn regroup(self, from: Order, to: Order, a: Self::V, b: Self::V) -> (Self::V, Self::V);

    /// `a + b` modulo 2^64.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b` modulo 2^64.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - bound` where that is not negative, else `a`; both below 2^63.
    fn less(self, a: Self::V, bound: Self::V) -> Self::V;
    /// The lowest 52 bits.
    fn low(self, a: Self::V) -> Self::V;
    /// What is above them.
    fn high(self, a: Self::V) -> Self::V;
    /// `x factor` modulo p, below 2 p, for x below 2^52 and p below 2^50.
    ///
    /// With q = floor(x quotient / 2^52): 0 <= x factor / p - q < x / 2^52 + 1 < 2.
    fn times(self, x: Self::V, factor: Factor<Self::V>, p: Self::V) -> Self::V;
    /// Add the low 52 bits of `x y` to the first and what is above them to the second; x and y below 2^52.
    fn multiply_add(self, sums: (Self::V, Self::V), x: Self::V, y: Self::V) -> (Self::V, Self::V);
}

use super::{LIMB, Lane, Order};
use crate::word::Factor;

/// One word at a time; runs anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Lane for Scalar {
    type V = u64;
    const WIDTH: usize = 1;

    #[inline(always)]
    fn splat(self, word: u64) -> u64 {
        word
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> u64 {
        words[0]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], v: u64) {
        words[0] = v;
    }

    #[inline(always)]
    fn spread(self, words: &[u64], _: usize) -> u64 {
        words[0]
    }

    #[inline(always)]
    fn regroup(self, _: Order, _: Order, a: u64, b: u64) -> (u64, u64) {
        (a, b)
    }

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn sub(self, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b)
    }

    #[inline(always)]
    fn less(self, a: u64, bound: u64) -> u64 {
        let d = a.wrapping_sub(bound);
        // The sign as a mask: the compiler cannot know that it has two values only, and make a branch of it.
        d.wrapping_add(bound & std::hint::black_box(d >> 63).wrapping_neg())
    }

    #[inline(always)]
    fn low(self, a: u64) -> u64 {
        a & ((1 << LIMB) - 1)
    }

    #[inline(always)]
    fn high(self, a: u64) -> u64 {
        a >> LIMB
    }

    #[inline(always)]
    fn times(self, x: u64, factor: Factor<u64>, p: u64) -> u64 {
        let q = ((u128::from(x) * u128::from(factor.quotient)) >> LIMB) as u64;
        x.wrapping_mul(factor.value).wrapping_sub(q.wrapping_mul(p))
    }

    #[inline(always)]
    fn multiply_add(self, (low, high): (u64, u64), x: u64, y: u64) -> (u64, u64) {
        let product = u128::from(x) * u128::from(y);
        (low.wrapping_add(self.low(product as u64)), high.wrapping_add((product >> LIMB) as u64))
    }
}

//! Samplers. Their time and their memory accesses do not depend on what is drawn: no branch, no index, no rejection.

use crate::lane::LIMB;
use crate::mutation;
use privet_prg::{Prg, Wiped};
use privet_ring::Ring;

/// Added to small signed values, so that words hold them: they lie in [-31, 31].
pub(crate) const OFFSET: u64 = 32;

/// Secret words, wiped on drop.
pub(crate) type Small = Wiped<u64>;

/// Bits on each side of the centred binomial distribution: the bound of a sample.
pub const CBD: u32 = 21;

/// Variance of an error, CBD / 2; the standard deviation is 3.24.
pub const ERROR_VARIANCE: f64 = CBD as f64 / 2.0;

/// Variance of a ternary coefficient.
pub const TERNARY_VARIANCE: f64 = 2.0 / 3.0;

/// floor(i 2^64 / 3): where the distribution function of a uniform ternary value steps.
const TERNARY: [u64; 2] = [0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];

/// 1 where a < b, without a comparison that the compiler may branch on.
#[inline(always)]
pub(crate) fn below(a: u64, b: u64) -> u64 {
    (u128::from(a).wrapping_sub(u128::from(b)) >> 127) as u64
}

/// Uniform in {-1, 0, 1} up to 2^-63, by a scan of the whole table.
pub(crate) fn ternary(prg: &mut Prg, n: usize) -> Small {
    let mut words = Small::zeros(n);
    prg.fill(Ring::R64, &mut words);
    for w in words.iter_mut() {
        let steps: u64 = TERNARY.iter().map(|&step| 1 - below(*w, step)).sum();
        *w = OFFSET - 1 + steps;
    }
    mutation::constant("ternary-constant", &mut words, OFFSET + 1);
    words
}

/// Errors: the difference of two sums of [`CBD`] bits.
pub(crate) fn errors(prg: &mut Prg, n: usize) -> Small {
    let mut words = Small::zeros(n);
    prg.fill(Ring::new(2 * CBD), &mut words);
    for w in words.iter_mut() {
        let ones = |bits: u64| u64::from((bits & ((1 << CBD) - 1)).count_ones());
        *w = OFFSET + ones(*w) - ones(*w >> CBD);
    }
    mutation::constant("errors-constant", &mut words, OFFSET + 3);
    if mutation::active("errors-narrow") {
        words.iter_mut().for_each(|w| *w = OFFSET + (*w & 3));
    }
    words
}

/// Limbs of `u1 + u2 + u3`, each uniform in [0, 2^bits), 100 <= 2 + bits < 156 bits in all; less `3 2^(bits - 1)` it is
/// the noise that drowns others.
///
/// Three summands, as their sum has a density without jumps: moving n such values by a vector E changes them by a
/// statistical distance of at most 1.08 |E| / 2^bits, where one uniform value would cost the sum of all |E_i|.
pub(crate) fn flood(prg: &mut Prg, bits: u32, n: usize) -> [Small; 3] {
    assert!(bits > 0 && bits + 2 < 3 * LIMB, "the noise has three limbs");
    let mut limbs = [(); 3].map(|()| Small::zeros(n));
    let width = |limb: u32| bits.saturating_sub(limb * LIMB).min(LIMB);
    for _ in 0..3 {
        for (i, limb) in limbs.iter_mut().enumerate().filter(|(i, _)| width(*i as u32) > 0) {
            let mut words = Small::zeros(n);
            prg.fill(Ring::new(width(i as u32)), &mut words);
            limb.iter_mut().zip(words.iter()).for_each(|(sum, w)| *sum += w);
        }
    }
    let [low, middle, high] = &mut limbs;
    for ((low, middle), high) in low.iter_mut().zip(middle.iter_mut()).zip(high.iter_mut()) {
        *middle += *low >> LIMB;
        *high += *middle >> LIMB;
        *low &= (1 << LIMB) - 1;
        *middle &= (1 << LIMB) - 1;
    }
    limbs
}

/// Public uniform words below p < 2^50 by rejection: everybody draws the same ones from a public seed.
pub(crate) fn uniform(prg: &mut Prg, p: u64, out: &mut [u64]) {
    let ring = Ring::new(64 - (p - 1).leading_zeros());
    let mut have = 0;
    while have < out.len() {
        for w in prg.elements(ring, out.len() - have) {
            if w < p {
                out[have] = w;
                have += 1;
            }
        }
    }
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;

//! Messages modulo t as coefficients modulo q, and back.

use crate::context::{Coeff, Context};
use crate::lane::LIMB;
use crate::mutation;
use crate::plain::Plain;
use crate::pointwise::limb_factors;
use crate::sample::{self, Small};
use privet_prg::Prg;

/// `q x / t`, rounded up or down at random so that the rounding has mean 0 whatever x is, plus an error.
///
/// With `r = q x mod t` and d uniform below t it is `floor((q x + d) / t) = (q x - r) / t + [r + d >= t]`, and the first
/// part is `-r / t` modulo each prime. So nothing is larger than a word.
pub(crate) fn message(context: &Context, plain: Plain, x: &[u64], prg: &mut Prg) -> Coeff {
    let mut small = sample::errors(prg, x.len());
    let mut dither = Small::new(plain.uniform(prg, x.len()));
    mutation::constant("rounding-towards-zero", &mut dither, 0);
    let [low, high] = plain.remainders(context, x);
    for (i, small) in small.iter_mut().enumerate() {
        *small += plain.reaches([low[i], high[i]], dither[i]);
    }
    context.combine(x.len(), |m| {
        let [one, limb, _] = limb_factors(m);
        let step = m.inverse(plain.modulo(m));
        let minus = |f: u64| m.factor(m.p() - m.times(f, step));
        let limbs = vec![(&low[..], minus(one.value)), (&high[..], minus(limb.value)), (&small[..], one)];
        (limbs, m.p() - sample::OFFSET)
    })
}

/// The drowning noise of three summands of `bits`, less `floor(q r / t)` of each share r: what makes of a phase one
/// that its share alone is known of.
pub(crate) fn flood(context: &Context, plain: Plain, bits: u32, share: &[u64], prg: &mut Prg) -> Coeff {
    let mut noise = sample::flood(prg, bits, share.len());
    noise.iter_mut().for_each(|limb| mutation::constant("not-drowned", limb, 0));
    let [low, high] = plain.remainders(context, share);
    context.combine(share.len(), |m| {
        let factors = limb_factors(m);
        let step = m.inverse(plain.modulo(m));
        let mut limbs: Vec<_> = noise.iter().zip(factors).map(|(limb, f)| (&limb[..], f)).collect();
        limbs.push((&low[..], m.factor(step)));
        limbs.push((&high[..], m.factor(m.times(factors[1].value, step))));
        // three summands below 2^bits: centred by 3 2^(bits - 1)
        let half = m.times(3, m.power(2, u64::from(bits) - 1));
        (limbs, m.reduce(u128::from(m.p() - half)))
    })
}

/// `c 2^bits / q` to the nearest integer, modulo 2^bits.
pub(crate) fn switch(context: &Context, c: &Coeff, bits: u32) -> Vec<u128> {
    let mut fractions = context.fractions(c);
    let half = 1u128 << (127 - bits);
    fractions.iter_mut().for_each(|f| *f = f.wrapping_add(half) >> (128 - bits));
    fractions
}

/// `floor(q y / 2^bits)` of each y below 2^bits: what [`switch`] makes y of.
///
/// With `r = q y mod 2^bits` it is `(q y - r) / 2^bits`, which is `-r / 2^bits` modulo each prime.
pub(crate) fn widen(context: &Context, y: &[u128], bits: u32) -> Coeff {
    let q = context.set().primes.iter().fold(1u128, |q, p| q.wrapping_mul(u128::from(*p)));
    let mut limbs: [Small; 3] = [0, 1, 2].map(|_| Small::zeros(y.len()));
    for (i, y) in y.iter().enumerate() {
        let r = wrap(q.wrapping_mul(*y), bits);
        for (limb, at) in limbs.iter_mut().zip([0, LIMB, 2 * LIMB]) {
            limb[i] = (r >> at) as u64 & ((1 << LIMB) - 1);
        }
    }
    context.combine(y.len(), |m| {
        let step = m.inverse(m.power(2, u64::from(bits)));
        let minus = |f: u64| m.factor(m.p() - m.times(f, step));
        (limbs.iter().zip(limb_factors(m)).map(|(limb, f)| (&limb[..], minus(f.value))).collect(), 0)
    })
}

/// The lowest `bits` bits.
pub(crate) const fn wrap(x: u128, bits: u32) -> u128 {
    x & (u128::MAX >> (128 - bits))
}

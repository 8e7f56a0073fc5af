//! Messages modulo 2^k as coefficients modulo q, and back.

use crate::context::{Coeff, Context};
use crate::lane::LIMB;
use crate::mutation;
use crate::pointwise::limb_factors;
use crate::sample::{self, Small};
use privet_prg::Prg;
use privet_ring::Ring;
use zeroize::{Zeroize, Zeroizing};

/// `q x / 2^k`, rounded up or down at random so that the rounding has mean 0 whatever x is, plus an error.
///
/// With `r = q x mod 2^k` and d uniform below 2^k it is `floor((q x + d) / 2^k) = (q x - r) / 2^k + [r + d >= 2^k]`, and
/// the first part is `-r / 2^k` modulo each prime. So nothing is larger than a word.
pub(crate) fn message(context: &Context, ring: Ring, x: &[u64], prg: &mut Prg) -> Coeff {
    let mut small = sample::errors(prg, x.len());
    let mut dither = Zeroizing::new(prg.elements(ring, x.len()));
    mutation::constant("rounding-towards-zero", &mut dither, 0);
    let [mut low, mut high] = [(); 2].map(|()| Small::new(vec![0; x.len()]));
    for (i, x) in x.iter().enumerate() {
        (low[i], high[i]) = remainder(context, ring, *x);
        let r = high[i] << LIMB | low[i];
        small[i] += ((u128::from(r) + u128::from(dither[i])) >> ring.bits()) as u64;
    }
    context.combine(x.len(), |m| {
        let [one, limb, _] = limb_factors(m);
        let step = m.inverse(m.reduce(1u128 << ring.bits()));
        let minus = |f: u64| m.factor(m.p() - m.times(f, step));
        let limbs = vec![(&low[..], minus(one.value)), (&high[..], minus(limb.value)), (&small[..], one)];
        (limbs, m.p() - sample::OFFSET)
    })
}

/// The drowning noise of three summands of `bits`, less `floor(q r / 2^k)` of each share r: what makes of a phase one
/// that its share alone is known of. `undrowned` is the fault that leaves the noise out.
pub(crate) fn flood(
    context: &Context,
    ring: Ring,
    bits: u32,
    share: &[u64],
    undrowned: &str,
    prg: &mut Prg,
) -> Coeff {
    let mut noise = sample::flood(prg, bits, share.len());
    noise.iter_mut().for_each(|limb| mutation::constant(undrowned, limb, 0));
    let [mut low, mut high] = [(); 2].map(|()| Small::new(vec![0; share.len()]));
    for ((r, low), high) in share.iter().zip(low.iter_mut()).zip(high.iter_mut()) {
        (*low, *high) = remainder(context, ring, *r);
    }
    context.combine(share.len(), |m| {
        let factors = limb_factors(m);
        let step = m.inverse(m.reduce(1u128 << ring.bits()));
        let mut limbs: Vec<_> = noise.iter().zip(factors).map(|(limb, f)| (&limb[..], f)).collect();
        limbs.push((&low[..], m.factor(step)));
        limbs.push((&high[..], m.factor(m.times(factors[1].value, step))));
        // three summands below 2^bits: centred by 3 2^(bits - 1)
        let half = m.times(3, m.power(2, u64::from(bits) - 1));
        (limbs, m.reduce(u128::from(m.p() - half)))
    })
}

/// Limbs of `q x mod 2^k`.
fn remainder(context: &Context, ring: Ring, x: u64) -> (u64, u64) {
    let r = ring.wrap(context.low_q().wrapping_mul(x));
    (r & ((1 << LIMB) - 1), r >> LIMB)
}

/// `c 2^bits / q` to the nearest integer, modulo 2^bits.
pub(crate) fn switch(context: &Context, c: &Coeff, bits: u32) -> Vec<u128> {
    let mut fractions = context.fractions(c);
    let half = 1u128 << (127 - bits);
    fractions.iter_mut().for_each(|f| *f = f.wrapping_add(half) >> (128 - bits));
    fractions
}

/// The message whose encoding modulo 2^bits is nearest.
pub(crate) fn decode(ring: Ring, phase: u128, bits: u32) -> u64 {
    let shift = bits - ring.bits();
    ring.wrap((phase.wrapping_add(1 << (shift - 1)) >> shift) as u64)
}

/// The lowest `bits` bits.
pub(crate) const fn wrap(x: u128, bits: u32) -> u128 {
    x & (u128::MAX >> (128 - bits))
}

/// Centred integers `a s` from their residues modulo the first two primes, modulo 2^bits; their magnitude must be below
/// half the product of these primes.
pub(crate) fn lift(context: &Context, c: &Coeff, bits: u32) -> Vec<u128> {
    let (m1, m2) = (context.modulus(0), context.modulus(1));
    let (p1, p2) = (m1.p(), m2.p());
    assert!(p1 < 2 * p2, "primes of one size");
    let inverse = m2.inverse(m2.reduce(u128::from(p1)));
    let mut quotient = Zeroizing::new(vec![0; context.degree()]);
    let (x1, x2) = (&c.words[context.range(0)], &c.words[context.range(1)]);
    // (x2 - x1) / p1 modulo p2
    let factors = [(x2, m2.factor(inverse)), (x1, m2.factor(p2 - inverse))];
    crate::pointwise::combine(context.path(), m2, &factors, 0, &mut quotient);
    let product = u128::from(p1) * u128::from(p2);
    let lift = |(x1, t): (&u64, &u64)| {
        let x = u128::from(*x1) + u128::from(p1) * u128::from(*t);
        // all ones where x is above half: subtract the product
        let above = ((product >> 1).wrapping_sub(x) >> 127).wrapping_neg();
        wrap(x.wrapping_sub(product & above), bits)
    };
    let lifted = x1.iter().zip(quotient.iter()).map(lift).collect();
    quotient.zeroize();
    lifted
}

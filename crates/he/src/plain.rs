//! Z_t of the messages: t = 2^k, whose sums need no reduction, or a prime t, whose polynomials have slots.

use crate::context::Context;
use crate::lane::LIMB;
use crate::modulus::Modulus;
use crate::pointwise;
use crate::sample::Small;
use privet_prg::Prg;
use privet_ring::Ring;
use zeroize::Zeroizing;

/// The plaintext modulus t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// 2^k.
    Power(Ring),
    /// An odd prime below 2^50.
    Prime(u64),
}

impl Plain {
    /// Bits of a message: t is at most 2 to this power, and more than half of it.
    pub fn bits(self) -> u32 {
        match self {
            Plain::Power(ring) => ring.bits(),
            Plain::Prime(t) => 64 - t.leading_zeros(),
        }
    }

    /// t modulo a prime.
    pub(crate) fn modulo(self, m: Modulus) -> u64 {
        match self {
            Plain::Power(ring) => m.reduce(1u128 << ring.bits()),
            Plain::Prime(t) => m.reduce(u128::from(t)),
        }
    }

    /// Uniform messages; below a prime up to a distance of t / 2^128 each, so that none is drawn twice.
    pub fn uniform(self, prg: &mut Prg, n: usize) -> Vec<u64> {
        match self {
            Plain::Power(ring) => prg.elements(ring, n),
            Plain::Prime(t) => {
                let mut high = prg.elements(Ring::R64, n);
                let low = Zeroizing::new(prg.elements(Ring::R64, n));
                for (high, low) in high.iter_mut().zip(low.iter()) {
                    let carry = (u128::from(t) * u128::from(*low)) >> 64;
                    *high = ((u128::from(t) * u128::from(*high) + carry) >> 64) as u64;
                }
                high
            }
        }
    }

    /// `q x mod t`, in two limbs.
    pub(crate) fn remainders(self, context: &Context, x: &[u64]) -> [Small; 2] {
        let [mut low, mut high] = [(); 2].map(|()| Small::zeros(x.len()));
        match self {
            Plain::Power(ring) => {
                for ((x, low), high) in x.iter().zip(low.iter_mut()).zip(high.iter_mut()) {
                    let r = ring.wrap(context.low_q().wrapping_mul(*x));
                    (*low, *high) = (r & ((1 << LIMB) - 1), r >> LIMB);
                }
            }
            Plain::Prime(t) => {
                let m = Modulus::new(t);
                let q = context.set().primes.iter().fold(1, |q, p| m.times(q, m.reduce(u128::from(*p))));
                pointwise::combine(context.path(), m, &[(x, m.factor(q))], 0, &mut low);
            }
        }
        [low, high]
    }

    /// Whether a remainder and a message add up to t at least: 1 or 0.
    pub(crate) fn reaches(self, [low, high]: [u64; 2], x: u64) -> u64 {
        let sum = u128::from(high << LIMB | low) + u128::from(x);
        match self {
            Plain::Power(ring) => (sum >> ring.bits()) as u64,
            Plain::Prime(t) => 1 - (sum.wrapping_sub(u128::from(t)) >> 127) as u64,
        }
    }

    /// The signed integer nearest to 0 of each message, in two's complement of 64 bits.
    pub(crate) fn signed(self, x: &[u64]) -> Small {
        Small::new(match self {
            Plain::Power(ring) => x.iter().map(|x| ring.signed(*x) as u64).collect(),
            Plain::Prime(t) => {
                // all ones where x is above t / 2
                let signed = |x: &u64| x.wrapping_sub(t & ((t >> 1).wrapping_sub(*x) >> 63).wrapping_neg());
                x.iter().map(signed).collect()
            }
        })
    }

    /// The message whose encoding modulo 2^bits is nearest to this phase.
    pub(crate) fn decode(self, phase: u128, bits: u32) -> u64 {
        match self {
            Plain::Power(ring) => {
                let shift = bits - ring.bits();
                ring.wrap((phase.wrapping_add(1 << (shift - 1)) >> shift) as u64)
            }
            Plain::Prime(t) => {
                // phase below 2^bits, bits + 50 below 128: at most t, which is 0
                let nearest = ((phase * u128::from(t) + (1 << (bits - 1))) >> bits) as u64;
                nearest & (nearest.wrapping_sub(t) >> 63).wrapping_neg()
            }
        }
    }

    /// `x += y` modulo t.
    pub fn add(self, x: &mut [u64], y: &[u64]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x = match self {
                Plain::Power(ring) => ring.wrap(x.wrapping_add(*y)),
                Plain::Prime(t) => {
                    let less = (*x + *y).wrapping_sub(t);
                    less.wrapping_add(t & (less >> 63).wrapping_neg())
                }
            };
        }
    }
}

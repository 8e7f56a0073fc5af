//! Parameters of products over the torus: one noise mode, in which no noise reaches a share.
//!
//! The evidence for the table is `../evidence.txt`, which `scripts/he-evidence.py` writes; a test reads it.

use super::wide::MOST_BITS;
use crate::params::{PRIMES, Set};
use crate::sample::{ERROR_VARIANCE, TERNARY_VARIANCE};
use privet_ring::Ring;
use thiserror::Error;

/// Bits of LQ beyond ring and norm: a share of an output is wrong with a probability of at most 2^-[`SHARE_BITS`].
pub const SPARE_BITS: u32 = 66;

/// The norm that LQ is for at least, in bits: with smaller weights the noise is that of what hides hints and encryptions of 0.
pub const LEAST_NORM_BITS: u32 = 9;

/// Lowest bits of operands' polynomials that are not sent, at most: [`super::wide::Wide::rounded_to_even`] leaves none of them, and what
/// it changes is below errors.
pub const MOST_DROPPED: u32 = 2;
/// Variance of that rounding by so many bits, of a uniform element: by nothing; by 0 or 1; by 0, 1, 1 or 2.
const ROUNDING: [f64; MOST_DROPPED as usize + 1] = [0.0, 0.5, 1.5];
/// The least dimension where one bit less is dropped: with longer keys roundings of hints leave less room.
const LONG_KEYS: usize = 8192;

/// Bits of the probability that a share of one output is wrong: 2^-40 for 2^24 outputs.
pub const SHARE_BITS: f64 = 64.0;

/// Dimension and the largest log2 of the modulus that it serves, with 132 bits at least by the script's estimate. Secrets are
/// ternary, errors have the standard deviation 3.24. SECURITY class of constants: nothing overrides them.
pub const DIMENSIONS: [(usize, u32); 16] = [
    (2560, 66),
    (3072, 79),
    (3584, 92),
    (4096, 105),
    (4608, 119),
    (5120, 132),
    (5632, 145),
    (6144, 158),
    (6656, 172),
    (7168, 185),
    (7680, 198),
    (8192, 212),
    (8704, 225),
    (9216, 238),
    (9728, 252),
    (10240, 265),
];

/// Rings that modules stand over; the prime serves exact products of digits and is no modulus of anything.
pub(crate) static RINGS: [Set; 4] = [ring(512), ring(1024), ring(2048), ring(4096)];

const fn ring(degree: usize) -> Set {
    Set { name: "digits", degree, primes: PRIMES.first_chunk::<1>().unwrap() }
}

/// What a product over the torus cannot have.
#[derive(Debug, Error, PartialEq)]
pub enum NoTorus {
    /// The modulus would be wider than the table.
    #[error(
        "{ring_bits} bits times weights of a norm of 2^{norm_bits} need a modulus of {needed} bits, and there are \
         parameters up to {MOST_BITS}; use fewer bits, or smaller weights"
    )]
    Wide {
        /// Bits of the ring.
        ring_bits: u32,
        /// log2 of the weights' norm.
        norm_bits: u32,
        /// Bits needed.
        needed: u32,
    },
    /// A modulus with which noise would reach shares, and tell the client the weights.
    #[error(
        "a modulus of {found} bits lets noise reach the shares: {needed} are needed; both sides must have one version"
    )]
    Lean {
        /// Bits needed.
        needed: u32,
        /// Bits offered.
        found: u32,
    },
    /// A convolution of which no tile fits.
    #[error(
        "the window of an output does not fit in 4096 coefficients with its neighbours; use smaller kernels or dilations"
    )]
    Window,
    /// No ring of this degree.
    #[error("there is no ring of degree {0}; take 512, 1024, 2048 or 4096")]
    Degree(usize),
}

/// Ring, weights' norm, and what follows. AGREEMENT class: both sides derive it alike, and it shapes the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorusParameters {
    ring: Ring,
    norm_bits: u32,
    modulus_bits: u32,
    set: &'static Set,
    rank: usize,
}

impl TorusParameters {
    /// For products modulo 2^k with weights whose packed filters have a Euclidean norm of at most 2^`norm_bits`, as modules
    /// over a ring of this degree. A share of an output is then wrong with a probability of at most 2^-64.
    pub fn exact(ring: Ring, norm_bits: u32, degree: usize) -> Result<TorusParameters, NoTorus> {
        TorusParameters::of(ring, norm_bits, degree, needed_bits(ring, norm_bits))
    }

    /// The same with the modulus that a peer named. A smaller one is refused: its noise would tell the weights.
    pub fn of(
        ring: Ring,
        norm_bits: u32,
        degree: usize,
        modulus_bits: u32,
    ) -> Result<TorusParameters, NoTorus> {
        let needed = needed_bits(ring, norm_bits);
        if modulus_bits < needed {
            return Err(NoTorus::Lean { needed, found: modulus_bits });
        }
        TorusParameters::hard(ring, norm_bits, degree, modulus_bits)
    }

    /// With a rank for which the modulus is hard, whatever reaches the shares.
    fn hard(
        ring: Ring,
        norm_bits: u32,
        degree: usize,
        modulus_bits: u32,
    ) -> Result<TorusParameters, NoTorus> {
        let wide = NoTorus::Wide { ring_bits: ring.bits(), norm_bits, needed: modulus_bits };
        let row = DIMENSIONS.iter().find(|(_, most)| *most >= modulus_bits);
        let (dimension, _) = row.filter(|_| modulus_bits <= MOST_BITS).ok_or(wide)?;
        let set = RINGS.iter().find(|set| set.degree == degree).ok_or(NoTorus::Degree(degree))?;
        let rank = dimension.div_ceil(degree);
        Ok(TorusParameters { ring, norm_bits, modulus_bits, set, rank })
    }

    /// A modulus so small that shares are wrong now and then, to count them. Never outside this crate's tests.
    #[cfg(test)]
    pub(crate) fn scaled(ring: Ring, norm_bits: u32, degree: usize, less: u32) -> TorusParameters {
        let modulus_bits = needed_bits(ring, norm_bits) - less;
        TorusParameters::hard(ring, norm_bits, degree, modulus_bits).expect("it is smaller")
    }

    /// Z_2^k of operand and outputs.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// log2 of the bound on a packed filter's Euclidean norm.
    pub fn norm_bits(&self) -> u32 {
        self.norm_bits
    }

    /// LQ.
    pub fn modulus_bits(&self) -> u32 {
        self.modulus_bits
    }

    /// log2 of delta, the step between messages: bits of an operand's low part.
    pub fn step_bits(&self) -> u32 {
        self.modulus_bits - self.ring.bits()
    }

    /// Coefficients of a polynomial.
    pub fn degree(&self) -> usize {
        self.set.degree
    }

    /// Polynomials of a key.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Coefficients of a key: what hardness depends on.
    pub fn dimension(&self) -> usize {
        self.rank * self.set.degree
    }

    /// Lowest bits of hints and of encryptions of 0 that are not sent.
    pub fn dropped_bits(&self) -> u32 {
        self.norm_bits.saturating_sub(4)
    }

    /// Bits that are sent of a coefficient of a hint, or of an encryption of 0.
    pub fn kept_bits(&self) -> u32 {
        self.modulus_bits - self.dropped_bits()
    }

    /// Lowest bits of operands' polynomials that are not sent.
    pub fn operand_dropped(&self) -> u32 {
        if self.dimension() < LONG_KEYS { MOST_DROPPED } else { 1 }
    }

    /// Bits that are sent of an operand's low part.
    pub fn low_bits(&self) -> u32 {
        self.step_bits() - self.operand_dropped()
    }

    /// Bits that are sent where no operand stands.
    pub fn blank_bits(&self) -> u32 {
        self.modulus_bits - self.operand_dropped()
    }

    pub(crate) fn set(&self) -> &'static Set {
        self.set
    }

    /// Standard deviation, from above, of `E = sum of w e + u e0 - e1 s` and of the roundings of operands, b0 and hints, whatever the
    /// weights are.
    pub fn deviation(&self) -> f64 {
        let n = self.dimension() as f64;
        let rounded = ROUNDING[self.operand_dropped() as usize];
        let products = 4f64.powi(self.norm_bits as i32) * (ERROR_VARIANCE + rounded);
        let zeros = 2.0 * n * TERNARY_VARIANCE * ERROR_VARIANCE;
        // uniform in [-2^(b-1), 2^(b-1)): mean square below 4^b / 12 + 1
        let rounding = 4f64.powi(self.dropped_bits() as i32) / 12.0 + 1.0;
        (products + zeros + 2.0 * n * TERNARY_VARIANCE * rounding).sqrt()
    }

    /// -log2 of the probability that a share of one output is wrong: the client's low part, uniform on multiples of what is dropped
    /// of hints, has to lie within |E| of a multiple of delta. The mean of |E| is at most its deviation (Jensen).
    pub fn share_bits(&self) -> f64 {
        let grid = 2f64.powi(self.dropped_bits() as i32);
        f64::from(self.step_bits()) - (self.deviation() + grid).log2()
    }
}

/// LQ at least.
fn needed_bits(ring: Ring, norm_bits: u32) -> u32 {
    ring.bits() + norm_bits.max(LEAST_NORM_BITS) + SPARE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::SECURITY_BITS;

    #[test]
    fn every_dimension_has_its_evidence() {
        let evidence = include_str!("../evidence.txt");
        for (dimension, modulus) in DIMENSIONS {
            let name = format!("torus-n{dimension}");
            let line = evidence.lines().find(|l| l.split(' ').next() == Some(&name));
            let line = line.unwrap_or_else(|| panic!("{name} is not in evidence.txt"));
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(fields[1].parse(), Ok(dimension), "{line}");
            assert!(fields[2].parse::<f64>().unwrap() >= f64::from(modulus), "{line}");
            let least = fields[3..].iter().map(|f| f.parse::<f64>().unwrap()).fold(f64::MAX, f64::min);
            assert!(least >= f64::from(SECURITY_BITS) + 4.0, "{line}");
        }
    }

    #[test]
    fn every_choice_keeps_noise_away_from_shares_and_keys_hard() {
        for k in 1..=64 {
            for norm in 0..=80 {
                for degree in [512, 1024, 2048, 4096] {
                    let p = TorusParameters::exact(Ring::new(k), norm, degree).unwrap();
                    assert!(p.share_bits() >= SHARE_BITS, "{p:?}: {}", p.share_bits());
                    let most = DIMENSIONS.iter().rfind(|(n, _)| *n <= p.dimension()).unwrap().1;
                    assert!(p.modulus_bits() <= most && p.dimension() < 10240 + degree, "{p:?}");
                }
            }
        }
        // docs/he.md
        let p = TorusParameters::exact(Ring::new(37), 15, 512).unwrap();
        assert_eq!((p.modulus_bits(), p.rank(), p.kept_bits()), (118, 9, 107));
    }

    #[test]
    fn a_smaller_modulus_is_refused() {
        let ring = Ring::new(37);
        for found in [0, 66, 106, 117] {
            let error = TorusParameters::of(ring, 15, 512, found).unwrap_err();
            assert_eq!(error, NoTorus::Lean { needed: 118, found });
        }
        assert!(TorusParameters::of(ring, 15, 512, 118).is_ok());
        assert_eq!(TorusParameters::exact(ring, 15, 768), Err(NoTorus::Degree(768)));
        let error = TorusParameters::exact(Ring::R64, 127, 512).unwrap_err();
        assert!(error.to_string().contains("need a modulus of 257 bits"), "{error}");
    }
}

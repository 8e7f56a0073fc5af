//! Parameter sets, one table, and what follows from one for a ring, a width of weights and a number of parties.
//!
//! The evidence for the table is `evidence.txt` beside this file, which `scripts/he-evidence.py` writes; a test reads it.

use crate::modulus::PRIME_BITS;
use crate::noise;
use crate::plain::Plain;
use privet_ring::Ring;
use thiserror::Error;

/// Bits of security that every set has at least, by the model of `scripts/he-evidence.py`.
pub const SECURITY_BITS: u32 = 128;

/// Bits of statistical distance that a layer's answers have at least.
pub const DISTANCE_BITS: f64 = 40.0;

/// What the limbs of the drowning noise hold.
const MOST_FLOOD_BITS: u32 = 150;

/// A ring dimension and primes: what hardness depends on. Secrets are ternary, errors have the standard deviation 3.24.
#[derive(Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name in the evidence.
    pub name: &'static str,
    /// N.
    pub degree: usize,
    /// The factors of q, each below 2^50 with 2^15 dividing p - 1.
    pub primes: &'static [u64],
}

pub(crate) const PRIMES: [u64; 4] =
    [0x3_ffff_ffdf_0001, 0x3_ffff_ffd4_8001, 0x3_ffff_ffd2_0001, 0x3_ffff_ffd1_8001];

/// Every set, cheapest first. SECURITY class of constants: nothing overrides them.
pub static SETS: [Set; 3] = [
    Set { name: "n4096-q100", degree: 4096, primes: PRIMES.first_chunk::<2>().unwrap() },
    Set { name: "n8192-q150", degree: 8192, primes: PRIMES.first_chunk::<3>().unwrap() },
    Set { name: "n8192-q200", degree: 8192, primes: &PRIMES },
];

impl Set {
    /// log2 of q, from below.
    pub fn modulus_bits(&self) -> f64 {
        self.primes.iter().map(|&p| (p as f64).log2()).sum::<f64>() - 1e-9
    }

    /// Bytes of a polynomial modulo q, packed.
    pub fn poly_bytes(&self) -> usize {
        self.primes.len() * Ring::new(PRIME_BITS).packed_bytes(self.degree)
    }

    /// Bytes of a polynomial modulo q in memory.
    pub fn value_bytes(&self) -> usize {
        self.primes.len() * self.degree * size_of::<u64>()
    }
}

/// No set holds a layer.
#[derive(Debug, Error, PartialEq)]
pub enum NoSet {
    /// No modulus is large enough.
    #[error(
        "no parameter set holds {ring_bits} bits times weights of {weight_bits} bits, {coefficients} coefficients a sum, for \
         {outputs} outputs and {parties} parties: the best distance is 2^-{distance_bits:.1}, 2^-40 is needed. \
         Use fewer bits, or fewer outputs an answer"
    )]
    Modulus {
        /// Bits of the ring.
        ring_bits: u32,
        /// Bits of a weight, its sign included.
        weight_bits: u32,
        /// Weight coefficients that act on one output.
        coefficients: usize,
        /// Outputs that are answered together.
        outputs: usize,
        /// Who takes part.
        parties: usize,
        /// What the largest set reaches; negative where nothing decrypts.
        distance_bits: f64,
    },
    /// No polynomial is long enough.
    #[error(
        "the kernel of a convolution reaches over {height} x {width} pixels of a phase for one output, and the longest polynomial \
         holds {degree}. Use a smaller kernel or a smaller dilation"
    )]
    Window {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Coefficients of the longest polynomial.
        degree: usize,
    },
}

/// A set, and the numbers that both sides of a product derive from it alike. AGREEMENT class: they shape the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    set: &'static Set,
    plain: Plain,
    weight_bits: u32,
    parties: usize,
    kept_bits: Option<u32>,
}

/// Bits of a coefficient that are kept, at most: the fixed-point conversion has 128.
const MOST_KEPT_BITS: u32 = 112;

impl Parameters {
    /// The cheapest set for products modulo 2^k of a k-bit operand with signed weights of `weight_bits`, where `outputs`
    /// are answered and `coefficients` weight coefficients act on each of them. `parties` take part.
    ///
    /// Decryption then never fails, and the answers differ from ones that are made without the weights by a statistical
    /// distance of at most 2^-40 (`docs/he.md`).
    pub fn choose(
        ring: Ring,
        weight_bits: u32,
        coefficients: usize,
        outputs: usize,
        parties: usize,
    ) -> Result<Parameters, NoSet> {
        let mut sets =
            SETS.iter().map(|set| Parameters::on(set, ring, weight_bits, coefficients, outputs, parties));
        sets.find(|p| p.is_ok()).unwrap_or_else(|| {
            let largest = SETS.last().expect("there are sets");
            Parameters::on(largest, ring, weight_bits, coefficients, outputs, parties)
        })
    }

    /// The same with this set, if it is large enough.
    pub fn on(
        set: &'static Set,
        ring: Ring,
        weight_bits: u32,
        coefficients: usize,
        outputs: usize,
        parties: usize,
    ) -> Result<Parameters, NoSet> {
        Parameters::of(set, Plain::Power(ring), weight_bits, coefficients, outputs, parties)
    }

    /// For messages and weights modulo a prime t, with this set.
    pub fn modulo(
        set: &'static Set,
        t: u64,
        coefficients: usize,
        outputs: usize,
        parties: usize,
    ) -> Result<Parameters, NoSet> {
        let plain = Plain::Prime(t);
        Parameters::of(set, plain, plain.bits(), coefficients, outputs, parties)
    }

    fn of(
        set: &'static Set,
        plain: Plain,
        weight_bits: u32,
        coefficients: usize,
        outputs: usize,
        parties: usize,
    ) -> Result<Parameters, NoSet> {
        assert!((1..=plain.bits()).contains(&weight_bits), "weights are elements of the ring");
        assert!(coefficients > 0 && outputs > 0 && parties > 0);
        let p = Parameters { set, plain, weight_bits, parties, kept_bits: None };
        let distance_bits =
            if p.decrypts(coefficients) { p.distance_bits(coefficients, outputs) } else { -1.0 };
        if distance_bits >= DISTANCE_BITS {
            return Ok(p);
        }
        Err(NoSet::Modulus {
            ring_bits: plain.bits(),
            weight_bits,
            coefficients,
            outputs,
            parties,
            distance_bits,
        })
    }

    /// The same where hints and encryptions of 0 are sent without the bits that noise hides anyway: as few are kept as leave decryption without
    /// failures and the distance at 2^-40 over so many outputs. Where that needs more than 112, all are sent.
    pub fn coarse(self, coefficients: usize, outputs: usize) -> Parameters {
        let of = |bits| Parameters { kept_bits: Some(bits), ..self };
        let will_do = |p: &Parameters| {
            p.decrypts(coefficients) && p.distance_bits(coefficients, outputs) >= DISTANCE_BITS
        };
        (self.output_bits()..=MOST_KEPT_BITS).map(of).find(will_do).unwrap_or(self)
    }

    /// Bits that are sent of a coefficient of hints and encryptions of 0; all words where there is no number.
    pub fn kept_bits(&self) -> Option<u32> {
        self.kept_bits
    }

    /// The set.
    pub fn set(&self) -> &'static Set {
        self.set
    }

    /// Z_t of the messages.
    pub fn plain(&self) -> Plain {
        self.plain
    }

    /// Bits of a weight, its sign included.
    pub fn weight_bits(&self) -> u32 {
        self.weight_bits
    }

    /// Who takes part.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// Bits of a summand of the drowning noise: all the room there is. `log2 q - k - 2`, less for the parties' sum.
    pub fn flood_bits(&self) -> u32 {
        let parties = self.parties.next_power_of_two().trailing_zeros();
        (self.set.modulus_bits() as u32).saturating_sub(self.plain.bits() + 2 + parties).min(MOST_FLOOD_BITS)
    }

    /// Bits of an output's coefficient in an answer.
    pub fn output_bits(&self) -> u32 {
        self.plain.bits() + 5 + self.parties.next_power_of_two().trailing_zeros()
    }

    /// Whether decryption cannot fail, whatever anybody draws: the sum of all bounds stays below half a step.
    pub fn decrypts(&self, coefficients: usize) -> bool {
        self.flood_bits() >= 1 && noise::worst_fraction(self, coefficients) < 0.5
    }

    /// -log2 of the statistical distance between `outputs` answered coefficients and answers made without the weights.
    pub fn distance_bits(&self, coefficients: usize, outputs: usize) -> f64 {
        let moved = noise::variance(self, coefficients).log2() / 2.0 + (outputs as f64).log2() / 2.0;
        f64::from(self.flood_bits()) - moved - noise::MOVING.log2()
    }
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;

//! What noise there is, in units of 1 modulo q: a bound on everything for decryption, a variance for secrecy.
//!
//! The formulas are argued in `docs/he.md`; tests measure both sides of them.

use crate::params::Parameters;
use crate::sample::{CBD, ERROR_VARIANCE, TERNARY_VARIANCE};

/// Moving n values of the drowning noise of width 2^f by E costs at most `MOVING |E| / 2^f` in statistical distance:
/// the square root of the sum of squared steps of the square root of the density, times the width.
pub const MOVING: f64 = 1.08;

/// Variance of the rounding to the message's grid, which is unbiased.
const ROUNDING_VARIANCE: f64 = 0.25;

/// Mean square of an answer's coefficient's noise before it is drowned, over all parties' noise, for any
/// weights: `coefficients` of them, each at most 2^(b-1) in magnitude.
pub fn variance(p: &Parameters, coefficients: usize) -> f64 {
    let n = p.parties() as f64;
    let degree = p.set().degree as f64;
    let weights = coefficients as f64 * 4f64.powi(p.weight_bits() as i32 - 1);
    // n ciphertexts are added; the weights' n summands may add up in magnitude
    let products = n * n * n * weights * (ERROR_VARIANCE + ROUNDING_VARIANCE);
    // a fresh encryption of 0 of each: u times the key's error and an error times s, both sums of n
    let zeros = 2.0 * n * n * degree * TERNARY_VARIANCE * ERROR_VARIANCE;
    // message, share and their sum are rounded: two units more, whichever way
    ((products + zeros + n * ERROR_VARIANCE).sqrt() + 2.0 * n + 2.0 * coarse_deviation(p)).powi(2)
}

/// The largest that a coefficient of the sum of all hints, or of all encryptions of 0, is off by what is not sent of it.
fn coarse(p: &Parameters) -> f64 {
    let off = |bits: u32| 2f64.powf(p.set().modulus_bits() - f64::from(bits));
    // half a step, a unit, and what the fixed-point conversion lacks: less than a hundredth of a step
    p.parties() as f64 * p.kept_bits().map_or(0.0, |bits| 0.51 * off(bits))
}

/// Root of the mean square of such errors times the sum of all keys, or of what hides all hints: these are drawn independently of them.
fn coarse_deviation(p: &Parameters) -> f64 {
    coarse(p) * (p.set().degree as f64 * p.parties() as f64 * TERNARY_VARIANCE).sqrt()
}

/// The largest that an answer's coefficient can be off before it is drowned.
pub fn bound(p: &Parameters, coefficients: usize) -> f64 {
    let n = p.parties() as f64;
    let (degree, error) = (p.set().degree as f64, f64::from(CBD));
    let weights = coefficients as f64 * 2f64.powi(p.weight_bits() as i32 - 1);
    let coarse = 2.0 * degree * n * coarse(p);
    n * n * (weights * (error + 1.0) + 2.0 * degree * error) + n * (error + 2.0) + coarse
}

/// The largest error of decryption, drowning and rounding included, as a fraction of the step between messages: below
/// 1/2, decryption is exact.
pub fn worst_fraction(p: &Parameters, coefficients: usize) -> f64 {
    let step = 2f64.powf(p.set().modulus_bits() - f64::from(p.plain().bits()));
    let n = p.parties() as f64;
    let drowning = n * 1.5 * 2f64.powi(p.flood_bits() as i32);
    // rounding to 2^-bits, and what the fixed-point conversion lacks: two of 2^128 a prime
    let lacking = 2.0 * p.set().primes.len() as f64 * 2f64.powi(p.output_bits() as i32 - 128);
    let coarse = 2f64.powi(p.plain().bits() as i32 - p.output_bits() as i32);
    // every party rounds once; one more for what follows from the message's own step
    (drowning + bound(p, coefficients)) / step + (n + 1.0) * (0.5 + lacking) * coarse
}

//! What noise an answer has, in units of 1 modulo q: a bound on everything for decryption, a mean square for secrecy. `docs/he.md`, 7.1 and
//! 7.2, has the terms one by one; tests measure them.

use super::keys::special;
use super::{DEGREE, GaloisLayout, HOP, set};
use crate::noise::MOVING;
use crate::sample::{CBD, ERROR_VARIANCE, TERNARY_VARIANCE};
use privet_ring::Ring;

/// Bits that are sent of an answer's body.
pub(super) fn body_bits(ring: Ring) -> u32 {
    ring.bits() + 5
}

/// Bits that are sent of an answer's mask: half a step times N keys is an eighth of the step between messages.
pub(super) fn mask_bits(ring: Ring) -> u32 {
    ring.bits() + 15
}

/// Bits of a summand of the drowning noise: all the room there is.
pub(super) fn flood_bits(ring: Ring) -> u32 {
    (set().modulus_bits() as u32).saturating_sub(ring.bits() + 2)
}

/// The largest magnitude of a weight: any element of the ring.
fn most(layout: &GaloisLayout) -> f64 {
    2f64.powi(layout.ring.bits() as i32 - 1)
}

/// Sum over all automorphisms of the squared norms of what stands for a block of weights of magnitude 1.
///
/// For number t as many weights as the greatest common divisor of t and K may fall on one coefficient. These divisors add up to
/// `K (1 + log2 K / 2)`.
fn spread(width: usize) -> f64 {
    let k = width as f64;
    k * k * k * (1.0 + k.log2() / 2.0)
}

/// Digits of a mask, by largest and by mean square.
fn digits() -> (f64, f64) {
    let largest = set().primes.iter().map(|p| *p as f64 / 2.0).fold(0.0, f64::max);
    (largest, largest * largest / 3.0)
}

/// Mean square of an answer's coefficient's noise before it is drowned, for any weights.
pub(super) fn variance(layout: &GaloisLayout) -> f64 {
    let (blocks, k, n) = (layout.inner_blocks() as f64, layout.width as f64, DEGREE as f64);
    let weights = most(layout) * most(layout);
    // the operand's error, rounding included, K times
    let fresh = blocks * k * k * k * weights * (ERROR_VARIANCE + 0.25);
    let p = special() as f64;
    // digits times a key's errors, over P, of the first hop times all that stands for weights
    let switched = |digits: f64| set().primes.len() as f64 * n * digits * ERROR_VARIANCE / (p * p);
    let (largest, uniform) = digits();
    let first = blocks * spread(layout.width) * weights * switched(uniform);
    // masks divided by P are rounded by half a unit a coefficient at most
    let rounded = n * TERNARY_VARIANCE * 0.25;
    let second = HOP as f64 * blocks * (switched(largest * largest) + rounded);
    let zeros = 2.0 * n * TERNARY_VARIANCE * ERROR_VARIANCE + rounded;
    // share, body and what is divided by P are rounded
    ((fresh + first + second + zeros).sqrt() + 3.0).powi(2)
}

/// The largest that an answer's coefficient can be off before it is drowned.
fn bound(layout: &GaloisLayout) -> f64 {
    let (blocks, k, n) = (layout.inner_blocks() as f64, layout.width as f64, DEGREE as f64);
    let error = f64::from(CBD);
    let weights = blocks * k * k * most(layout);
    let switched = set().primes.len() as f64 * n * digits().0 * error / special() as f64;
    let again = HOP as f64 * blocks * (switched + n);
    weights * (error + 1.0) + k * weights * switched + again + n * (2.0 * error + 1.0) + 3.0
}

/// Whether decryption cannot fail, whatever anybody draws.
pub(super) fn decrypts(layout: &GaloisLayout) -> bool {
    let ring = layout.ring;
    let plain = ring.bits() + layout.width.trailing_zeros();
    if plain > Ring::R64.bits() || flood_bits(ring) < 1 {
        return false;
    }
    let step = 2f64.powf(set().modulus_bits() - f64::from(ring.bits()));
    let drowning = 1.5 * 2f64.powi(flood_bits(ring) as i32);
    let rounded = |bits: u32| 2f64.powi(ring.bits() as i32 - bits as i32);
    // body and product with the key are rounded to a body's bits, each mask to its own; a tenth of that for the fixed-point conversion
    let coarse = 1.1 * (rounded(body_bits(ring)) + 0.5 * DEGREE as f64 * rounded(mask_bits(ring)));
    (drowning + bound(layout)) / step + coarse < 0.5
}

/// -log2 of the statistical distance between so many coefficients of answers and ones that are made without the weights.
pub(super) fn distance_bits(layout: &GaloisLayout, coefficients: usize) -> f64 {
    let moved = variance(layout).log2() / 2.0 + (coefficients as f64).log2() / 2.0;
    f64::from(flood_bits(layout.ring)) - moved - MOVING.log2()
}

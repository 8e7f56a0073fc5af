//! How weights are cut to words, and what they are multiplied with to digits: by the sums that one prime holds, or 64 bits.

use super::digits::Cut;
use super::layer::Shape;
use crate::mutation;

/// More than roundings of magnitudes that are added, as bits.
const ROUNDINGS: f64 = 1e-6;

/// Both cuts. LOCAL: no message follows from them.
#[derive(Clone, Copy)]
pub(super) struct Cuts {
    pub weights: Cut,
    pub operand: Cut,
}

impl Cuts {
    /// Those with the fewest products, of weights as they are or of words of them. `operand` has the longest digits for such words, if there
    /// are any.
    fn fewest(s: &Shape, operand: impl Fn(Cut) -> Option<Cut>) -> Cuts {
        let p = &s.parameters;
        let bits = (p.norm_bits() + 1).min(p.ring().bits());
        let cut = |words: u32| {
            let weights = Cut::of(bits, bits.div_ceil(words));
            Some(Cuts { weights, operand: operand(weights)? })
        };
        let cuts = (1..=bits).filter_map(cut);
        cuts.min_by_key(|cuts| cuts.weights.count * cuts.operand.count).expect("words of a bit are small")
    }

    /// For sums of values, of a hint: one prime holds them, hidings included.
    pub fn of_values(s: &Shape) -> Cuts {
        let p = &s.parameters;
        let (taps, hiding) = (s.layout.coefficients(), p.dimension() as f64);
        Cuts::fewest(s, |weights| {
            let squares = match weights.count {
                1 => 4f64.powi(p.norm_bits() as i32),
                _ => taps as f64 * largest(weights).powi(2),
            };
            Cut::for_squares(p.modulus_bits(), squares + hiding, taps + p.dimension())
        })
    }

    /// For sums of integers, of a preparation: whatever an operand holds, none reaches 2^63.
    pub fn of_integers(s: &Shape) -> Cuts {
        let (p, taps) = (&s.parameters, s.layout.coefficients() as f64);
        // and a sign
        let whole = 1 + if s.has_blanks() { p.modulus_bits() } else { p.step_bits() };
        Cuts::fewest(s, |weights| {
            // magnitudes of a filter's words, added: Cauchy and Schwarz, where words are weights
            let sizes = match weights.count {
                1 => 2f64.powi(p.norm_bits() as i32) * taps.sqrt(),
                _ => taps * largest(weights),
            };
            // of digits that are 2^(digit - 1) at most
            let more = if mutation::active("torus-digits-too-long") { 2.0 } else { 0.0 };
            let digit = (64.0 + more - ROUNDINGS - sizes.log2()).floor() as u32;
            (digit > 1).then(|| Cut::of(whole, digit.min(63)))
        })
    }
}

/// The largest word's magnitude: the last one may be one more than others by a carry.
fn largest(weights: Cut) -> f64 {
    2f64.powi(weights.bits as i32 - 1) + 1.0
}

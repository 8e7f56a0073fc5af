//! What both sides compute for a layer, as packings are compared by it: what is counted in values of polynomials, times a price of each.
//!
//! AGREEMENT class: both sides choose packings by it. So it is made of integers; how something is really cut is LOCAL (`cuts.rs`), and
//! a test holds both together.

use super::params::TorusParameters;
use crate::layout::{Blocks, Windowed};

/// Hundredths of a nanosecond on a shared Zen 4 with AVX-512, fitted to 262 packings of `cargo run --release -p privet-he --example packings`.
/// For a value of a public polynomial's digit: drawn or read, cut, transformed. For one of weights that are transformed; of a key or
/// a hiding. For one of a sum, transformed back and added up at all coefficients; or at few of them, and for each that is read. For a
/// product of two values. For a coefficient that hides an operand or fills a gap, at each side.
const CUT: u64 = 860;
const WEIGHTS: u64 = 720;
const TERNARY: u64 = 500;
const GATHERED: u64 = 850;
const BACK: u64 = 390;
const OUTPUT: u64 = 580;
const PRODUCT: u64 = 17;
const HIDDEN: u64 = 1340;
/// Likewise of plain integers: a weight times a digit; a digit that a window has; a weight that is put into a row.
const WEIGHED: u64 = 6;
const WINDOW: u64 = 140;
const WEIGHT: u64 = 600;

/// Bits of a digit that meets a key: half of a prime is 2^49, Hoeffding's exponent takes 2^3.25 of it, and the key's norm the root of
/// twice its dimension, which is above 2^6.75 from a dimension of 2^12.5 on.
fn ternary_digit(p: &TorusParameters) -> u32 {
    if p.dimension().pow(2) <= 1 << 25 { 40 } else { 39 }
}

/// The same where it meets filters, and hidings that are short beside them.
fn value_digit(p: &TorusParameters) -> u32 {
    46u32.saturating_sub(p.norm_bits()).clamp(1, ternary_digit(p))
}

/// The same of integers: as many as 64 bits have room for beside a filter's weights.
fn integer_digit(p: &TorusParameters, taps: usize) -> u32 {
    // beside weights of a norm of 2^b: 2^b times the root of taps is their magnitudes' largest sum (Cauchy and Schwarz)
    63u32.saturating_sub(p.norm_bits() + (taps.max(1).ilog2() >> 1)).max(15)
}

/// Digits of so many bits.
fn digits(whole: u32, bits: u32) -> usize {
    whole.div_ceil(bits) as usize
}

/// What values of polynomials take: so many polynomials of each price.
fn taken<const N: usize>(p: &TorusParameters, polynomials: [(usize, u64); N]) -> u64 {
    p.degree() as u64 * polynomials.iter().map(|(count, price)| *count as u64 * price).sum::<u64>()
}

/// What a server takes to make a hint.
pub(super) fn of_hint(p: &TorusParameters, Blocks { groups, inputs, outputs, .. }: Blocks) -> u64 {
    let (digits, rank) = (digits(p.modulus_bits(), value_digit(p)), p.rank());
    let (columns, sums) = (inputs + rank, outputs * rank * digits);
    let publics = columns * rank * digits;
    let polynomials = [
        (publics, CUT),
        (outputs * inputs, WEIGHTS),
        (outputs * rank, TERNARY),
        (sums * columns, PRODUCT),
        (sums, GATHERED),
    ];
    groups as u64 * taken(p, polynomials)
}

/// What both sides compute before a run: hundredths of a nanosecond, or values of small polynomials that are transformed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrepareWork {
    /// The client, until its message leaves: it reads its hint where that rests.
    pub client: u64,
    /// The server, which makes what it multiplies with. It waits for nobody.
    pub multiplier: u64,
    /// The server, once it has this and the client's message.
    pub server: u64,
}

impl PrepareWork {
    /// In hundredths of a nanosecond, of an operand that is held at so many coefficients, and has so many blanks.
    pub(super) fn of(p: &TorusParameters, layout: &dyn Windowed, [held, blanks]: [usize; 2]) -> PrepareWork {
        let Blocks { groups, tiles, inputs, outputs } = layout.blocks();
        let (rank, ternary) = (p.rank(), digits(p.modulus_bits(), ternary_digit(p)));
        let (answers, taps, out) = (groups * outputs, layout.coefficients(), layout.output_len());
        // a hint and what encryptions of 0 are hidden under; then operands and encryptions, of which all is sent
        let (hint, hidden) = (rank * (answers + rank), groups * inputs + rank);
        let client = [
            (ternary * (hint + groups * inputs * rank), CUT),
            (tiles * rank, TERNARY),
            (ternary * tiles * rank * (hidden + answers), PRODUCT),
            (ternary * tiles * hidden, GATHERED),
            (ternary * tiles * answers, BACK),
        ];
        let server = [
            (ternary * tiles * rank, CUT),
            (ternary * tiles * answers * rank, PRODUCT),
            (ternary * tiles * answers, BACK),
            (groups * tiles * inputs, HIDDEN),
        ];
        // where no operand stands, coefficients have bits above their low part; and a sign
        let whole = 1 + if blanks > 0 { p.modulus_bits() } else { p.step_bits() };
        let integers = digits(whole, integer_digit(p, taps));
        let weighed = WEIGHED * (integers * out * taps) as u64;
        let windows = WINDOW * (integers * out.div_ceil(outputs) * taps) as u64;
        PrepareWork {
            client: taken(p, client) + HIDDEN * (held + blanks) as u64 + OUTPUT * (ternary * out) as u64,
            multiplier: taken(p, [(answers * rank, TERNARY)]) + WEIGHT * (answers * taps) as u64,
            server: taken(p, server) + weighed + windows + OUTPUT * ((ternary + integers) * out) as u64,
        }
    }

    pub(super) fn sum(self) -> u64 {
        self.client + self.multiplier + self.server
    }

    /// In values of small polynomials that are transformed: so many take as long. Estimates count other products' transforms with them.
    pub(super) fn in_values(self) -> PrepareWork {
        let PrepareWork { client, multiplier, server } = self;
        let [client, multiplier, server] = [client, multiplier, server].map(|work| work.div_ceil(TERNARY));
        PrepareWork { client, multiplier, server }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cuts::Cuts;
    use super::*;
    use crate::torus::{HintId, TorusLayer};
    use privet_ring::{Conv2d, Ring};
    use std::sync::Arc;

    /// Digits that are counted here are those that layers are cut to, for every packing of small and large filters, in rings of both sizes.
    #[test]
    fn work_counts_the_digits_that_there_are() {
        let conv = |in_channels, kernel| Conv2d {
            batch: 1,
            in_channels,
            input: [6, 6],
            out_channels: 24,
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [0; 4],
            dilation: [1; 2],
            groups: 1,
        };
        let mut seen = 0;
        for (ring_bits, norm_bits) in [(37, 9), (37, 15), (37, 18), (64, 26), (64, 30)] {
            for conv in [conv(1, 5), conv(16, 3), conv(160, 1)] {
                for packing in crate::layout::ConvLayout::packings(conv, Ring::new(ring_bits), norm_bits) {
                    let p = packing.parameters;
                    let layer =
                        TorusLayer::new(p, Arc::clone(&packing.layout), HintId::random(), 0, 1).unwrap();
                    let s = &layer.shape;
                    let (values, integers) = (Cuts::of_values(s), Cuts::of_integers(s));
                    let bits = p.modulus_bits();
                    assert_eq!(s.ternary_cut().count, digits(bits, ternary_digit(&p)), "{p:?}");
                    assert_eq!(
                        values.operand.count * values.weights.count,
                        digits(bits, value_digit(&p)),
                        "{p:?}"
                    );
                    let whole = 1 + if s.has_blanks() { bits } else { p.step_bits() };
                    let counted = digits(whole, integer_digit(&p, s.layout.coefficients()));
                    assert_eq!(integers.operand.count * integers.weights.count, counted, "{p:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 100, "{seen} packings");
    }
}

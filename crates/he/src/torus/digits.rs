//! Exact products of wide polynomials with small ones: digits that are so short that one prime holds every sum.
//!
//! Digits are balanced: of b bits, in [-2^(b-1), 2^(b-1)]. Their products with small factors whose squares add up to S have a sum
//! below p / 2 in magnitude, and so the integer itself, but for a probability of at most 2^-129 (Hoeffding's inequality; the
//! argument and what it needs of digits are in docs/he.md, 6.2).

use super::params::MOST_DROPPED;
use super::wide::{Wide, Wides};
use crate::context::{Coeff, Context, Points};
use crate::modulus::PRIME_BITS;
use crate::panel::Panel;
use zeroize::Zeroizing;

/// How something is cut to digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bits of what is cut: digits add up to it modulo as much.
    whole: u32,
    /// Bits of a digit; the last one has what is left.
    pub(crate) bits: u32,
    /// Digits.
    pub(crate) count: usize,
}

/// Hoeffding's exponent is to be 2^6.5: `2 exp(-2^6.5)` is below 2^-129, with room for primes that are less than 2^50.
const EXPONENT_BITS: f64 = 6.5;

impl Cut {
    /// Of `bits` bits, to the longest digits whose sums of products with `terms` factors stay below p / 2. The factors' squares add
    /// up to at most `squares`. None where no digit is short enough.
    pub(crate) fn for_squares(bits: u32, squares: f64, terms: usize) -> Option<Cut> {
        let most = 2f64.powi(PRIME_BITS as i32 - 1);
        // digits have means of at most a half in magnitude, the lowest ones of operands of half of what is dropped there
        let mean = 2f64.powi(MOST_DROPPED as i32 - 1) * (terms as f64 * squares).sqrt();
        let fits = |digit: &u32| {
            let far = (2.0 * squares.max(1.0)).sqrt() * 2f64.powf(f64::from(digit - 1) + EXPONENT_BITS / 2.0);
            mean + far <= most
        };
        (1..PRIME_BITS).rev().find(fits).map(|digit| Cut::of(bits, digit))
    }

    /// Of `bits` bits, to digits of so many.
    pub(crate) fn of(bits: u32, digit: u32) -> Cut {
        Cut { whole: bits, bits: digit, count: bits.div_ceil(digit) as usize }
    }

    /// Bits below digit i.
    pub(crate) fn below(self, i: usize) -> u32 {
        self.bits * i as u32
    }
}

/// The least b with `n <= 2^b`.
pub(crate) fn bits_of(n: usize) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

/// Digits of a polynomial as values, from the lowest.
pub(crate) fn digits(context: &Context, poly: &[Wide], cut: Cut) -> impl Iterator<Item = Points> {
    let width = move |i: usize| cut.bits.min(cut.whole - cut.below(i));
    // what lower digits lack to be positive is a carry into higher ones
    let mut halves = Wide::default();
    (0..cut.count).for_each(|i| halves.add_shifted(1, cut.below(i) + width(i) - 1));
    let raised: Wides = Zeroizing::new(poly.iter().map(|v| v.plus(&halves)).collect());
    let p = context.set().primes[0];
    (0..cut.count).map(move |i| {
        let (at, bits) = (cut.below(i), width(i));
        let digit = |v: &Wide| {
            let word = v.bits(at, bits).wrapping_sub(1 << (bits - 1));
            // all ones where it is negative
            word.wrapping_add(p & ((word as i64) >> 63) as u64)
        };
        context.points(Coeff { words: raised.iter().map(digit).collect() })
    })
}

/// The same as rows `row ..` of a panel's column.
pub(crate) fn put_digits(
    context: &Context,
    panel: &mut Panel,
    [row, column]: [usize; 2],
    poly: &[Wide],
    cut: Cut,
) {
    digits(context, poly, cut).enumerate().for_each(|(i, digit)| panel.put(row + i, column, &digit));
}

/// Balanced digits of signed words: for digit i, all words' digits in two's complement. The last one has what is left.
pub(crate) fn signed_digits(words: Zeroizing<Vec<u64>>, cut: Cut) -> Vec<Zeroizing<Vec<u64>>> {
    let mut rest = words;
    let spare = 64 - cut.bits;
    let mut digit = |i| {
        if i + 1 == cut.count {
            return std::mem::take(&mut rest);
        }
        let low: Vec<u64> = rest.iter().map(|w| (((w << spare) as i64) >> spare) as u64).collect();
        for (rest, low) in rest.iter_mut().zip(&low) {
            // i128: a word near 2^63 less a negative digit does not fit
            *rest = ((i128::from(*rest as i64) - i128::from(*low as i64)) >> cut.bits) as u64;
        }
        Zeroizing::new(low)
    };
    (0..cut.count).map(&mut digit).collect()
}

/// Digit i of integers that are below half of the whole, in two's complement of 64 bits: balanced digits, of which the last one has what is
/// left.
pub(super) fn integer_digits(integers: &[Wide], cut: Cut, i: usize) -> Vec<u64> {
    // what lower digits lack to be positive is a carry into higher ones
    let mut halves = Wide::default();
    (1..cut.count).for_each(|i| halves.add_shifted(1, cut.below(i) - 1));
    let half = if i + 1 == cut.count { 0 } else { 1 << (cut.bits - 1) };
    let at = cut.below(i);
    integers.iter().map(|v| v.plus(&halves).bits(at, cut.bits).wrapping_sub(half)).collect()
}

/// Adds `2^shift` times the integers of a sum's coefficients to these sums.
pub(crate) fn gather(
    context: &Context,
    sum: Points,
    shift: u32,
    coefficients: impl Iterator<Item = usize>,
    into: &mut [Wide],
) {
    let p = context.set().primes[0];
    let sum = context.coefficients(sum);
    for (into, at) in into.iter_mut().zip(coefficients) {
        let word = sum.words[at];
        // all ones where the integer is negative
        let negative = ((p >> 1).wrapping_sub(word) >> 63).wrapping_neg();
        into.add_shifted(word.wrapping_sub(p & negative) as i64, shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torus::wide;
    use privet_prg::Seed;

    fn context() -> std::sync::Arc<Context> {
        let p = crate::torus::TorusParameters::exact(privet_ring::Ring::new(37), 15, 512).unwrap();
        Context::new(p.set(), 1).unwrap()
    }

    /// The integers of a digit's coefficients.
    fn integers(context: &Context, digit: Points) -> Vec<i64> {
        let mut out = vec![Wide::default(); context.degree()];
        gather(context, digit, 0, 0..context.degree(), &mut out);
        out.iter().map(|v| v.bits(0, 64) as i64).collect()
    }

    /// Of random elements and of both ends: digits are within their bounds, and add up to what was cut modulo as much.
    #[test]
    fn balanced_digits_add_up_within_their_bounds() {
        let context = context();
        for (whole, bits) in [(118, 31), (118, 40), (118, 45), (3, 1), (64, 32), (81, 27), (256, 37), (1, 1)]
        {
            let mut poly = wide::uniform(&mut Seed::random().stream(), whole, context.degree());
            poly[0] = Wide::default();
            poly[1] = Wide::default();
            poly[1].add_shifted(-1, 0);
            poly[2] = Wide::default();
            poly[2].add_shifted(1, whole - 1);
            poly[3] = poly[2].plus(&poly[1]);
            let cut = Cut::of(whole, bits);
            let mut sums = vec![Wide::default(); poly.len()];
            for (i, digit) in digits(&context, &poly, cut).enumerate() {
                for (sum, digit) in sums.iter_mut().zip(integers(&context, digit)) {
                    assert!(digit >= -(1 << (bits - 1)) && digit < 1 << (bits - 1), "{digit} of {bits} bits");
                    sum.add_shifted(digit, cut.below(i));
                }
            }
            for (sum, v) in sums.iter().zip(&poly) {
                assert_eq!(sum.part(0, whole), v.part(0, whole), "{whole} bits by {bits}");
            }
        }
    }

    /// Of the least and the largest numbers below half of the whole, and of random ones.
    #[test]
    fn digits_of_integers_add_up_within_their_bounds() {
        for (whole, bits) in [(82, 41), (119, 41), (119, 63), (79, 44), (31, 31), (5, 2)] {
            let mut poly = wide::uniform(&mut Seed::random().stream(), whole - 1, 100);
            poly[0] = Wide::default();
            poly[1] = Wide::default();
            poly[1].add_shifted(1, whole - 1);
            poly[1].add_shifted(-1, 0);
            let cut = Cut::of(whole, bits);
            let mut sums = vec![Wide::default(); poly.len()];
            for i in 0..cut.count {
                for (sum, digit) in sums.iter_mut().zip(integer_digits(&poly, cut, i)) {
                    let digit = digit as i64;
                    assert!(
                        digit >= -(1 << (bits - 1)) && digit <= 1 << (bits - 1),
                        "{digit} of {bits} bits"
                    );
                    sum.add_shifted(digit, cut.below(i));
                }
            }
            assert!(sums == poly, "{whole} bits by {bits}");
        }
    }

    /// The longest digits that Hoeffding's inequality and means allow, and no longer ones.
    #[test]
    fn digits_are_as_long_as_the_bound_allows() {
        let half = 2f64.powi(49);
        for terms in [1usize, 4608, 1 << 24] {
            for log in 0..120 {
                let squares = 2f64.powi(log);
                let far = |bits: u32| {
                    let spare = half - 2.0 * (terms as f64 * squares).sqrt();
                    // -ln of the bound
                    if spare < 0.0 {
                        0.0
                    } else {
                        spare.powi(2) / (2.0 * squares * 4f64.powi(bits as i32 - 1))
                    }
                };
                match Cut::for_squares(118, squares, terms) {
                    Some(cut) => {
                        assert!(far(cut.bits) >= 130.0 * std::f64::consts::LN_2, "{cut:?}");
                        assert!(
                            cut.bits == 49 || far(cut.bits + 1) < 131.0 * std::f64::consts::LN_2,
                            "{cut:?}"
                        );
                    }
                    None => assert!(far(1) < 131.0 * std::f64::consts::LN_2, "2^{log} with {terms} terms"),
                }
            }
        }
        assert_eq!(Cut::for_squares(118, 4f64.powi(15), 1 << 12).map(|cut| cut.count), Some(4));
    }
}

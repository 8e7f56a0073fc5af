//! Exact products of wide polynomials with small ones: digits that are so short that one prime holds every sum.
//!
//! With one-norms of the small factors below 2^norm, a sum of products with digits of b bits is below 2^(norm + b) in
//! magnitude. `b = PRIME_BITS - 2 - norm` keeps it below p / 2, so a coefficient modulo p is the integer itself.

use super::wide::Wide;
use crate::context::{Coeff, Context, Points};
use crate::modulus::PRIME_BITS;
use crate::panel::Panel;

/// How something is cut to digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bits of a digit.
    pub(crate) bits: u32,
    /// Digits.
    pub(crate) count: usize,
}

impl Cut {
    /// Of `bits` bits, for products with factors whose one-norms are below 2^norm.
    pub(crate) fn for_norm(bits: u32, norm: u32) -> Cut {
        assert!(norm < PRIME_BITS - 2, "a digit has a bit at least");
        Cut::of(bits, PRIME_BITS - 2 - norm)
    }

    /// Of `bits` bits, to digits of so many.
    pub(crate) fn of(bits: u32, digit: u32) -> Cut {
        Cut { bits: digit, count: bits.div_ceil(digit) as usize }
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

/// Digits of a polynomial as values: rows `row ..` of a panel's column.
pub(crate) fn put_digits(
    context: &Context,
    panel: &mut Panel,
    [row, column]: [usize; 2],
    poly: &[Wide],
    cut: Cut,
) {
    for i in 0..cut.count {
        let words = poly.iter().map(|v| v.bits(cut.below(i), cut.bits)).collect();
        panel.put(row + i, column, &context.points(Coeff { words }));
    }
}

/// Balanced digits of signed words: for digit i, all words' digits in two's complement. The last one has what is left.
pub(crate) fn signed_digits(words: &[u64], cut: Cut) -> Vec<zeroize::Zeroizing<Vec<u64>>> {
    let mut rest = zeroize::Zeroizing::new(words.to_vec());
    let spare = 64 - cut.bits;
    let mut digit = |i| {
        if i + 1 == cut.count {
            return rest.clone();
        }
        let low: Vec<u64> = rest.iter().map(|w| (((w << spare) as i64) >> spare) as u64).collect();
        for (rest, low) in rest.iter_mut().zip(&low) {
            // i128: a word near 2^63 less a negative digit does not fit
            *rest = ((i128::from(*rest as i64) - i128::from(*low as i64)) >> cut.bits) as u64;
        }
        zeroize::Zeroizing::new(low)
    };
    (0..cut.count).map(&mut digit).collect()
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

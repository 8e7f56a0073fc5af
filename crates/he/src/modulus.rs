//! One prime: what is computed once, from public numbers alone.

use crate::lane::LIMB;
use crate::word::Factor;

/// The largest prime is below this power of two: a word below 4 p has 52 bits.
pub const PRIME_BITS: u32 = 50;

/// A prime p below 2^50, with scalar arithmetic for set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulus(u64);

// Set-up: p, roots and constants are public, and the time that divisions take tells nothing else.
#[expect(clippy::integer_division_remainder_used, reason = "public constants of a parameter set")]
impl Modulus {
    /// Panics unless 2 < p < 2^50 and p is odd. That p is a prime is the caller's word; tests check the table.
    pub(crate) const fn new(p: u64) -> Modulus {
        assert!(p > 2 && p < 1 << PRIME_BITS && p & 1 == 1);
        Modulus(p)
    }

    pub(crate) const fn p(self) -> u64 {
        self.0
    }

    pub(crate) const fn reduce(self, x: u128) -> u64 {
        (x % self.0 as u128) as u64
    }

    pub(crate) const fn times(self, a: u64, b: u64) -> u64 {
        self.reduce(a as u128 * b as u128)
    }

    pub(crate) const fn power(self, mut base: u64, mut exponent: u64) -> u64 {
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.times(result, base);
            }
            base = self.times(base, base);
            exponent >>= 1;
        }
        result
    }

    pub(crate) const fn inverse(self, a: u64) -> u64 {
        self.power(a, self.0 - 2)
    }

    /// A fixed factor below p with its quotient.
    pub(crate) const fn factor(self, value: u64) -> Factor<u64> {
        assert!(value < self.0);
        Factor { value, quotient: (((value as u128) << LIMB) / self.0 as u128) as u64 }
    }

    /// The smallest (by its base) primitive root of unity of order 2 n. Panics where 2 n does not divide p - 1.
    pub(crate) fn root(self, n: usize) -> u64 {
        let order = 2 * n as u64;
        assert!(n.is_power_of_two() && (self.0 - 1).is_multiple_of(order), "2 n divides p - 1");
        let exponent = (self.0 - 1) / order;
        let minus_one = self.0 - 1;
        (2..self.0)
            .map(|base| self.power(base, exponent))
            .find(|&root| self.power(root, n as u64) == minus_one)
            .expect("a prime has primitive roots")
    }
}

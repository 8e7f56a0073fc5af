//! The definition, for reading and for tests: sums of products with `%`, quadratic in N.

#![expect(
    clippy::integer_division_remainder_used,
    reason = "the definition that fast paths are tested against"
)]

use crate::modulus::Modulus;

/// The lowest log2(n) bits of i in reverse.
pub const fn reversed(i: usize, n: usize) -> usize {
    if n == 1 { 0 } else { i.reverse_bits() >> (usize::BITS - n.trailing_zeros()) }
}

/// The values of a polynomial with these coefficients at the odd powers of the root of order 2 N, in the transform's order.
pub fn forward(coefficients: &[u64], p: u64) -> Vec<u64> {
    let (n, m) = (coefficients.len(), Modulus::new(p));
    let root = m.root(n);
    let value = |i: usize| {
        let x = m.power(root, 2 * reversed(i, n) as u64 + 1);
        // Horner's rule, highest coefficient first
        coefficients.iter().rev().fold(0, |sum, &c| m.reduce(sum as u128 * x as u128 + c as u128))
    };
    (0..n).map(value).collect()
}

/// The product of two polynomials modulo X^N + 1 and p.
pub fn product(a: &[u64], b: &[u64], p: u64) -> Vec<u64> {
    let n = a.len();
    assert_eq!(n, b.len());
    let mut out = vec![0u64; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let t = ((x as u128 * y as u128) % p as u128) as u64;
            let at = &mut out[(i + j) % n];
            // X^N = -1
            *at = if i + j < n { (*at + t) % p } else { (*at + p - t) % p };
        }
    }
    out
}

//! GF(2^64) = GF(2)\[Y\]/(Y^64 + Y^4 + Y^3 + Y + 1), bit i of a word for Y^i.

/// The product of two polynomials over GF(2), not reduced. Constant time on processors whose multiplication is.
///
/// Integer products of operands of which only every fourth bit is left. At most 8 ones meet in a column, because one
/// operand has 32 bits: their sum does not reach the next column that counts.
pub fn clmul(a: u64, b: u64) -> u128 {
    half(a, b & 0xffff_ffff) ^ (half(a, b >> 32) << 32)
}

/// [`clmul`] for `b` below 2^32.
fn half(a: u64, b: u64) -> u128 {
    const HOLES: u64 = 0x1111_1111_1111_1111;
    let part = |w: u64, i: usize| u128::from(w & (HOLES << i));
    let mut sum = 0;
    for k in 0..4 {
        let mut column = 0;
        for i in 0..4 {
            column ^= part(a, i) * part(b, (4 + k - i) % 4);
        }
        let holes = (u128::from(HOLES) << 64) | u128::from(HOLES);
        sum ^= column & (holes << k);
    }
    sum
}

/// A polynomial of degree at most 127 modulo Y^64 + Y^4 + Y^3 + Y + 1.
pub fn gf_reduce(p: u128) -> u64 {
    let (low, high) = (p as u64, (p >> 64) as u64);
    // what of high Y^64 = high (Y^4 + Y^3 + Y + 1) is above Y^63 again
    let again = (high >> 60) ^ (high >> 61) ^ (high >> 63);
    let times = |w: u64| w ^ (w << 1) ^ (w << 3) ^ (w << 4);
    low ^ times(high) ^ times(again)
}

/// The product in GF(2^64).
pub fn gf_mul(a: u64, b: u64) -> u64 {
    gf_reduce(clmul(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(a: u64, b: u64) -> u128 {
        (0..64).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ (u128::from(a) << i))
    }

    #[test]
    fn products_of_polynomials() {
        let mut x = 1u64;
        for a in [0, 1, u64::MAX, 1 << 63, 0x1111_1111_1111_1111, 0x8888_8888_8888_8888] {
            for b in [0, 1, u64::MAX, 1 << 63, 0xdead_beef_1234_5678] {
                assert_eq!(clmul(a, b), slow(a, b), "{a:x} {b:x}");
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(a ^ b);
                assert_eq!(clmul(x, b ^ x), slow(x, b ^ x));
            }
        }
    }

    #[test]
    fn the_field_has_the_order_of_its_unit_group() {
        // Y^(2^64) = Y, and Y^((2^64 - 1)/p) is not 1 for the largest prime factor p: the polynomial is irreducible
        // as far as Rabin's test goes for degree 64 = 2^6 (gcd with Y^(2^32) - Y is 1).
        let square = |a| gf_mul(a, a);
        let mut power = 2;
        for _ in 0..32 {
            power = square(power);
        }
        let half = power;
        for _ in 0..32 {
            power = square(power);
        }
        assert_eq!(power, 2);
        // half ^ Y is a unit: a^(2^64 - 2) a = 1
        let a = half ^ 2;
        let (mut inverse, mut s) = (1, a);
        for _ in 1..64 {
            s = square(s);
            inverse = gf_mul(inverse, s);
        }
        assert_eq!(gf_mul(inverse, a), 1);
    }
}

//! `e^x` of x below 1 for a softmax of few fraction bits: one small table and one polynomial, each in as narrow a ring as the result needs.
//! It is for families in which a table costs what it has entries, a product its ring bits, and a truncation within one unit little.
//!
//! The power of the middle of x's unit interval is looked up; what is left, y in `[-1/2, 1/2)`, goes into a polynomial of degree 4 whose
//! coefficients are public. Divided by the highest one it is `(y^2 + y + a) (y^2 + 3 y + b) + c`: two products (Knuth, *The Art of
//! Computer Programming*, volume 2, section 4.6.4). What it was divided by is in the table.

use super::build::{Build, Value, Way};
use super::exp::by_parts;
use super::polynomials::truncated;
use super::sextic::power_of_e;

/// Most fraction bits of results: for more the polynomial is not near enough.
const MOST: u32 = 14;
/// The polynomial `K (y^4 + 4 y^3) + P2 y^2 + P1 y + P0`: e^y is within a relative 2.14e-5, the least possible where the two highest
/// coefficients are 1 to 4. `(a, b, c)` follow from it.
const K: f64 = 0.042_401_657_880_975_57;
const P: [f64; 3] = [0.999_996_491_796_129_5, 0.999_795_858_490_246_9, 0.499_983_208_305_227_6];
/// Fewest bits of x before its fraction for pairs of whole numbers: those from 2 down reach as far as x.
const LEAST_WHOLE: u32 = 3;
/// Fewest fraction bits of a first factor of [`by_parts`].
const LEAST_FIRST: u32 = 8;
/// What `e^y / K` lies around: it is less than 16 away from that.
const MIDDLE: i64 = 28;

/// Fraction bits and rings for results of `frac` fraction bits, of so many classes (docs/functions.md, "Softmax of few fraction bits").
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    /// Fraction bits of the result.
    pub frac: u32,
    /// 2^classes is at least the number of classes.
    pub classes: u32,
}

impl Narrow {
    /// Fraction bits of y and of its square, and of the factor of [`by_parts`] that is from 1 to e.
    fn digits(self) -> u32 {
        self.frac + 2
    }

    /// Fraction bits of `e^y / K`, which is at least 14.
    fn factor(self) -> u32 {
        self.frac - 1
    }

    /// Fraction bits of the powers that are looked up: each term's may be off by one and a half, and the sum has all terms.
    fn power(self) -> u32 {
        self.frac + self.classes + 9
    }

    /// The ring of a product of both: less e / 2 it is below 1.36.
    fn ring(self) -> u32 {
        self.power() + self.factor() + 3
    }

    /// Fraction bits of a term of the sum, and the ring of the sum.
    pub fn term(self) -> (u32, u32) {
        let frac = self.frac + self.classes + 5;
        (frac, frac + self.classes + 4)
    }

    /// Fraction bits of an exponential and of the reciprocal of a sum, as they are multiplied, and the ring of the product: less 1/2 it is
    /// not much more than that.
    pub fn last(self) -> (u32, u32) {
        let frac = self.frac + 4;
        (frac, 2 * frac + 2)
    }

    /// Whether results have few enough fraction bits, and x a bit before its fraction.
    pub fn suits(self, x: Value) -> bool {
        self.frac <= MOST && x.bits > x.frac + 1
    }
}

/// `e^x` of `[n]` numbers x < 1, of x below -30 nearly 0: as terms of a sum, and as factors. They are within what [`Narrow`] says.
pub(super) fn narrow(b: &mut Build<'_>, x: Value, of: Narrow) -> [Value; 2] {
    let polynomial = |b: &mut Build<'_>, x: Value| quartic(b, x, of);
    let parts = [of.digits().max(LEAST_FIRST), of.term().0];
    let by_units = |b: &mut Build<'_>, x: Value| by_parts(b, x, parts, 0);
    let by_twos = |b: &mut Build<'_>, x: Value| by_parts(b, x, parts, 1);
    let ways: [&Way<'_>; 3] = [&polynomial, &by_units, &by_twos];
    let product = b.cheapest(x, &ways[..if x.bits >= x.frac + LEAST_WHOLE { 3 } else { 2 }]);
    // both sides of 0
    let half = |frac: u32| (std::f64::consts::E / 2.0 * 2f64.powi(frac as i32)) as i64;
    let centred = b.add_const(product, -half(product.frac));
    [of.term(), of.last()].map(|(frac, bits)| {
        let y = truncated(b, centred, frac, bits);
        b.add_const(y, half(frac))
    })
}

/// The power that is looked up, times the polynomial.
fn quartic(b: &mut Build<'_>, x: Value, of: Narrow) -> Value {
    let place = b.down(x, x.frac, 0);
    let power = power_of_e(b, place, K, of.power(), of.power() - 1);
    let power = widened(b, power, of.power(), of.ring());
    // what is left, less its middle, in a ring of which it takes a quarter
    let back = b.up(place, x.frac);
    let y = b.sub(x, back);
    let y = b.add_const(y, -(1 << (x.frac - 1)));
    let y = b.resize(y, x.frac + 2);
    let factor = polynomial(b, y, of);
    b.mul(power, factor)
}

/// x with `frac` fraction bits in a ring of `bits`, within one unit in the last place, for an x below a quarter of its ring.
///
/// What keeps its fraction bits is truncated as well, by one more: that costs less than to extend it.
fn widened(b: &mut Build<'_>, x: Value, frac: u32, bits: u32) -> Value {
    let x = b.up(x, (frac + 1).saturating_sub(x.frac));
    truncated(b, x, frac, bits)
}

/// `e^y / K` in the ring of the product.
fn polynomial(b: &mut Build<'_>, y: Value, of: Narrow) -> Value {
    let digits = of.digits();
    // sums are less than 16
    let wide = 2 * digits + 6;
    let y = widened(b, y, digits, wide);
    let square = {
        // from 0 to 1/4
        let y = b.resize(y, 2 * digits);
        let square = b.mul(y, y);
        let eighth = 1i64 << (2 * digits - 3);
        let square = b.add_const(square, -eighth);
        let square = truncated(b, square, digits, wide);
        b.add_const(square, eighth >> digits)
    };
    let [first, second, last] = coefficients();
    let fixed = |c: f64, frac: u32| (c * 2f64.powi(frac as i32)).round_ties_even() as i64;
    let one = b.add(square, y);
    let one = b.add_const(one, fixed(first, digits));
    let three = b.mul_const(y, 3);
    let other = b.add(square, three);
    let other = b.add_const(other, fixed(second, digits));
    let sum = b.mul(one, other);
    let less = b.add_const(sum, fixed(last, 2 * digits) - (MIDDLE << (2 * digits)));
    let factor = truncated(b, less, of.factor(), of.ring());
    b.add_const(factor, MIDDLE << of.factor())
}

/// `(a, b, c)`.
fn coefficients() -> [f64; 3] {
    let [p0, p1, p2] = P.map(|p| p / K);
    // y^2: a + b + 3; y: 3 a + b; 1: a b + c
    let a = (p1 - p2 + 3.0) / 2.0;
    let b = p2 - 3.0 - a;
    [a, b, p0 - a * b]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_near_and_near_its_middle() {
        let [a, b, c] = coefficients();
        for i in -500..=500 {
            let y = f64::from(i) / 1000.0;
            let sum = (y * y + y + a) * (y * y + 3.0 * y + b) + c;
            assert!((sum * K / libm::exp(y) - 1.0).abs() < 2.15e-5, "{y}");
            assert!((sum - MIDDLE as f64).abs() < 15.0, "{y}");
        }
    }
}

//! `e^x` of x below 1 by one table and one polynomial, for families in which a table costs what it has entries, and a value is truncated
//! within one unit in the last place for little. The power of the middle of x's unit interval is looked up. What is left, y in
//! `[-1/2, 1/2)`, goes into a polynomial of degree 6 whose coefficients are public.
//!
//! `c0 + c1 y + c2 y^2 + (c3 + c4 y + c5 y^2 + c6 y^3) y^3`: three products. A truncated power of y goes back to a word. So all that is added
//! up has fraction bits enough, and is truncated once.

use super::build::{Build, Value, WORD};
use super::chebyshev::rounded;
use super::polynomials::word;
use crate::ir::Op;

/// Coefficients.
const COEFFICIENTS: usize = 7;
/// Fraction bits of y.
const DIGITS: std::ops::RangeInclusive<u32> = 13..=24;
/// Fraction bits of y^2 and of y^3.
const SQUARE: u32 = 26;
const CUBE: u32 = 22;
/// Fraction bits of what is added up: the polynomial less 1, below a quarter of the ring, as truncation to a word asks for.
const SUM: u32 = 62;
/// Fraction bits of what is multiplied by y^3.
const INNER: u32 = SUM - CUBE;
/// Bits of the whole number that powers are looked up by.
const WHOLE: u32 = 5;
/// Fraction bits of powers, and of the polynomial that one is multiplied with: the product is below 2^62.
const POWER: u32 = 33;
const FACTOR: u32 = 27;

/// Whether x has fraction bits enough.
pub(super) fn suits(x: Value) -> bool {
    x.frac >= *DIGITS.start() && x.bits > x.frac + 1
}

/// `e^x` for x < 1, in [`WORD`] bits with [`POWER`] and [`FACTOR`] fraction bits; of x below -30 it is 0.
pub(super) fn sextic(b: &mut Build<'_>, x: Value) -> Value {
    let more = x.frac.saturating_sub(*DIGITS.end());
    let x = b.dither(x, more, x.bits - more);
    let place = b.down(x, x.frac, 0);
    let power = power_of_e(b, place, 1.0, POWER, WORD);
    let low = b.resize(x, x.frac);
    let low = b.add_const(low, -(1 << (x.frac - 1)));
    let y = b.resize(low, WORD);
    let factor = polynomial(b, y);
    b.mul(power, factor)
}

/// `scale e^(w + 1/2)` of a whole number w < 1, with `frac` fraction bits in a ring of `bits`; 0 where w is too small for the table.
pub(super) fn power_of_e(b: &mut Build<'_>, place: Value, scale: f64, frac: u32, bits: u32) -> Value {
    let whole = place.bits.min(WHOLE);
    let (count, most) = (1i64 << whole, 1);
    let least = most + 1 - count;
    let mut index = b.resize(place, whole);
    if place.bits > whole {
        // the largest one is not asked for: it stands for those that are too small
        let distance = b.add_const(place, -least);
        let lost = b.is_negative(distance, 1);
        let kept = b.add_const(lost, 1);
        let below = b.add_const(index, -most);
        let below = b.choose(kept, below);
        index = b.add_const(below, most);
    }
    let entry = |index: i64| match least + (index - least).rem_euclid(count) {
        w if w == most => 0,
        w => (scale * libm::exp(w as f64 + 0.5) * 2f64.powi(frac as i32)).round_ties_even() as i64,
    };
    let tables = vec![(0..count).map(entry).collect()];
    let shape = [1, b.shape(place)[0]];
    let found = b.node(Op::Lookup { tables }, &[index], &shape, bits, 0);
    let found = b.row(found, 0);
    b.read(found, frac)
}

/// `e^y` with [`FACTOR`] fraction bits.
fn polynomial(b: &mut Build<'_>, y: Value) -> Value {
    let [c0, c1, c2, c3, c4, c5, c6] = coefficients(places(y.frac));
    let square = b.mul(y, y);
    let square = word(b, square, SQUARE);
    let cube = b.mul(y, square);
    let cube = word(b, cube, CUBE);
    let inner = weighted(b, c3, &[(y, c4), (square, c5), (cube, c6)], INNER);
    let curve = b.mul(cube, inner);
    let sum = weighted(b, c0 - (1 << SUM), &[(y, c1), (square, c2)], SUM);
    let sum = b.add(sum, curve);
    let less = word(b, sum, FACTOR);
    b.add_const(less, 1 << FACTOR)
}

/// Fraction bits of the coefficients for a y of so many: what each is multiplied with has so many less than the sum, or than what is
/// multiplied by y^3.
fn places(of_y: u32) -> [u32; COEFFICIENTS] {
    [SUM, SUM - of_y, SUM - SQUARE, INNER, INNER - of_y, INNER - SQUARE, INNER - CUBE]
}

/// Coefficients of `e^y` for y in `[-1/2, 1/2]`.
fn coefficients(places: [u32; COEFFICIENTS]) -> [i64; COEFFICIENTS] {
    let fixed = rounded(libm::exp, 0.5, &places);
    std::array::from_fn(|k| fixed[k])
}

/// A sum of values, each times a number, and one number more, with `frac` fraction bits.
fn weighted(b: &mut Build<'_>, constant: i64, terms: &[(Value, i64)], frac: u32) -> Value {
    let products = terms.iter().map(|(x, weight)| {
        let product = b.mul_const(*x, *weight);
        b.read(product, frac)
    });
    let products: Vec<Value> = products.collect();
    let sum = products.into_iter().reduce(|sum, term| b.add(sum, term));
    let sum = sum.unwrap_or_else(|| unreachable!("there are terms"));
    b.add_const(sum, constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_e_are_near() {
        for digits in [13, 20, 24] {
            let places = places(digits);
            let fixed = coefficients(places);
            let at = |y: f64| {
                let terms = fixed.iter().zip(places).rev();
                terms.fold(0.0, |sum, (c, places)| sum * y + *c as f64 / 2f64.powi(places as i32))
            };
            let errors = (-500..=500).map(|i| (at(i as f64 / 1000.0) - libm::exp(i as f64 / 1000.0)).abs());
            let worst = errors.fold(0.0, f64::max);
            println!("{digits}: 2^{:.2}", worst.log2());
            assert!(worst < 2f64.powi(-23), "{digits}: {worst}");
        }
    }
}

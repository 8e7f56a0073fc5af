//! Piecewise polynomials of degree 5: few pieces, whose coefficients are looked up, and few products. They are for families in which a
//! value is truncated within one unit in the last place for nothing.
//!
//! With y in `[-1, 1]` along a piece, `c0 + c1 y + (c2 + c3 y + (c4 + c5 y) y^2) y^2`. A truncation makes the ring smaller by what it
//! drops. So each factor has as many fraction bits as its product needs and no more; twice a number is brought back to a word.

use super::build::{Build, Value, WORD};
use super::chebyshev::polynomial_near;
use crate::ir::Op;

/// Coefficients of a piece.
const COEFFICIENTS: usize = 6;
/// Fraction bits of the sum of everything, and of the result.
const SUM: u32 = 49;
const RESULT: u32 = 34;
/// Ring bits above the result's fraction: results are below 2.
const ABOVE: u32 = 3;
/// Fraction bits of y^2 as it is multiplied at the end, and inside.
const SQUARE: (u32, u32) = (21, 16);
/// Fraction bits of `c2 + c3 y + ...`, of y there, and of what is multiplied at the end.
const INNER: (u32, u32, u32) = (47, 20, 28);
/// The same of `c4 + c5 y`.
const INMOST: (u32, u32, u32) = (40, 14, 31);
/// What is smaller everywhere on a piece is no different from 0.
const NOTHING: f64 = 7.5e-9;

/// Fewest and most fraction bits of y, which has as many as x has below its index, less one: its square has at least as many as
/// [`SQUARE`] says.
const DIGITS: std::ops::RangeInclusive<u32> = 11..=23;

/// Whether there are pieces of x, an unsigned number in its ring, by `index` bits.
pub(super) fn suits(x: Value, index: u32) -> bool {
    x.bits > index && DIGITS.contains(&(x.bits - index - 1))
}

/// `f` of an unsigned number of any ring by 2^index pieces, with [`RESULT`] fraction bits in a ring of [`ABOVE`] more; values stay below 2.
pub(super) fn quintic(b: &mut Build<'_>, x: Value, index: u32, f: impl Fn(f64) -> f64) -> Value {
    let shift = x.bits - index;
    let digits = shift - 1;
    let pieces: Vec<Vec<f64>> = (0..1u64 << index)
        .map(|i| {
            let half = 2f64.powi(digits as i32 - x.frac as i32);
            piece_near(&f, (2 * i + 1) as f64 * half, half)
        })
        .collect();
    let [inner, inmost] = [INNER, INMOST].map(|(_, of_y, _)| of_y.min(digits));
    let places = [SUM, SUM - digits, INNER.0, INNER.0 - inner, INMOST.0, INMOST.0 - inmost];
    let fixed = |c: f64, places: u32| (c * 2f64.powi(places as i32)).round_ties_even() as i64;
    let tables = (0..COEFFICIENTS).map(|k| pieces.iter().map(|piece| fixed(piece[k], places[k])).collect());
    let place = b.down(x, shift, 0);
    let shape = [COEFFICIENTS, b.shape(x)[0]];
    let found = b.node(Op::Lookup { tables: tables.collect() }, &[place], &shape, WORD, 0);
    let [c0, c1, c2, c3, c4, c5] = std::array::from_fn(|k| {
        let c = b.row(found, k);
        b.read(c, places[k])
    });

    // the middle of a piece is 0, and its numbers are signed
    let low = b.resize(x, shift);
    let low = b.add_const(low, -(1 << digits));
    let y = b.resize(low, WORD);
    let y = b.read(y, digits);
    let square = b.mul(y, y);
    let square = word(b, square, SQUARE.0);

    let slope = b.mul(c1, y);
    let inner = sum(b, c2, c3, y, inner);
    let inmost = sum(b, c4, c5, y, inmost);
    let inmost = near(b, inmost, INMOST.2);
    let coarse = near(b, square, SQUARE.1);
    let bend = narrow(b, inmost, coarse);
    let bits = bend.bits.min(inner.bits);
    let [bend, inner] = [bend, inner].map(|part| b.resize(part, bits));
    let inner = b.add(inner, bend);
    let inner = word(b, inner, INNER.2);
    let curve = b.mul(inner, square);
    let y = b.add(c0, slope);
    let y = b.add(y, curve);
    let y = near(b, y, RESULT);
    b.resize(y, RESULT + ABOVE)
}

/// `c + d y` with `digits` fraction bits of y, in the ring that they leave.
fn sum(b: &mut Build<'_>, c: Value, d: Value, y: Value, digits: u32) -> Value {
    let y = near(b, y, digits);
    let product = narrow(b, d, y);
    let c = b.resize(c, product.bits);
    b.add(c, product)
}

/// A product in the smaller one of two rings.
fn narrow(b: &mut Build<'_>, x: Value, y: Value) -> Value {
    let bits = x.bits.min(y.bits);
    let [x, y] = [x, y].map(|factor| b.resize(factor, bits));
    b.mul(x, y)
}

/// Fewer fraction bits, within one unit in the last place, in a ring of as many bits less.
fn near(b: &mut Build<'_>, x: Value, frac: u32) -> Value {
    let bits = x.bits - (x.frac - frac);
    truncated(b, x, frac, bits)
}

/// The same in a word, for a number below a quarter of its ring.
pub(super) fn word(b: &mut Build<'_>, x: Value, frac: u32) -> Value {
    truncated(b, x, frac, WORD)
}

/// Fewer fraction bits, off by a unit and a half at most, in a ring of `bits`: of a number below a quarter of its ring, where these are more
/// than what is left.
pub(super) fn truncated(b: &mut Build<'_>, x: Value, frac: u32, bits: u32) -> Value {
    b.nearly(x, x.frac - frac, bits)
}

/// The coefficients of one piece, in y; 0 where it is nothing.
fn piece_near(f: impl Fn(f64) -> f64, middle: f64, half: f64) -> Vec<f64> {
    match [-1.0, 0.0, 1.0].iter().all(|y| f(middle + half * y).abs() < NOTHING) {
        true => vec![0.0; COEFFICIENTS],
        false => polynomial_near(f, middle, half, COEFFICIENTS),
    }
}

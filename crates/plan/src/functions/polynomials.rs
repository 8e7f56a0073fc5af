//! Piecewise polynomials of degree 5 or 6: few pieces, whose coefficients are looked up, and few products. They are for families in which a
//! value is truncated within one unit in the last place for nothing.
//!
//! With y in `[-1, 1]` along a piece, `c0 + c1 y + (c2 + c3 y + (c4 + c5 y + c6 y^2) y^2) y^2`. A truncation makes the ring smaller by what
//! it drops. So each factor has as many fraction bits as its product needs and no more; twice a number is brought back to a word.

use super::build::{Build, Value, WORD};
use super::chebyshev::rounded;
use crate::ir::Op;
use std::ops::RangeInclusive;

/// Fraction bits of the result.
const RESULT: u32 = 34;
/// Ring bits above the result's fraction: results are below 2.
const ABOVE: u32 = 3;
/// What is smaller everywhere on a piece is no different from 0.
const NOTHING: f64 = 7.5e-9;

/// A polynomial's fraction bits.
pub(super) struct Degree {
    /// Coefficients of a piece.
    coefficients: usize,
    /// Of y^2 as it is multiplied at the end.
    square: u32,
    /// Of `c2 + c3 y + ...` as it is multiplied at the end, and of y inside.
    inner: (u32, u32),
    /// The same of `c4 + c5 y + ...`.
    inmost: (u32, u32),
    /// Of y^2 as that is multiplied.
    coarse: u32,
    /// Of the sum `c4 + c5 y + ...`.
    fine: u32,
    /// Of y^2 beside c6.
    coarsest: u32,
    /// The most of y: what it has more, c1 has less.
    most: u32,
}

/// Degree 5: six products.
pub(super) const FIVE: Degree = Degree {
    coefficients: 6,
    square: 21,
    inner: (28, 20),
    inmost: (31, 14),
    coarse: 16,
    fine: 40,
    coarsest: 0,
    most: 23,
};
/// Degree 6: seven products. For `c2 + c3 y + ...` below 1/8: what is dropped of y^2 and of inner sums leaves it 46 ring bits.
pub(super) const SIX: Degree = Degree {
    coefficients: 7,
    square: 24,
    inner: (30, 20),
    inmost: (30, 14),
    coarse: 17,
    fine: 38,
    coarsest: 14,
    most: 26,
};

impl Degree {
    /// Fraction bits of the sum of everything.
    const fn sum(&self) -> u32 {
        self.inner.0 + self.square
    }

    /// Fraction bits of `c2 + c3 y + ...`.
    const fn inner_sum(&self) -> u32 {
        self.inmost.0 + self.coarse
    }

    /// Fewest and most fraction bits of y, which has as many as x has below its index, less one: its square has at least as many as asked for.
    fn digits(&self) -> RangeInclusive<u32> {
        self.square.div_ceil(2)..=self.most
    }

    /// The most fraction bits of a number of which there are `2^per_unit` pieces a unit.
    pub fn most_read(&self, per_unit: i32) -> u32 {
        (self.most as i32 + 1 + per_unit) as u32
    }

    /// Whether there are pieces of x, an unsigned number in its ring, by `index` bits.
    pub fn suits(&self, x: Value, index: u32) -> bool {
        x.bits > index && self.digits().contains(&(x.bits - index - 1))
    }

    /// Fraction bits of coefficients for a y of `digits`.
    fn places(&self, digits: u32) -> Vec<u32> {
        let [inner, inmost] = [self.inner.1, self.inmost.1].map(|of_y| of_y.min(digits));
        let (sum, inner_sum) = (self.sum(), self.inner_sum());
        let mut places = vec![sum, sum - digits, inner_sum, inner_sum - inner, self.fine, self.fine - inmost];
        if self.coefficients > places.len() {
            places.push(self.fine - self.coarsest);
        }
        places
    }

    /// `f` of an unsigned number of any ring by 2^index pieces, with [`RESULT`] fraction bits in a ring of [`ABOVE`] more; values stay below 2.
    pub fn pieces(&self, b: &mut Build<'_>, x: Value, index: u32, f: impl Fn(f64) -> f64) -> Value {
        let shift = x.bits - index;
        let digits = shift - 1;
        let places = self.places(digits);
        let pieces: Vec<Vec<i64>> = (0..1u64 << index)
            .map(|i| {
                let half = 2f64.powi(digits as i32 - x.frac as i32);
                piece_near(&f, (2 * i + 1) as f64 * half, half, &places)
            })
            .collect();
        let tables = (0..self.coefficients).map(|k| pieces.iter().map(|piece| piece[k]).collect());
        let place = b.down(x, shift, 0);
        let shape = [self.coefficients, b.shape(x)[0]];
        let found = b.node(Op::Lookup { tables: tables.collect() }, &[place], &shape, WORD, 0);
        let coefficients = places.iter().enumerate().map(|(k, &places)| {
            let c = b.row(found, k);
            b.read(c, places)
        });
        let coefficients: Vec<Value> = coefficients.collect();
        let [c0, c1, c2, c3, c4, c5] = std::array::from_fn(|k| coefficients[k]);

        // the middle of a piece is 0, and its numbers are signed
        let low = b.resize(x, shift);
        let low = b.add_const(low, -(1 << digits));
        let y = b.resize(low, WORD);
        let y = b.read(y, digits);
        let square = b.mul(y, y);
        let square = word(b, square, self.square);

        let slope = b.mul(c1, y);
        let inner = sum(b, c2, c3, y, self.inner.1.min(digits));
        let mut inmost = sum(b, c4, c5, y, self.inmost.1.min(digits));
        if let Some(&c6) = coefficients.get(6) {
            let coarsest = near(b, square, self.coarsest);
            let top = narrow(b, c6, coarsest);
            inmost = together(b, inmost, top);
        }
        let inmost = near(b, inmost, self.inmost.0);
        let coarse = near(b, square, self.coarse);
        let bend = narrow(b, inmost, coarse);
        let inner = together(b, inner, bend);
        let inner = word(b, inner, self.inner.0);
        let curve = b.mul(inner, square);
        let y = b.add(c0, slope);
        let y = b.add(y, curve);
        let y = near(b, y, RESULT);
        b.resize(y, RESULT + ABOVE)
    }
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
    let [x, y] = smaller(b, x, y);
    b.mul(x, y)
}

/// A sum likewise.
fn together(b: &mut Build<'_>, x: Value, y: Value) -> Value {
    let [x, y] = smaller(b, x, y);
    b.add(x, y)
}

/// Both in the smaller ring.
fn smaller(b: &mut Build<'_>, x: Value, y: Value) -> [Value; 2] {
    let bits = x.bits.min(y.bits);
    [x, y].map(|part| b.resize(part, bits))
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
fn piece_near(f: impl Fn(f64) -> f64, middle: f64, half: f64, places: &[u32]) -> Vec<i64> {
    match [-1.0, 0.0, 1.0].iter().all(|y| f(middle + half * y).abs() < NOTHING) {
        true => vec![0; places.len()],
        false => rounded(|y| f(middle + half * y), 1.0, places),
    }
}

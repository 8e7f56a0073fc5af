//! Piecewise polynomials of degree 6: few pieces, whose coefficients are looked up, and few products. They are for families in which a
//! value is truncated within one unit in the last place for nothing, and a look-up costs what differs in it.
//!
//! A piece is as wide as what is allowed for errors lets it be. With y the distance from its middle,
//! `c0 + c1 y + (c2 + c3 y + (c4 + c5 y + c6 y^2) y^2) y^2`. A truncation makes the ring smaller by what it drops. So each factor has as many
//! fraction bits as its product needs and no more; twice a number is brought back to a word.

use super::build::{Build, Value, WORD};
use super::chebyshev::{polynomial_near, rounded};
use crate::ir::Op;
use std::ops::Range;

/// Coefficients of a piece.
const COEFFICIENTS: usize = 7;
/// Fraction bits of the result.
const RESULT: u32 = 34;
/// Ring bits above the result's fraction: results are below 2.
const ABOVE: u32 = 3;
/// Fraction bits of y^2 as it is multiplied at the end, and beside c6.
const SQUARE: u32 = 24;
/// Of y^2 as `c4 + ...` is multiplied with it.
const COARSE: u32 = 17;
/// Of `c2 + c3 y + ...` as it is multiplied at the end.
const INNER: u32 = 30;
/// Of `c4 + c5 y + c6 y^2` as it is multiplied.
const INMOST: u32 = 30;
/// Of that sum before.
const INMOST_SUM: u32 = 46;
/// Of `c2 + c3 y + ...` before. It is below 1/2: inner sums leave it 48 ring bits.
const INNER_SUM: u32 = INMOST + COARSE;
/// Of the sum of everything.
const SUM: u32 = INNER + SQUARE;
/// Most fraction bits of y: c5 has as many less than its sum.
const MOST: i32 = 25;

/// What a polynomial may be off by, in parts of what errors are measured by.
const ALLOWED: f64 = 0.25;
/// Places of a piece at which that is measured, less one.
const PLACES: u32 = 32;

/// A function of unsigned numbers, to be cut into pieces.
pub(super) struct Pieces<'f> {
    /// The function.
    pub f: &'f dyn Fn(f64) -> f64,
    /// What its errors are measured by.
    pub bound: &'f dyn Fn(f64) -> f64,
    /// Where it ends: beyond, anything may come out.
    pub end: f64,
    /// The pieces.
    pub cut: Cut,
}

/// How pieces are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// log2 of the steps of a unit: a piece has some of them.
    pub per_unit: i32,
    /// log2 of the unit of y, which is half of the widest piece.
    pub unit: i32,
}

impl Cut {
    /// Most fraction bits of a number.
    pub fn most_read(self) -> u32 {
        (MOST - self.unit) as u32
    }

    /// A step.
    pub fn step(self) -> f64 {
        2f64.powi(-self.per_unit)
    }

    /// Bits of an index of a number, of so many bits before the fraction.
    fn index(self, whole: u32) -> u32 {
        (whole as i32 + self.per_unit).max(1) as u32
    }

    /// Fraction bits of y for a number of `frac`: it is the same integer.
    fn digits(self, frac: u32) -> i32 {
        frac as i32 + self.unit
    }

    /// Whether there are pieces of x, an unsigned number in its ring: y^2 has as many fraction bits as it is multiplied with, and the middle
    /// of a step is a number.
    pub fn suits(self, x: Value) -> bool {
        (SQUARE.div_ceil(2) as i32..=MOST).contains(&self.digits(x.frac))
            && x.bits > self.index(x.bits - x.frac)
    }
}

impl Pieces<'_> {
    /// `f` of an unsigned number of any ring, with [`RESULT`] fraction bits in a ring of [`ABOVE`] more; values stay below 2.
    pub fn of(&self, b: &mut Build<'_>, x: Value) -> Value {
        let (index, digits) = (self.cut.index(x.bits - x.frac), self.cut.digits(x.frac) as u32);
        let shift = x.bits - index;
        let places = places(digits);
        let (middles, coefficients) = self.tables(1 << index, [shift, x.frac], &places);
        // numbers are extended as signed ones
        let half = 1 << (x.bits - 1);
        let less = middles.iter().map(|middle| half - middle).collect();
        let tables: Vec<Vec<i64>> = [coefficients, vec![less]].concat();
        let place = b.down(x, shift, 0);
        let shape = [tables.len(), b.shape(x)[0]];
        let found = b.node(Op::Lookup { tables }, &[place], &shape, WORD, 0);
        let [c0, c1, c2, c3, c4, c5, c6] = std::array::from_fn(|k| {
            let c = b.row(found, k);
            b.read(c, places[k])
        });
        let less = b.row(found, COEFFICIENTS);
        let less = b.read(less, digits);

        // the middle of a piece is 0
        let signed = b.add_const(x, -half);
        let signed = b.resize(signed, WORD);
        let signed = b.read(signed, digits);
        let y = b.add(signed, less);
        let square = b.muls_added(&[[y, y]], self.square_bits(&middles, x));
        let square = word(b, square, SQUARE);

        let inmost = b.muls_added(&[[c5, y], [c6, square]], WORD);
        let inmost = b.add(c4, inmost);
        let inmost = near(b, inmost, INMOST);
        let coarse = near(b, square, COARSE);
        let inner = b.muls_added(&[[c3, y], [inmost, coarse]], inmost.bits);
        let c2 = b.resize(c2, inner.bits);
        let inner = b.add(c2, inner);
        let inner = word(b, inner, INNER);
        let all = b.muls_added(&[[c1, y], [inner, square]], WORD);
        let y = b.add(c0, all);
        let y = near(b, y, RESULT);
        b.resize(y, RESULT + ABOVE)
    }

    /// Ring bits of which y^2 is less than a quarter, also where the last piece goes on beyond the end.
    fn square_bits(&self, middles: &[i64], x: Value) -> u32 {
        let last = middles.last().copied().unwrap_or(0);
        let largest = (1i64 << (self.cut.digits(x.frac) as u32)).max((1 << x.bits) - last);
        WORD.min((2.0 * (largest as f64).log2()).ceil() as u32 + 3)
    }

    /// The middle of every step's piece, in units of a number of `frac` fraction bits, and its coefficients, table after table. A step is 2^shift
    /// units.
    fn tables(&self, steps: usize, [shift, frac]: [u32; 2], places: &[u32]) -> (Vec<i64>, Vec<Vec<i64>>) {
        let (mut middles, mut tables) = (vec![], vec![vec![]; places.len()]);
        let (step, unit) = (2f64.powi(shift as i32 - frac as i32), 2f64.powi(self.cut.unit));
        let used = steps.min((self.end / step).ceil() as usize);
        for piece in self.widest(used, step) {
            let twice = (piece.start + piece.end) as i64;
            let (middle, half) = (twice as f64 / 2.0 * step, piece.len() as f64 / 2.0 * step);
            let coefficients = rounded(|y| (self.f)(middle + unit * y), half / unit, places);
            // beyond the end the last piece goes on
            let end = if piece.end == used { steps } else { piece.end };
            for _ in piece.start..end {
                middles.push(twice << (shift - 1));
                tables.iter_mut().zip(&coefficients).for_each(|(table, c)| table.push(*c));
            }
        }
        (middles, tables)
    }

    /// How many pieces there are of numbers below 2^domain, and the largest error of any.
    #[cfg(test)]
    pub fn worst(&self, domain: u32) -> (usize, f64) {
        let step = self.cut.step();
        let used = (1 << self.cut.index(domain)).min((self.end / step).ceil() as usize);
        let pieces = self.widest(used, step);
        let errors = pieces.iter().map(|p| self.error(p.start as f64 * step, p.end as f64 * step));
        (pieces.len(), errors.fold(0.0, f64::max))
    }

    /// The pieces of so many steps, each as wide as what is allowed for its error lets it be.
    fn widest(&self, steps: usize, step: f64) -> Vec<Range<usize>> {
        let most = (2.0 * 2f64.powi(self.cut.unit) / step) as usize;
        let mut pieces = vec![];
        let mut start = 0;
        while start < steps {
            let fits = |end: &usize| self.error(start as f64 * step, *end as f64 * step) <= ALLOWED;
            let end = (start + 2..=steps.min(start + most)).take_while(fits).last().unwrap_or(start + 1);
            pieces.push(start..end);
            start = end;
        }
        pieces
    }

    /// What a polynomial between two places is off by, in parts of what errors are measured by.
    fn error(&self, start: f64, end: f64) -> f64 {
        let (middle, half) = ((start + end) / 2.0, (end - start) / 2.0);
        let polynomial = polynomial_near(self.f, middle, half, COEFFICIENTS);
        let off = |i: u32| {
            let y = 2.0 * f64::from(i) / f64::from(PLACES) - 1.0;
            let (x, value) = (middle + half * y, polynomial.iter().rev().fold(0.0, |sum, c| sum * y + c));
            ((self.f)(x) - value).abs() / (self.bound)(x)
        };
        (0..=PLACES).map(off).fold(0.0, f64::max)
    }
}

/// Fraction bits of coefficients for a y of `digits`.
fn places(digits: u32) -> [u32; COEFFICIENTS] {
    let sums = [SUM, INNER_SUM, INMOST_SUM];
    let [[c0, c1], [c2, c3], [c4, c5]] = sums.map(|sum| [sum, sum - digits]);
    [c0, c1, c2, c3, c4, c5, INMOST_SUM - SQUARE]
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

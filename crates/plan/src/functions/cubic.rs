//! Piecewise polynomials of degree 3 for results of few fraction bits: coefficients are looked up, and all is in one narrow ring. They are
//! for families in which a value is truncated within one unit in the last place for little, and whose products cost by their bits.
//!
//! With y in `[-1, 1]` along a piece, `c0 + (c1 + (c2 + c3 y) y) y`. Sums have [`SPARE`] fraction bits more than the result asks for.

use super::build::{Build, Value, WORD};
use super::chebyshev::polynomial_near;
use super::quintic::truncated;
use crate::ir::Op;

/// Coefficients of a piece.
const COEFFICIENTS: usize = 4;
/// Fraction bits of sums beyond the result's: two truncations are off by a unit each.
const SPARE: u32 = 4;
/// Ring bits above the fraction of a product: values are below 1, and a truncation that keeps its ring takes numbers below a quarter of it.
const ABOVE: u32 = 2;
/// Fraction bits of a result for which a piece is a unit wide. For a fourth derivative of M, pieces of width w are off by
/// `w^4 M / 3072`: for this width by M / 12 units in the last place.
const WHOLE: u32 = 8;

/// Most fraction bits of results: for more there are better ways.
const MOST: u32 = 17;

/// log2 of the pieces a unit for results of so many fraction bits.
fn per_unit(frac: u32) -> u32 {
    frac.saturating_sub(WHOLE).div_ceil(4)
}

/// Bits of an index of numbers below 2^domain, for results of `frac` fraction bits.
pub(super) fn index(domain: u32, frac: u32) -> u32 {
    domain + per_unit(frac)
}

/// The ring of everything, of pieces with `digits` fraction bits of y.
fn ring(frac: u32, digits: u32) -> u32 {
    frac + SPARE + digits + ABOVE
}

/// Whether there are pieces of an unsigned number of so many bits by `index` of them, for results of `frac` fraction bits.
pub(super) fn suits(bits: u32, index: u32, frac: u32) -> bool {
    frac <= MOST && bits >= index + 2 && ring(frac, bits - index - 1) <= WORD
}

/// `f` of an unsigned number of any ring by 2^index pieces, with at least `frac` fraction bits; values stay below 1/2.
pub(super) fn cubic(b: &mut Build<'_>, x: Value, index: u32, frac: u32, f: impl Fn(f64) -> f64) -> Value {
    let shift = x.bits - index;
    let (digits, fine) = (shift - 1, frac + SPARE);
    let bits = ring(frac, digits);
    let half = 2f64.powi(digits as i32 - x.frac as i32);
    let middle = |i: u64| (2 * i + 1) as f64 * half;
    let pieces: Vec<Vec<f64>> =
        (0..1u64 << index).map(|i| polynomial_near(&f, middle(i), half, COEFFICIENTS)).collect();
    let places = [fine + digits, fine, fine, fine];
    let fixed = |c: f64, places: u32| (c * 2f64.powi(places as i32)).round_ties_even() as i64;
    let tables = (0..COEFFICIENTS).map(|k| pieces.iter().map(|piece| fixed(piece[k], places[k])).collect());
    let place = b.down(x, shift, 0);
    let shape = [COEFFICIENTS, b.shape(x)[0]];
    let found = b.node(Op::Lookup { tables: tables.collect() }, &[place], &shape, bits, 0);
    let coefficients: [Value; COEFFICIENTS] = std::array::from_fn(|k| {
        let c = b.row(found, k);
        b.read(c, places[k])
    });

    // the middle of a piece is 0, and its numbers are signed
    let low = b.resize(x, shift);
    let low = b.add_const(low, -(1 << digits));
    let y = b.resize(low, bits);
    let y = b.read(y, digits);
    let [c0, rest @ ..] = coefficients;
    let [c1, c2, mut sum] = rest;
    for c in [c2, c1] {
        let product = b.mul(sum, y);
        let product = truncated(b, product, fine, bits);
        sum = b.add(c, product);
    }
    let product = b.mul(sum, y);
    b.add(c0, product)
}

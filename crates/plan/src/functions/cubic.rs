//! Piecewise polynomials of degree 3 for results of few fraction bits: coefficients are looked up, and each product is in as narrow a ring as it
//! needs. They are for families in which a value is truncated within one unit in the last place for little, and whose products cost by their bits.
//!
//! With y in `[-1, 1]` along a piece, `c0 + (c1 + (c2 + c3 y) y) y`. Sums have [`SPARE`] fraction bits more than the result asks for. The
//! inner ones are small, as higher coefficients are.

use super::build::{Build, Value, WORD};
use super::chebyshev::polynomial_near;
use super::polynomials::truncated;
use crate::ir::Op;

/// Coefficients of a piece.
const COEFFICIENTS: usize = 4;
/// Fraction bits of sums beyond the result's: two truncations are off by a unit each.
const SPARE: u32 = 3;
/// Ring bits above the fraction of a product of 1 or less: a truncation that keeps its ring takes numbers below a quarter of it.
const ABOVE: u32 = 2;
/// What sums of coefficients that are looked up may be beyond them, in units in the last place: each is rounded, and two products are truncated
/// within a unit and a half.
const ROUNDED: f64 = 5.0;
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

/// The ring of a product of 1 or less, of pieces with `digits` fraction bits of y.
fn ring(frac: u32, digits: u32) -> u32 {
    frac + SPARE + digits + ABOVE
}

/// Whether there are pieces of an unsigned number of so many bits by `index` of them, for results of `frac` fraction bits.
pub(super) fn suits(bits: u32, index: u32, frac: u32) -> bool {
    frac <= MOST && bits >= index + 2 && ring(frac, bits - index - 1) <= WORD
}

/// The rings of coefficients, and of products of y with sums of that and all higher ones. The lowest one is added to a product, and is in
/// its ring.
fn rings(frac: u32, digits: u32, pieces: &[Vec<f64>]) -> [u32; COEFFICIENTS] {
    let unit = 2f64.powi(-((frac + SPARE) as i32));
    [0, 0, 2, 3].map(|k: usize| {
        let size = |piece: &Vec<f64>| piece[k..].iter().map(|c| c.abs()).sum::<f64>();
        let largest = pieces.iter().map(size).fold(0.0, f64::max) + ROUNDED * unit;
        (ring(frac, digits) as i32 + largest.log2().ceil() as i32) as u32
    })
}

/// `f` of an unsigned number of any ring by 2^index pieces, with at least `frac` fraction bits, in a ring of which values take less than a
/// quarter; they stay below 1/2.
pub(super) fn cubic(b: &mut Build<'_>, x: Value, index: u32, frac: u32, f: impl Fn(f64) -> f64) -> Value {
    let shift = x.bits - index;
    let (digits, fine) = (shift - 1, frac + SPARE);
    let half = 2f64.powi(digits as i32 - x.frac as i32);
    let middle = |i: u64| (2 * i + 1) as f64 * half;
    let pieces: Vec<Vec<f64>> =
        (0..1u64 << index).map(|i| polynomial_near(&f, middle(i), half, COEFFICIENTS)).collect();
    let rings = rings(frac, digits, &pieces);
    let places = [fine + digits, fine, fine, fine];
    let fixed = |c: f64, places: u32| (c * 2f64.powi(places as i32)).round_ties_even() as i64;
    let tables = (0..COEFFICIENTS).map(|k| pieces.iter().map(|piece| fixed(piece[k], places[k])).collect());
    let place = b.down(x, shift, 0);
    let shape = [COEFFICIENTS, b.shape(x)[0]];
    let found = b.node(Op::Lookup { tables: tables.collect() }, &[place], &shape, rings[0], 0);
    let coefficients: [Value; COEFFICIENTS] = std::array::from_fn(|k| {
        let c = b.row(found, k);
        let c = b.resize(c, rings[k]);
        b.read(c, places[k])
    });

    // the middle of a piece is 0, and its numbers are signed
    let low = b.resize(x, shift);
    let low = b.add_const(low, -(1 << digits));
    let y = b.resize(low, rings[0]);
    let y = b.read(y, digits);
    let [c0, c1, c2, mut sum] = coefficients;
    for c in [c2, c1] {
        let y = b.resize(y, sum.bits);
        let product = b.mul(sum, y);
        let product = truncated(b, product, fine, c.bits);
        sum = b.add(c, product);
    }
    let product = b.mul(sum, y);
    b.add(c0, product)
}

//! Softmax: `e^(x - m) / sum`, m being within 1 of the maximum, with more fraction bits inside than outside.

use super::build::{Build, Value, WORD};
use super::exp;
use super::largest::largest;
use super::mantissa::Table;
use super::normalise::{Exponent, whole_mantissa};
use super::powers::{log_of, log_of_mantissa, reciprocal_of_mantissa};
use crate::ir::Op;
use crate::strided;

/// Most classes.
pub(super) const MOST_CLASSES: usize = 1 << 16;
/// Fraction bits of exponentials and reciprocal together: their product is at most 1, in a ring of 64 bits.
const TOGETHER: u32 = 61;
/// Fraction bits of a mantissa of the reciprocal of the sum.
const KEPT: u32 = 20;
/// Fraction bits of exponentials of which only the logarithm of the sum is wanted.
const LOG_FRAC: u32 = 34;
/// Sums are at least `2^-BELOW` (the largest term is more than 1/e), and less than `2^BELOW` times the number of classes.
const BELOW: u32 = 2;

/// What both softmaxes need: `x - m` and its exponentials, `[outer, classes, inner]`, and the sums `[outer inner]`.
struct Sums {
    shape: Vec<usize>,
    below: Value,
    exponentials: Value,
    sums: Value,
    /// 2^classes is at least the number of classes.
    classes: u32,
}

pub(super) fn softmax(b: &mut Build<'_>, x: Value, dim: usize, bits: u32, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    if shape[dim] == 1 {
        // e^0 / e^0
        let zero = b.sub(x, x);
        let zero = b.resize(zero, bits.min(zero.bits));
        let zero = b.resize(zero, bits);
        let zero = b.read(zero, frac);
        return b.add_const(zero, 1 << frac);
    }
    let s = sums(b, x, dim, |classes| (TOGETHER + BELOW - KEPT - thresholds(classes)).min(30));
    let reciprocal = reciprocal(b, &s);
    let spread = b.reshape(reciprocal, &[s.shape[0], 1, s.shape[2]]);
    let spread = b.node(Op::Expand, &[spread], &s.shape, WORD, reciprocal.frac);
    let y = b.mul(s.exponentials, spread);
    let y = b.nearly(y, y.frac - frac, bits);
    b.reshape(y, &shape)
}

pub(super) fn log_softmax(b: &mut Build<'_>, x: Value, dim: usize, bits: u32, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    if shape[dim] == 1 {
        let zero = b.sub(x, x);
        let zero = b.read(zero, frac);
        return b.resize(zero, bits);
    }
    let s = sums(b, x, dim, |_| LOG_FRAC);
    let below = b.fit(s.below, bits, frac);
    let (e, _, w) = normalised(b, &s);
    let fraction = by_table(b, w, log_of_mantissa);
    let log = log_of(b, &e, fraction, -i64::from(BELOW));
    let log = b.dither(log, log.frac - frac, bits);
    let log = b.reshape(log, &[s.shape[0], 1, s.shape[2]]);
    let log = b.node(Op::Expand, &[log], &s.shape, bits, frac);
    let y = b.sub(below, log);
    b.reshape(y, &shape)
}

/// Powers of two that a sum is compared with.
fn thresholds(classes: u32) -> u32 {
    classes + 2 * BELOW
}

/// The reciprocals of the sums, in [`WORD`] bits.
fn reciprocal(b: &mut Build<'_>, s: &Sums) -> Value {
    let (e, power, w) = normalised(b, s);
    let m = by_table(b, w, |b, w, table| reciprocal_of_mantissa(b, w, KEPT, 1.0, table));
    let product = b.muls(&[(m, power)])[0];
    // a sum is w times two to the power of e - BELOW
    b.read(product, KEPT + e.most(0) - BELOW)
}

/// Exponents of the sums, counted from -[`BELOW`]; powers of two that make mantissas of them; mantissas.
fn normalised(b: &mut Build<'_>, s: &Sums) -> (Exponent, Value, Value) {
    let least = s.sums.frac - BELOW;
    let e = Exponent::between(b, s.sums, least, thresholds(s.classes));
    let power = e.powers(b, &[(0, 1, false)])[0];
    let w = whole_mantissa(b, s.sums, power, least + e.most(0), 1);
    (e, power, w)
}

/// What the cheaper table makes of a mantissa.
fn by_table(b: &mut Build<'_>, w: Value, make: impl Fn(&mut Build<'_>, Value, Table) -> Value) -> Value {
    let by = |table| {
        let make = &make;
        move |b: &mut Build<'_>, w: Value| make(b, w, table)
    };
    b.cheapest(w, &[&by(Table::Pieces), &by(Table::Waves)])
}

/// `frac(classes)`: fraction bits of the exponentials.
fn sums(b: &mut Build<'_>, x: Value, dim: usize, frac: impl Fn(u32) -> u32) -> Sums {
    let (outer, extent, inner) = strided::split(b.shape(x), dim);
    let shape = vec![outer, extent, inner];
    let classes = usize::BITS - (extent - 1).leading_zeros();
    let x = b.reshape(x, &shape);
    let largest = near_largest(b, x);
    let largest = b.node(Op::Expand, &[largest], &shape, x.bits, x.frac);
    let below = b.sub(x, largest);

    let flat = b.reshape(below, &[outer * extent * inner]);
    let exponentials = exp::below_one(b, flat, frac(classes));
    let exponentials = b.reshape(exponentials, &shape);
    let sums = b.node(Op::Sum { dims: vec![1] }, &[exponentials], &[outer, inner], WORD, exponentials.frac);
    let sums = b.reshape(sums, &[outer * inner]);
    Sums { shape, below, exponentials, sums, classes }
}

/// What is within 1 of the maximum along dimension 1 of 3, which is all that is needed: short numbers are compared for less.
fn near_largest(b: &mut Build<'_>, x: Value) -> Value {
    // rounding up may make a number too large to be compared; in a small ring, only one that is nearly so
    let shift = if x.bits - x.frac > 12 { x.frac } else { x.frac.saturating_sub(4) };
    let dithered = |b: &mut Build<'_>, x: Value| {
        let short = b.dither(x, shift, x.bits - shift);
        let largest = largest(b, short);
        b.up(largest, shift)
    };
    // off by a unit and a half, so of half the size
    let one_ulp = |b: &mut Build<'_>, x: Value| {
        let short = b.one_ulp(x, shift - 1, x.bits - (shift - 1));
        let largest = largest(b, short);
        b.up(largest, shift - 1)
    };
    match shift {
        0 | 1 => dithered(b, x),
        _ => b.rounded(x, &dithered, &one_ulp),
    }
}

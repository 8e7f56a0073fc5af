//! Softmax: `e^(x - max) / sum`, with more fraction bits inside than outside.

use super::build::{Build, Value, WORD};
use super::exp;
use super::normalise::{Exponent, mantissa};
use super::powers::{FRAC, log_of, reciprocal_of_mantissa};
use crate::ir::Op;
use crate::strided;
use privet_ring::Pool2d;

/// Most classes.
pub(super) const MOST_CLASSES: usize = 1 << 16;
/// Fraction bits of exponentials and reciprocal together, with one bit each for the whole part.
const TOGETHER: u32 = 62;

/// What both softmaxes need: `x - max` and its exponentials, `[outer, classes, inner]`, and the sums `[outer inner]`.
struct Sums {
    shape: Vec<usize>,
    below: Value,
    exponentials: Value,
    sums: Value,
    /// 2^classes is at least the number of classes.
    classes: u32,
}

/// Fraction bits of a mantissa of the reciprocal of the sum.
const KEPT: u32 = 22;

pub(super) fn softmax(b: &mut Build<'_>, x: Value, dim: usize, _bits: u32, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    let s = sums(b, x, dim);
    let lines = b.shape(s.sums)[0];
    let reciprocal = if s.classes == 0 {
        // one class: e^0 / e^0
        let one = b.sub(s.sums, s.sums);
        let one = b.read(one, KEPT);
        b.add_const(one, 1 << KEPT)
    } else {
        let (e, w) = normalised(b, &s);
        let power = e.powers(b, &[(0, 1, false)])[0];
        let m = reciprocal_of_mantissa(b, w, KEPT, 1.0);
        let m = b.muls(&[(m, power)])[0];
        b.read(m, KEPT + e.most(0))
    };
    let spread = b.reshape(reciprocal, &[s.shape[0], 1, s.shape[2]]);
    debug_assert_eq!(lines, s.shape[0] * s.shape[2]);
    let spread = b.node(Op::Expand, &[spread], &s.shape, WORD, reciprocal.frac);
    let y = b.mul(s.exponentials, spread);
    let y = b.round(y, frac);
    let y = if y.bits > frac + 2 { b.resize(y, frac + 2) } else { y };
    b.reshape(y, &shape)
}

pub(super) fn log_softmax(b: &mut Build<'_>, x: Value, dim: usize, bits: u32, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    let s = sums(b, x, dim);
    let below = b.fit(s.below, bits, frac);
    let y = if s.classes == 0 {
        below
    } else {
        let (e, w) = normalised(b, &s);
        let log = log_of(b, &e, w, 0);
        let log = b.round(log, frac);
        let log = b.resize_small(log, frac + 5, bits);
        let log = b.reshape(log, &[s.shape[0], 1, s.shape[2]]);
        let log = b.node(Op::Expand, &[log], &s.shape, bits, frac);
        b.sub(below, log)
    };
    b.reshape(y, &shape)
}

/// Exponent (from that of 1) and mantissa of the sums.
fn normalised(b: &mut Build<'_>, s: &Sums) -> (Exponent, Value) {
    let e = Exponent::between(b, s.sums, s.sums.frac, s.classes);
    let power = e.powers(b, &[(0, 1, false)])[0];
    let most = s.sums.frac + e.most(0);
    let w = mantissa(b, s.sums, power, most, 1, FRAC);
    (e, w)
}

fn sums(b: &mut Build<'_>, x: Value, dim: usize) -> Sums {
    let (outer, extent, inner) = strided::split(b.shape(x), dim);
    let shape = vec![outer, extent, inner];
    let x = b.reshape(x, &[outer, 1, extent, inner]);
    let window =
        Pool2d { kernel: [extent, 1], stride: [1, 1], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let largest = b.node(Op::MaxPool2d { window }, &[x], &[outer, 1, 1, inner], x.bits, x.frac);
    let largest = b.node(Op::Expand, &[largest], &[outer, 1, extent, inner], x.bits, x.frac);
    let below = b.sub(x, largest);
    let below = b.reshape(below, &shape);

    let classes = usize::BITS - (extent - 1).leading_zeros();
    // the reciprocal of the sum has KEPT + classes fraction bits
    let frac = (TOGETHER - KEPT - classes).min(30);
    let flat = b.reshape(below, &[outer * extent * inner]);
    let bounded = at_least_minus_31(b, flat);
    let exponentials = exp::bounded(b, bounded, frac, false);
    let exponentials = b.reshape(exponentials, &shape);
    let sums = b.node(Op::Sum { dims: vec![1] }, &[exponentials], &[outer, inner], WORD, frac);
    let sums = b.reshape(sums, &[outer * inner]);
    Sums { shape, below, exponentials, sums, classes }
}

/// max(x, -31) for x <= 0: what is below adds less than 2^-44 to a sum of at least 1.
fn at_least_minus_31(b: &mut Build<'_>, x: Value) -> Value {
    if x.bits <= x.frac + 6 {
        return x;
    }
    let bound = 31i64 << x.frac;
    let above = b.add_const(x, bound);
    let above = b.like(Op::Relu, &[above], x.bits, x.frac);
    b.add_const(above, -bound)
}

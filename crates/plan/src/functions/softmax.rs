//! Softmax: `e^(x - m) / sum`, m being within 1 of the maximum, with more fraction bits inside than outside.

use super::build::{Build, Value};
use super::exp;
use super::largest::largest;
use super::mantissa::Table;
use super::normalise::{Exponent, Search, whole_mantissa};
use super::polynomials::truncated;
use super::powers::{log_of, log_of_mantissa, reciprocal_in_cubics, reciprocal_of_mantissa};
use super::quartic::{Narrow, narrow};
use crate::ir::Op;
use crate::strided;

/// Most classes.
pub(super) const MOST_CLASSES: usize = 1 << 16;
/// Fraction bits of exponentials and reciprocal together: their product is at most 1, in a ring of 64 bits.
const TOGETHER: u32 = 61;
/// Fraction bits of a mantissa of the reciprocal of the sum.
pub(super) const KEPT: u32 = 20;
/// Fraction bits of exponentials of which only the logarithm of the sum is wanted.
const LOG_FRAC: u32 = 34;
/// Sums are at least `2^-BELOW` (the largest term is more than 1/e), and less than `2^BELOW` times the number of classes.
pub(super) const BELOW: u32 = 2;

/// Fraction bits of the mantissa of a reciprocal beyond those of the result, where that has few.
const MANTISSA: u32 = 5;

/// A line of classes less what is within 1 of its largest: `[outer, classes, inner]`.
#[derive(Clone)]
pub(super) struct Below {
    pub value: Value,
    pub shape: Vec<usize>,
    /// 2^classes is at least the number of classes.
    pub classes: u32,
}

impl Below {
    /// Elements of all lines together.
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Lines.
    fn lines(&self) -> usize {
        self.shape[0] * self.shape[2]
    }

    /// The sum of each line, `[lines]`.
    pub fn sums(&self, b: &mut Build<'_>, terms: Value) -> Value {
        let terms = b.reshape(terms, &self.shape);
        let sums = b.node(
            Op::Sum { dims: vec![1] },
            &[terms],
            &[self.shape[0], self.shape[2]],
            terms.bits,
            terms.frac,
        );
        b.reshape(sums, &[self.lines()])
    }

    /// A number of each line at all of its classes.
    fn spread(&self, b: &mut Build<'_>, x: Value) -> Value {
        let x = b.reshape(x, &[self.shape[0], 1, self.shape[2]]);
        b.node(Op::Expand, &[x], &self.shape, x.bits, x.frac)
    }
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
    let below = below(b, x, dim);
    let y = of_below(b, &below, bits, frac);
    b.reshape(y, &shape)
}

/// The softmax of lines of which something near their largest was subtracted, in their shape.
pub(super) fn of_below(b: &mut Build<'_>, below: &Below, bits: u32, frac: u32) -> Value {
    let wide = |b: &mut Build<'_>, x: Value| in_words(b, &Below { value: x, ..below.clone() }, bits, frac);
    let narrow = Narrow { frac, classes: below.classes };
    let in_few_bits =
        |b: &mut Build<'_>, x: Value| in_few_bits(b, &Below { value: x, ..below.clone() }, bits, narrow);
    match narrow.suits(below.value) {
        true => b.rounded(below.value, &wide, &in_few_bits),
        false => wide(b, below.value),
    }
}

/// A softmax with everything in words.
fn in_words(b: &mut Build<'_>, below: &Below, bits: u32, frac: u32) -> Value {
    let terms = exponentials(b, below, (TOGETHER + BELOW - KEPT - thresholds(below.classes)).min(30));
    let ways = [Search::AtOnce, Search::Choosing].into_iter().flat_map(|search| {
        [Table::Pieces, Table::Waves].into_iter().flat_map(move |table| {
            [false, true]
                .map(|early| move |b: &mut Build<'_>, x: Value| quotient(b, below, x, (search, table), early))
        })
    });
    let y = b.cheapest_among(terms, ways);
    b.nearly(y, y.frac - frac, bits)
}

/// Exponentials by their sum; `early`: times the power of two of its reciprocal while the mantissa is not there yet, which takes one
/// product more and waits for one less.
fn quotient(
    b: &mut Build<'_>,
    below: &Below,
    exponentials: Value,
    (search, table): (Search, Table),
    early: bool,
) -> Value {
    let sums = below.sums(b, exponentials);
    let (e, power, w) = normalised(b, sums, below.classes, search);
    let m = reciprocal_of_mantissa(b, w, KEPT, 1.0, table);
    // a sum is w times two to the power of e - BELOW
    let frac = KEPT + e.most(0) - BELOW;
    if early {
        let power = below.spread(b, power);
        let raised = b.mul(exponentials, power);
        let m = below.spread(b, m);
        let y = b.mul(raised, m);
        return b.read(y, exponentials.frac + frac);
    }
    let reciprocal = b.muls(&[(m, power)])[0];
    let reciprocal = b.read(reciprocal, frac);
    let reciprocal = below.spread(b, reciprocal);
    b.mul(exponentials, reciprocal)
}

/// A softmax of few fraction bits, each part of it in as narrow a ring as it needs.
fn in_few_bits(b: &mut Build<'_>, below: &Below, bits: u32, of: Narrow) -> Value {
    let flat = b.reshape(below.value, &[below.len()]);
    let [terms, factors] = narrow(b, flat, of);
    let sums = below.sums(b, terms);
    let reciprocal = narrow_reciprocal(b, sums, of);
    let spread = below.spread(b, reciprocal);
    let factors = b.reshape(factors, &below.shape);
    let y = b.mul(factors, spread);
    // from 0 to 1, and hardly beyond
    let y = b.add_const(y, -(1 << (y.frac - 1)));
    let y = b.dither(y, y.frac - of.frac, bits);
    b.add_const(y, 1 << (of.frac - 1))
}

/// The reciprocals of sums for factors of few bits.
fn narrow_reciprocal(b: &mut Build<'_>, sums: Value, of: Narrow) -> Value {
    let least = sums.frac - BELOW;
    let e = Exponent::between(b, sums, least, thresholds(of.classes), Search::AtOnce);
    let power = e.powers(b, &[(0, 1, false)])[0];
    let w = whole_mantissa(b, sums, (&e, power), least + e.most(0), 1);
    let kept = of.frac + MANTISSA;
    let m = reciprocal_in_cubics(b, w, kept);
    // below 2, times a power of two up to `most`
    let bits = kept + e.most(0) + 3;
    let m = truncated(b, m, kept, bits);
    let power = b.resize(power, bits);
    let product = b.mul(m, power);
    let product = b.read(product, kept + e.most(0) - BELOW);
    let (frac, bits) = of.last();
    truncated(b, product, frac, bits)
}

pub(super) fn log_softmax(b: &mut Build<'_>, x: Value, dim: usize, bits: u32, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    if shape[dim] == 1 {
        let zero = b.sub(x, x);
        let zero = b.read(zero, frac);
        return b.resize(zero, bits);
    }
    let below = below(b, x, dim);
    let terms = exponentials(b, &below, LOG_FRAC);
    let sums = below.sums(b, terms);
    let x = b.fit(below.value, bits, frac);
    let ways = [Search::AtOnce, Search::Choosing].into_iter().flat_map(|search| {
        let classes = below.classes;
        [Table::Pieces, Table::Waves].map(|table| {
            move |b: &mut Build<'_>, sums: Value| {
                let (e, _, w) = normalised(b, sums, classes, search);
                let fraction = log_of_mantissa(b, w, table);
                log_of(b, &e, fraction, -i64::from(BELOW))
            }
        })
    });
    let log = b.cheapest_among(sums, ways);
    let log = b.dither(log, log.frac - frac, bits);
    let log = below.spread(b, log);
    let y = b.sub(x, log);
    b.reshape(y, &shape)
}

/// Powers of two that a sum is compared with.
pub(super) fn thresholds(classes: u32) -> u32 {
    classes + 2 * BELOW
}

/// Exponents of the sums, counted from -[`BELOW`]; powers of two that make mantissas of them; mantissas.
pub(super) fn normalised(
    b: &mut Build<'_>,
    sums: Value,
    classes: u32,
    by: Search,
) -> (Exponent, Value, Value) {
    let least = sums.frac - BELOW;
    let e = Exponent::between(b, sums, least, thresholds(classes), by);
    let power = e.powers(b, &[(0, 1, false)])[0];
    let w = whole_mantissa(b, sums, (&e, power), least + e.most(0), 1);
    (e, power, w)
}

/// Exponentials of lines with so many fraction bits, in words.
pub(super) fn exponentials(b: &mut Build<'_>, below: &Below, frac: u32) -> Value {
    let flat = b.reshape(below.value, &[below.len()]);
    let exponentials = exp::below_one(b, flat, frac);
    b.reshape(exponentials, &below.shape)
}

pub(super) fn below(b: &mut Build<'_>, x: Value, dim: usize) -> Below {
    let (outer, extent, inner) = strided::split(b.shape(x), dim);
    let shape = vec![outer, extent, inner];
    let classes = usize::BITS - (extent - 1).leading_zeros();
    let x = b.reshape(x, &shape);
    let largest = near_largest(b, x);
    let largest = b.node(Op::Expand, &[largest], &shape, x.bits, x.frac);
    Below { value: b.sub(x, largest), shape, classes }
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

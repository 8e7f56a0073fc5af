//! `softmax(x) v`, as it stands or divided by the sum of exponentials at the end.
//!
//! At the end: there are fewer results than exponentials where a value has fewer numbers than there are classes, and the product with v
//! need not wait for the reciprocal. A result is a mean of v, weighted by exponentials, so it is no larger than v.

use super::build::{Build, Value, WayOf};
use super::mantissa::Table;
use super::normalise::Search;
use super::powers::reciprocal_of_mantissa;
use super::softmax::{BELOW, Below, KEPT, below, exponentials, normalised, of_below, softmax, thresholds};
use super::{Function, MOST_FRACTION};
use crate::ir::Op;

/// Fewest fraction bits of exponentials of 2^0 classes. A sum of 2^c of them, each off by a unit up or down, is off by some `2^(c/2)` units, and it
/// is more than 1/e: so c/2 bits more keep all weights together within 2^-18.
const LEAST_TERM: u32 = 20;

/// The values that softmaxes weigh: `[..., classes, n]`.
#[derive(Clone, Copy, Debug)]
pub struct Weighted {
    /// The values.
    pub values: Value,
    /// Bits before the fraction that hold them, the sign's included.
    pub whole: u32,
}

/// Fraction bits on the way to a result in the ring of the values, of k bits.
#[derive(Clone, Copy, Debug)]
struct Digits {
    /// Of exponentials: their products with the values are summed in k bits.
    term: u32,
    /// Of these sums when they are divided: with those of the reciprocal they leave room for a result.
    sum: u32,
}

impl Weighted {
    /// None where the ring has no room.
    fn digits(self, classes: u32) -> Option<Digits> {
        let Value { bits, frac, .. } = self.values;
        let term = (bits - 1).checked_sub(frac + self.whole + classes + BELOW)?.min(MOST_FRACTION);
        let reciprocal = KEPT + thresholds(classes) - BELOW;
        let sum = (bits - 1).checked_sub(self.whole + reciprocal)?.min(term + frac);
        (term >= LEAST_TERM + classes.div_ceil(2) && sum >= frac + 2).then_some(Digits { term, sum })
    }
}

/// Softmaxes along the last dimension of x, `[..., m, classes]`, times the values: `[..., m, n]`, of `frac` fraction bits more than values have.
pub fn attention(b: &mut Build<'_>, x: Value, of: Weighted, frac: u32) -> Value {
    let shape = b.shape(x).to_vec();
    let dim = shape.len() - 1;
    if shape[dim] == 1 {
        let weights = softmax(b, x, dim, of.values.bits, frac);
        let weights = b.approximates(Function::Softmax { dim }, x, weights);
        return product(b, weights, of.values);
    }
    let below = below(b, x, dim);
    let given = |value: Value| Below { value, ..below.clone() };
    let before = |b: &mut Build<'_>, of: &[Value]| {
        let weights = of_below(b, &given(of[0]), of[1].bits, frac);
        let weights = b.reshape(weights, &shape);
        let weights = b.approximates(Function::Softmax { dim }, of[2], weights);
        product(b, weights, of[1])
    };
    let all = [below.value, of.values, x];
    let Some(digits) = of.digits(below.classes) else { return before(b, &all) };
    let after = |b: &mut Build<'_>, all: &[Value]| {
        divided(b, &given(all[0]), (Weighted { values: all[1], ..of }, &shape), digits, frac)
    };
    let ways: [&WayOf<'_>; 2] = [&before, &after];
    b.cheapest_of(&all, &ways)
}

fn product(b: &mut Build<'_>, weights: Value, values: Value) -> Value {
    let (mut shape, n) = (b.shape(weights).to_vec(), *b.shape(values).last().unwrap_or(&0));
    if let Some(last) = shape.last_mut() {
        *last = n;
    }
    b.node(Op::MatMul, &[weights, values], &shape, values.bits, weights.frac + values.frac)
}

/// Sums of values by exponentials, divided by the sum of these; x has `shape`.
fn divided(
    b: &mut Build<'_>,
    below: &Below,
    (of, shape): (Weighted, &[usize]),
    digits: Digits,
    frac: u32,
) -> Value {
    let ring = of.values.bits;
    let terms = exponentials(b, below, digits.term);
    let terms = b.approximates(Function::Exp, below.value, terms);
    let weights = b.reshape(terms, shape);
    let weights = b.resize(weights, ring);
    let sum = product(b, weights, of.values);
    let sum = b.nearly(sum, sum.frac - digits.sum, ring);
    let of_all = below.sums(b, terms);

    let quotients = [Search::AtOnce, Search::Choosing].into_iter().flat_map(|search| {
        [Table::Pieces, Table::Waves].into_iter().flat_map(move |table| {
            [false, true].map(|early| {
                move |b: &mut Build<'_>, given: &[Value]| {
                    quotient(b, [given[0], given[1]], below.classes, (search, table), early)
                }
            })
        })
    });
    let quotients: Vec<_> = quotients.collect();
    let ways: Vec<&WayOf<'_>> = quotients.iter().map(|way| way as &WayOf<'_>).collect();
    let y = b.cheapest_of(&[sum, of_all], &ways);
    let more = y.frac.saturating_sub(of.values.frac + frac);
    b.nearly(y, more, y.bits - more)
}

/// Results by the sums of all exponentials of their lines; `early`: times the power of two of its reciprocal while the mantissa is not there
/// yet.
fn quotient(
    b: &mut Build<'_>,
    [results, sums]: [Value; 2],
    classes: u32,
    (search, table): (Search, Table),
    early: bool,
) -> Value {
    let (e, power, w) = normalised(b, sums, classes, search);
    let m = reciprocal_of_mantissa(b, w, KEPT, 1.0, table);
    let m = b.read(m, KEPT);
    let m = b.approximates(Function::Reciprocal, w, m);
    let m = b.read(m, 0);
    let y = if early {
        let power = spread(b, power, results);
        let raised = b.mul(results, power);
        let m = spread(b, m, results);
        b.mul(raised, m)
    } else {
        let whole = b.muls(&[(m, power)])[0];
        let whole = spread(b, whole, results);
        b.mul(results, whole)
    };
    // a sum is w times two to the power of e - BELOW
    b.read(y, results.frac + KEPT + e.most(0) - BELOW)
}

/// A number of each line at all of its results, in their ring.
fn spread(b: &mut Build<'_>, x: Value, results: Value) -> Value {
    let shape = b.shape(results).to_vec();
    let mut lines = shape.clone();
    if let Some(last) = lines.last_mut() {
        *last = 1;
    }
    let x = b.resize(x, results.bits);
    let x = b.reshape(x, &lines);
    b.node(Op::Expand, &[x], &shape, x.bits, x.frac)
}

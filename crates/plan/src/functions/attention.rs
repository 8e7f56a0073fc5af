//! `softmax(x) v`, as it stands or divided by the sum of exponentials at the end.
//!
//! At the end: there are fewer results than exponentials where a value has fewer numbers than there are classes, and the product with v
//! need not wait for the reciprocal. A result is a mean of v, weighted by exponentials, so it is no larger than v.

use super::build::{Build, Value, WayOf};
use super::mantissa::Table;
use super::normalise::Search;
use super::powers::reciprocal_of_mantissa;
use super::softmax::{BELOW, KEPT, below, exponentials, normalised, softmax, thresholds};
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
    let dim = b.shape(x).len() - 1;
    let before = |b: &mut Build<'_>, given: &[Value]| {
        let weights = softmax(b, given[0], dim, given[1].bits, frac);
        let weights = b.approximates(Function::Softmax { dim }, given[0], weights);
        product(b, weights, given[1])
    };
    let classes = b.shape(x)[dim];
    let digits = of.digits(usize::BITS - (classes - 1).leading_zeros()).filter(|_| classes > 1);
    let at_the_end = digits.map(|digits| {
        let tables = [Search::AtOnce, Search::Choosing].into_iter().flat_map(|search| {
            [Table::Pieces, Table::Waves]
                .into_iter()
                .flat_map(move |table| [false, true].map(|early| (search, table, early)))
        });
        tables.map(move |how| {
            move |b: &mut Build<'_>, given: &[Value]| {
                divided(b, given[0], Weighted { values: given[1], ..of }, digits, how, frac)
            }
        })
    });
    let at_the_end: Vec<_> = at_the_end.into_iter().flatten().collect();
    let mut ways: Vec<&WayOf<'_>> = vec![&before];
    ways.extend(at_the_end.iter().map(|way| way as &WayOf<'_>));
    b.cheapest_of(&[x, of.values], &ways)
}

fn product(b: &mut Build<'_>, weights: Value, values: Value) -> Value {
    let (mut shape, n) = (b.shape(weights).to_vec(), *b.shape(values).last().unwrap_or(&0));
    if let Some(last) = shape.last_mut() {
        *last = n;
    }
    b.node(Op::MatMul, &[weights, values], &shape, values.bits, weights.frac + values.frac)
}

/// Sums of values by exponentials, divided by the sum of these; `early`: times the power of two of its reciprocal while the mantissa is not
/// there yet.
fn divided(
    b: &mut Build<'_>,
    x: Value,
    of: Weighted,
    digits: Digits,
    (search, table, early): (Search, Table, bool),
    frac: u32,
) -> Value {
    let (shape, ring) = (b.shape(x).to_vec(), of.values.bits);
    let below = below(b, x, shape.len() - 1);
    let terms = exponentials(b, &below, digits.term);
    let terms = b.approximates(Function::Exp, below.value, terms);
    let weights = b.reshape(terms, &shape);
    let weights = b.resize(weights, ring);
    let sum = product(b, weights, of.values);
    let sum = b.nearly(sum, sum.frac - digits.sum, ring);

    let sums = below.sums(b, terms);
    let (e, power, w) = normalised(b, sums, below.classes, search);
    let m = reciprocal_of_mantissa(b, w, KEPT, 1.0, table);
    let m = b.read(m, KEPT);
    let m = b.approximates(Function::Reciprocal, w, m);
    let m = b.read(m, 0);
    // a sum is w times two to the power of e - BELOW
    let reciprocal = KEPT + e.most(0) - BELOW;
    let y = if early {
        let power = spread(b, power, sum);
        let raised = b.mul(sum, power);
        let m = spread(b, m, sum);
        b.mul(raised, m)
    } else {
        let whole = b.muls(&[(m, power)])[0];
        let whole = spread(b, whole, sum);
        b.mul(sum, whole)
    };
    let y = b.read(y, sum.frac + reciprocal);
    let more = y.frac.saturating_sub(of.values.frac + frac);
    b.nearly(y, more, y.bits - more)
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

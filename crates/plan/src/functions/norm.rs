//! `x / sqrt(mean(x^2) + eps)` along lines, x being what is there or that less its mean: a layer normalisation.
//!
//! The root is taken of the sum of squares as an inner product made it, `2 f` fraction bits and all. The sum is never
//! truncated, and what a mean divides it by is a factor of the table's values. Nor is the root: the sum of squares of d in units is
//! at most `2^(e + 2)`, so `|d|` is at most `2^(e/2 + 1)`, and d times a mantissa times `2^((most - e) / 2)` fits.

use super::Function;
use super::build::{Build, Value, WayOf};
use super::powers::{How, ROOT_FRAC, root};
use crate::ir::Op;

/// A factor of the mantissa's values is at least this: they keep 20 bits.
const LEAST_SCALE: f64 = 1.0 / 16.0;

/// x in lines of n elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lines {
    /// Lines.
    pub count: usize,
    /// Elements of each.
    pub n: usize,
    /// What is added to the mean of squares.
    pub eps: f64,
    /// Fraction bits of the constant `1 / n` by which a mean is found that is taken off first, if one is.
    pub centred: Option<u32>,
    /// Low bits that are dropped before squaring, so that a sum of squares has room: an even number.
    pub coarse: u32,
}

impl Lines {
    /// Fraction bits of the result for operands of `bits` and `frac`: `wanted`, or more where so few would cost precision.
    /// Results have them in the operand's ring, and are below `sqrt(n)` before the fraction.
    pub fn frac(&self, bits: u32, wanted: u32) -> u32 {
        let most = self.largest(bits) - (self.root() / LEAST_SCALE).log2().floor() as i32;
        most.max(wanted as i32) as u32
    }

    /// Whether the values of the root's table, which grow with these fraction bits, keep to what it takes.
    pub fn suits(&self, bits: u32, frac: u32) -> bool {
        self.scale(bits, frac) <= 2.0
    }

    /// `sqrt(n) x / sqrt(sum)` is what the root gives, `2^(most / 2)` times that of a mantissa, times this.
    fn scale(&self, bits: u32, frac: u32) -> f64 {
        self.root() * 2f64.powi(frac as i32 - self.largest(bits))
    }

    /// What `eps` adds to a sum of squares of `frac` fraction bits, in units: at least one, so that there is a root.
    pub fn added(&self, frac: u32) -> f64 {
        (self.n as f64 * self.eps * 2f64.powi(frac as i32)).round_ties_even().max(1.0)
    }

    fn root(&self) -> f64 {
        (self.n as f64).sqrt()
    }

    /// log2 of the largest result in units, were the factor 1: a root is of so many bits less, and times lines of all bits.
    fn largest(&self, bits: u32) -> i32 {
        ((bits - self.coarse - 2) / 2 + ROOT_FRAC + self.coarse) as i32
    }
}

/// The normalised lines of x, in its shape and ring, with [`Lines::frac`] fraction bits. The sum of a line's squares, [`Lines::added`]
/// included, must be below `2^(k - 1)` units of x's fraction twice over; a result must fit into x's ring.
pub fn normalised(b: &mut Build<'_>, x: Value, lines: Lines, wanted: u32) -> Value {
    let Lines { count, n, eps, centred, coarse } = lines;
    let (shape, bits) = (b.shape(x).to_vec(), x.bits);
    let frac = lines.frac(bits, wanted);
    let x = b.reshape(x, &[count, n]);
    let x = centred.map_or(x, |digits| less_mean(b, x, digits));
    let squared = b.nearly(x, coarse, bits - coarse);
    let (row, column) = (b.reshape(squared, &[count, 1, n]), b.reshape(squared, &[count, n, 1]));
    let sum = b.node(Op::MatMul, &[row, column], &[count, 1, 1], squared.bits, 2 * squared.frac);
    let sum = b.reshape(sum, &[count]);
    let sum = b.add_const(sum, lines.added(sum.frac) as i64);
    let (scale, frac) = (lines.scale(bits, frac), frac - x.frac);
    let ways = How::ALL.into_iter().flat_map(|how| {
        [false, true].map(|early| {
            move |b: &mut Build<'_>, given: &[Value]| {
                divided(b, given[0], given[1], (scale, frac), how, early)
            }
        })
    });
    let ways: Vec<_> = ways.collect();
    let ways: Vec<&WayOf<'_>> = ways.iter().map(|way| way as &WayOf<'_>).collect();
    let y = b.cheapest_of(&[sum, x], &ways);
    let y = b.approximates(Function::Normalise { eps }, x, y);
    b.reshape(y, &shape)
}

/// Lines times `scale` by the roots of `sum`, with `frac` fraction bits more; `early`: times the power of two before the mantissa is
/// there, which takes one product more and waits for one less.
fn divided(
    b: &mut Build<'_>,
    sum: Value,
    line: Value,
    (scale, frac): (f64, u32),
    how: How,
    early: bool,
) -> Value {
    let &[count, n] = b.shape(line) else { unreachable!("lines") };
    let spread = |b: &mut Build<'_>, x: Value| {
        let x = b.resize(x, line.bits);
        let x = b.reshape(x, &[count, 1]);
        b.node(Op::Expand, &[x], &[count, n], line.bits, x.frac)
    };
    let whole = b.read(sum, 0);
    let (mantissa, power, _) = root(b, whole, false, &super::mantissa::RSQRT, scale, how);
    let y = if early {
        let power = spread(b, power);
        let raised = b.mul(line, power);
        let mantissa = spread(b, mantissa);
        b.mul(raised, mantissa)
    } else {
        let root = b.muls(&[(mantissa, power)])[0];
        let root = spread(b, root);
        b.mul(line, root)
    };
    b.read(y, line.frac + frac)
}

/// x in lines less their means, which are off by a unit and a half. With `digits` fraction bits more a mean must fit twice.
fn less_mean(b: &mut Build<'_>, x: Value, digits: u32) -> Value {
    let &[count, n] = b.shape(x) else { unreachable!("lines") };
    let sum = b.node(Op::Sum { dims: vec![1] }, &[x], &[count], x.bits, x.frac);
    let mean = b.mul_const(sum, (2f64.powi(digits as i32) / n as f64).round_ties_even() as i64);
    let mean = b.read(mean, x.frac + digits);
    let mean = b.nearly(mean, digits, x.bits);
    let mean = b.reshape(mean, &[count, 1]);
    let mean = b.node(Op::Expand, &[mean], &[count, n], x.bits, x.frac);
    b.sub(x, mean)
}

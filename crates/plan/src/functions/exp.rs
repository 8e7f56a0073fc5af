//! `e^x` by [`Op::Exponential`], of numbers that were brought between two ends; where a family has none, by a table and
//! quadratics. Below 1, where that is cheaper, by a table and one polynomial (`sextic.rs`).

use super::build::{Build, Value, WORD, Way};
use super::quadratic::{End, piecewise};
use super::sextic::{sextic, suits};
use crate::ir::Op;
use std::f64::consts::LN_2;

/// Fewest fraction bits of the result inside; results are below `2^(63 - LEAST)`.
const LEAST: u32 = 24;
/// Fraction bits of operands: those that the operation takes, of half of them as well.
const READ: std::ops::RangeInclusive<u32> = 8..=25;
/// Fraction bits of the first factor, and of the second one below and from [`LARGE`] on: products of both stay below
/// 2^62, and are near to a relative 2^-17 where that is more than 2^-28.
const DIGITS: (u32, u32, u32) = (18, 29, 5);
/// Bits before the fraction of x in [`exp`]: one more than [`Op::Exponential`] takes of x / 2.
const WINDOW: u32 = 6;
/// Whole numbers of x from which on results are large.
const LARGE: i32 = 10;

/// `e^x` for x of any size, in [`WORD`] bits with at least `frac` fraction bits. Beyond what `bits` ring bits with `frac` hold,
/// the largest that they hold, less a relative 2^-16.
pub(super) fn exp(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    let unit = 2f64.powi(x.frac as i32);
    // what the type holds, and what is there inside
    let (whole, frac) = (bits - 1 - frac, frac.max(LEAST));
    let whole = whole.min(WORD - 1 - frac);
    let largest = whole as f64 * LN_2 - 2f64.powi(-17);
    let least = -((frac + 2) as f64 * LN_2);
    let (high, low) = ((largest * unit).floor() as i64, (least * unit).ceil() as i64);
    let x = clamp(b, x, low, high);
    let x = with_fraction(b, x);
    // all of x and a coin more, and of x / 2
    let window = WINDOW.min(x.bits - x.frac + 1);
    let x = b.resize(x, window + x.frac);
    let (first, small, large) = DIGITS;
    let rows = |scale: u32| vec![(-(1 << (window - 1 - scale)), small), (LARGE >> scale, large)];
    let y = in_rows(b, x, first, rows);
    let (low, high) = (b.row(y, 0), b.row(y, 1));
    let (low, high) = (b.read(low, first + small), b.read(high, first + large));
    let low = b.dither(low, first + small - frac, WORD);
    let high = b.raise(high, frac);
    b.add(low, high)
}

/// [`Op::Exponential`] of `[n]` numbers, `[rows, n]` read as whole ones; of other operations where the family lacks it. The operation is of x / 2,
/// which has half as many whole numbers: of these it takes time and keys. `rows(scale)` are those for `x / 2^scale`.
fn in_rows(b: &mut Build<'_>, x: Value, first: u32, rows: impl Fn(u32) -> Vec<(i32, u32)>) -> Value {
    let whole = rows(0);
    let shape = [whole.len(), b.shape(x)[0]];
    let op = Op::Exponential { first, rows: rows(1), scale: 1 };
    if !b.has(&op) {
        return in_parts(b, x, first, &whole);
    }
    let x = b.read(x, x.frac + 1);
    b.node(op, &[x], &shape, WORD, 0)
}

/// Bits of the fraction that the table of [`in_parts`] takes; pieces of what is left, one bit of which it leaves unused.
const FINE: u32 = 2;
const PIECES: u32 = 6;

/// The same as `e^e e^r` with `x = e + r`: e a multiple of 1/4, up or down by coins, so r is between -1/4 and 1/4.
fn in_parts(b: &mut Build<'_>, x: Value, first: u32, rows: &[(i32, u32)]) -> Value {
    let low = x.frac - FINE;
    let e = b.dither(x, low, x.bits - low);
    let back = b.up(e, low);
    let r = b.sub(x, back);
    // from 0 to 1/2 in a ring of numbers below 1
    let r = b.resize(r, x.frac);
    let r = b.add_const(r, 1 << low);
    let near = piecewise(b, r, PIECES, 61, End::Unused, |r| libm::exp(r - 0.25));
    let near = b.dither(near, 61 - first, WORD);
    let (count, quarters) = (1i64 << e.bits, 4 * i64::from(rows[0].0));
    let table = |row: usize| {
        let (begins, digits) = rows[row];
        let ends = rows.get(row + 1).map_or(i32::MAX, |next| next.0);
        let entry = |index: i64| {
            let e = (quarters + (index - quarters).rem_euclid(count)) as f64 / 4.0;
            let value = libm::exp(e) * 2f64.powi(digits as i32);
            // beyond 2^62 nothing is asked for
            let inside = f64::from(begins) <= e && e < f64::from(ends) && value < 2f64.powi(62);
            if inside { value.round_ties_even() as i64 } else { 0 }
        };
        (0..count).map(entry).collect()
    };
    let n = b.shape(x)[0];
    let tables = (0..rows.len()).map(table).collect();
    let far = b.node(Op::Lookup { tables }, &[e], &[rows.len(), n], WORD, 0);
    let pairs: Vec<(Value, Value)> = (0..rows.len()).map(|i| (near, b.row(far, i))).collect();
    let y = b.muls(&pairs);
    b.stack(&y)
}

/// x with as many fraction bits as the operation takes.
fn with_fraction(b: &mut Build<'_>, x: Value) -> Value {
    match x.frac {
        f if READ.contains(&f) => x,
        f if f < *READ.start() => b.up(x, (READ.start() - f).min(WORD - x.bits)),
        f => b.dither(x, f - 24, x.bits - (f - 24)),
    }
}

/// x between two bounds of which the first is negative and the second is not, in units; nothing wraps.
pub(super) fn clamp(b: &mut Build<'_>, x: Value, low: i64, high: i64) -> Value {
    let largest = 1i128 << (x.bits - 1);
    if (high as i128) >= largest - 1 && (low as i128) <= -largest {
        return x;
    }
    let negative = b.is_negative(x, 1);
    // low where x < 0, else high
    let zero = b.sub(x, x);
    let span = b.add_const(zero, low.wrapping_sub(high));
    let bound = b.choose(negative, span);
    let bound = b.add_const(bound, high);
    let distance = b.sub(x, bound);
    let below = b.is_negative(distance, 1);
    // on the inner side of the bound: as bits, one of both and not the other
    let inside = b.add(negative, below);
    let kept = b.choose(inside, distance);
    b.add(bound, kept)
}

/// Fraction bits of both factors for [`below_one`]: of x below 4, which numbers that wrapped may seem to be, products are below 2^62.
const BELOW_ONE: (u32, u32) = (22, 34);
/// Bits before the fraction of what [`Op::Exponential`] takes for [`below_one`].
const RANGE: u32 = 5;

/// `e^x` for x < 1, in [`WORD`] bits with `frac` fraction bits; of x below -24 possibly, below -30 certainly 0.
pub(super) fn below_one(b: &mut Build<'_>, x: Value, frac: u32) -> Value {
    let product = |b: &mut Build<'_>, x: Value| as_product(b, x, frac);
    let polynomial = |b: &mut Build<'_>, x: Value| {
        let y = sextic(b, x);
        b.nearly(y, y.frac - frac, WORD)
    };
    let ways: [&Way<'_>; 2] = [&product, &polynomial];
    b.cheapest(x, &ways[..if suits(x) { 2 } else { 1 }])
}

/// The same by [`Op::Exponential`].
fn as_product(b: &mut Build<'_>, x: Value, frac: u32) -> Value {
    let kept = (x.bits > x.frac + RANGE).then(|| kept(b, x));
    let x = with_fraction(b, x);
    let whole = (x.bits - x.frac).min(RANGE);
    let x = b.resize(x, whole + x.frac);
    // with x + d or x / 2 + d below 2
    let (first, second) = BELOW_ONE;
    let y = in_rows(b, x, first, |scale| vec![(2 - (1 << (whole - scale)), second)]);
    let y = b.read(y, first + second);
    let y = b.row(y, 0);
    // rounded while the bit is not there yet
    let y = b.nearly(y, y.frac - frac, WORD);
    match kept {
        Some(kept) => b.choose(kept, y),
        None => y,
    }
}

/// `e^x` for x < 1 by [`Op::Exponential`], of x below -28 nearly 0: its factors have so many fraction bits. Less e / 2 it is below a quarter of the
/// result's ring. With a scale of 1 whole numbers are those of x / 2: half as many, and a first factor from 1 to e^2.
pub(super) fn by_parts(b: &mut Build<'_>, x: Value, [first, second]: [u32; 2], scale: u32) -> Value {
    let kept = (x.bits > x.frac + RANGE).then(|| kept(b, x));
    let x = with_fraction(b, x);
    let whole = (x.bits - x.frac).min(RANGE);
    let x = b.resize(x, whole + x.frac);
    // x / 2^scale and a coin are below 2 together
    let x = b.read(x, x.frac + scale);
    let least = 2 - (1 << (whole - scale));
    let x = match kept {
        Some(kept) => {
            let above = b.add_const(x, -(i64::from(least) << x.frac));
            let above = b.choose(kept, above);
            b.add_const(above, i64::from(least) << x.frac)
        }
        None => x,
    };
    let op = Op::Exponential { first, rows: vec![(least, second)], scale };
    let shape = [1, b.shape(x)[0]];
    let y = b.node(op, &[x], &shape, first + second + 3, 0);
    let y = b.row(y, 0);
    b.read(y, first + second)
}

/// Whether e^x is more than 0: a bit that is 1 from -24 on, and 0 below -28.
fn kept(b: &mut Build<'_>, x: Value) -> Value {
    let above = |b: &mut Build<'_>, coarse: Value, least: i64| {
        let above = b.add_const(coarse, -least);
        let below = b.is_negative(above, 1);
        b.add_const(below, 1)
    };
    // multiples of 4, rounded either way
    let dithered = |b: &mut Build<'_>, x: Value| {
        let fours = b.read(x, x.frac + 2);
        let coarse = b.dither(fours, fours.frac, x.bits - fours.frac);
        above(b, coarse, -6)
    };
    // whole numbers, off by one and a half
    let one_ulp = |b: &mut Build<'_>, x: Value| {
        let coarse = b.one_ulp(x, x.frac, x.bits - x.frac);
        above(b, coarse, -26)
    };
    b.rounded(x, &dithered, &one_ulp)
}

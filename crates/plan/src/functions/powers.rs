//! Reciprocal, square root, its inverse, and logarithm: `x = m 2^e`, a function of m, powers of two of e.

use super::build::{Build, Value, WORD};
use super::cubic::{self, cubic};
use super::exp::clamp;
use super::mantissa::{LOG, OfMantissa, RECIPROCAL, RSQRT, SQRT, Table};
use super::normalise::{Exponent, Search, exponent, signed_exponent, whole_mantissa};
use crate::ir::Op;
use std::f64::consts::{LN_2, SQRT_2};

/// Bits of the mantissa of a reciprocal that the result keeps.
const KEPT: u32 = 20;

/// How a function is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    search: Search,
    table: Table,
}

impl How {
    const fn new(search: Search, table: Table) -> How {
        How { search, table }
    }

    pub const ALL: [How; 6] = [
        How::new(Search::Halving, Table::Pieces),
        How::new(Search::AtOnce, Table::Pieces),
        How::new(Search::Halving, Table::Waves),
        How::new(Search::AtOnce, Table::Waves),
        How::new(Search::Choosing, Table::Pieces),
        How::new(Search::Choosing, Table::Waves),
    ];
}

/// What the cheapest way makes of x.
pub(super) fn by_prices(
    b: &mut Build<'_>,
    x: Value,
    make: impl Fn(&mut Build<'_>, Value, How) -> Value,
) -> Value {
    let ways = How::ALL.map(|how| {
        let make = &make;
        move |b: &mut Build<'_>, x: Value| make(b, x, how)
    });
    b.cheapest_among(x, ways)
}

/// `1 / x`, as `Function::Reciprocal` says.
pub(super) fn reciprocal(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    by_prices(b, x, |b, x, how| reciprocal_by(b, x, bits, frac, how))
}

fn reciprocal_by(b: &mut Build<'_>, x: Value, bits: u32, frac: u32, how: How) -> Value {
    let negative_wide = b.is_negative(x, WORD);
    let negative = b.resize(negative_wide, x.bits);
    let whole = b.read(x, 0);
    let both = b.muls(&[(whole, negative)])[0];
    let twice = b.mul_const(both, -2);
    let size = b.add(whole, twice);
    let size = or_one(b, size);
    let (size, damped) = bounded_below(b, size, (x.frac + frac) as f64, bits, 1.0, KEPT);

    // numbers of many bits: a result that is shifted down by the first halving, or not
    let many = |most: u32| most + KEPT + 1 > 62;
    let search = if many(size.bits) { Search::Halving } else { how.search };
    let e = exponent(b, size, 1, true, search);
    let skip = many(e.most(0)) as usize;
    let powers = e.powers(b, &[(0, 1, false), (skip, 1, false)]);
    let w = whole_mantissa(b, size, (&e, powers[0]), e.most(0), 1);
    let m = reciprocal_of_mantissa(b, w, KEPT, damped, how.table);
    let scaled = b.muls(&[(m, powers[1])])[0];

    // 2^(x.frac + frac) / x in units = m 2^(x.frac + frac - KEPT - e)
    let shift = |most: u32| most as i64 - (x.frac + frac) as i64 + KEPT as i64;
    let largest = (x.frac + frac + 1).min(bits - 1);
    let mut y = shifted(b, scaled, shift(e.most(skip)), largest, bits);
    if skip == 1 {
        let (first, zero) = e.halvings[0];
        let small = shifted(b, scaled, shift(e.most(skip)) + first as i64, largest, bits);
        let zero = b.resize(zero, bits);
        let difference = b.sub(y, small);
        let part = b.muls(&[(difference, zero)])[0];
        y = b.add(small, part);
    }
    let sign = b.resize(negative_wide, bits);
    let sign = b.affine(sign, -2, 1);
    let y = b.muls(&[(y, sign)])[0];
    b.read(y, frac)
}

/// `damped / w` of a mantissa in [1, 2): `frac` fraction bits in [`WORD`].
pub(super) fn reciprocal_of_mantissa(
    b: &mut Build<'_>,
    w: Value,
    frac: u32,
    damped: f64,
    table: Table,
) -> Value {
    whole_of_mantissa(b, &RECIPROCAL, w, frac, damped, table)
}

/// `1 / w` of a mantissa in [1, 2) by pieces of degree 3, within 2.5 units in the last of `frac` places, or nearer.
pub(super) fn reciprocal_in_cubics(b: &mut Build<'_>, w: Value, frac: u32) -> Value {
    // the lowest quarter is for what is rounded up to 2, the next one for what is rounded to less than 1
    let f = |m: f64| 0.25 / if m < 0.5 { m + 2.0 } else { m };
    let w = b.nearly(w, w.frac - (frac + 1), w.bits - (w.frac - (frac + 1)));
    let y = cubic(b, w, cubic::index(1, frac).max(2), frac, f);
    b.read(y, y.frac - 2)
}

/// `scale` times a function of w with `frac` fraction bits, as a whole number in [`WORD`].
fn whole_of_mantissa(
    b: &mut Build<'_>,
    function: &OfMantissa,
    w: Value,
    frac: u32,
    scale: f64,
    table: Table,
) -> Value {
    let m = function.of(b, w, table, scale, MOST_FRAC);
    let m = b.nearly(m, m.frac - frac, WORD);
    b.read(m, 0)
}

/// Most fraction bits of a function of a mantissa, which is below 4.
const MOST_FRAC: u32 = 60;

/// `sqrt(x)`; 0 of x < 0.
pub(super) fn sqrt(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    by_prices(b, x, |b, x, how| sqrt_by(b, x, bits, frac, how))
}

fn sqrt_by(b: &mut Build<'_>, x: Value, bits: u32, frac: u32, how: How) -> Value {
    let whole = b.read(x, 0);
    // x in units is m 2^e, the root of m 2^(e - x.frac) is sqrt(m) 2^((e - x.frac) / 2)
    let odd = if x.frac % 2 == 1 { SQRT_2 } else { 1.0 };
    let y = match how.search {
        Search::Halving => {
            let (size, signs) = at_least_one(b, whole);
            let (m, power, _) = root(b, size, true, &SQRT, odd, how);
            let m = signs.into_iter().fold(m, |m, sign| b.choose(sign, m));
            b.muls(&[(m, power)])[0]
        }
        Search::AtOnce | Search::Choosing => root_at_once(b, whole, true, &SQRT, odd, how).0,
    };
    let scale = ROOT_FRAC as i64 + x.frac.div_ceil(2) as i64 - frac as i64;
    let most = (x.bits / 2 + frac + 1).min(62);
    let y = shifted(b, y, scale, most, bits);
    b.read(y, frac)
}

/// `1 / sqrt(x)`, as `Function::Rsqrt` says.
pub(super) fn rsqrt(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    by_prices(b, x, |b, x, how| rsqrt_by(b, x, bits, frac, how))
}

fn rsqrt_by(b: &mut Build<'_>, x: Value, bits: u32, frac: u32, how: How) -> Value {
    let whole = b.read(x, 0);
    let odd = if x.frac % 2 == 1 { SQRT_2 } else { 1.0 };
    let top = x.frac as f64 / 2.0 + frac as f64;
    let (y, most) = match how.search {
        Search::AtOnce | Search::Choosing if excess(top, bits) < 0.0 => {
            root_at_once(b, whole, false, &RSQRT, odd, how)
        }
        _ => {
            let (size, _) = at_least_one(b, whole);
            let (size, damped) = bounded_below(b, size, top, bits, 2.0, ROOT_FRAC);
            let (m, power, most) = root(b, size, false, &RSQRT, odd * damped, how);
            (b.muls(&[(m, power)])[0], most)
        }
    };
    let scale = ROOT_FRAC as i64 + (most / 2) as i64 - (x.frac / 2 + frac) as i64;
    let y = match scale {
        // off by a unit at most
        1..=62 => {
            let y = b.read(y, scale as u32);
            b.nearly(y, scale as u32, bits)
        }
        _ => shifted(b, y, scale, (x.frac.div_ceil(2) + frac + 1).min(62), bits),
    };
    b.read(y, frac)
}

/// Fraction bits of the mantissa of a root.
pub(super) const ROOT_FRAC: u32 = 24;

/// `scale` times `function` of the mantissa m in [1, 4) with [`ROOT_FRAC`] fraction bits; `2^((most - e) / 2)` or with `up`
/// `2^(e / 2)`; most.
pub(super) fn root(
    b: &mut Build<'_>,
    x: Value,
    up: bool,
    function: &OfMantissa,
    scale: f64,
    how: How,
) -> (Value, Value, u32) {
    let e = exponent(b, x, 2, false, how.search);
    let powers = e.powers(b, &[(0, 1, false), (0, 2, up)]);
    let w = whole_mantissa(b, x, (&e, powers[0]), e.most(0), 2);
    (whole_of_mantissa(b, function, w, ROOT_FRAC, scale, how.table), powers[1], e.most(0))
}

/// The product of what [`root`] gives, and most; with `up` 0 of x <= 0, else as of 1.
///
/// The comparisons with 0 and 1 are those with powers of two. Where x - 1 < 0, all others say less too, so that a bit times the power
/// is a sum of bits; what is left is the smallest number, where x - 1 is not negative.
fn root_at_once(
    b: &mut Build<'_>,
    x: Value,
    up: bool,
    function: &OfMantissa,
    scale: f64,
    how: How,
) -> (Value, u32) {
    let (e, signs) = signed_exponent(b, x, 2, how.search);
    let most = e.most(0);
    let powers = e.powers(b, &[(0, 1, false), (0, 2, up)]);
    let smallest = if up { 1 } else { 1i64 << (most / 2) };
    let lost = b.mul_const(signs.below_one, smallest);
    let from_one = b.sub(powers[1], lost);
    let (not_negative, not_below) = (b.affine(signs.negative, -1, 1), b.affine(signs.below_one, -1, 1));
    let kept = match up {
        true => b.muls(&[(not_negative, from_one)]),
        false => b.muls(&[(not_negative, from_one), (not_negative, not_below)]),
    };
    let w = whole_mantissa(b, x, (&e, powers[0]), most, 2);
    let m = whole_of_mantissa(b, function, w, ROOT_FRAC, scale, how.table);
    let y = b.muls(&[(m, kept[0])])[0];
    let [_, positive] = kept[..] else { return (y, most) };
    let of_one = (scale * (function.f)(1.0) * 2f64.powi(ROOT_FRAC as i32)).round_ties_even() as i64;
    let of_one = of_one << (most / 2);
    let rest = b.affine(positive, -of_one, of_one);
    (b.add(y, rest), most)
}

/// `ln(x)`; of x <= 0 that of one unit.
pub(super) fn log(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    by_prices(b, x, |b, x, how| log_by(b, x, bits, frac, how))
}

fn log_by(b: &mut Build<'_>, x: Value, bits: u32, frac: u32, how: How) -> Value {
    let whole = b.read(x, 0);
    let (size, _) = at_least_one(b, whole);
    let e = exponent(b, size, 1, false, how.search);
    let power = e.powers(b, &[(0, 1, false)])[0];
    let w = whole_mantissa(b, size, (&e, power), e.most(0), 1);
    let fraction = log_of_mantissa(b, w, how.table);
    let y = log_of(b, &e, fraction, -(x.frac as i64));
    // |ln| < 45
    if bits >= frac + 7 {
        return b.dither(y, y.frac - frac, bits);
    }
    let y = b.dither(y, y.frac - frac, frac + 7);
    let largest = (1i64 << (bits - 1)) - 1;
    clamp(b, y, -largest, largest)
}

/// `ln(w)` of a mantissa w in [`WORD`] bits, with many fraction bits, 7 bits left for a whole part.
pub(super) fn log_of_mantissa(b: &mut Build<'_>, w: Value, table: Table) -> Value {
    LOG.of(b, w, table, 1.0, WORD - 7)
}

/// `log + (e + offset) ln 2`, in the numbers of the logarithm of the mantissa.
pub(super) fn log_of(b: &mut Build<'_>, e: &Exponent, log: Value, offset: i64) -> Value {
    let ln2 = (LN_2 * 2f64.powi(log.frac as i32)).round_ties_even() as i64;
    let whole = e.scaled(b, ln2);
    let whole = b.add_const(whole, offset.wrapping_mul(ln2));
    let whole = b.read(whole, log.frac);
    b.add(log, whole)
}

/// x, or 1 where it is 0, for whole x >= 0 or 2^(k - 1), which stays.
fn or_one(b: &mut Build<'_>, x: Value) -> Value {
    let less = b.add_const(x, -1);
    let zero = b.is_negative(less, 1);
    let one = b.sub(x, x);
    let one = b.add_const(one, 1);
    let added = b.choose(zero, one);
    b.add(x, added)
}

/// max(x, 1) for whole x, and two bits of which one is 0 where x is not positive.
fn at_least_one(b: &mut Build<'_>, x: Value) -> (Value, [Value; 2]) {
    let less = b.add_const(x, -1);
    // the smallest number less 1 is not negative
    let both = b.stack(&[x, less]);
    let signs = b.is_negative(both, 1);
    let [negative, below] = [0, 1].map(|i| b.row(signs, i));
    let (not_negative, not_below) = (b.add_const(negative, 1), b.add_const(below, 1));
    let kept = b.choose(not_negative, less);
    let kept = b.choose(not_below, kept);
    (b.add_const(kept, 1), [not_negative, not_below])
}

/// max(x, least) for whole x >= 0, or 2^(k - 1), which stays.
fn at_least(b: &mut Build<'_>, x: Value, least: i64) -> Value {
    let above = b.add_const(x, -least);
    let above = b.like(Op::Relu, &[above], x.bits, x.frac);
    b.add_const(above, least)
}

/// By how many bits a result of `2^top` is more than `bits` hold, if that is not negative.
fn excess(top: f64, bits: u32) -> f64 {
    top - (bits - 1) as f64
}

/// x, but at least so large that `2^top / x^(1 / power)` is at most `2^(bits - 1)`; x itself where that holds from 1 on. And
/// what to multiply results by, rounded to `kept` bits, so that they stay below.
fn bounded_below(b: &mut Build<'_>, x: Value, top: f64, bits: u32, power: f64, kept: u32) -> (Value, f64) {
    let excess = excess(top, bits);
    if excess < 0.0 {
        return (x, 1.0);
    }
    let least = 2f64.powf(excess * power).ceil();
    (at_least(b, x, least as i64), 1.0 - 3.0 * 2f64.powi(-(kept as i32)))
}

/// `x 2^-shift`, rounded up or down, as a whole number below 2^magnitude in `bits`; x is below 2^62.
fn shifted(b: &mut Build<'_>, x: Value, shift: i64, magnitude: u32, bits: u32) -> Value {
    let x = b.read(x, 0);
    if shift > 62 {
        let zero = b.sub(x, x);
        return b.resize_small(zero, 1, bits);
    }
    if shift <= 0 {
        let x = b.mul_const(x, 1 << -shift);
        return b.resize_small(x, magnitude, bits);
    }
    let shift = shift as u32;
    let x = b.read(x, shift);
    b.dither(x, shift, bits)
}

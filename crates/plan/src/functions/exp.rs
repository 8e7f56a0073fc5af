//! `e^x = 2^i 2^w` with i the whole part and w the fraction of `x log2(e)`: w by a table, i by its bits.

use super::build::{Build, Value, WORD};
use super::quadratic::{Table, split};
use std::f64::consts::{LN_2, LOG2_E};

/// Fraction bits of the exponent to base 2.
const FRAC: u32 = 24;
/// Bits of its whole part, sign included.
const WHOLE: u32 = 7;
/// Fewest fraction bits of the result, so that its relative error is small.
const LEAST: u32 = 20;
/// log2 of the number of segments of `[0, 1)`.
const SEGMENTS: u32 = 6;

/// `e^x` for x of any size; the result in [`WORD`] bits, with at least `frac` fraction bits. Beyond what `bits` ring bits
/// with `frac` hold, the largest that they hold, less a relative 2^-17.
pub(super) fn exp(b: &mut Build<'_>, x: Value, bits: u32, frac: u32) -> Value {
    let unit = 2f64.powi(x.frac as i32);
    // inside there are at least 20 fraction bits
    let whole = (bits - 1 - frac).min(WORD - 1 - frac.max(LEAST));
    let largest = whole as f64 * LN_2 - 2f64.powi(-17);
    let least = -((frac + 2) as f64 * LN_2).min(31.0);
    let (high, low) = ((largest * unit).floor() as i64, (least * unit).ceil() as i64);
    // what a ring holds needs no bound
    let x = match x.bits - 1 <= x.frac || 2f64.powi((x.bits - 1 - x.frac) as i32) <= largest {
        true if x.bits <= x.frac + 6 => x,
        _ => clamp(b, x, low, high),
    };
    bounded(b, x, frac.max(LEAST), bits > frac + 33)
}

/// x between two bounds of which the first is negative and the second is not, in units; nothing wraps.
pub(super) fn clamp(b: &mut Build<'_>, x: Value, low: i64, high: i64) -> Value {
    let negative = b.is_negative(x, x.bits);
    // x - low where x < 0, x - high elsewhere
    let bound = b.affine(negative, high - low, -high);
    let bound = b.read(bound, x.frac);
    let distance = b.add(x, bound);
    let below = b.is_negative(distance, x.bits);
    let too_small = b.muls(&[(negative, below)])[0];
    // too large: neither negative nor below
    let signs = b.add(negative, below);
    let signs = b.sub(too_small, signs);
    let too_large = b.add_const(signs, 1);
    let outside = b.add(too_small, too_large);
    let inside = b.affine(outside, -1, 1);
    let kept = b.muls(&[(x, inside)])[0];
    let bounds = b.stack(&[kept, too_small, too_large]);
    let y = b.weighted(bounds, vec![1, low, high]);
    b.read(y, x.frac)
}

/// `e^x` for |x| < 32 in [`WORD`] bits with `frac` fraction bits (20 to 30); `high`: the result may be 2^32 and more.
pub(super) fn bounded(b: &mut Build<'_>, x: Value, frac: u32, high: bool) -> Value {
    let x = if x.bits == WORD { x } else { b.resize_small(x, x.frac + 5, WORD) };
    // constant with as many bits as the product has room for
    let g = 55 - x.frac;
    let scaled = b.mul_const(x, (LOG2_E * 2f64.powi(g as i32)).round_ties_even() as i64);
    let scaled = b.read(scaled, x.frac + g);
    let y = b.round(scaled, FRAC);
    let y = b.resize(y, WHOLE + FRAC);

    let (index, t) = split(b, y, FRAC - SEGMENTS);
    let table = Table::new(SEGMENTS, SEGMENTS, FRAC, 61, libm::exp2);
    let mantissa = table.at(b, index, t);
    let mantissa = b.round(mantissa, frac);
    let mantissa = b.resize_small(mantissa, frac + 1, WORD);

    let whole = b.down(index, SEGMENTS, 0);
    power(b, whole, mantissa, high)
}

/// `2^i m` for a whole i of [`WHOLE`] bits, signed, and 1 <= m <= 2 with at most 30 fraction bits.
fn power(b: &mut Build<'_>, i: Value, mantissa: Value, high: bool) -> Value {
    let frac = mantissa.frac;
    // bit j of i, moved up to be the sign
    let moved: Vec<Value> = (0..WHOLE).map(|j| b.mul_const(i, 1 << (WHOLE - 1 - j))).collect();
    let moved = b.stack(&moved);
    let bits = b.is_negative(moved, WORD);
    let bit: Vec<Value> = (0..WHOLE as usize).map(|j| b.row(bits, j)).collect();
    // 2^(i mod 32), a product of 2^(2^j) or 1, times m; i < -32 gives 0
    let pairs = b.muls(&[(bit[0], bit[1]), (bit[3], bit[4]), (bit[5], bit[6])]);
    let two = |b: &mut Build<'_>, x: Value, y: Value, xy: Value, fx: i64, fy: i64| {
        let all = b.stack(&[x, y, xy]);
        let sum = b.weighted(all, vec![fx - 1, fy - 1, (fx - 1) * (fy - 1)]);
        b.add_const(sum, 1)
    };
    let first = two(b, bit[0], bit[1], pairs[0], 2, 4);
    let third = two(b, bit[3], bit[4], pairs[1], 1 << 8, 1 << 16);
    let second = b.affine(bit[2], 15, 1);
    let halves = b.muls(&[(first, second), (third, mantissa)]);
    let scaled = b.muls(&[(halves[0], halves[1])])[0];
    // i >= 0: as it is; -32 <= i < 0: 2^32 too large
    let scaled = b.read(scaled, frac + 32);
    let small = b.round(scaled, frac);
    let small = b.resize_small(small, frac + 1, WORD);
    let (below, negative) = (pairs[2], bit[6]);
    let mut large = b.affine(negative, -1, 1);
    if high {
        // i >= 32: 2^32 too small
        let beyond = b.sub(bit[5], below);
        let beyond = b.mul_const(beyond, (1 << 32) - 1);
        large = b.add(large, beyond);
    }
    let parts = b.muls(&[(below, small), (large, scaled)]);
    let y = b.add(parts[0], parts[1]);
    b.read(y, frac)
}

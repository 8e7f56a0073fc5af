//! Sine and cosine: an angle in turns has no whole part that matters, so a ring that ends at a turn reduces it for nothing.

use super::Function;
use super::build::{Build, Value, WORD};
use super::polynomials::{Cut, Pieces};
use super::quadratic::{End, piecewise};
use crate::ir::Op;
use crate::waves::TURN;
use std::f64::consts::TAU;

/// Bits of a turn that are read.
const PARTS: u32 = 28;
/// Most bits of an angle in turns, which are all behind the point.
const MOST_BITS: u32 = WORD - 1;
/// log2 of the pieces of a turn: their error is below 2^-26.
const PIECES: u32 = 10;
/// Pieces of degree 6: an eighth of a turn, or less.
const FEW: Cut = Cut { per_unit: 3, unit: -4 };
/// What their errors are measured by: what two units in the last of 24 places leave beside what is rounded later.
const BOUND: f64 = 0.8 / (1 << 24) as f64;
/// Fraction bits of a wave's height.
const DIGITS: u32 = 29;

/// Sine or cosine of x in radians; `bits` and `frac` are those of the result.
pub(super) fn wave(b: &mut Build<'_>, function: Function, x: Value, bits: u32, frac: u32) -> Value {
    let part = parts(b, x);
    let pieces =
        |b: &mut Build<'_>, part| piecewise(b, part, PIECES, 61, End::Continues, |t| function.at(TAU * t));
    let waves = |b: &mut Build<'_>, part| {
        let height = match function {
            Function::Cos => [1 << DIGITS, 0],
            _ => [0, 1 << DIGITS],
        };
        b.like(Op::Waves { step: 1, digits: DIGITS, waves: vec![height] }, &[part], WORD, TURN + DIGITS)
    };
    let few = |b: &mut Build<'_>, part| {
        Pieces { f: &|t| function.at(TAU * t), bound: &|_| BOUND, end: 1.0, cut: FEW }.of(b, part)
    };
    let y = b.cheapest(part, &[&pieces, &waves, &few]);
    b.dither(y, y.frac - frac, bits)
}

/// The angle in parts of a turn: a ring of [`PARTS`] bits, all of them behind the point.
///
/// The factor `1 / 2 pi` has so many bits that the largest angle of up to 35 bits is right to half a part; of larger rings an angle x
/// of f fraction bits is off by `|x| 2^(f - 64)` turns. What exceeds a turn is a multiple of the ring's size and so is gone.
fn parts(b: &mut Build<'_>, x: Value) -> Value {
    let ring = (x.bits + PARTS).min(MOST_BITS);
    let factor = (2f64.powi((ring - x.frac) as i32) / TAU).round_ties_even() as i64;
    let wide = b.resize(x, ring);
    let turned = b.mul_const(wide, factor);
    b.down(turned, ring - PARTS, PARTS)
}

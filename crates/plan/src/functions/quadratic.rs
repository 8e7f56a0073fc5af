//! Piecewise quadratics: a function on equal pieces, the piece chosen by the upper bits of a secret.

use super::build::{Build, Value, WORD};
use crate::ir::Op;
use crate::tables::quadratic_near;

/// What comes after the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing that is asked for: x stays below the first number of the last piece.
    Unused,
    /// The function there, for the same piece as at 0, where nothing is asked for.
    Continues,
}

/// `f` of an unsigned number of any ring by 2^index pieces, in [`WORD`] bits with `frac` fraction bits; values stay below
/// `2^(63 - frac)`.
///
/// A piece of width w has to serve on both sides of its first number, so errors are at most about `w^3 max|f'''| / 24`.
pub(super) fn piecewise(
    b: &mut Build<'_>,
    x: Value,
    index: u32,
    frac: u32,
    end: End,
    f: impl Fn(f64) -> f64,
) -> Value {
    let shift = x.bits - index;
    let width = 2f64.powi(shift as i32 - x.frac as i32);
    let piece = |i: u64| {
        let first = i as f64 * width;
        let near = |around: [f64; 3]| quadratic_near(&f, around, x.frac, frac);
        match (i, end) {
            (0, End::Unused) => near([width / 2.0, width / 2.0, 0.0]),
            (0, End::Continues) => {
                let last = (1u64 << index) as f64 * width;
                near([last, width, last])
            }
            _ => near([first, width, first]),
        }
    };
    let pieces = (0..1u64 << index).map(piece).collect();
    b.like(Op::Piecewise { shift, pieces }, &[x], WORD, frac)
}

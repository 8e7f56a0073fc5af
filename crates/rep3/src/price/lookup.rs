//! What look-ups, piecewise quadratics and exponentials send and have to prove: `crates/rep3/src/gates/lookup.rs`.

use super::claims::Moves;
use super::gates;
use crate::Security;

/// Most bits of an index that are one digit.
const DIGIT: u32 = 3;
/// Ring bits and fraction bits of an exponential's quadratic, and log2 of the number of its pieces.
const WORD: u32 = 64;
const WIDE: u32 = 61;
const PIECES: u32 = 7;

/// All values of a digit but one.
fn one_hot(n: u64, bits: u32, to: u32) -> Moves {
    gates::equal(((1 << bits) - 1) * n, bits, to)
}

/// `columns` tables read at n places of `bits` bits.
pub(super) fn read(security: Security, n: u64, bits: u32, columns: u64, to: u32) -> Moves {
    if bits <= DIGIT {
        return one_hot(n, bits, to);
    }
    let (low, high) = (bits.div_ceil(2), bits / 2);
    gates::carries(security, n, low, high)
        .then(one_hot(n, low, to))
        .then(one_hot(n, high, to))
        .then(gates::sums_of_products(columns * n, to, 1 << high))
}

/// Coefficients by an index of `bits` bits, and their sum with powers of t.
fn quadratic(security: Security, n: u64, bits: u32, to: u32) -> Moves {
    read(security, n, bits, 3, to)
        .then(gates::sums_of_products(n, to, 1))
        .then(gates::sums_of_products(n, to, 2))
}

pub(super) fn piecewise(security: Security, n: u64, bits: u32, shift: u32, to: u32) -> Moves {
    match shift {
        0 => read(security, n, bits, 1, to),
        _ => gates::carries(security, n, shift, bits.max(to)).then(quadratic(security, n, bits, to)),
    }
}

/// Of numbers of `whole` and `frac` bits; the first factor has `first` fraction bits.
pub(super) fn exponential(
    security: Security,
    n: u64,
    [whole, frac]: [u32; 2],
    first: u32,
    rows: u64,
) -> Moves {
    let dropped = WIDE - first;
    gates::carries(security, n, frac - PIECES, WORD)
        .then(gates::carries(security, n, PIECES, whole))
        .then(quadratic(security, n, PIECES, WORD))
        .then(gates::truncate(security, n, WORD, dropped))
        .then(gates::extend_non_negative(security, n, WORD - dropped, WORD))
        .then(read(security, n, whole, rows, WORD))
        .then(gates::sums_of_products(rows * n, WORD, 1))
}

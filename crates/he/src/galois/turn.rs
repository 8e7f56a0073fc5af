//! Automorphisms X to X^g with `g = 1 + (2 N / 64) t`, which leave X^64 where it is. Numbers t add up, as two of them do one after the other.
//!
//! *Of values.* With `zeta = root^(2 r + 1)` the turned polynomial's value at zeta is the value at zeta^g. For `r = rho + (N / 64) h` that is
//! `h + t (2 rho + 1) mod 64` instead of h, with the same rho. In the transform's order the 64 values of a rho stand together.
//!
//! *Of weights.* For w of a block, K x K, number t has `sum of w[i, c] X^(c - g i)`. Where it is made of a first turn t1 and a second one t2,
//! this is turned back by t2: `sum of w[i, c] X^(c g(-t2) - i g(t1))`.

use super::{DEGREE, HOP, WIDTH};
use crate::ntt::spec::reversed;

/// g of a number.
fn g(t: usize) -> usize {
    1 + ((2 * DEGREE) >> WIDTH.trailing_zeros()) * t
}

/// The inverse of a number.
pub(super) fn inverse(t: usize) -> usize {
    (WIDTH - t) & (WIDTH - 1)
}

/// The number of key t of a hop: the first hop has low bits, the second high ones.
pub(super) fn of_hop(hop: usize, t: usize) -> usize {
    if hop == 0 { t } else { t * HOP }
}

/// Keys of a hop that the group with K automorphisms takes: their product over both hops has all of it.
pub(super) fn keys_of(width: usize, hop: usize) -> impl Iterator<Item = usize> + Clone {
    let log = width.trailing_zeros();
    let (low, all) = (HOP.trailing_zeros(), WIDTH.trailing_zeros());
    // multiples of WIDTH / K: zeros of the lowest bits
    let zeros = all - log;
    let step = if hop == 0 { zeros.min(low) } else { zeros.saturating_sub(low) };
    (0..HOP).step_by(1 << step)
}

/// For each shift of h, whose value comes to each place of a run of 64 values.
static PLACES: [[u8; WIDTH]; WIDTH] = {
    let mut places = [[0; WIDTH]; WIDTH];
    let mut shift = 0;
    while shift < WIDTH {
        let mut at = 0;
        while at < WIDTH {
            places[shift][at] = reversed((reversed(at, WIDTH) + shift) & (WIDTH - 1), WIDTH) as u8;
            at += 1;
        }
        shift += 1;
    }
    places
};

/// Values of one prime, or of several, turned by a number.
pub(super) fn values(t: usize, from: &[u64], to: &mut [u64]) {
    let runs = DEGREE >> WIDTH.trailing_zeros();
    for (from, to) in from.chunks_exact(DEGREE).zip(to.chunks_exact_mut(DEGREE)) {
        let pairs = from.chunks_exact(WIDTH).zip(to.chunks_exact_mut(WIDTH));
        for (run, (from, to)) in pairs.enumerate() {
            let rho = reversed(run, runs);
            let places = &PLACES[(t * (2 * rho + 1)) & (WIDTH - 1)];
            to.iter_mut().zip(places).for_each(|(to, place)| *to = from[usize::from(*place)]);
        }
    }
}

/// What stands for a block of weights, K rows of K, each in two's complement, for numbers of a first and a second turn: coefficients likewise.
pub(super) fn weights(block: &[u64], width: usize, [first, second]: [usize; 2], out: &mut [u64]) {
    out.fill(0);
    let (of_row, of_column) = (g(first), g(inverse(second)));
    for (i, row) in block.chunks_exact(width).enumerate() {
        for (c, w) in row.iter().enumerate() {
            // modulo 2 N, as X^N = -1
            let at = (of_column * c).wrapping_sub(of_row * i) & (2 * DEGREE - 1);
            let negative = ((at >> DEGREE.trailing_zeros()) as u64).wrapping_neg();
            let place = &mut out[at & (DEGREE - 1)];
            *place = place.wrapping_add((w ^ negative).wrapping_sub(negative));
        }
    }
}

//! Values of polynomials where every variable is 0, 1 or infinity: additions alone.

use super::V;
use super::lanes::lanes;
use std::arch::x86_64::*;

/// Values of a polynomial in three variables.
pub(super) const CUBE: usize = 27;
/// In two variables.
pub(super) const NINE: usize = 9;

/// Sum in GF(2), or in Z_2^64.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn sum<const RING: bool>(a: V, b: V) -> V {
    if RING { _mm512_add_epi64(a, b) } else { _mm512_xor_si512(a, b) }
}

/// Values of a polynomial in three variables at 0, 1 and infinity in each.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn extend<const RING: bool>(c: [V; 8]) -> [V; CUBE] {
    let mut out = [_mm512_setzero_si512(); CUBE];
    let line = |out: &mut [V; CUBE], at: usize, step: usize, zero: V, infinity: V| {
        out[at] = zero;
        out[at + step] = sum::<RING>(zero, infinity);
        out[at + 2 * step] = infinity;
    };
    // variable 0 on the four pairs, then the others on what has come out
    for (i, pair) in c.as_chunks::<2>().0.iter().enumerate() {
        let at = 6 * (i % 2) + 18 * (i / 2);
        line(&mut out, at, 1, pair[0], pair[1]);
    }
    for top in [0, 18] {
        for i in 0..3 {
            let (zero, infinity) = (out[top + i], out[top + 6 + i]);
            line(&mut out, top + i, 3, zero, infinity);
        }
    }
    for i in 0..9 {
        let (zero, infinity) = (out[i], out[18 + i]);
        line(&mut out, i, 9, zero, infinity);
    }
    out
}

/// Values of a polynomial in two variables at 0, 1 and infinity in each: few enough that those of two operands and the sums of
/// their products stay in registers.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn nine<const RING: bool>(c0: V, c1: V, c2: V, c3: V) -> [V; NINE] {
    let (first, last) = (sum::<RING>(c0, c1), sum::<RING>(c2, c3));
    [c0, first, c1, sum::<RING>(c0, c2), sum::<RING>(first, last), sum::<RING>(c1, c3), c2, last, c3]
}

/// [`nine`] of eight coefficients in three variables, where the upper one is 0, 1 or infinity (`top` 0, 1 or 2).
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn extend_nine<const RING: bool>(c: &[V], top: usize) -> [V; NINE] {
    let c: &[V; 8] = c.first_chunk().expect("eight coefficients");
    match top {
        0 => nine::<RING>(c[0], c[1], c[2], c[3]),
        1 => nine::<RING>(
            sum::<RING>(c[0], c[4]),
            sum::<RING>(c[1], c[5]),
            sum::<RING>(c[2], c[6]),
            sum::<RING>(c[3], c[7]),
        ),
        _ => nine::<RING>(c[4], c[5], c[6], c[7]),
    }
}

/// Values of eight groups of 16 items `stride` apart, one a lane.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn sixteen<const RING: bool>(items: &[u64], stride: usize, out: &mut [V; 3 * CUBE]) {
    let zero = extend::<RING>(lanes(items, stride, 0));
    let infinity = extend::<RING>(lanes(items, stride, 1));
    for e in 0..CUBE {
        out[e] = zero[e];
        out[CUBE + e] = sum::<RING>(zero[e], infinity[e]);
        out[2 * CUBE + e] = infinity[e];
    }
}

/// Values in the upper three of six variables, of eight groups of 64 words `stride` apart, for each place in the lower three:
/// `upper[8 e + l]` for point e and place l.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn extend_upper<const RING: bool>(words: &[u64], stride: usize, upper: &mut [V]) {
    let upper: &mut [V; 8 * CUBE] = upper.first_chunk_mut().expect("as many values");
    let mut places = [[_mm512_setzero_si512(); 8]; 8];
    for i in 0..8 {
        for (place, value) in places.iter_mut().zip(lanes(words, stride, i)) {
            place[i] = value;
        }
    }
    for (l, place) in places.iter().enumerate() {
        for top in 0..3 {
            let values = extend_nine::<RING>(place, top);
            for (i, value) in values.into_iter().enumerate() {
                upper[8 * (NINE * top + i) + l] = value;
            }
        }
    }
}

//! Values of polynomials where every variable is 0, 1 or infinity: additions alone.

use super::V;
use super::lanes::lanes;
use std::arch::x86_64::*;

/// Values of a polynomial in three variables.
pub(super) const CUBE: usize = 27;
/// In two variables.
pub(super) const NINE: usize = 9;

/// Sum in GF(2), or in Z_2^64.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sum<const RING: bool>(a: V, b: V) -> V {
    if RING { _mm256_add_epi64(a, b) } else { _mm256_xor_si256(a, b) }
}

/// Values of a polynomial in two variables at 0, 1 and infinity in each.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn nine<const RING: bool>(c0: V, c1: V, c2: V, c3: V) -> [V; NINE] {
    let (first, last) = (sum::<RING>(c0, c1), sum::<RING>(c2, c3));
    [c0, first, c1, sum::<RING>(c0, c2), sum::<RING>(first, last), sum::<RING>(c1, c3), c2, last, c3]
}

/// [`nine`] of eight coefficients in three variables, where the upper one is 0, 1 or infinity (`top` 0, 1 or 2).
#[target_feature(enable = "avx2")]
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

/// Values of four groups of 16 items `stride` apart, one a lane.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sixteen<const RING: bool>(items: &[u64], stride: usize, out: &mut [V; 3 * CUBE]) {
    let mut upper = [_mm256_setzero_si256(); 4 * NINE];
    for (l, [a, b, c, d]) in transposed(std::array::from_fn(|i| lanes(items, stride, i))).iter().enumerate() {
        for (e, value) in nine::<RING>(*a, *b, *c, *d).into_iter().enumerate() {
            upper[4 * e + l] = value;
        }
    }
    for (upper, out) in upper.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<NINE>().0) {
        *out = nine::<RING>(upper[0], upper[1], upper[2], upper[3]);
    }
}

/// Coefficients by their place in the lower variables first.
#[inline(always)]
fn transposed<const N: usize, const M: usize>(c: [[V; N]; M]) -> [[V; M]; N] {
    std::array::from_fn(|l| std::array::from_fn(|i| c[i][l]))
}

/// Values in the upper three of six variables, of four groups of 64 words `stride` apart, for each place in the lower three:
/// `upper[8 e + l]` for point e and place l.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn extend_upper<const RING: bool>(words: &[u64], stride: usize, upper: &mut [V; 8 * CUBE]) {
    for half in 0..2 {
        let places = transposed(std::array::from_fn::<_, 8, _>(|i| lanes(words, stride, 2 * i + half)));
        for (l, place) in places.iter().enumerate() {
            for top in 0..3 {
                for (i, value) in extend_nine::<RING>(place, top).into_iter().enumerate() {
                    upper[8 * (NINE * top + i) + 4 * half + l] = value;
                }
            }
        }
    }
}

//! Words of four groups at a time, one group a lane.

use super::V;
use crate::fold::{Element, GROUP};
use crate::near::ahead;
use std::arch::x86_64::*;

/// Groups at a time.
pub(super) const LANES: usize = 4;

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load(words: &[u64; LANES]) -> V {
    // SAFETY: four words.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store(words: &mut [u64; LANES], v: V) {
    // SAFETY: four words.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), v) }
}

/// Lane j of result i is lane i of row j.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn transpose([a, b, c, d]: [V; 4]) -> [V; 4] {
    let (ab, cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
    let (ab2, cd2) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
    [
        _mm256_permute2x128_si256::<0x20>(ab, cd),
        _mm256_permute2x128_si256::<0x20>(ab2, cd2),
        _mm256_permute2x128_si256::<0x31>(ab, cd),
        _mm256_permute2x128_si256::<0x31>(ab2, cd2),
    ]
}

/// Word `4 i + l` of four groups of `stride` words, one group a lane.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn lanes(words: &[u64], stride: usize, i: usize) -> [V; 4] {
    let row = |j: usize| {
        let row: &[u64; LANES] = words[j * stride + 4 * i..].first_chunk().expect("whole groups");
        ahead(row);
        load(row)
    };
    transpose([row(0), row(1), row(2), row(3)])
}

/// A coefficient of four elements a register.
pub(super) type Four = [V; GROUP];

/// The first words of four elements, `stride` apart, one a lane; zeros for those behind the last one.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn gather(elements: &[Element], stride: usize, out: &mut [V]) {
    let rows: [&Element; LANES] = std::array::from_fn(|j| elements.get(j * stride).unwrap_or(&[0; GROUP]));
    for (i, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let row = |j: usize| load(&rows[j].as_chunks().0[i]);
        *out = transpose([row(0), row(1), row(2), row(3)]);
    }
}

/// The low words of four 64-bit products, of words of which the upper halves are there as well.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn multiply(a: V, b: V) -> V {
    let (a_high, b_high) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
    let cross = _mm256_add_epi64(_mm256_mul_epu32(a_high, b), _mm256_mul_epu32(a, b_high));
    _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross))
}

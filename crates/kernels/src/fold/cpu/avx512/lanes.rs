//! Words of eight groups at a time, one group a lane.

use super::V;
pub(super) use crate::avx512::{load, store, transpose};
use crate::fold::{Element, GROUP};
use crate::near::ahead;
use std::arch::x86_64::*;

/// Groups at a time.
pub(super) const LANES: usize = 8;

/// Word `8 i + l` of eight groups of `stride` words, one group a lane.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn lanes(words: &[u64], stride: usize, i: usize) -> [V; 8] {
    let row = |j: usize| {
        let row: &[u64; 8] = words[j * stride + 8 * i..].first_chunk().expect("whole groups");
        ahead(row);
        load(row)
    };
    transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)])
}

/// A coefficient of eight elements a register.
pub(super) type Eight = [V; GROUP];

/// The first words of eight elements, `stride` apart, one a lane; zeros for those behind the last one.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn gather(elements: &[Element], stride: usize, out: &mut [V]) {
    let rows: [&Element; LANES] = std::array::from_fn(|j| elements.get(j * stride).unwrap_or(&[0; GROUP]));
    for (i, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let row = |j: usize| {
            let row = &rows[j].as_chunks().0[i];
            if stride == 1 {
                // the next eight, which soon follow; of those further apart they would come long before their use.
                // Harmless at any address
                _mm_prefetch::<_MM_HINT_T0>((&raw const *row).wrapping_add(GROUP).cast());
            }
            load(row)
        };
        *out = transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
    }
}

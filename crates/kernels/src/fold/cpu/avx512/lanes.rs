//! Words of eight groups at a time, one group a lane.

use super::V;
pub(super) use crate::avx512::{load, store, transpose};
use crate::fold::{Element, GROUP};
use std::arch::x86_64::*;

/// Groups at a time.
pub(super) const LANES: usize = 8;

/// Operands of one call of [`blocks`].
pub(super) const MAX_OPERANDS: usize = 16;

/// Word `8 i + l` of eight groups of `stride` words, one group a lane. The next eight groups' words are brought near
/// meanwhile: many operands are read at once, more than the processor foresees.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn lanes(words: &[u64], stride: usize, i: usize) -> [V; 8] {
    let row = |j: usize| {
        let row: &[u64; 8] = words[j * stride + 8 * i..].first_chunk().expect("whole groups");
        // prefetching is harmless at any address
        _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_add(LANES * stride).cast());
        load(row)
    };
    transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)])
}

/// A coefficient of eight elements a register.
pub(super) type Eight = [V; GROUP];

/// Eight elements, `stride` apart, one a lane; zeros for those behind the last one.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn gather(elements: &[Element], stride: usize, out: &mut Eight) {
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

/// Call `each` with the place of every `N` words of the operands, all of `len` words, and the words themselves; the last
/// ones are padded with zeros.
pub(super) fn blocks<const N: usize>(
    len: usize,
    operands: &[&[u64]],
    mut each: impl FnMut(usize, &[&[u64]]),
) {
    let whole = len / N * N;
    for at in (0..whole).step_by(N) {
        let mut parts: [&[u64]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        parts.iter_mut().zip(operands).for_each(|(part, words)| *part = &words[at..at + N]);
        each(at, &parts[..operands.len()]);
    }
    if whole < len {
        let mut last = vec![[0; N]; operands.len()];
        last.iter_mut().zip(operands).for_each(|(last, words)| {
            last[..len - whole].copy_from_slice(&words[whole..]);
        });
        let parts: Vec<&[u64]> = last.iter().map(|l| &l[..]).collect();
        each(whole, &parts);
    }
}

/// [`blocks`] of eight groups of `N` words each, `stride` words apart, of which there are `groups`: the operands from the
/// block's first group on, and how far apart their groups are.
pub(super) fn strided<const N: usize>(
    (groups, stride): (usize, usize),
    operands: &[&[u64]],
    mut each: impl FnMut(usize, &[&[u64]], usize),
) {
    let mut last = vec![];
    for first in (0..groups).step_by(LANES) {
        let mut parts: [&[u64]; MAX_OPERANDS] = [&[]; MAX_OPERANDS];
        let needed = (first + LANES - 1) * stride + N;
        if operands.iter().all(|words| words.len() >= needed) {
            parts.iter_mut().zip(operands).for_each(|(part, words)| *part = &words[first * stride..]);
            each(first, &parts[..operands.len()], stride);
            continue;
        }
        last.clear();
        last.resize(operands.len(), [[0; N]; LANES]);
        for (last, words) in last.iter_mut().zip(operands) {
            for (group, g) in last.iter_mut().zip(first..groups) {
                let words = &words[words.len().min(g * stride)..words.len().min(g * stride + N)];
                group[..words.len()].copy_from_slice(words);
            }
        }
        parts.iter_mut().zip(&last).for_each(|(part, last)| *part = last.as_flattened());
        each(first, &parts[..operands.len()], N);
    }
}

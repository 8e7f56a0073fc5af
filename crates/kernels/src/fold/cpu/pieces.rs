//! Operands cut into what kernels take at a time.

use crate::fold::{GROUP, WordTerms};

/// Operands of one call.
pub(super) const MAX_OPERANDS: usize = 16;

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

/// [`blocks`] of `LANES` groups of `N` words each, `stride` words apart, of which there are `groups`: the operands from the
/// block's first group on, and how far apart their groups are.
pub(super) fn strided<const N: usize, const LANES: usize>(
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

/// What a kernel takes at a time: some groups, of one batch or of several with as many terms.
pub(super) struct Groups<'b, 'a, const N: usize>([Option<(&'b WordTerms<'a>, usize)>; N]);

/// All groups of batches with as many terms, `N` at a time. So short batches take no longer than long ones.
pub(super) fn side_by_side<'b, 'a: 'b, const N: usize>(
    batches: impl Iterator<Item = &'b WordTerms<'a>>,
) -> impl Iterator<Item = Groups<'b, 'a, N>> {
    let mut groups = batches.flat_map(|batch| (0..batch.weights.len()).map(move |g| (batch, g)));
    std::iter::from_fn(move || {
        let mut some = [None; N];
        some.iter_mut().for_each(|group| *group = groups.next());
        some[0].is_some().then_some(Groups(some))
    })
}

impl<'b, 'a, const N: usize> Groups<'b, 'a, N> {
    /// Terms of every group.
    pub fn terms(&self) -> usize {
        self.0[0].map_or(0, |(batch, _)| batch.terms.len())
    }

    /// Weights of the groups, 0 after the last.
    pub fn weights(&self) -> [u64; N] {
        self.0.map(|group| group.map_or(0, |(batch, g)| batch.weights[g]))
    }

    /// The words of the left or right operand of term `t`, a group after the other: where they stand, or in `room`, with zeros behind the last.
    #[inline(always)]
    pub fn operand<'r, const M: usize>(
        &'r self,
        t: usize,
        right: bool,
        room: &'r mut [u64; M],
    ) -> &'r [u64; M]
    where
        'b: 'r,
    {
        const { assert!(M == N * GROUP) };
        let of = |batch: &WordTerms<'a>| if right { batch.terms[t].1 } else { batch.terms[t].0 };
        let (first, last) = (self.0[0], self.0.iter().rev().find_map(|group| *group));
        if let (Some((batch, g)), Some((other, _))) = (first, last)
            && std::ptr::eq(batch, other)
        {
            return of(batch).some(GROUP * g, room);
        }
        for (group, room) in self.0.iter().zip(room.as_chunks_mut::<GROUP>().0) {
            match group {
                Some((batch, g)) => of(batch).put(GROUP * g, room),
                None => room.fill(0),
            }
        }
        room
    }
}

/// How many coefficients of elements with these, bit i for that of Y^i, may be there: one more than the last of any.
pub(super) fn coefficients(bits: &[u64]) -> usize {
    (u64::BITS - bits.iter().fold(0, |all, bits| all | bits).leading_zeros()) as usize
}

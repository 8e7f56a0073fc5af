//! Operands cut into what kernels take at a time.

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

/// How many coefficients of elements with these, bit i for that of Y^i, may be there: one more than the last of any.
pub(super) fn coefficients(bits: &[u64]) -> usize {
    (u64::BITS - bits.iter().fold(0, |all, bits| all | bits).leading_zeros()) as usize
}

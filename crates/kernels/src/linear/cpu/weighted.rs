//! Sums of vectors by public weights: each is read once, so nothing is packed.

use super::direct::Term;
use super::kernel::Shared;
use crate::threads::{in_parallel, split};

/// Elements at a time: so few that a dozen vectors of them stay in the first-level cache for all sums.
const PIECE: usize = 256;

/// `out[c] += sum over r of weights[c, r] rows[r]` modulo 2^64; `out` has the sums one behind the other.
///
/// `add_row` is the path's inner loop, as for [`super::direct::run`].
pub(super) fn run(
    threads: usize,
    weights: &[u64],
    rows: &[&[u64]],
    out: &mut [u64],
    add_row: impl Fn(&[Term], &mut [u64]) + Sync,
) {
    let Some(n) = rows.first().map(|row| row.len()).filter(|n| *n > 0) else { return };
    let outputs = Shared::new(out);
    in_parallel(split(n.div_ceil(PIECE), threads), |pieces| {
        let (mut terms, mut sum) = (Vec::with_capacity(rows.len()), [0; PIECE]);
        for start in pieces.map(|piece| piece * PIECE) {
            let range = start..n.min(start + PIECE);
            let sum = &mut sum[..range.len()];
            for (c, weights) in weights.chunks(rows.len()).enumerate() {
                terms.clear();
                terms.extend(weights.iter().zip(rows).map(|(weight, row)| (*weight, &row[range.clone()])));
                sum.fill(0);
                add_row(&terms, sum);
                // SAFETY: every element of a sum belongs to one thread, and `out` outlives the threads.
                unsafe { outputs.add(c * n + start, sum) };
            }
        }
    });
}

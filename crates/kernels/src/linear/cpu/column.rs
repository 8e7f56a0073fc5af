use super::kernel::Shared;
use crate::threads::{in_parallel, split};

/// A matrix product whose right operand is one column, of which a tile would be padding: `out[i] += x[i] . w`.
///
/// `dot` is the path's inner product modulo 2^64.
pub(super) fn run(
    threads: usize,
    x: &[u64],
    w: &[u64],
    out: &mut [u64],
    dot: impl Fn(&[u64], &[u64]) -> u64 + Sync,
) {
    if w.is_empty() {
        return;
    }
    let (rows, outputs) = (out.len(), Shared::new(out));
    in_parallel(split(rows, threads), |range| {
        for i in range {
            let value = dot(&x[i * w.len()..(i + 1) * w.len()], w);
            // SAFETY: every element of the result belongs to one thread, and `out` outlives the threads.
            unsafe { outputs.add(i, &[value]) };
        }
    });
}

/// [`run`]'s `dot` in plain code, which the compiler vectorises for whatever its caller enables.
#[inline(always)]
pub(super) fn dot(x: &[u64], w: &[u64]) -> u64 {
    const LANES: usize = 32;
    let mut lanes = [0u64; LANES];
    let ((xs, x), (ws, w)) = (x.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for (x, w) in xs.iter().zip(ws) {
        for i in 0..LANES {
            lanes[i] = lanes[i].wrapping_add(x[i].wrapping_mul(w[i]));
        }
    }
    let tail = x.iter().zip(w).map(|(x, w)| x.wrapping_mul(*w));
    lanes.into_iter().chain(tail).fold(0, u64::wrapping_add)
}

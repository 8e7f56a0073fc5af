//! Comparisons from one tree each (`docs/fss.md`, "Comparison from one DPF"): one key reads out both predicates.

use super::{Comparison, Predicate};
use crate::keys::{KeyError, frame_elements};
use crate::mutation;
use crate::{Deal, Eval, EvalError, Wire};
use privet_kernels::CompareShape;
use privet_ring::BitVec;
use zeroize::Zeroizing;

/// Deal keys for thresholds `alpha` of `bits` bits.
pub(super) fn deal(cx: &mut Deal, wire: Wire, bits: u32, alpha: &[u64]) -> Result<(), KeyError> {
    let (mut random, mut hashes) = (cx.secret(wire, 0), cx.public().hashes(wire));
    let chunk = frame_elements(CompareShape { bits, count: 1 }.key_bytes());
    let (mut key0, mut key1, mut blocks) = (Vec::new(), Vec::new(), Zeroizing::new(Vec::new()));
    for alpha in alpha.chunks(chunk) {
        let shape = CompareShape { bits, count: alpha.len() };
        key0.resize(shape.key_bytes(), 0);
        key1.resize(shape.key_bytes(), 0);
        blocks.resize(2 * alpha.len(), 0u128);
        random.fill_blocks(&mut blocks);
        let (roots, deltas) = blocks.split_at(alpha.len());
        cx.device.compare_gen(&hashes.next(), shape, alpha, roots, deltas, &mut key0, &mut key1);
        mutation::comparison_keys(shape, alpha, [&mut key0, &mut key1]);
        cx.put([&mut key0, &mut key1])?;
        cx.stats.comparisons += alpha.len() as u64;
        cx.stats.aes_calls += 2 * shape.aes_calls() as u64;
    }
    Ok(())
}

/// Walk the keys to the public points `x(i)`; gives this evaluator's XOR shares of the results.
pub(super) fn walk(
    cx: &mut Eval,
    wire: Wire,
    Comparison { bits, predicate }: Comparison,
    n: usize,
    x: impl Fn(usize) -> u64,
) -> Result<BitVec, EvalError> {
    let mut share = BitVec::zeros(n);
    let chunk = frame_elements(CompareShape { bits, count: 1 }.key_bytes());
    let (device, mut hashes) = (cx.device, cx.public().hashes(wire));
    let mut points = Vec::with_capacity(chunk.min(n));
    for start in (0..n).step_by(chunk) {
        let count = chunk.min(n - start);
        let shape = CompareShape { bits, count };
        points.clear();
        points.extend((start..start + count).map(&x));
        let keys = cx.take(shape.key_bytes())?;
        let out = device.compare_eval(&hashes.next(), shape, keys, &points, predicate == Predicate::Equal);
        let bits = if predicate == Predicate::Equal { &out.eq } else { &out.lt };
        // `chunk` is a multiple of 64, so every batch starts at a word.
        for (w, b) in share.words_mut()[start / 64..].iter_mut().zip(bits.words()) {
            *w = *b;
        }
        cx.stats.comparisons += count as u64;
        cx.stats.aes_calls += shape.aes_calls() as u64;
    }
    Ok(share)
}

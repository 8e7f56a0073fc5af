//! Comparisons by chunks (`docs/fss.md`, "Comparison by chunks"): tables of chunks read at public places, then level by
//! level what neighbours say, opened under masks, put together with dealt products of these masks.

use super::{level_name, planes};
use crate::keys::KeyError;
use crate::mutation;
use crate::{Deal, Eval, EvalError, Secret, Wire};
use privet_kernels::Chunks;
use privet_kernels::chunks::words;
use privet_ring::{BitVec, Ring};

/// Deal tables of the thresholds `alpha`, then the products of every level's masks.
pub(super) fn deal(cx: &mut Deal, wire: Wire, chunks: &Chunks, alpha: &[u64]) -> Result<(), KeyError> {
    let (device, n) = (cx.device, alpha.len());
    let alpha = mutation::thresholds(chunks, alpha);
    planes::deal(cx, wire, 0, chunks.tables(), n, |range, out| {
        device.chunk_tables(chunks, &alpha[range], out);
    })?;
    for (l, level) in chunks.levels.iter().enumerate() {
        let [mut stream, mut other] = cx.level_mask_streams(wire, l);
        let (mut masks, mut half) = (Secret::new(Vec::new()), Secret::new(Vec::new()));
        planes::deal(cx, wire, 1 + l, level.products(), n, |range, out| {
            masks.resize(words(level.opened(), range.len()), 0);
            half.resize(masks.len(), 0);
            stream.fill(Ring::R64, &mut masks);
            other.fill(Ring::R64, &mut half);
            mutation::level_masks([&mut masks, &mut half]);
            xor(&mut masks, &half);
            device.chunk_products(level, &masks, out);
        })?;
    }
    cx.stats.comparisons += n as u64;
    Ok(())
}

/// This evaluator's XOR shares of the results at the public points `x(i)`. One round for each level.
pub(super) fn walk(
    cx: &mut Eval,
    wire: Wire,
    name: &str,
    chunks: &Chunks,
    n: usize,
    x: impl Fn(usize) -> u64,
) -> Result<BitVec, EvalError> {
    let (device, leads) = (cx.device, cx.leads());
    let mut shares = Secret::new(vec![0; words(chunks.leaves(), n)]);
    let mut points = Vec::new();
    planes::eval(cx, wire, 0, chunks.tables(), n, |range, tables| {
        points.clear();
        points.extend(range.clone().map(&x));
        let out = words(chunks.leaves(), range.start)..words(chunks.leaves(), range.end);
        device.chunk_leaves(chunks, leads, &points, tables, &mut shares[out]);
    })?;
    for (l, level) in chunks.levels.iter().enumerate() {
        let masks = cx.level_mask_share(wire, l, shares.len());
        xor(&mut shares, &masks);
        let opened = cx.open_masked_planes(&level_name(name, l), shares.expose())?;
        shares = Secret::new(vec![0; words(level.results(), n)]);
        planes::eval(cx, wire, 1 + l, level.products(), n, |range, products| {
            let at = |planes| words(planes, range.start)..words(planes, range.end);
            let (read, out) = (at(level.opened()), at(level.results()));
            let given = [&opened[read.clone()], products, &masks[read]];
            device.chunk_combine(level, leads, given, &mut shares[out]);
        })?;
    }
    cx.stats.comparisons += n as u64;
    // one plane is left, whose blocks lie word after word
    Ok(BitVec::from_words(n, shares.expose()))
}

fn xor(a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

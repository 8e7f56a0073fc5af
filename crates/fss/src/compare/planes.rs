//! Dealt planes: XOR shares of bits that the dealer knows, in the layout of [`privet_kernels::chunks`].
//!
//! As of table words, one evaluator's share is expanded from its seed, the other one is sent the difference; the roles
//! alternate from frame to frame.

use crate::keys::{FRAME_BYTES, KeyError};
use crate::wire::Turns;
use crate::{Deal, Eval, EvalError, Secret, Wire, mutation};
use privet_kernels::chunks::{BLOCK, words};
use privet_ring::{Ring, pack};
use std::ops::Range;

/// Comparisons to a frame of so many planes: whole blocks, about [`FRAME_BYTES`].
pub(crate) fn frame_comparisons(planes: usize) -> usize {
    (FRAME_BYTES / (planes * BLOCK / 8)).max(1) * BLOCK
}

/// Deal part `part` of a wire's comparison: `planes` planes for `n` comparisons; `make(range, bits)` makes those of a range.
pub(super) fn deal(
    cx: &mut Deal,
    wire: Wire,
    part: usize,
    planes: usize,
    n: usize,
    mut make: impl FnMut(Range<usize>, &mut [u64]),
) -> Result<(), KeyError> {
    let (mut streams, chunk) = (cx.plane_streams(wire, part), frame_comparisons(planes));
    let (mut bits, mut share) = (Secret::new(Vec::new()), Secret::new(Vec::new()));
    let (mut frame, mut empty) = (Vec::new(), Vec::new());
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let range = start..n.min(start + chunk);
        bits.resize(words(planes, range.len()), 0);
        share.resize(bits.len(), 0);
        make(range, &mut bits);
        let expander = wire.expander(1 + part, f);
        streams[expander].fill(Ring::R64, &mut share);
        mutation::expanded_planes(part, &mut share);
        bits.iter_mut().zip(share.iter()).for_each(|(b, s)| *b ^= s);
        frame.clear();
        pack(Ring::R64, &bits, &mut frame);
        empty.clear();
        cx.put(if expander == 0 { [&mut empty, &mut frame] } else { [&mut frame, &mut empty] })?;
    }
    Ok(())
}

/// This evaluator's shares of those planes, frame by frame.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    part: usize,
    planes: usize,
    n: usize,
    mut use_words: impl FnMut(Range<usize>, &[u64]),
) -> Result<(), EvalError> {
    let (mut stream, chunk) = (cx.plane_stream(wire, part), frame_comparisons(planes));
    let mut share = Secret::new(Vec::new());
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let range = start..n.min(start + chunk);
        let len = words(planes, range.len());
        share.resize(len, 0);
        if mutation::role(wire.expander(1 + part, f)) == cx.party.index() {
            stream.fill(Ring::R64, &mut share);
            mutation::expanded_planes(part, &mut share);
        } else {
            let words = cx.take(8 * len)?.as_chunks::<8>().0;
            share.iter_mut().zip(words).for_each(|(s, w)| *s = u64::from_le_bytes(*w));
        }
        use_words(range, &share);
    }
    Ok(())
}

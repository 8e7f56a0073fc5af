//! Dealt tables of which one word an element is read, at a public place: as [`crate::tables`], but the words of an element
//! lie side by side, and there may be any number of them.

use crate::keys::{KeyError, frame_elements};
use crate::wire::Turns;
use crate::{Deal, Eval, EvalError, Secret, Wire, mutation};
use privet_ring::{Ring, pack, unpack};

fn chunk(ring: Ring, entries: usize) -> usize {
    frame_elements(entries * ring.packed_bytes(8) / 8)
}

/// Deal `entries` words of `ring` for each of `n` elements; `fill(i, words)` writes those of element i.
pub(crate) fn deal(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    n: usize,
    entries: usize,
    fill: impl Fn(usize, &mut [u64]),
) -> Result<(), KeyError> {
    let mut streams = cx.table_streams(wire);
    let chunk = chunk(ring, entries);
    let (mut frame, mut empty, mut share) = (Vec::new(), Vec::new(), Secret::new(Vec::new()));
    let mut words = Secret::new(vec![0; entries]);
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let count = chunk.min(n - start);
        share.resize(entries * count, 0);
        streams[wire.expander(0, f)].fill(ring, &mut share);
        mutation::expanded("table-entries-in-clear", &mut share);
        for (i, share) in share.chunks_exact_mut(entries).enumerate() {
            fill(start + i, &mut words);
            for (s, w) in share.iter_mut().zip(words.iter()) {
                *s = ring.wrap(w.wrapping_sub(*s));
            }
        }
        frame.clear();
        pack(ring, &share, &mut frame);
        empty.clear();
        cx.put(if wire.expander(0, f) == 0 { [&mut empty, &mut frame] } else { [&mut frame, &mut empty] })?;
    }
    Ok(())
}

/// This evaluator's shares: `read(i, words)` for every element i.
pub(crate) fn eval(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    n: usize,
    entries: usize,
    mut read: impl FnMut(usize, &[u64]),
) -> Result<(), EvalError> {
    let mut stream = cx.table_stream(wire);
    let chunk = chunk(ring, entries);
    let mut share = Secret::new(Vec::new());
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let count = chunk.min(n - start);
        if mutation::role(wire.expander(0, f)) == cx.party.index() {
            share.resize(entries * count, 0);
            stream.fill(ring, &mut share);
            mutation::expanded("table-entries-in-clear", &mut share);
        } else {
            let bytes = ring.packed_bytes(entries * count);
            share = Secret::new(unpack(ring, cx.take(bytes)?, entries * count)?);
        }
        for (i, words) in (start..).zip(share.chunks_exact(entries)) {
            read(i, words);
        }
    }
    Ok(())
}

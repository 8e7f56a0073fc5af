//! Dealt table words: additive shares of a few ring elements for every element of a gate.
//!
//! One evaluator's share of a word may be any uniform value, so it is expanded from that evaluator's
//! seed and costs no key byte; the other one gets the difference. The two roles alternate from frame to
//! frame and from node to node, so that both streams have about the same length.

use crate::keys::{KeyError, frame_elements};
use crate::wire::Turns;
use crate::{Deal, Eval, EvalError, Secret, Wire, mutation};
use privet_ring::{BitVec, Ring, masks_of, pack, unpack};
use std::ops::Range;

/// Deal `W` words of `ring` for each of `n` elements; `word(i)` gives those of element i.
pub(crate) fn deal<const W: usize>(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    n: usize,
    word: impl Fn(usize) -> [u64; W],
) -> Result<(), KeyError> {
    deal_and(cx, wire, ring, n, word, |_, _, _| {})
}

/// [`deal`] one word, and how much larger evaluator 0's share of each is than evaluator 1's.
pub(crate) fn deal_differences(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    n: usize,
    word: impl Fn(usize) -> u64,
) -> Result<Secret, KeyError> {
    let mut differences = Secret::new(Vec::with_capacity(n));
    let keep = |expander, expanded: u64, sent: u64| {
        let [first, second] = if expander == 0 { [expanded, sent] } else { [sent, expanded] };
        differences.push(ring.wrap(first.wrapping_sub(second)));
    };
    deal_and(cx, wire, ring, n, |i| [word(i)], keep)?;
    Ok(differences)
}

/// [`deal`]; `keep(expander, its share, the other share)` gets to know both shares of each word.
fn deal_and<const W: usize>(
    cx: &mut Deal,
    wire: Wire,
    ring: Ring,
    n: usize,
    word: impl Fn(usize) -> [u64; W],
    mut keep: impl FnMut(usize, u64, u64),
) -> Result<(), KeyError> {
    let mut streams = cx.table_streams(wire);
    let chunk = frame_elements(W * ring.packed_bytes(8) / 8);
    let (mut frame, mut empty, mut share) = (Vec::new(), Vec::new(), Secret::new(Vec::new()));
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let (count, expander) = (chunk.min(n - start), wire.expander(0, f));
        share.resize(W * count, 0);
        streams[expander].fill(ring, &mut share);
        mutation::expanded("table-words-in-clear", &mut share);
        for i in 0..count {
            for (w, v) in word(start + i).into_iter().enumerate() {
                let s = &mut share[w * count + i];
                let rest = ring.wrap(v.wrapping_sub(*s));
                keep(expander, *s, rest);
                *s = rest;
            }
        }
        frame.clear();
        pack(ring, &share, &mut frame);
        empty.clear();
        cx.put(if expander == 0 { [&mut empty, &mut frame] } else { [&mut frame, &mut empty] })?;
    }
    Ok(())
}

/// This evaluator's shares of those words, frame by frame: `use_words(range, words)` with
/// `words[w][i]` the share of word w of element `range.start + i`.
pub(crate) fn eval<const W: usize>(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    n: usize,
    mut use_words: impl FnMut(Range<usize>, [&[u64]; W]),
) -> Result<(), EvalError> {
    let mut stream = cx.table_stream(wire);
    let chunk = frame_elements(W * ring.packed_bytes(8) / 8);
    let mut share = Secret::new(Vec::new());
    for (f, start) in (0..n).step_by(chunk).enumerate() {
        let count = chunk.min(n - start);
        if mutation::role(wire.expander(0, f)) == cx.party.index() {
            share.resize(W * count, 0);
            stream.fill(ring, &mut share);
            mutation::expanded("table-words-in-clear", &mut share);
        } else {
            share = Secret::new(unpack(ring, cx.take(ring.packed_bytes(W * count))?, W * count)?);
        }
        let mut rest: &[u64] = &share;
        let words = std::array::from_fn(|_| {
            let (head, tail) = rest.split_at(count);
            rest = tail;
            head
        });
        use_words(start..start + count, words);
    }
    Ok(())
}

/// [`eval`] for as many elements as there are opened bits, at most 64 of them at a time: `use_words(range, picks, words)`, where a
/// pick is all ones for a 1 and else 0.
pub(crate) fn eval_picked<const W: usize>(
    cx: &mut Eval,
    wire: Wire,
    ring: Ring,
    bits: &BitVec,
    mut use_words: impl FnMut(Range<usize>, &[u64], [&[u64]; W]),
) -> Result<(), EvalError> {
    eval(cx, wire, ring, bits.len(), |range, words: [&[u64]; W]| {
        debug_assert!(range.start.is_multiple_of(64), "frames have whole words of bits");
        for (start, bits) in range.clone().step_by(64).zip(&bits.words()[range.start / 64..]) {
            let some = start..(start + 64).min(range.end);
            let words = words.map(|words| &words[some.start - range.start..some.end - range.start]);
            use_words(some.clone(), &masks_of(*bits)[..some.len()], words);
        }
    })
}

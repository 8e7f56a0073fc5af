//! Words that a helper deals, which are a function of an operand's mask: as many for every element, side by side.
//!
//! The masked value itself is the public point. So no mask of bits is linked to the wire, and no offset is opened.

use crate::eval::{Eval, EvalError};
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::shares::Words;
use privet_family::Secret;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{Ring, element};
use std::ops::Range;

/// Words of a frame, about: half a megabyte, which stays in a core's second-level cache.
const FRAME: usize = 1 << 16;

/// The elements of each frame: eights of them, so that frames are packed without a gap.
fn frames(n: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    let size = (FRAME / each).next_multiple_of(8).max(8);
    (0..n).step_by(size).map(move |start| start..n.min(start + size))
}

/// Append `each` words of `ring` for every element of `lambda`, as `fill` makes them from it.
pub(super) fn prepare(
    cx: &mut dyn Preprocess,
    lambda: &Words,
    ring: Ring,
    each: usize,
    fill: &dyn Fn(u64, &mut [u64]),
) -> Result<(), PrepareError> {
    frames(lambda.len(), each).try_for_each(|range| {
        let dealt = cx.dealt(&lambda.slice(range), ring, each, fill)?;
        cx.keep(Kept::Words(&dealt))
    })
}

/// Read them, a party's shares: `use_words(i, words)` for every element i.
pub(super) fn read(
    cx: &mut Eval,
    ring: Ring,
    n: usize,
    each: usize,
    mut use_words: impl FnMut(usize, &[u64]),
) -> Result<(), EvalError> {
    for range in frames(n, each) {
        let share = Secret::new(cx.take(ring, each * range.len())?);
        range.zip(share.chunks_exact(each)).for_each(|(i, words)| use_words(i, words));
    }
    Ok(())
}

/// Read a few of them, at public places: `use_words(i, word)` for every element i, whose word j is `word(j)`.
pub(super) fn pick(
    cx: &mut Eval,
    ring: Ring,
    n: usize,
    each: usize,
    mut use_words: impl FnMut(usize, &dyn Fn(usize) -> u64),
) -> Result<(), EvalError> {
    for range in frames(n, each) {
        let frame = cx.take_packed(ring, each * range.len())?;
        for (at, i) in range.enumerate() {
            use_words(i, &|word| element(ring, frame, at * each + word));
        }
    }
    Ok(())
}

/// The masks themselves, which the plan calls coins.
pub(super) fn coins(lambda: &Words, ring: Ring) -> Vec<u64> {
    let sum = |i| lambda.shares().iter().fold(0u64, |sum, share| sum.wrapping_add(share[i]));
    (0..lambda.len()).map(|i| ring.wrap(sum(i))).collect()
}

/// `each` words for every one of `elements`, of which `read` are multiplied; the result is opened.
pub(super) fn price(of: &Operation<'_>, elements: u64, each: u64, read: u64) -> Cost {
    let (n, bits) = (of.elements(), of.result_bits());
    let multiplied = Cost { macs: elements * read, ..price::opened(n, bits) };
    price::sum([price::words(elements * each, 1, bits), multiplied])
}

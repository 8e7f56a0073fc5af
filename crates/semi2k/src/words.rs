//! Words of a record, one for each of many elements, in frames of some size.

use crate::eval::{Eval, EvalError};
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::shares::Words;
use privet_family::Secret;
use privet_ring::Ring;
use std::ops::Range;

/// Elements to a frame.
const FRAME: usize = 1 << 16;

fn frames(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(FRAME).map(move |start| start..n.min(start + FRAME))
}

/// Append them.
pub(crate) fn keep(cx: &mut dyn Preprocess, words: &Words) -> Result<(), PrepareError> {
    if words.len() <= FRAME {
        return cx.keep(Kept::Words(words));
    }
    frames(words.len()).try_for_each(|range| cx.keep(Kept::Words(&words.slice(range))))
}

/// Read them: a party's shares, frame by frame.
pub(crate) fn each(
    cx: &mut Eval,
    ring: Ring,
    n: usize,
    mut use_words: impl FnMut(Range<usize>, &[u64]),
) -> Result<(), EvalError> {
    for range in frames(n) {
        let share = Secret::new(cx.take(ring, range.len())?);
        use_words(range, &share);
    }
    Ok(())
}

//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh heot` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

use crate::material::Frame;

privet_mutation::mutations! {
    "entries-unmasked",
    "pads-of-ones-alone",
    "pads-of-one-set",
    "ties-forgotten",
    "openings-unmasked",
    "choices-of-another-digit",
    "products-in-clear",
    "borrow-forgotten",
    "wrap-forgotten",
    "low-part-forgotten",
    "coin-forgotten",
    "pads-constant",
    "material-read-twice",
    "masks-repeat",
    "runs-uncounted",
    "corrections-in-clear",
    "factors-in-clear",
    "products-at-the-client-too",
    "squares-at-the-client-too",
    "multiples-corrections-in-clear",
    "multiples-in-clear",
    "row-corrections-in-clear",
    "rows-in-clear",
    "rows-at-the-client-too",
    "matrices-in-clear",
    "matrices-at-the-client-too",
    "gathered-share-forgotten",
    "material-repeats",
    "hints-change-at-rest",
}

/// A frame of material as it came; by mistake, the first of its kind that the thread has read.
#[cfg(feature = "mutations")]
pub(crate) fn again(frame: Frame) -> Frame {
    thread_local! {
        static FIRST: std::cell::RefCell<Vec<Frame>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    if !active("material-read-twice") {
        return frame;
    }
    FIRST.with_borrow_mut(|first| match first.iter().find(|other| other.is_like(&frame)) {
        Some(other) => other.copy(),
        None => {
            first.push(frame.copy());
            frame
        }
    })
}

#[cfg(not(feature = "mutations"))]
pub(crate) fn again(frame: Frame) -> Frame {
    frame
}

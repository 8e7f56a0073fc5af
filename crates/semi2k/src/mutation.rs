//! Mistakes that the tests must find: with the feature `mutations`, the environment variable `PRIVET_MUTATION` makes one of
//! them. `scripts/mutations.sh semi2k` makes each in turn and fails where no test does.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

use crate::preprocess::{BitUse, BitsAt};
use crate::shares::Words;
use privet_family::{Secret, Wire};

privet_mutation::mutations! {
    "mask-of-0-zero",
    "mask-of-last-zero",
    "mask-shared-by-elements",
    "mask-shared-by-wires",
    "weights-share-a-mask",
    "owner-masks-nothing",
    "others-mask-weights",
    "bits-of-0-zero",
    "bits-of-1-zero",
    "mask-bits-reused-by-pieces",
    "result-bits-zero",
    "result-bits-are-mask-bits",
    "level-bits-zero",
    "level-bits-reused",
    "dealt-shares-in-clear",
    "offset-without-mask",
    "opened-share-unmasked",
    "state-opened-unmasked",
    "public-term-twice",
    "public-term-at-1",
    "carry-dropped",
    "lookup-not-rotated",
    "exponential-not-rotated",
    "waves-without-sines",
    "strings-zero",
    "bit-strings-zero",
    "bits-masked-as-words",
    "second-word-masked-as-first",
    "pair-of-one-bit",
    "words-not-fresh",
    "squares-not-fresh",
    "last-stage-left-out",
}

/// The wire whose mask is expanded.
pub(crate) fn mask_wire(wire: Wire) -> Wire {
    if active("mask-shared-by-wires") { Wire::node(0) } else { wire }
}

/// The wire of a weight's mask.
pub(crate) fn weight_wire(wire: Wire) -> Wire {
    if active("weights-share-a-mask") { Wire::node(0) } else { wire }
}

/// Whether a party masks weights, of which it is the owner, or another one is.
pub(crate) fn masks_weights(masks: bool, owner: Option<usize>) -> bool {
    match masks {
        true => !(owner.is_some() && active("owner-masks-nothing")),
        false => active("others-mask-weights"),
    }
}

/// A party's summand of a mask. The last of two, three or five parties is 1, 2 or 4.
pub(crate) fn mask_share(party: usize, share: &mut [u64]) {
    if active("mask-of-0-zero") && party == 0 || active("mask-of-last-zero") && party > 0 && party != 3 {
        share.fill(0);
    }
    if active("mask-shared-by-elements") {
        share.chunks_exact_mut(2).for_each(|pair| pair[1] = pair[0]);
    }
}

/// Which private bits are expanded.
pub(crate) fn bits_at(at: BitsAt) -> BitsAt {
    match at.usage {
        BitUse::Mask if active("mask-bits-reused-by-pieces") => BitsAt { chunk: 0, ..at },
        BitUse::Result if active("result-bits-are-mask-bits") => BitsAt { usage: BitUse::Mask, ..at },
        BitUse::Level(_) if active("level-bits-reused") => BitsAt { usage: BitUse::Level(0), ..at },
        BitUse::Mask | BitUse::Result | BitUse::Level(_) => at,
    }
}

/// A party's share of private bits.
pub(crate) fn private_bits(party: usize, usage: BitUse, share: &mut [u64]) {
    let zero = match usage {
        BitUse::Mask => false,
        BitUse::Result => active("result-bits-zero"),
        BitUse::Level(_) => active("level-bits-zero"),
    };
    if zero || active("bits-of-0-zero") && party == 0 || active("bits-of-1-zero") && party == 1 {
        share.fill(0);
    }
}

/// A share that was expanded for what a helper deals.
pub(crate) fn dealt(share: &mut [u64]) {
    if active("dealt-shares-in-clear") {
        share.fill(0);
    }
}

/// What is opened to link a mask of bits to a wire: under a mistake, H times zero.
pub(crate) fn offset(delta: Words, lambda: &Words) -> Words {
    if active("offset-without-mask") { lambda.times(u64::MAX) } else { delta }
}

/// Whether a party adds public constants to its share.
pub(crate) fn leads(party: usize) -> bool {
    if active("public-term-at-1") {
        return party == 1;
    }
    party == 0 || active("public-term-twice")
}

/// What masks a row of transfers: words, and bits.
pub(crate) fn strings(words: &mut [privet_prg::Wiped<u64>], bits: &mut [privet_prg::Wiped<u64>]) {
    if let ([first, second], true) = (&mut *words, active("second-word-masked-as-first")) {
        second.copy_from_slice(first);
    }
    for words in words.iter_mut() {
        if active("strings-zero") {
            words.fill(0);
        }
    }
    for bits in bits {
        if active("bit-strings-zero") {
            bits.fill(0);
        }
        if let Some(words) = words.first().filter(|_| active("bits-masked-as-words")) {
            let lowest = |words: &[u64]| words.iter().enumerate().fold(0, |v, (i, w)| v | (w & 1) << i);
            bits.iter_mut().zip(words.chunks(64)).for_each(|(bits, words)| *bits = lowest(words));
        }
    }
}

/// The other bit of a pair.
pub(crate) fn other_bit(plane: usize) -> usize {
    if active("pair-of-one-bit") { plane } else { plane ^ 1 }
}

/// A summand of the mask under which a state is opened.
pub(crate) fn state_mask(mut mask: Secret) -> Secret {
    if active("state-opened-unmasked") {
        mask.iter_mut().for_each(|m| *m = 0);
    }
    mask
}

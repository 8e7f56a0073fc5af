//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh fss` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

use crate::wire::{PartyId, Wire};
use privet_family::Secret;
use privet_kernels::{Chunks, CompareShape, LookupShape};
use privet_prg::{Seed, TreeHash};
use privet_ring::{BitVec, Ring};

privet_mutation::mutations! {
    "mask-share-of-0-zero",
    "mask-share-of-1-zero",
    "mask-shared-by-elements",
    "mask-shared-by-wires",
    "mask-shared-by-records",
    "bit-mask-share-of-0-zero",
    "bit-mask-share-of-1-zero",
    "bit-mask-zero",
    "weights-share-a-mask",
    "weights-masked-as-inputs",
    "table-words-in-clear",
    "table-entries-in-clear",
    "opened-share-unmasked",
    "state-opened-unmasked",
    "lookup-not-rotated",
    "lookup-leaf-words-unmasked",
    "leaf-words-unmasked",
    "correction-words-swapped",
    "roots-equal",
    "hash-keys-reused",
    "public-term-twice",
    "public-term-at-1",
    "roles-swapped",
    "carry-dropped",
    "rounding-coins-reused",
    "rounding-coins-dropped",
    "level-mask-reused",
    "level-mask-share-of-0-zero",
    "level-mask-share-of-1-zero",
    "chunk-tables-in-clear",
    "mask-products-in-clear",
    "chunk-table-shifted",
}

/// The wire whose mask is expanded.
pub(crate) fn mask_wire(wire: Wire) -> Wire {
    if active("mask-shared-by-wires") { Wire::node(0) } else { wire }
}

/// The wire of a weight's mask.
pub(crate) fn weight_wire(wire: Wire) -> Wire {
    let shared = active("weights-share-a-mask") || active("weights-masked-as-inputs");
    if shared { Wire::node(0) } else { wire }
}

/// An evaluator's mask share, element `from` and the following.
pub(crate) fn mask_share(party: PartyId, from: usize, share: &mut [u64]) {
    if active("mask-share-of-0-zero") && party == PartyId::P0
        || active("mask-share-of-1-zero") && party == PartyId::P1
    {
        share.fill(0);
    }
    if active("mask-shared-by-elements") {
        let skip = (from % 2).min(share.len());
        share[skip..].chunks_exact_mut(2).for_each(|pair| pair[1] = pair[0]);
    }
}

/// An evaluator's share of the bits that mask comparisons.
pub(crate) fn bit_mask_share(party: PartyId, share: BitVec) -> BitVec {
    let of_0 = active("bit-mask-share-of-0-zero") && party == PartyId::P0;
    let of_1 = active("bit-mask-share-of-1-zero") && party == PartyId::P1;
    if of_0 || of_1 || active("bit-mask-zero") { BitVec::zeros(share.len()) } else { share }
}

/// The seed of a record: under a mistake, the first one of the process.
pub(crate) fn record(record: &Seed) -> Seed {
    static FIRST: std::sync::OnceLock<Seed> = std::sync::OnceLock::new();
    let reused = active("mask-shared-by-records") || active("weights-masked-as-inputs");
    if reused { FIRST.get_or_init(|| record.clone()).clone() } else { record.clone() }
}

/// The wire that rounding coins are drawn for.
pub(crate) fn rounding_wire(wire: Wire) -> Wire {
    if active("rounding-coins-reused") { Wire::node(0) } else { wire }
}

/// The hash of a frame's trees: under a mistake, that of the process's first.
pub(crate) fn hash(hash: TreeHash) -> TreeHash {
    static FIRST: std::sync::OnceLock<TreeHash> = std::sync::OnceLock::new();
    if active("hash-keys-reused") { FIRST.get_or_init(|| hash).clone() } else { hash }
}

/// A share of dealt words that was expanded from a seed.
pub(crate) fn expanded(mistake: &str, share: &mut [u64]) {
    if active(mistake) {
        share.fill(0);
    }
}

/// The level whose masks are expanded.
pub(crate) fn level(level: usize) -> usize {
    if active("level-mask-reused") { 0 } else { level }
}

/// An evaluator's share of the masks of a level.
pub(crate) fn level_mask(party: PartyId, share: &mut [u64]) {
    if active("level-mask-share-of-0-zero") && party == PartyId::P0
        || active("level-mask-share-of-1-zero") && party == PartyId::P1
    {
        share.fill(0);
    }
}

/// Both evaluators' shares of the masks of a level, as the dealer has them.
pub(crate) fn level_masks(shares: [&mut [u64]; 2]) {
    for (party, share) in PartyId::BOTH.into_iter().zip(shares) {
        level_mask(party, share);
    }
}

/// A share of the planes of part `part` of a comparison that was expanded from a seed.
pub(crate) fn expanded_planes(part: usize, share: &mut [u64]) {
    expanded(if part == 0 { "chunk-tables-in-clear" } else { "mask-products-in-clear" }, share);
}

/// The thresholds that tables are dealt for: under a mistake, each one higher.
pub(crate) fn thresholds<'a>(chunks: &Chunks, alpha: &'a [u64]) -> std::borrow::Cow<'a, [u64]> {
    if !active("chunk-table-shifted") {
        return alpha.into();
    }
    let ring = Ring::new(chunks.bits());
    alpha.iter().map(|a| ring.wrap(a.wrapping_add(1))).collect::<Vec<u64>>().into()
}

/// The evaluator that takes itself for the one that expands its share.
pub(crate) fn role(expander: usize) -> usize {
    if active("roles-swapped") { 1 - expander } else { expander }
}

/// Dealt comparison keys: one block of the layout at a time, rows of 16 bytes a key.
pub(crate) fn comparison_keys(shape: CompareShape, alpha: &[u64], keys: [&mut Vec<u8>; 2]) {
    let mistakes = ["correction-words-swapped", "leaf-words-unmasked", "roots-equal"];
    if !mistakes.iter().any(|name| active(name)) {
        return;
    }
    let [key0, key1] = keys;
    if active("roots-equal") {
        return key1.copy_from_slice(key0);
    }
    for key in [key0, key1] {
        let rows = shape.depth() + 2;
        for (block, alpha) in key.chunks_mut(16 * rows * 64).zip(alpha.chunks(64)) {
            let row = 16 * alpha.len();
            if active("correction-words-swapped") && rows > 3 {
                let (first, rest) = block[row..].split_at_mut(row);
                first.swap_with_slice(&mut rest[..row]);
            }
            if active("leaf-words-unmasked") {
                for (word, alpha) in block[(rows - 1) * row..].chunks_exact_mut(16).zip(alpha) {
                    word.copy_from_slice(&(1u128 << (alpha % 128)).to_le_bytes());
                }
            }
        }
    }
}

/// Dealt look-up keys: key after key, the words of the leaf last.
pub(crate) fn lookup_keys(shape: LookupShape, words: &[u64], keys: [&mut Vec<u8>; 2]) {
    if !active("lookup-leaf-words-unmasked") {
        return;
    }
    for key in keys {
        for (key, words) in key.chunks_exact_mut(shape.key_row()).zip(words.chunks_exact(shape.words)) {
            let leaf = &mut key[16 * (1 + shape.depth())..];
            let twice = words.iter().chain(words);
            leaf.chunks_exact_mut(8).zip(twice).for_each(|(b, w)| b.copy_from_slice(&w.to_le_bytes()));
        }
    }
}

/// A summand of the mask under which a state is opened.
pub(crate) fn state_mask(mut mask: Secret) -> Secret {
    if active("state-opened-unmasked") {
        mask.iter_mut().for_each(|m| *m = 0);
    }
    mask
}

//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh rep3` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

privet_mutation::mutations! {
    "tie-forgotten",
    "low-part-forgotten",
    "reshare-unmasked",
    "and-unmasked",
    "deal-unmasked",
    "split-unmasked",
    "hidden-coins-dropped",
    "masks-repeat",
    "outputs-not-refreshed",
    "coins-of-the-common-key",
    "coins-not-compared",
    "copies-not-compared",
    "commitment-not-checked",
    "revealed-not-compared",
    "nothing-proved",
    "under-way-forgotten",
    "coefficients-alike",
    "challenges-not-compared",
    "reports-not-compared",
    "last-values-not-checked",
    "bits-alone-checked",
    "verdicts-ignored",
    "last-values-unmasked",
    "fold-values-unmasked",
    "modes-not-compared",
    "tags-not-checked",
    "tags-not-proved",
    "ahead-not-reported",
    "tag-keys-forgotten",
    "spent-forgotten",
    "difference-unmasked",
}

/// What is drawn as a mask, unless this fault takes it away at all that draw it.
pub(crate) fn mask<const N: usize>(name: &str, words: [&mut [u64]; N]) {
    if active(name) {
        words.into_iter().for_each(|words| words.fill(0));
    }
}

//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh ot` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

privet_mutation::mutations! {
    "base-choice-open",
    "delta-repeats",
    "level-sums-unmasked",
    "tree-sums-unmasked",
    "corrections-unmasked",
    "tweak-constant",
    "choices-unmasked",
    "roots-repeat",
    "seeds-repeat",
    "reserve-given-out",
    "noise-left-out",
}

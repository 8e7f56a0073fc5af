//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh he` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

privet_mutation::mutations! {
    "publics-repeat",
    "keys-repeat",
    "errors-constant",
    "errors-narrow",
    "ternary-constant",
    "not-drowned",
    "drowned-narrowly",
    "not-rerandomised",
    "rerandomised-without-error",
    "rounding-towards-zero",
    "key-without-error",
    "coarser-than-stated",
    "galois-publics-repeat",
    "galois-operands-alike",
    "galois-key-without-error",
    "galois-not-rerandomised",
    "galois-rerandomised-without-error",
    "galois-drowned-narrowly",
    "torus-publics-repeat",
    "torus-keys-repeat",
    "torus-layers-alike",
    "torus-mask-without-error",
    "torus-operand-unmasked",
    "torus-hint-not-hidden",
    "torus-hidings-repeat",
    "torus-hidings-redrawn",
    "torus-hint-without-error",
    "torus-floors-without-a-unit",
    "torus-blanks-forgotten",
    "torus-wraps-without-sign",
    "torus-digits-too-long",
}

/// Words that are drawn, unless this fault makes them all the same.
pub(crate) fn constant(name: &str, words: &mut [u64], word: u64) {
    if active(name) {
        words.fill(word);
    }
}

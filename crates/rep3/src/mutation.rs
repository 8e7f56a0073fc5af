//! Faults that tests switch on, one at a time, to see that a test finds each (`scripts/mutations.sh rep3`).
//!
//! Only where the feature `mutations` is on, which no build with optimisation for release accepts; otherwise no hook is
//! compiled.

#[cfg(all(feature = "mutations", not(debug_assertions)))]
compile_error!("the feature `mutations` switches security off, for tests: never in a release build");

/// Every fault, one a line: the script reads this list.
#[cfg(feature = "mutations")]
pub const MUTATIONS: [&str; 21] = [
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
    "coefficients-alike",
    "challenges-not-compared",
    "last-values-not-checked",
    "bits-alone-checked",
    "verdicts-ignored",
    "last-values-unmasked",
    "fold-values-unmasked",
    "modes-not-compared",
];

/// Whether `PRIVET_MUTATION` names this fault. Panics where it names one that is not in the list.
#[cfg(feature = "mutations")]
pub(crate) fn active(name: &str) -> bool {
    use std::sync::LazyLock;
    static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| {
        let chosen = std::env::var("PRIVET_MUTATION").ok();
        let known = chosen.as_deref().is_none_or(|chosen| MUTATIONS.contains(&chosen));
        assert!(known, "there is no mutation {chosen:?}");
        chosen
    });
    assert!(MUTATIONS.contains(&name), "mutation `{name}` is not in the list");
    CHOSEN.as_deref() == Some(name)
}

/// Never.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn active(_: &str) -> bool {
    false
}

/// What is drawn as a mask, unless this fault takes it away at all that draw it.
pub(crate) fn mask<const N: usize>(name: &str, words: [&mut [u64]; N]) {
    if active(name) {
        words.into_iter().for_each(|words| words.fill(0));
    }
}

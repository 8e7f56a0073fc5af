//! Faults that tests switch on, one at a time, to see that a test finds each (`scripts/mutations.sh he`).
//!
//! Only where the feature `mutations` is on, which no build with optimisation for release accepts; otherwise no hook is
//! compiled.

#[cfg(all(feature = "mutations", not(debug_assertions)))]
compile_error!("the feature `mutations` switches security off, for tests: never in a release build");

/// Every fault, one a line: the script reads this list.
#[cfg(feature = "mutations")]
pub const MUTATIONS: [&str; 14] = [
    "publics-repeat",
    "errors-constant",
    "errors-narrow",
    "ternary-constant",
    "not-drowned",
    "drowned-narrowly",
    "not-rerandomised",
    "rerandomised-without-error",
    "shares-constant",
    "rounding-towards-zero",
    "key-without-error",
    "summand-without-error",
    "partial-not-drowned",
    "partial-shares-constant",
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

/// Words that are drawn, unless this fault makes them all the same.
pub(crate) fn constant(name: &str, words: &mut [u64], word: u64) {
    if active(name) {
        words.fill(word);
    }
}

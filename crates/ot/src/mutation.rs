//! Faults that tests switch on, one at a time, to see that a test finds each (`scripts/mutations.sh ot`).
//!
//! Only where the feature `mutations` is on, which no build with optimisation for release accepts; otherwise no hook is
//! compiled.

#[cfg(all(feature = "mutations", not(debug_assertions)))]
compile_error!("the feature `mutations` switches security off, for tests: never in a release build");

/// Every fault, one a line: the script reads this list.
#[cfg(feature = "mutations")]
pub const MUTATIONS: [&str; 10] = [
    "base-choice-open",
    "delta-repeats",
    "level-sums-unmasked",
    "tree-sums-unmasked",
    "corrections-unmasked",
    "tweak-constant",
    "choices-unmasked",
    "roots-repeat",
    "reserve-given-out",
    "noise-left-out",
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

//! Known mistakes that tests switch on, one at a time, to see that a test finds each: `scripts/mutations.sh CRATE`.
//!
//! A crate lists its own with [`mutations!`] in `src/mutation.rs` and has a feature `mutations`. Without the feature every hook
//! is the constant `false`. With it nothing but a debug build compiles: [`active`] is not in a release build at all.

/// The list of a crate's mistakes, one a line, and `active(name)`: whether `PRIVET_MUTATION` chooses that one.
///
/// Expands to a crate-private function that is `false` where the crate's feature `mutations` is off.
#[macro_export]
macro_rules! mutations {
    ($($name:literal),+ $(,)?) => {
        #[cfg(all(feature = "mutations", not(debug_assertions)))]
        compile_error!("the feature `mutations` breaks the protocol on purpose, for tests: never in a release build");

        /// Whether `PRIVET_MUTATION` names this mistake. Panics where either is not in the list.
        #[cfg(all(feature = "mutations", debug_assertions))]
        pub(crate) fn active(name: &str) -> bool {
            $crate::active(&[$($name),+], name)
        }

        /// Never.
        #[cfg(not(feature = "mutations"))]
        #[inline(always)]
        pub(crate) const fn active(_: &str) -> bool {
            false
        }
    };
}

/// What [`mutations!`] asks: whether the environment variable `PRIVET_MUTATION` is `name`, one of `list`.
///
/// Panics where `name`, or what the variable names, is not in the list: a hook that nothing switches on finds nothing.
#[cfg(debug_assertions)]
pub fn active(list: &[&str], name: &str) -> bool {
    use std::sync::LazyLock;
    static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("PRIVET_MUTATION").ok());
    chosen(list, CHOSEN.as_deref(), name)
}

#[cfg(debug_assertions)]
fn chosen(list: &[&str], chosen: Option<&str>, name: &str) -> bool {
    assert!(chosen.is_none_or(|chosen| list.contains(&chosen)), "there is no mutation {chosen:?}");
    assert!(list.contains(&name), "mutation `{name}` is not in the list");
    chosen == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    mutations! {
        "one",
        "other",
    }

    const LIST: [&str; 2] = ["one", "other"];

    #[test]
    fn the_chosen_one_alone_is_active() {
        assert!(chosen(&LIST, Some("one"), "one"));
        assert!(!chosen(&LIST, Some("one"), "other"));
        assert!(!chosen(&LIST, None, "one"));
        // nothing is chosen, or nothing can be
        assert!(!active("one"));
    }

    #[test]
    #[should_panic(expected = "not in the list")]
    fn a_hook_that_is_not_listed_is_found() {
        chosen(&LIST, None, "onne");
    }

    #[test]
    #[should_panic(expected = "no mutation")]
    fn a_choice_that_is_not_listed_is_found() {
        chosen(&LIST, Some("onne"), "one");
    }
}

//! Mistakes that the tests must find, by the name that `PRIVET_MUTATION` takes; `scripts/mutations.sh heot` makes each in turn.
//!
//! Without the feature `mutations` every hook is the identity and compiles to nothing.

privet_mutation::mutations! {
    "entries-unmasked",
    "pads-of-ones-alone",
    "openings-unmasked",
    "choices-of-another-digit",
    "products-in-clear",
    "segments-shared",
    "borrow-forgotten",
    "wrap-forgotten",
    "low-part-forgotten",
    "coin-forgotten",
}

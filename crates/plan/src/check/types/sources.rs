//! What comes from owners, stays with the parties, or is known to everybody.

use super::rule::{Checked, ensure, shape_is};
use crate::check::check_name;
use crate::ir::Type;

pub(super) fn input([]: [&Type; 0], name: &str, owner: &str, most: f64) -> Checked {
    names(name, owner)?;
    limit(most)
}

/// A weight or a state.
pub(super) fn kept([]: [&Type; 0], name: &str, owner: &str) -> Checked {
    names(name, owner)
}

pub(super) fn public([]: [&Type; 0], y: &Type, name: &str, most: f64) -> Checked {
    check_name(name, false)?;
    limit(most)?;
    shape_is(y, &[])
}

fn names(name: &str, owner: &str) -> Checked {
    check_name(name, false)?;
    check_name(owner, false)
}

fn limit(most: f64) -> Checked {
    ensure(most.is_finite() && most > 0.0, || format!("its limit, {most}, is not a positive number"))
}

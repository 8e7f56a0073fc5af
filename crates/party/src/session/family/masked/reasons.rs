//! The errors of masked values, as far as events may say them.

use super::{Masked, MaskedError};
use crate::events::{Name, Reason, Why, never_public, reason};

never_public!(privet_family::Secret, privet_family::States, Masked, MaskedError);

impl Why for MaskedError {
    fn why(&self) -> Reason {
        match self {
            MaskedError::OtherSet => reason!(
                "masked.other_set",
                "the parties hold records that were not made together: a file of one store is of another preparation; prepare anew",
            ),
            MaskedError::Disagree => reason!(
                "masked.disagree",
                "the parties received different tensors from an owner: its connection or program is broken",
            ),
            MaskedError::NoState(state) => reason!(
                "masked.no_state",
                "this party has no share of state `{state}`: begin the training again, or resume it from a checkpoint",
                state = Name::of(state),
            ),
        }
    }
}

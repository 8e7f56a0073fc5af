//! The errors of masked values, as far as events may say them.

use super::{Masked, MaskedError};
use crate::events::{ErrorKind, Name, Peer, Reason, StepName, Why, never_public, reason};
use privet_family::keys::KeyError;
use privet_masked::EvalError;

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

impl Why for EvalError {
    fn why(&self) -> Reason {
        match self {
            EvalError::Net(e) => e.why(),
            EvalError::Keys(e) => e.why(),
            EvalError::Pack(_) => reason!("masked.pack", "an opening does not hold what was announced"),
            EvalError::Bits(step, peer) => reason!(
                "masked.bits",
                "step {step}: the bits of {peer} are not well formed; it runs another version or is broken",
                step = StepName::of(step),
                peer = Peer::of(peer),
            ),
            EvalError::Missing(_) => {
                reason!("masked.missing", "an operand of the plan was not given: report this as a bug")
            }
        }
    }
}

impl Why for KeyError {
    fn why(&self) -> Reason {
        match self {
            KeyError::Io(e) => reason!(
                "record.file",
                "the record cannot be read or written: {kind}; the disk or a copy changed it, or it belongs to another run",
                kind = ErrorKind::from(e),
            ),
            KeyError::Corrupt(_) => {
                reason!("record.corrupt", "the record is not what the plan says: prepare new ones")
            }
        }
    }
}

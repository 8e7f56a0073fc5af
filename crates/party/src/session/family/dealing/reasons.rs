//! Why nothing came from a dealer, as far as events may say it.

use super::fetch::FetchError;
use crate::events::{Name, Reason, Told, Why, reason};

impl Why for FetchError {
    fn why(&self) -> Reason {
        match self {
            FetchError::Talk(e) => e.why(),
            FetchError::Store(e) => e.why(),
            FetchError::Refused(said) => {
                reason!("dealt.refused", "the dealer refused: {said}", said = Told::of(said))
            }
            FetchError::Forgotten => {
                reason!(
                    "dealt.forgotten",
                    "the dealer does not know the session any more: ask for keys again"
                )
            }
            FetchError::Stopped => reason!("dealt.stopped", "the keys are not needed any more"),
            FetchError::Foreign(what) => reason!(
                "dealt.foreign",
                "the dealer sent keys of another {what}: check that all run the same plan and deployment",
                what = Name::of(what),
            ),
        }
    }
}

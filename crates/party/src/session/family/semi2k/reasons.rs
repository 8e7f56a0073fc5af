//! The family's errors, as far as events may say them.

use super::Semi2kError;
use super::session::{By, SessionKeys};
use crate::events::{Count, Reason, Told, Why, never_public, reason};
use privet_semi2k::PrepareError;

never_public!(
    privet_semi2k::MaskedWeights,
    privet_semi2k::PartySeed,
    privet_semi2k::Words,
    privet_semi2k::Bits,
    SessionKeys,
    Semi2kError
);

impl Why for Semi2kError {
    fn why(&self) -> Reason {
        match self {
            Semi2kError::Eval(e) => e.why(),
            Semi2kError::Store(e) => e.why(),
            Semi2kError::Record(_) => reason!("semi2k.record", "a record cannot be read: prepare more"),
            Semi2kError::Prepare { came, all, cause } => reason!(
                "semi2k.not_prepared",
                "the parties could not prepare ({came} of {all} records came): {cause}",
                came = Count::of(*came),
                all = Count::of(*all),
                cause = cause.why(),
            ),
            Semi2kError::Dealer { came, all, cause } => reason!(
                "semi2k.no_records_came",
                "no records from the dealer ({came} of {all} records came): {cause}",
                came = Count::of(*came),
                all = Count::of(*all),
                cause = cause.why(),
            ),
            Semi2kError::NoRecords => {
                reason!("semi2k.no_records", "no records are left for another run: prepare more")
            }
            Semi2kError::Made(By::Parties) => reason!(
                "semi2k.made_by_dealer",
                "a dealer made this session's records and knows their masks, and this deployment has none: prepare anew",
            ),
            Semi2kError::Made(By::Dealer) => reason!(
                "semi2k.made_by_parties",
                "the parties prepared this session among themselves, and this deployment has a dealer: prepare anew",
            ),
            Semi2kError::OtherOwner(_) => reason!(
                "semi2k.other_owner",
                "this session's records are for weights of another owner: prepare anew",
            ),
            Semi2kError::NoChecks => {
                reason!(
                    "semi2k.no_checks",
                    "records of semi2k cannot be checked by opening them: prepare without checks"
                )
            }
            Semi2kError::NoStream => {
                reason!("semi2k.no_stream", "semi2k prepares records at once: prepare without a stream")
            }
        }
    }
}

impl Why for PrepareError {
    fn why(&self) -> Reason {
        match self {
            PrepareError::Net(e) => e.why(),
            PrepareError::Record(e) => e.why(),
            PrepareError::Failed(said) => {
                reason!(
                    "semi2k.failed",
                    "what the parties prepare does not come about: {said}",
                    said = Told::of(said)
                )
            }
        }
    }
}

//! The family's errors, as far as events may say them.

use super::HeotError;
use crate::events::{Name, Peer, Reason, Why, never_public, reason};
use privet_heot::RunError;

never_public!(
    privet_heot::Session,
    privet_heot::Hints,
    privet_heot::Weights,
    privet_heot::Outcome,
    HeotError
);

impl Why for HeotError {
    fn why(&self) -> Reason {
        match self {
            HeotError::Run(e) => e.why(),
            HeotError::Store(e) => e.why(),
            HeotError::NoRecords => {
                reason!("heot.no_records", "no records are left for another run: prepare more")
            }
            HeotError::NoChecks => {
                reason!(
                    "heot.no_checks",
                    "records of heot cannot be checked by opening them: prepare without checks"
                )
            }
            HeotError::NoStream => {
                reason!("heot.no_stream", "heot prepares records at once: prepare without a stream")
            }
            HeotError::OtherHints => reason!(
                "heot.other_hints",
                "the parties hold different hints at the weights: run the same version at both, and prepare anew",
            ),
            HeotError::Numbers => reason!(
                "heot.numbers",
                "the other party listed records that nobody can number: it runs another version or is broken",
            ),
            HeotError::NotTheServer => {
                reason!("heot.not_the_server", "party 0 alone may own weights: nobody else may know them")
            }
            HeotError::NoWeights => {
                reason!("heot.no_weights", "the server has no weights: set `weights` in its node.toml")
            }
            HeotError::HintsUsedUp => {
                reason!("heot.hints_used_up", "the hints of this session serve no more runs: prepare anew")
            }
        }
    }
}

impl Why for RunError {
    fn why(&self) -> Reason {
        match self {
            RunError::Net(e) => e.why(),
            RunError::Record(e) => e.why(),
            RunError::Transfers(privet_ot::OtError::Net(e)) => e.why(),
            RunError::Transfers(privet_ot::OtError::Message { peer, .. }) => reason!(
                "heot.transfers",
                "a message of {peer} is none of oblivious transfer: it runs another version or is broken",
                peer = Peer::of(peer),
            ),
            RunError::Short(_) => {
                reason!("heot.short", "fewer transfers were made than material takes: report this as a bug")
            }
            RunError::Form { step, peer, .. } => reason!(
                "heot.form",
                "step {step}: a message of {peer} is not well formed; it runs another version or is broken",
                step = Name::of(step),
                peer = Peer::of(peer),
            ),
            RunError::Missing(_) => {
                reason!("heot.missing", "what a run needs is not there, or is of another plan: prepare anew")
            }
            RunError::Refused(_) => reason!("heot.refused", "the plan or its weights are refused under heot"),
            _ => reason!("heot.other", "a run of heot failed"),
        }
    }
}

//! The family's errors, as far as events may say them.

use super::FssError;
use super::checks::CheckError;
use super::stream::StreamError;
use crate::events::{Count, Number, Reason, Secs, Term, Told, Why, never_public, reason};
use std::time::Duration;

never_public!(privet_fss::MaskedWeights, privet_fss::PartySeed, FssError);

impl Why for FssError {
    fn why(&self) -> Reason {
        match self {
            FssError::Eval(e) => e.why(),
            FssError::Store(e) => e.why(),
            FssError::Dealer { came, all, cause } => reason!(
                "fss.no_keys_came",
                "no keys from the dealer ({came} of {all} records came): {cause}",
                came = Count::of(*came),
                all = Count::of(*all),
                cause = cause.why(),
            ),
            FssError::Checked(e) => e.why(),
            FssError::Stream(e) => e.why(),
            FssError::NoKeys => reason!("fss.no_keys", "no keys are left for another run: prepare more"),
            FssError::CheckedStream => {
                reason!(
                    "fss.checked_stream",
                    "a stream of keys cannot be checked: prepare with checks, without a stream"
                )
            }
            FssError::UncheckedStream { least } => reason!(
                "fss.unchecked_stream",
                "this deployment demands {least} checks of the dealer (`min_checks`), and a stream of keys cannot be checked",
                least = Count::of(*least),
            ),
            FssError::FewChecks { asked, least } => reason!(
                "fss.few_checks",
                "this deployment demands {least} checks of the dealer (`min_checks`), and {asked} were asked for",
                least = Count::of(*least),
                asked = Count::of(*asked),
            ),
            FssError::CheckedSession => reason!(
                "fss.checked_session",
                "further keys of an open session cannot be checked: prepare them with checks, for a new session",
            ),
        }
    }
}

impl Why for CheckError {
    fn why(&self) -> Reason {
        match self {
            CheckError::Fetch(e) => e.why(),
            CheckError::Store(e) => e.why(),
            CheckError::Talk(e) => e.why(),
            CheckError::Wrong { session, at } => reason!(
                "fss.wrong_keys",
                "the dealer's keys are wrong (session {session}, {at}): do not use this dealer",
                session = Term::of(session),
                at = Term::of(at),
            ),
            CheckError::Disagree => reason!(
                "fss.other_sessions",
                "the dealer's sessions or their openings are not the same at both parties: do not use this dealer",
            ),
            CheckError::NotOpened(said) => reason!(
                "fss.not_opened",
                "the dealer did not open the sessions to be checked ({said}): do not use these keys or this dealer",
                said = Told::of(said),
            ),
            CheckError::Coin => reason!(
                "fss.coin",
                "the other party did not reveal what it committed to in the coin toss: it is broken or cheats",
            ),
            CheckError::Alone => reason!("fss.alone", "keys cannot be checked by one party alone"),
            CheckError::Peer(said) => {
                reason!("fss.peer_refuses", "the other party refuses the keys: {said}", said = Told::of(said))
            }
        }
    }
}

impl Why for StreamError {
    fn why(&self) -> Reason {
        match self {
            StreamError::Late { index, seconds, came, all } => reason!(
                "fss.late",
                "waited {waited} for the keys of run {run} ({came} of {all} records came so far): is the dealer running, and have \
                 both parties room for keys?",
                waited = Secs::of(Duration::from_secs(*seconds)),
                run = Number::of(*index),
                came = Count::of(*came),
                all = Count::of(*all),
            ),
            // Why it ended was an event of its own.
            StreamError::Ended { .. } => {
                reason!("fss.stream_ended", "no further keys come from the dealer: prepare more")
            }
        }
    }
}

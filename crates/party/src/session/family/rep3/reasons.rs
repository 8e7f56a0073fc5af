//! The family's errors, as far as events may say them.

use super::Rep3Error;
use crate::events::{Name, Number, Peer, Reason, Term, Why, never_public, reason};
use privet_rep3::{PartyId, RunError, StateError};

never_public!(
    privet_rep3::Share,
    privet_rep3::States,
    privet_rep3::Portion,
    privet_rep3::Revealed,
    privet_rep3::Keys,
    Rep3Error
);

fn party(p: &PartyId) -> Peer {
    Peer::of(&p.to_string())
}

fn step(n: &u32) -> Number {
    Number::of(u64::from(*n))
}

impl Why for Rep3Error {
    fn why(&self) -> Reason {
        match self {
            Rep3Error::Run(e) => e.why(),
            Rep3Error::States(e) => e.why(),
            Rep3Error::NoDealer => {
                reason!("rep3.no_dealer", "rep3 has no dealer that could be checked: prepare without checks")
            }
            Rep3Error::OutOfTurn { index, next } => reason!(
                "rep3.out_of_turn",
                "party 0 ordered run {index} of a session of which run {next} is next here: a connection broke, or party 0 does \
                 not follow the protocol; ask again for a new session",
                index = Number::of(*index),
                next = Number::of(*next),
            ),
            Rep3Error::NoMoreRuns => {
                reason!("rep3.no_more_runs", "this session has had all its runs: share the model again")
            }
        }
    }
}

impl Why for RunError {
    fn why(&self) -> Reason {
        match self {
            RunError::Net(e) => e.why(),
            RunError::Pack { step, peer, .. } => reason!(
                "rep3.pack",
                "step {step}: a message from {peer} does not hold what was announced",
                step = Name::of(step),
                peer = Peer::of(peer),
            ),
            RunError::Dishonest { prover, verifier, step: at, layer } => reason!(
                "rep3.dishonest",
                "the messages of {prover} before step {step} (layer {layer}), checked together with {verifier}, do not follow \
                 the protocol: one of these two or a link to it is at fault, the one that the log of the other names as well",
                prover = party(prover),
                step = step(at),
                layer = Name::of(layer),
                verifier = party(verifier),
            ),
            RunError::Products { before, after, step: at, layer } => reason!(
                "rep3.products",
                "products with shared weights before step {step} (layer {layer}) are not what the weights' tags say: {before}, \
                 {after} or a link to one of them is at fault, the one that the log of the other names as well",
                before = party(before),
                after = party(after),
                step = step(at),
                layer = Name::of(layer),
            ),
            RunError::Spent => reason!(
                "rep3.spent",
                "a run of this session ended during its verification, and weights' tags serve no longer: start a new session"
            ),
            RunError::Challenge { before, after, step: at, layer } => reason!(
                "rep3.challenge",
                "{before} and {after} sent different challenges before step {step} (layer {layer}): one of them, or a link, does \
                 not follow the protocol",
                before = party(before),
                after = party(after),
                step = step(at),
                layer = Name::of(layer),
            ),
            RunError::Report { prover, verifier, step: at, layer } => reason!(
                "rep3.report",
                "{prover} was told other coefficients or challenges by {verifier} before step {step} (layer {layer}) than both \
                 verifiers drew, or says so: one of them, or a link, does not follow the protocol",
                prover = party(prover),
                verifier = party(verifier),
                step = step(at),
                layer = Name::of(layer),
            ),
            RunError::Coins { before, after, step: at, layer } => reason!(
                "rep3.coins",
                "{before} and {after} sent different shares of the run's coins at step {step} (layer {layer}): one of them, or a \
                 link, does not follow the protocol",
                before = party(before),
                after = party(after),
                step = step(at),
                layer = Name::of(layer),
            ),
            RunError::Refused { peer, step: at, layer } => reason!(
                "rep3.refused",
                "{peer} refused to go on at step {step} (layer {layer}): a check failed there",
                peer = party(peer),
                step = step(at),
                layer = Name::of(layer),
            ),
            RunError::Missing(_) => {
                reason!("rep3.missing", "an operand of the plan was not given: report this as a bug")
            }
            RunError::Inconsistent { step, peer } => reason!(
                "rep3.inconsistent",
                "step {step}: this party and {peer} were given different copies of what both should hold; the owner of an input \
                 or {peer} does not follow the protocol",
                step = Name::of(step),
                peer = Peer::of(peer),
            ),
            RunError::Mode { step, peer, mode } => reason!(
                "rep3.mode",
                "step {step}: this party's deployment file says security = \"{mode}\", and {peer}'s does not: make the files of \
                 all parties alike",
                step = Name::of(step),
                mode = Term::of(&mode.to_string()),
                peer = party(peer),
            ),
            RunError::Agreement { step, peer } => reason!(
                "rep3.agreement",
                "step {step}: the common key does not agree with {peer}'s; one of the other parties does not follow the protocol",
                step = Name::of(step),
                peer = Peer::of(peer),
            ),
        }
    }
}

impl Why for StateError {
    fn why(&self) -> Reason {
        match self {
            StateError::Plans(state) => reason!(
                "rep3.state_plans",
                "the program's plans disagree about state `{state}`: compile them together",
                state = Name::of(state),
            ),
            StateError::Missing(state) => reason!(
                "rep3.no_state",
                "this party has no share of state `{state}`: begin the training again, or resume it from a checkpoint",
                state = Name::of(state),
            ),
            StateError::Length { name, .. } => reason!(
                "rep3.state_length",
                "the share of state `{state}` is of another program",
                state = Name::of(name),
            ),
            StateError::Bytes(_) => {
                reason!("rep3.state_bytes", "the saved states are not this program's, or were changed")
            }
        }
    }
}

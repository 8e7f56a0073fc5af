//! Errors of jobs, whatever the family.

use crate::events::{Name, Number, Reason, Secs, ShortId, Told, Why, reason};
use crate::session::access::AccessError;
use crate::session::job::JobError;
use std::time::Duration;

fn party(n: u8) -> Number {
    Number::of(u64::from(n))
}

impl Why for JobError {
    fn why(&self) -> Reason {
        match self {
            JobError::Talk(e) => e.why(),
            JobError::Family(e) | JobError::Lacks(e) => e.why(),
            JobError::OtherRequest => reason!(
                "job.other_request",
                "the client asked the parties for different things: its program is broken",
            ),
            JobError::OtherOrder(p) => reason!(
                "job.other_order",
                "party 0 gave this party and party {party} different orders, or party {party} says so: one of them is broken or \
                 cheats",
                party = party(*p),
            ),
            JobError::NotAsked(p) => reason!(
                "job.not_asked",
                "party {party} did not hear from the client: it must connect to all parties",
                party = party(*p),
            ),
            JobError::Absent { place, seconds } => reason!(
                "job.absent",
                "{place} did not ask for the same within {waited}",
                place = place.clone(),
                waited = Secs::of(Duration::from_secs(*seconds)),
            ),
            JobError::Owner(e) => e.why(),
            JobError::Declined { party: p, reason } => reason!(
                "job.declined",
                "party {party} declined: {said}",
                party = party(*p),
                said = Told::of(reason),
            ),
            JobError::PeerLacks { party: p, reason } => reason!(
                "job.peer_lacks",
                "party {party} declined: {said}",
                party = party(*p),
                said = Told::of(reason),
            ),
            JobError::CalledOff(said) => {
                reason!("job.called_off", "the job was called off: {said}", said = Told::of(said))
            }
            JobError::PreparationPanicked => {
                reason!(
                    "job.panicked",
                    "the preparation's thread panicked: report this as a bug, then prepare again"
                )
            }
            JobError::StillPreparing { party: p } => reason!(
                "job.still_preparing",
                "party {party} is still busy with the last preparation",
                party = party(*p),
            ),
            JobError::NoPeer { party: p, seconds } => reason!(
                "job.no_peer",
                "party {party} is not connected (waited {waited}): start it, and see `privet doctor`",
                party = party(*p),
                waited = Secs::of(Duration::from_secs(*seconds)),
            ),
            JobError::NoParty(p) => {
                reason!("job.no_party", "party {party} has no part in this job", party = party(*p))
            }
            JobError::Unreachable { me, party: p, cause } => reason!(
                "job.unreachable",
                "party {me} cannot reach party {party}: {cause}",
                me = party(*me),
                party = party(*p),
                cause = cause.why(),
            ),
            JobError::Access(e) => e.why(),
            JobError::Malformed(what) => reason!(
                "job.malformed",
                "party 0 gave an order that makes no sense ({what}): it is broken or cheats",
                what = Told::of(what),
            ),
            JobError::NotOpen => {
                reason!("job.not_open", "no session is open: the model owner must share the model first")
            }
            JobError::NoWeights => reason!(
                "job.no_weights",
                "this party owns the model, but its node file names no `weights` file: add it and restart",
            ),
            JobError::Tensors(e) => e.why(),
            JobError::Encode(e) | JobError::Publics(e) => e.why(),
            JobError::Differ { first, second, .. } => reason!(
                "job.differ",
                "{second} and {first} ask for different things in one job",
                first = first.clone(),
                second = second.clone(),
            ),
            JobError::NoStates => {
                reason!("job.no_states", "this plan or program has no states to train or to start from")
            }
            JobError::NoStep => {
                reason!("job.no_step", "a run of this plan says which training and step it starts from")
            }
            JobError::NoTraining => {
                reason!("job.no_training", "this party holds no training: begin one, or resume yours")
            }
            JobError::OtherStep { wanted, training, .. } => reason!(
                "job.other_step",
                "step {step} of training {wanted} is not here: this party holds other steps, of training {held}",
                step = Number::of(wanted.step),
                wanted = ShortId::from(wanted.training),
                held = ShortId::from(*training),
            ),
            JobError::OtherTrail => reason!(
                "job.other_trail",
                "this party's states of that step do not belong to party 0's: resume the training",
            ),
            JobError::NoCommonStep { training, .. } => reason!(
                "job.no_common_step",
                "no step of training {training} is at all parties: begin the training anew",
                training = ShortId::from(*training),
            ),
            JobError::Checkpoint(e) => e.why(),
            JobError::Restore(_) => {
                reason!("job.restore", "the checkpoint's shares are not those of this program")
            }
            JobError::SessionLost => reason!(
                "job.session_lost",
                "a party was restarted or ended the session: the model owner must share the model again",
            ),
        }
    }
}

impl Why for AccessError {
    fn why(&self) -> Reason {
        match self {
            AccessError::NoRole { place, .. } => reason!(
                "access.no_role",
                "{place} has no role in this: see [roles] in the deployment file",
                place = place.clone(),
            ),
            AccessError::NoPlan { .. } => {
                reason!("access.no_plan", "there is no plan of that name in the program")
            }
            AccessError::NothingToShare(plan) => {
                reason!(
                    "access.nothing_to_share",
                    "plan {plan} has no weights to share",
                    plan = Name::of(plan)
                )
            }
            AccessError::NoStates => reason!("access.no_states", "this program has no states to train"),
        }
    }
}

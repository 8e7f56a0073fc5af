//! Begin a session: a client shares the weights, or a party shares those of its node file, or there are none.

use super::{Engine, tell};
use crate::config::Place;
use crate::events::{Event, JobEvents};
use crate::session::control::{Id, Reply, Request};
use crate::session::family::{Encoded, Family};
use crate::session::job::JobError;
use crate::session::order::Order;
use crate::session::owner::{Shared, encode};
use crate::session::party::Caller;
use crate::session::peers::Others;
use crate::tensors;

impl<F: Family> Engine<F> {
    pub(super) fn plan_beginning(&self, id: Id, plan: &str) -> Result<Order, JobError> {
        let session = self.served(plan)?.family.next_session()?;
        Ok(Order::Begin { id, plan: plan.to_owned(), session })
    }

    /// What has to happen before a run of a plan can: begin its next session, where no client has to share anything for
    /// that, and the open session (if any) has nothing left.
    pub fn order_before_run(&self, plan: &str) -> Result<Option<Order>, JobError> {
        let served = self.served(plan)?;
        let Ok(owner) = self.access().party_with_the_model(&served.plan) else { return Ok(None) };
        if served.family.open_session().is_some() && served.family.runs_left() != Some(0) {
            return Ok(None);
        }
        let session = served.family.next_session()?;
        Ok(Some(Order::BeginFrom { plan: plan.to_owned(), owner, session }))
    }

    pub(super) fn consent_to_beginning(
        &self,
        plan: &str,
        session: Id,
        callers: &[Caller],
    ) -> Result<(), JobError> {
        self.complete(callers)?;
        match callers {
            [Caller { request: Request::ShareWeights { plan: theirs, .. }, .. }] if theirs == plan => {
                self.served(plan)?.family.may_begin(session)
            }
            _ => Err(JobError::OtherRequest),
        }
    }

    pub(super) fn consent_to_beginning_from(
        &mut self,
        plan: &str,
        owner: Option<u8>,
        session: Id,
        callers: &[Caller],
    ) -> Result<(), JobError> {
        self.access().begins_with(plan, owner)?;
        let served = self.served(plan)?;
        served.family.may_begin(session)?;
        if !callers.is_empty() {
            return Err(JobError::OtherRequest);
        }
        if owner == Some(self.party) && served.family.holds_own_weights() {
            self.own = Some(Encoded::new());
        } else if owner == Some(self.party) {
            // Before a session is used up for them.
            let path = self.links.config.node.weights.as_deref().ok_or(JobError::NoWeights)?;
            let roles = self.roles(&Place::Party(self.party));
            let own = encode(&served.plan, Shared::Weights, &roles, &tensors::load(path)?)?;
            self.own = Some(own);
        }
        Ok(())
    }

    pub(super) fn begin(
        &mut self,
        plan: &str,
        session: Id,
        callers: &mut [Caller],
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        self.family(plan)?.begin(session, others)?;
        let served = self.served(plan)?;
        let pieces = Shared::Weights.all(&served.plan);
        let weights = self.receive(&served.family, Shared::Weights, &pieces, callers)?;
        self.open(plan, session, weights, others, job)?;
        tell(callers, &Reply::Done { account: None })
    }

    pub(super) fn begin_from(
        &mut self,
        plan: &str,
        owner: Option<u8>,
        session: Id,
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        let own = self.own.take();
        self.family(plan)?.begin(session, others)?;
        let served = self.served(plan)?;
        let (kind, mut weights) = (Shared::Weights, F::Tensors::default());
        let pieces = kind.all(&served.plan);
        match owner {
            None => {}
            Some(owner) if owner == self.party => {
                let own = own.ok_or(JobError::NoWeights)?;
                served.family.share_own(&pieces, &own, others, &mut weights)?;
            }
            Some(owner) => {
                let owner = others.to(owner)?;
                served.family.grant(kind, &pieces, owner)?;
                served.family.receive(kind, &pieces, owner, &mut weights)?;
            }
        }
        self.open(plan, session, weights, others, job)
    }

    fn open(
        &mut self,
        plan: &str,
        session: Id,
        weights: F::Tensors,
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        self.family(plan)?.open(weights, others)?;
        job.emit(|job| Event::SessionOpen { job, session: session.into() });
        Ok(())
    }
}

//! Have ready what runs use up.

use super::Engine;
use crate::session::control::{Amount, Id, Request};
use crate::session::family::{Family, Preparer};
use crate::session::job::JobError;
use crate::session::order::{Order, Preparation};
use crate::session::party::Caller;

impl<F: Family> Engine<F> {
    pub(super) fn plan_preparation(&self, id: Id, plan: &str, amount: Amount) -> Result<Order, JobError> {
        let session = self.served(plan)?.family.session_to_extend(amount.checks);
        let what = Preparation { deal: Id::fresh(), session, amount };
        Ok(Order::Prepare { id, plan: plan.to_owned(), what })
    }

    pub(super) fn consent_to_preparation(
        &self,
        plan: &str,
        what: &Preparation,
        callers: &[Caller],
    ) -> Result<(), JobError> {
        self.complete(callers)?;
        let family = &self.served(plan)?.family;
        if what.session.is_some() && what.session != family.open_session() {
            return Err(JobError::SessionLost);
        }
        match callers {
            [Caller { request: Request::Prepare { plan: p, amount, .. }, .. }]
                if p == plan && *amount == what.amount =>
            {
                family.may_prepare(what)
            }
            _ => Err(JobError::OtherRequest),
        }
    }

    /// This party's part in a preparation, to be done away from the service.
    pub fn preparer(&mut self, plan: &str, what: &Preparation) -> Result<F::Preparer, JobError> {
        self.family(plan)?.preparer(what)
    }

    /// A preparation has ended; without anything made where it failed.
    pub fn preparation_ended(
        &mut self,
        plan: &str,
        what: &Preparation,
        made: Option<<F::Preparer as Preparer>::Made>,
    ) {
        if let Ok(family) = self.family(plan) {
            family.preparation_ended(what, made);
        }
    }
}

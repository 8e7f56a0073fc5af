//! Have ready what runs use up.

use super::{Engine, tell};
use crate::session::control::{Amount, Id, Reply, Request};
use crate::session::family::Family;
use crate::session::job::JobError;
use crate::session::order::{Order, Preparation};
use crate::session::party::Caller;
use crate::session::peers::Others;
use std::time::Instant;

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

    pub(super) fn prepare(
        &mut self,
        plan: &str,
        what: &Preparation,
        callers: &mut [Caller],
        others: &mut Others,
    ) -> Result<(), JobError> {
        let start = Instant::now();
        let key_bytes = self.family(plan)?.prepare(what, others)?;
        let seconds = start.elapsed().as_secs_f64();
        // A family that needs no keys has no offline phase, however long its answer took.
        let seconds = if key_bytes > 0 { seconds } else { 0.0 };
        tell(callers, &Reply::Prepared { seconds, key_bytes })
    }
}

//! What a party does with an order, whatever the family: check it and take what it needs ([`Engine::consent`]), then do
//! it ([`Engine::execute`]). Each kind of order has a file, in which the parts stand in the order in which they happen: as
//! party 0 plans it, as every party checks it, as all do it.

mod begin;
mod prepare;
mod run;
#[cfg(test)]
mod tests;
mod training;

use super::access::{Access, AccessError};
use super::checkpoint::Checkpoints;
use super::control::{At, PlanStatus, Reply, Request, Talk, say};
use super::family::{Encoded, Family};
use super::job::JobError;
use super::links::Links;
use super::order::Order;
use super::owner::{Piece, Shared, owned};
use super::party::Caller;
use super::peers::Others;
use super::states::Training;
use crate::config::Place;
use crate::events::{Event, Events, Job, JobEvents};
use privet_plan::{Plan, Program};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan of the program with its keys and session.
pub(super) struct Served<F> {
    pub plan: Arc<Plan>,
    pub family: F,
}

/// One party's part in jobs.
pub(super) struct Engine<F: Family> {
    party: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    plans: BTreeMap<String, Served<F>>,
    /// This party's own weights, encoded before it consented to share them.
    own: Option<Encoded>,
    training: Option<Training<F::States>>,
    checkpoints: Checkpoints,
    events: Events,
}

impl<F: Family> Engine<F> {
    pub fn new(
        party: u8,
        links: Arc<Links>,
        program: Arc<Program>,
        plans: BTreeMap<String, Served<F>>,
        events: Events,
    ) -> Engine<F> {
        let config = &links.config;
        let protocol = config.deployment.protocol;
        let checkpoints = Checkpoints::new(&config.node.checkpoints, protocol, &program.hash(), party);
        Engine { party, links, program, plans, own: None, training: None, checkpoints, events }
    }

    /// The program that this party serves.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Where the events of an order go, with those who asked for it.
    pub fn job_events(&self, order: &Order, callers: &[Caller]) -> JobEvents {
        let asked = Job::asked(&self.program, callers.iter().map(|c| (&c.place, &c.request)));
        JobEvents::new(self.events.clone(), asked.unwrap_or_else(|| Job::ordered(&self.program, order)))
    }

    /// Who may ask what.
    pub fn access(&self) -> Access<'_> {
        Access::new(&self.links.config.deployment, &self.program)
    }

    /// How things stand with every plan.
    pub fn status(&self) -> BTreeMap<String, PlanStatus> {
        let of = |served: &Served<F>| PlanStatus {
            sessions: served.family.prepared(),
            open: served.family.open_session().is_some(),
            runs_left: served.family.runs_left(),
            stream: served.family.key_stream(),
            // The service knows.
            preparing: None,
        };
        self.plans.iter().map(|(name, served)| (name.clone(), of(served))).collect()
    }

    /// The training under way, and its step.
    pub fn step(&self) -> Option<At> {
        self.training.as_ref().map(Training::step)
    }

    /// Party 0 turns requests into an order.
    pub fn plan_order(&self, callers: &[Caller]) -> Result<Order, JobError> {
        let Some(first) = callers.first() else { return Err(JobError::OtherRequest) };
        match &first.request {
            Request::Prepare { id, plan, amount } => self.plan_preparation(*id, plan, *amount),
            Request::ShareWeights { id, plan } => self.plan_beginning(*id, plan),
            Request::Run { plan, .. } => self.plan_run(plan, callers),
            Request::BeginTraining { checkpoint_every, .. } => self.plan_training(*checkpoint_every, callers),
            Request::Resume { id, training } => Ok(Order::Resume { id: *id, training: *training }),
            // It is answered without an order.
            Request::Status { .. } => Err(JobError::OtherRequest),
        }
    }

    /// Check an order, and take what it needs. Nothing is sent.
    pub fn consent(&mut self, order: &Order, callers: &[Caller]) -> Result<(), JobError> {
        order.well_formed().map_err(JobError::Malformed)?;
        self.admitted(callers)?;
        match order {
            Order::Prepare { plan, what, .. } => self.consent_to_preparation(plan, what, callers),
            Order::Begin { plan, session, .. } => self.consent_to_beginning(plan, *session, callers),
            Order::BeginFrom { plan, owner, session } => {
                self.consent_to_beginning_from(plan, *owner, *session, callers)
            }
            Order::Run { .. } => self.consent_to_run(order, callers),
            Order::BeginTraining { checkpoint_every, .. } => {
                self.consent_to_training(*checkpoint_every, callers)
            }
            Order::Resume { training, .. } => self.consent_to_resuming(*training, callers),
        }
    }

    /// An order that this party consented to is not carried out.
    pub fn called_off(&mut self) {
        self.plans.values_mut().for_each(|served| served.family.give_up_claim());
        self.own = None;
    }

    /// Another party does not have the open session of a plan any more.
    pub fn session_lost(&mut self, plan: &str) {
        if let Some(served) = self.plans.get_mut(plan) {
            served.family.close();
        }
    }

    /// All parties do what was ordered.
    pub fn execute(
        &mut self,
        order: &Order,
        callers: &mut [Caller],
        others: &mut Others,
    ) -> Result<(), JobError> {
        // In the order of places, the same at all parties.
        callers.sort_by(|a, b| a.place.cmp(&b.place));
        others.engage();
        let job = &self.job_events(order, callers);
        job.emit(|job| Event::JobBegan { job });
        match order {
            // It is done beside all others, not here.
            Order::Prepare { .. } => Err(JobError::OtherRequest),
            Order::Begin { plan, session, .. } => self.begin(plan, *session, callers, others, job),
            Order::BeginFrom { plan, owner, session } => self.begin_from(plan, *owner, *session, others, job),
            Order::Run { .. } => self.run(order, callers, others, job),
            Order::BeginTraining { training, checkpoint_every, .. } => {
                self.begin_training(*training, *checkpoint_every, callers, others, job)
            }
            Order::Resume { training, .. } => self.resume(*training, callers, others, job),
        }
    }

    fn served(&self, plan: &str) -> Result<&Served<F>, JobError> {
        self.plans.get(plan).ok_or_else(|| AccessError::no_plan(plan, &self.program).into())
    }

    fn family(&mut self, plan: &str) -> Result<&mut F, JobError> {
        let unknown = || AccessError::no_plan(plan, &self.program).into();
        self.plans.get_mut(plan).map(|served| &mut served.family).ok_or_else(unknown)
    }

    /// The roles of a place.
    fn roles(&self, place: &Place) -> Vec<&str> {
        self.links.config.deployment.roles.of(place)
    }

    /// All callers may ask for what they ask for, each as far as it alone goes.
    pub fn admitted(&self, callers: &[Caller]) -> Result<(), JobError> {
        let access = self.access();
        Ok(callers.iter().try_for_each(|c| access.callers(&c.place, &c.request).map(drop))?)
    }

    /// The callers are exactly those who must ask for this together, each once.
    fn complete(&self, callers: &[Caller]) -> Result<(), JobError> {
        let mut present: Vec<&Place> = callers.iter().map(|c| &c.place).collect();
        present.sort();
        for c in callers {
            if !self.access().callers(&c.place, &c.request)?.iter().eq(present.iter().copied()) {
                return Err(JobError::OtherRequest);
            }
        }
        if callers.is_empty() { Err(JobError::OtherRequest) } else { Ok(()) }
    }

    /// Let the owners among the callers share tensors.
    fn receive(
        &self,
        family: &F,
        kind: Shared,
        pieces: &[Piece],
        callers: &mut [Caller],
    ) -> Result<F::Tensors, JobError> {
        let of = |c: &Caller| owned(pieces.to_vec(), &self.roles(&c.place));
        for c in callers.iter_mut() {
            c.granted = true;
            family.grant(kind, &of(c), &mut c.channel)?;
        }
        let mut tensors = F::Tensors::default();
        for c in callers.iter_mut() {
            family.receive(kind, &of(c), &mut c.channel, &mut tensors)?;
        }
        Ok(tensors)
    }
}

/// Answer all callers alike.
fn tell(callers: &mut [Caller], reply: &Reply) -> Result<(), JobError> {
    callers.iter_mut().try_for_each(|c| Ok(say(&mut c.channel, Talk::Reply, reply)?))
}

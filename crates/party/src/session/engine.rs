//! What a party does with an order, whatever the family: check it, take part, answer the clients.

use super::control::{Id, PartyRun, Reply, Request, Talk, say};
use super::family::{Encoded, Family, Preparation};
use super::job::JobError;
use super::links::Links;
use super::order::Order;
use super::owner::{Shared, encode};
use super::party::{Caller, Log};
use super::peers::Others;
use crate::config::Place;
use crate::{sys, tensors};
use privet_family::{Opening, OpeningKind};
use privet_net::Channel;
use privet_plan::Plan;
use std::sync::Arc;
use std::time::Instant;

/// One party's part in jobs.
pub(super) struct Engine<F> {
    party: u8,
    links: Arc<Links>,
    plan: Arc<Plan>,
    family: F,
    /// This party's own weights, encoded before it consented to share them.
    own: Option<Encoded>,
    log: Log,
}

impl<F: Family> Engine<F> {
    pub fn new(party: u8, links: Arc<Links>, plan: Arc<Plan>, family: F, log: Log) -> Engine<F> {
        Engine { party, links, plan, family, own: None, log }
    }

    /// Its keys and session.
    pub fn family(&self) -> &F {
        &self.family
    }

    /// The places that must take part in a run: owners of inputs and receivers of outputs.
    pub fn places_of_a_run(&self) -> Vec<Place> {
        let owners = Shared::Inputs.all(&self.plan).into_iter().map(|(.., owner)| owner);
        let roles = owners.chain(self.plan.outputs.iter().map(|o| o.to.as_str()));
        let mut places: Vec<Place> =
            roles.filter_map(|r| self.links.config.deployment.roles.get(r).cloned()).collect();
        places.sort();
        places.dedup();
        places
    }

    /// The roles of a place.
    fn roles(&self, place: &Place) -> Vec<&'static str> {
        let all = self.links.config.deployment.roles.all();
        all.into_iter().filter(|(_, p)| *p == place).map(|(role, _)| role).collect()
    }

    /// Party 0 turns requests into an order.
    pub fn plan_order(&self, callers: &[Caller]) -> Result<Order, JobError> {
        let Some(first) = callers.first() else { return Err(JobError::NotOpen) };
        match first.request {
            Request::Prepare { id, runs, checks } => {
                // An open session cannot be checked any more: opening it would reveal what it hides.
                let session = self.family.open_session().filter(|_| checks == 0);
                Ok(Order::Prepare { id, deal: Id::fresh(), session, runs, checks })
            }
            Request::ShareWeights { id } => {
                self.owner_of_the_model(callers)?;
                Ok(Order::Begin { id, session: self.family.next_session()? })
            }
            Request::Run { .. } | Request::Status { .. } => {
                self.all_and_no_other(callers)?;
                let session = self.family.open_session().ok_or(JobError::NotOpen)?;
                let ids = callers.iter().map(|c| c.request.id()).collect();
                Ok(Order::Run { ids, session, index: self.family.next_run()? })
            }
        }
    }

    /// What has to happen before a run can: begin the next session, where a party owns the model and the open session
    /// (if any) has nothing left.
    pub fn order_before_run(&self) -> Result<Option<Order>, JobError> {
        let Some(owner) = self.model_owner_party() else { return Ok(None) };
        if self.family.open_session().is_some() && self.family.runs_left() != Some(0) {
            return Ok(None);
        }
        Ok(Some(Order::BeginFrom { owner, session: self.family.next_session()? }))
    }

    /// Check an order, and take what it needs. Nothing is sent.
    pub fn consent(&mut self, order: &Order, callers: &[Caller]) -> Result<(), JobError> {
        match order {
            Order::Prepare { session, runs, checks, .. } => {
                if session.is_some() && *session != self.family.open_session() {
                    return Err(JobError::SessionLost);
                }
                match callers.first().map(|c| &c.request) {
                    Some(Request::Prepare { runs: r, checks: c, .. }) if (r, c) == (runs, checks) => {}
                    _ => return Err(JobError::OtherRequest),
                }
                self.family.may_prepare(&preparation(order).ok_or(JobError::OtherRequest)?)
            }
            Order::Begin { session, .. } => {
                self.owner_of_the_model(callers)?;
                self.family.may_begin(*session)
            }
            Order::BeginFrom { owner, session } => {
                if self.model_owner_party() != Some(*owner) {
                    return Err(JobError::NoRole(Place::Party(*owner)));
                }
                self.family.may_begin(*session)?;
                if *owner == self.party {
                    // Before a session is used up for them.
                    let path = self.links.config.node.weights.as_deref().ok_or(JobError::NoWeights)?;
                    let roles = self.roles(&Place::Party(*owner));
                    self.own = Some(encode(&self.plan, Shared::Weights, &roles, &tensors::load(path)?)?);
                }
                Ok(())
            }
            Order::Run { session, index, .. } => {
                if self.family.open_session() != Some(*session) {
                    return Err(JobError::SessionLost);
                }
                self.all_and_no_other(callers)?;
                self.family.claim(*index)
            }
        }
    }

    /// An order that this party consented to is not carried out. The number of a run stays used.
    pub fn called_off(&mut self) {
        self.family.give_up_claim();
        self.own = None;
    }

    /// Another party does not have the open session any more.
    pub fn session_lost(&mut self) {
        self.family.close();
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
        // Where every party fetches its own keys, one that fails leaves nobody waiting.
        if !matches!(order, Order::Prepare { .. }) {
            others.engage();
        }
        match order {
            Order::Prepare { .. } => {
                self.prepare(&preparation(order).ok_or(JobError::OtherRequest)?, callers, others)
            }
            Order::Begin { session, .. } => self.begin(*session, callers, others),
            Order::BeginFrom { owner, session } => self.begin_from(*owner, *session, others),
            Order::Run { session, index, .. } => {
                (self.log)(&format!("run {index} of session {}", session.short()));
                self.run(callers, others)
            }
        }
    }

    fn prepare(
        &mut self,
        what: &Preparation,
        callers: &mut [Caller],
        others: &mut Others,
    ) -> Result<(), JobError> {
        let start = Instant::now();
        let key_bytes = self.family.prepare(what, others)?;
        let seconds = start.elapsed().as_secs_f64();
        // A family that needs no keys has no offline phase, however long its answer took.
        let seconds = if key_bytes > 0 { seconds } else { 0.0 };
        let prepared = Reply::Prepared { seconds, key_bytes };
        callers.iter_mut().try_for_each(|c| Ok(say(&mut c.channel, Talk::Reply, &prepared)?))
    }

    fn begin(&mut self, session: Id, callers: &mut [Caller], others: &mut Others) -> Result<(), JobError> {
        self.family.begin(session, others)?;
        let weights = self.receive(Shared::Weights, callers)?;
        self.open(weights, others)?;
        let done = Reply::Done { account: None };
        callers.iter_mut().try_for_each(|c| Ok(say(&mut c.channel, Talk::Reply, &done)?))
    }

    fn begin_from(&mut self, owner: u8, session: Id, others: &mut Others) -> Result<(), JobError> {
        let own = self.own.take();
        self.family.begin(session, others)?;
        let roles = self.roles(&Place::Party(owner));
        let (kind, mut weights) = (Shared::Weights, F::Tensors::default());
        if owner == self.party {
            let own = own.ok_or(JobError::NoWeights)?;
            self.family.share_own(kind, &roles, &own, others, &mut weights)?;
        } else {
            let owner = others.to(owner)?;
            self.family.grant(kind, &roles, owner)?;
            self.family.receive(kind, &roles, owner, &mut weights)?;
        }
        self.open(weights, others)
    }

    fn open(&mut self, weights: F::Tensors, others: &mut Others) -> Result<(), JobError> {
        self.family.open(weights, others)?;
        (self.log)("the model is shared; the session is open");
        Ok(())
    }

    /// Let the owners among the callers share tensors.
    fn receive(&self, kind: Shared, callers: &mut [Caller]) -> Result<F::Tensors, JobError> {
        for c in callers.iter_mut() {
            c.granted = true;
            self.family.grant(kind, &self.roles(&c.place), &mut c.channel)?;
        }
        let mut tensors = F::Tensors::default();
        for c in callers.iter_mut() {
            self.family.receive(kind, &self.roles(&c.place), &mut c.channel, &mut tensors)?;
        }
        Ok(tensors)
    }

    fn run(&mut self, callers: &mut [Caller], others: &mut Others) -> Result<(), JobError> {
        let inputs = self.receive(Shared::Inputs, callers)?;
        let ran = self.family.run(inputs, others)?;
        let mut openings = ran.openings;
        openings.extend(self.plan.outputs.iter().map(|o| {
            let ty = &self.plan.nodes[o.value].ty;
            Opening {
                step: Talk::Result as u32,
                what: format!("output {}", o.name),
                bits: ty.len() as u64 * ty.bits as u64,
                kind: OpeningKind::Revealed { to: o.to.clone() },
            }
        }));
        let account = PartyRun {
            protocol: self.links.config.deployment.protocol,
            security: self.links.config.deployment.security,
            online_s: ran.online_s,
            nodes: ran.nodes,
            checks: ran.checks,
            openings,
            peak_rss_bytes: sys::peak_rss_bytes().unwrap_or(0),
            encrypted: self.links.encrypted(),
        };
        for c in callers.iter_mut() {
            say(&mut c.channel, Talk::Reply, &Reply::Done { account: Some(Box::new(account.clone())) })?;
            let roles = self.roles(&c.place);
            for (o, share) in self.plan.outputs.iter().zip(&ran.outputs) {
                if roles.contains(&o.to.as_str()) {
                    c.channel.send(&Talk::Result.step(), share.clone())?;
                }
            }
        }
        Ok(())
    }

    /// A run takes all whom the plan gives a part in it, each once.
    fn all_and_no_other(&self, callers: &[Caller]) -> Result<(), JobError> {
        let places = self.places_of_a_run();
        if let Some(c) = callers.iter().find(|c| !places.contains(&c.place)) {
            return Err(JobError::NoRole(c.place.clone()));
        }
        let runs = callers.iter().all(|c| matches!(c.request, Request::Run { .. }));
        let each = |p: &Place| callers.iter().filter(|c| c.place == *p).count() == 1;
        if runs && places.iter().all(each) { Ok(()) } else { Err(JobError::OtherRequest) }
    }

    fn owner_of_the_model(&self, callers: &[Caller]) -> Result<(), JobError> {
        let [Caller { place, request: Request::ShareWeights { .. }, .. }] = callers else {
            return Err(JobError::OtherRequest);
        };
        let roles = self.roles(place);
        match Shared::Weights.all(&self.plan).iter().all(|(.., owner)| roles.contains(owner)) {
            true => Ok(()),
            false => Err(JobError::NoRole(place.clone())),
        }
    }

    /// The party that owns the model, if a party does.
    fn model_owner_party(&self) -> Option<u8> {
        match self.links.config.deployment.roles.model_owner {
            Place::Party(party) => Some(party),
            _ => None,
        }
    }
}

fn preparation(order: &Order) -> Option<Preparation> {
    match *order {
        Order::Prepare { deal, session, runs, checks, .. } => {
            Some(Preparation { deal, session, runs, checks })
        }
        _ => None,
    }
}

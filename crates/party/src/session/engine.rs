//! What a party does with an order, whatever the family: check it, take part, answer the clients. What is about training
//! stands in `training.rs`.

use super::checkpoint::Checkpoints;
use super::control::{At, Id, PartyRun, PlanStatus, Reply, Request, Talk, say};
use super::family::{Encoded, Family, Given, Preparation};
use super::job::JobError;
use super::links::Links;
use super::order::{Order, Start};
use super::owner::{Piece, Shared, encode, owned};
use super::party::{Caller, Log};
use super::peers::Others;
use super::states::Training;
use crate::config::Place;
use crate::{sys, tensors};
use privet_family::{Opening, OpeningKind};
use privet_net::Channel;
use privet_plan::{Plan, Program};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A plan of the program with its keys and session.
pub(super) struct Served<F> {
    pub plan: Arc<Plan>,
    pub family: F,
}

/// One party's part in jobs.
pub(super) struct Engine<F: Family> {
    pub party: u8,
    pub links: Arc<Links>,
    pub program: Arc<Program>,
    pub plans: BTreeMap<String, Served<F>>,
    /// This party's own weights, encoded before it consented to share them.
    own: Option<Encoded>,
    pub training: Option<Training<F::States>>,
    pub checkpoints: Checkpoints,
    pub log: Log,
}

/// What all callers of a run want.
struct Wanted {
    from: Option<Start>,
    publics: BTreeMap<String, u64>,
}

impl<F: Family> Engine<F> {
    pub fn new(
        party: u8,
        links: Arc<Links>,
        program: Arc<Program>,
        plans: BTreeMap<String, Served<F>>,
        log: Log,
    ) -> Engine<F> {
        let config = &links.config;
        let protocol = config.deployment.protocol;
        let checkpoints = Checkpoints::new(&config.node.checkpoints, protocol, &program.hash(), party);
        Engine { party, links, program, plans, own: None, training: None, checkpoints, log }
    }

    /// How things stand with every plan.
    pub fn status(&self) -> BTreeMap<String, PlanStatus> {
        let of = |served: &Served<F>| PlanStatus {
            sessions: served.family.prepared(),
            open: served.family.open_session().is_some(),
            runs_left: served.family.runs_left(),
            stream: served.family.key_stream(),
        };
        self.plans.iter().map(|(name, served)| (name.clone(), of(served))).collect()
    }

    /// The training under way, and its step.
    pub fn step(&self) -> Option<At> {
        self.training.as_ref().map(Training::step)
    }

    fn served(&self, plan: &str) -> Result<&Served<F>, JobError> {
        self.plans.get(plan).ok_or_else(|| self.no_plan(plan))
    }

    fn family(&mut self, plan: &str) -> Result<&mut F, JobError> {
        let unknown = self.no_plan(plan);
        self.plans.get_mut(plan).map(|served| &mut served.family).ok_or(unknown)
    }

    fn no_plan(&self, plan: &str) -> JobError {
        let plan = plan.chars().take(80).flat_map(char::escape_debug).collect();
        JobError::NoPlan { plan, names: self.plans.keys().cloned().collect::<Vec<_>>().join(", ") }
    }

    /// The places that must all ask for what a request asks for, before it can be done: for a run, owners of inputs and
    /// receivers of outputs; when a training begins, owners of states. None where whoever asks is enough.
    pub fn places_of(&self, request: &Request) -> Vec<Place> {
        match request {
            Request::Run { plan, .. } => {
                self.served(plan).map_or_else(|_| vec![], |s| self.places_of_a_run(s))
            }
            Request::BeginTraining { .. } => self.places_of_states(),
            _ => Vec::new(),
        }
    }

    fn places_of_a_run(&self, served: &Served<F>) -> Vec<Place> {
        let inputs = Shared::Inputs.all(&served.plan).into_iter().map(|p| p.owner);
        self.places(inputs.chain(served.plan.outputs.iter().map(|o| o.to.clone())))
    }

    /// Who plays some roles, in order, each once.
    pub fn places(&self, roles: impl Iterator<Item = String>) -> Vec<Place> {
        let all = &self.links.config.deployment.roles;
        let mut places: Vec<Place> = roles.filter_map(|role| all.get(&role).cloned()).collect();
        places.sort();
        places.dedup();
        places
    }

    /// The roles of a place.
    fn roles(&self, place: &Place) -> Vec<&str> {
        self.links.config.deployment.roles.of(place)
    }

    /// Party 0 turns requests into an order.
    pub fn plan_order(&self, callers: &[Caller]) -> Result<Order, JobError> {
        let Some(first) = callers.first() else { return Err(JobError::NotOpen) };
        match &first.request {
            &Request::Prepare { id, ref plan, runs, checks, stream } => {
                let session = self.served(plan)?.family.session_to_extend(checks);
                Ok(Order::Prepare {
                    id,
                    plan: plan.clone(),
                    deal: Id::fresh(),
                    session,
                    runs,
                    checks,
                    stream,
                })
            }
            Request::ShareWeights { id, plan } => {
                self.owner_of_the_model(plan, callers)?;
                let session = self.served(plan)?.family.next_session()?;
                Ok(Order::Begin { id: *id, plan: plan.clone(), session })
            }
            Request::Run { plan, .. } => {
                let wanted = self.wanted(plan, callers)?;
                let family = &self.served(plan)?.family;
                let session = family.open_session().ok_or(JobError::NotOpen)?;
                let ids = callers.iter().map(|c| c.request.id()).collect();
                let (index, Wanted { from, publics }) = (family.next_run()?, wanted);
                Ok(Order::Run { ids, plan: plan.clone(), session, index, from, publics })
            }
            Request::BeginTraining { .. } | Request::Resume { .. } | Request::Status { .. } => {
                self.plan_training(callers)
            }
        }
    }

    /// What has to happen before a run of a plan can: begin its next session, where no client has to share anything for
    /// that, and the open session (if any) has nothing left.
    pub fn order_before_run(&self, plan: &str) -> Result<Option<Order>, JobError> {
        let served = self.served(plan)?;
        let Ok(owner) = self.party_with_the_model(&served.plan) else { return Ok(None) };
        if served.family.open_session().is_some() && served.family.runs_left() != Some(0) {
            return Ok(None);
        }
        let session = served.family.next_session()?;
        Ok(Some(Order::BeginFrom { plan: plan.to_owned(), owner, session }))
    }

    /// Check an order, and take what it needs. Nothing is sent.
    pub fn consent(&mut self, order: &Order, callers: &[Caller]) -> Result<(), JobError> {
        match order {
            Order::Prepare { plan, session, runs, checks, stream, .. } => {
                let family = &self.served(plan)?.family;
                if session.is_some() && *session != family.open_session() {
                    return Err(JobError::SessionLost);
                }
                match callers.first().map(|c| &c.request) {
                    Some(Request::Prepare { plan: p, runs: r, checks: c, stream: s, .. })
                        if (p, r, c, s) == (plan, runs, checks, stream) => {}
                    _ => return Err(JobError::OtherRequest),
                }
                family.may_prepare(&preparation(order).ok_or(JobError::OtherRequest)?)
            }
            Order::Begin { plan, session, .. } => {
                self.owner_of_the_model(plan, callers)?;
                self.served(plan)?.family.may_begin(*session)
            }
            Order::BeginFrom { plan, owner, session } => {
                let served = self.served(plan)?;
                if self.party_with_the_model(&served.plan) != Ok(*owner) {
                    return Err(owner.map_or(JobError::OtherRequest, |p| JobError::NoRole(Place::Party(p))));
                }
                served.family.may_begin(*session)?;
                if *owner == Some(self.party) {
                    // Before a session is used up for them.
                    let path = self.links.config.node.weights.as_deref().ok_or(JobError::NoWeights)?;
                    let roles = self.roles(&Place::Party(self.party));
                    self.own = Some(encode(&served.plan, Shared::Weights, &roles, &tensors::load(path)?)?);
                }
                Ok(())
            }
            Order::Run { plan, session, index, from, publics, .. } => {
                if self.served(plan)?.family.open_session() != Some(*session) {
                    return Err(JobError::SessionLost);
                }
                let wanted = self.wanted(plan, callers)?;
                if wanted.publics != *publics {
                    return Err(JobError::OtherRequest);
                }
                match (from, wanted.from) {
                    // Its step is the callers', but its shares do not belong to party 0's.
                    (Some(ours), Some(theirs)) if *ours != theirs => return Err(JobError::OtherTrail),
                    (ours, theirs) if *ours != theirs => return Err(JobError::OtherRequest),
                    _ => {}
                }
                self.family(plan)?.claim(*index)
            }
            Order::BeginTraining { .. } | Order::Resume { .. } => self.consent_to_training(order, callers),
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
        // Where every party fetches its own keys, one that fails leaves nobody waiting.
        if !matches!(order, Order::Prepare { .. }) {
            others.engage();
        }
        match order {
            Order::Prepare { plan, .. } => {
                let what = preparation(order).ok_or(JobError::OtherRequest)?;
                self.prepare(plan, &what, callers, others)
            }
            Order::Begin { plan, session, .. } => self.begin(plan, *session, callers, others),
            Order::BeginFrom { plan, owner, session } => self.begin_from(plan, *owner, *session, others),
            Order::Run { .. } => self.run(order, callers, others),
            Order::BeginTraining { training, checkpoint_every, .. } => {
                self.begin_training(*training, *checkpoint_every, callers, others)
            }
            Order::Resume { training, .. } => self.resume(*training, callers, others),
        }
    }

    fn prepare(
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

    fn begin(
        &mut self,
        plan: &str,
        session: Id,
        callers: &mut [Caller],
        others: &mut Others,
    ) -> Result<(), JobError> {
        self.family(plan)?.begin(session, others)?;
        let served = self.served(plan)?;
        let weights =
            self.receive(&served.family, Shared::Weights, &Shared::Weights.all(&served.plan), callers)?;
        self.open(plan, weights, others)?;
        tell(callers, &Reply::Done { account: None })
    }

    fn begin_from(
        &mut self,
        plan: &str,
        owner: Option<u8>,
        session: Id,
        others: &mut Others,
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
        self.open(plan, weights, others)
    }

    fn open(&mut self, plan: &str, weights: F::Tensors, others: &mut Others) -> Result<(), JobError> {
        self.family(plan)?.open(weights, others)?;
        (self.log)(&format!("the session of plan {plan} is open"));
        Ok(())
    }

    /// Let the owners among the callers share tensors.
    pub fn receive(
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

    fn run(&mut self, order: &Order, callers: &mut [Caller], others: &mut Others) -> Result<(), JobError> {
        let Order::Run { plan: name, session, index, from, publics, .. } = order else {
            return Err(JobError::OtherRequest);
        };
        (self.log)(&format!("run {index} of session {}", session.short()));
        self.family(name)?.go_on();
        let Served { plan, family } = self.served(name)?;
        let (plan, inputs) = (plan.clone(), Shared::Inputs.all(plan));
        let inputs = self.receive(family, Shared::Inputs, &inputs, callers)?;
        let none = F::States::default();
        let states = match (from, &self.training) {
            (Some(start), Some(training)) => training.get(start).ok_or(JobError::NoTraining)?,
            (Some(_), None) => return Err(JobError::NoTraining),
            (None, _) => &none,
        };
        let served = self.plans.get_mut(name).ok_or(JobError::NoTraining)?;
        let ran = served.family.run(Given { inputs, states, publics }, others)?;
        let at = match from {
            Some(start) => Some(self.replace(order, &plan, start, ran.updates)?),
            None => None,
        };
        let mut openings = ran.openings;
        openings.extend(plan.outputs.iter().map(|o| {
            let ty = &plan.nodes[o.value].ty;
            Opening {
                step: Talk::Result as u32,
                what: format!("output {}", o.name),
                bits: ty.len() as u64 * ty.bits as u64,
                kind: OpeningKind::Revealed { to: o.to.clone() },
            }
        }));
        let account = PartyRun {
            plan: name.clone(),
            at,
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
            for (o, share) in plan.outputs.iter().zip(&ran.outputs) {
                if roles.contains(&o.to.as_str()) {
                    c.channel.send(&Talk::Result.step(), share.clone())?;
                }
            }
        }
        Ok(())
    }

    /// What the callers of a run want, all the same: a run takes all whom the plan gives a part in it, each once.
    fn wanted(&self, plan: &str, callers: &[Caller]) -> Result<Wanted, JobError> {
        let served = self.served(plan)?;
        self.all_and_no_other(&self.places_of_a_run(served), callers)?;
        let asked = |c: &Caller| match &c.request {
            Request::Run { plan, from, publics, .. } => Some((plan.clone(), *from, publics.clone())),
            _ => None,
        };
        let mut all = callers.iter().map(|c| (&c.place, asked(c)));
        let Some((first, Some((name, from, publics)))) = all.next() else {
            return Err(JobError::OtherRequest);
        };
        for (place, theirs) in all {
            let (n, f, p) = theirs.ok_or(JobError::OtherRequest)?;
            let what = match () {
                () if n != name => format!("plan {name} and plan {n}"),
                () if f != from => format!("{} and {}", said(from), said(f)),
                () if p != publics => "other public numbers".to_owned(),
                () => continue,
            };
            return Err(JobError::Differ { first: first.clone(), second: place.clone(), what });
        }
        if name != plan {
            return Err(JobError::OtherRequest);
        }
        let encoded = privet_plan::encode_publics(&served.plan, &publics).map_err(JobError::Publics)?;
        let number = |(name, t): (String, privet_ring::Tensor)| Some((name, *t.data().first()?));
        let publics = encoded.into_iter().filter_map(number).collect();
        Ok(Wanted { from: self.start_of(&served.plan, from)?, publics })
    }

    /// The callers are exactly the places that something needs, each once; anybody with a role where it needs none.
    pub fn all_and_no_other(&self, places: &[Place], callers: &[Caller]) -> Result<(), JobError> {
        if places.is_empty() {
            let roles = callers.iter().map(|c| (c, self.roles(&c.place)));
            return match roles.collect::<Vec<_>>().as_slice() {
                [(_, roles)] if !roles.is_empty() => Ok(()),
                [(caller, _)] => Err(JobError::NoRole(caller.place.clone())),
                _ => Err(JobError::OtherRequest),
            };
        }
        if let Some(c) = callers.iter().find(|c| !places.contains(&c.place)) {
            return Err(JobError::NoRole(c.place.clone()));
        }
        let each = |p: &Place| callers.iter().filter(|c| c.place == *p).count() == 1;
        if places.iter().all(each) { Ok(()) } else { Err(JobError::OtherRequest) }
    }

    fn owner_of_the_model(&self, plan: &str, callers: &[Caller]) -> Result<(), JobError> {
        let [Caller { place, request: Request::ShareWeights { plan: theirs, .. }, .. }] = callers else {
            return Err(JobError::OtherRequest);
        };
        if theirs != plan {
            return Err(JobError::OtherRequest);
        }
        let roles = self.roles(place);
        match Shared::Weights.all(&self.served(plan)?.plan).iter().all(|p| roles.contains(&&*p.owner)) {
            true => Ok(()),
            false => Err(JobError::NoRole(place.clone())),
        }
    }

    /// The party whose node file has the weights of a plan; none where it has no weights. An error where a client has to
    /// share them.
    fn party_with_the_model(&self, plan: &Plan) -> Result<Option<u8>, ()> {
        let owners = Shared::Weights.all(plan).into_iter().map(|p| p.owner);
        match self.places(owners)[..] {
            [] => Ok(None),
            [Place::Party(party)] => Ok(Some(party)),
            _ => Err(()),
        }
    }
}

fn said(at: Option<At>) -> String {
    at.map_or("no step".to_owned(), |at| at.to_string())
}

/// Answer all callers alike.
pub(super) fn tell(callers: &mut [Caller], reply: &Reply) -> Result<(), JobError> {
    callers.iter_mut().try_for_each(|c| Ok(say(&mut c.channel, Talk::Reply, reply)?))
}

fn preparation(order: &Order) -> Option<Preparation> {
    match *order {
        Order::Prepare { deal, session, runs, checks, stream, .. } => {
            Some(Preparation { deal, session, runs, checks, stream })
        }
        _ => None,
    }
}

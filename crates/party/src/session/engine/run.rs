//! Run a plan: its callers share inputs, the parties compute, receivers get shares of the outputs, and everybody an account.

use super::{Engine, Served};
use crate::events::{Bytes, Count, Event, JobEvents, Number, Secs};
use crate::session::control::{At, PartyRun, Reply, Request, Talk, say};
use crate::session::family::{Family, Given};
use crate::session::job::JobError;
use crate::session::order::{Order, Start};
use crate::session::owner::Shared;
use crate::session::party::Caller;
use crate::session::peers::Others;
use crate::sys;
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_net::Channel;
use privet_plan::{Plan, encode_publics};
use std::collections::BTreeMap;
use std::time::Duration;

/// What all callers of a run want.
struct Wanted {
    from: Option<Start>,
    /// In the rings of their nodes.
    publics: BTreeMap<String, u64>,
}

/// What one caller of a run says.
struct Said<'a> {
    plan: &'a str,
    from: Option<At>,
    publics: &'a BTreeMap<String, f64>,
}

impl<'a> Said<'a> {
    fn of(caller: &'a Caller) -> Result<Said<'a>, JobError> {
        match &caller.request {
            Request::Run { plan, from, publics, .. } => Ok(Said { plan, from: *from, publics }),
            _ => Err(JobError::OtherRequest),
        }
    }

    /// In what another caller wants something else. Public numbers are not named.
    fn difference(&self, other: &Said) -> Option<String> {
        let step = |at: Option<At>| at.map_or("no step".to_owned(), |at| at.to_string());
        if self.plan != other.plan {
            Some(format!("plan {} and plan {}", self.plan, other.plan))
        } else if self.from != other.from {
            Some(format!("{} and {}", step(self.from), step(other.from)))
        } else if self.publics != other.publics {
            Some("other public numbers".to_owned())
        } else {
            None
        }
    }
}

impl<F: Family> Engine<F> {
    pub(super) fn plan_run(&self, plan: &str, callers: &[Caller]) -> Result<Order, JobError> {
        let Wanted { from, publics } = self.wanted(plan, callers)?;
        let family = &self.served(plan)?.family;
        let session = family.open_session().ok_or(JobError::NotOpen)?;
        let ids = callers.iter().map(|c| c.request.id()).collect();
        Ok(Order::Run { ids, plan: plan.to_owned(), session, index: family.next_run()?, from, publics })
    }

    pub(super) fn consent_to_run(&mut self, order: &Order, callers: &[Caller]) -> Result<(), JobError> {
        let Order::Run { plan, session, index, from, publics, .. } = order else {
            return Err(JobError::OtherRequest);
        };
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

    /// What the callers of a run want, all the same: a run takes all whom the plan gives a part in it, each once.
    fn wanted(&self, plan: &str, callers: &[Caller]) -> Result<Wanted, JobError> {
        let Some((first, rest)) = callers.split_first() else { return Err(JobError::OtherRequest) };
        let said = Said::of(first)?;
        for other in rest {
            if let Some(what) = said.difference(&Said::of(other)?) {
                return Err(JobError::Differ {
                    first: first.place.clone(),
                    second: other.place.clone(),
                    what,
                });
            }
        }
        self.complete(callers)?;
        if said.plan != plan {
            return Err(JobError::OtherRequest);
        }
        let served = self.served(plan)?;
        let encoded = encode_publics(&served.plan, said.publics).map_err(JobError::Publics)?;
        let number = |(name, t): (String, privet_ring::Tensor)| Some((name, *t.data().first()?));
        let publics = encoded.into_iter().filter_map(number).collect();
        Ok(Wanted { from: self.start_of(&served.plan, said.from)?, publics })
    }

    pub(super) fn run(
        &mut self,
        order: &Order,
        callers: &mut [Caller],
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        let Order::Run { plan: name, session, index, from, publics, .. } = order else {
            return Err(JobError::OtherRequest);
        };
        let (session, run) = ((*session).into(), Number::of(*index));
        job.emit(|job| Event::RunBegan { job, session, run });
        self.family(name)?.go_on();
        let Served { plan, family } = self.served(name)?;
        let (plan, pieces) = (plan.clone(), Shared::Inputs.all(plan));
        let inputs = self.receive(family, Shared::Inputs, &pieces, callers)?;
        let none = F::States::default();
        let states = match (from, &self.training) {
            (Some(start), Some(training)) => training.get(start).ok_or(JobError::NoTraining)?,
            (Some(_), None) => return Err(JobError::NoTraining),
            (None, _) => &none,
        };
        let served = self.plans.get_mut(name).ok_or(JobError::OtherRequest)?;
        let ran = served.family.run(Given { inputs, states, publics, job }, others)?;
        run_done(job, run, &ran.nodes, ran.online);
        if let Some(left) = served.family.runs_left() {
            job.emit(|job| Event::RunsLeft { job, left: left.into() });
        }
        let at = match from {
            Some(start) => Some(self.replace(order, &plan, start, ran.updates, job)?),
            None => None,
        };
        let deployment = &self.links.config.deployment;
        let account = PartyRun {
            plan: name.clone(),
            at,
            protocol: deployment.protocol,
            security: deployment.security,
            dealer: deployment.dealer.is_some(),
            online_s: ran.online.as_secs_f64(),
            nodes: ran.nodes,
            checks: ran.checks,
            openings: ran.openings.into_iter().chain(revealed(&plan)).collect(),
            peak_rss_bytes: sys::peak_rss_bytes().unwrap_or(0),
            encrypted: self.links.encrypted(),
        };
        self.deliver(&plan, account, &ran.outputs, callers)
    }

    /// The account to every caller, and to each receiver this party's share of what it receives.
    fn deliver(
        &self,
        plan: &Plan,
        account: PartyRun,
        outputs: &[Vec<u8>],
        callers: &mut [Caller],
    ) -> Result<(), JobError> {
        let done = Reply::Done { account: Some(Box::new(account)) };
        for c in callers.iter_mut() {
            say(&mut c.channel, Talk::Reply, &done)?;
            let roles = self.roles(&c.place);
            for (o, share) in plan.outputs.iter().zip(outputs) {
                if roles.contains(&o.to.as_str()) {
                    c.channel.send(&Talk::Result.step(), share.clone())?;
                }
            }
        }
        Ok(())
    }
}

fn run_done(job: &JobEvents, run: Number, nodes: &[NodeStats], online: Duration) {
    let mut total = NodeStats::default();
    nodes.iter().for_each(|n| total.add(n));
    let (sent, rounds) = (Bytes::of(total.sent_bytes), Count::of(total.rounds));
    job.emit(|job| Event::RunDone { job, run, online: Secs::of(online), sent, rounds });
}

/// What a run opens at its end: its outputs, each to its receiver.
fn revealed(plan: &Plan) -> impl Iterator<Item = Opening> {
    plan.outputs.iter().map(|o| {
        let ty = &plan.nodes[o.value].ty;
        Opening {
            step: Talk::Result as u32,
            what: format!("output {}", o.name),
            bits: ty.len() as u64 * ty.bits as u64,
            kind: OpeningKind::Revealed { to: o.to.clone() },
        }
    })
}

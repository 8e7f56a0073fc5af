//! The dealer's service: all parties ask for the same deal, each gets its stream.

use super::known::Known;
use super::messages::{DealReply, DealRequest};
use super::sending::send_session;
use super::{Deals, Session};
use crate::config::{Place, Timeouts};
use crate::events::{
    Count, Event, Events, Job, JobEvents, Number, PlanName, Reason, Secs, Told, Why, reason,
};
use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::session::links::{Links, Purpose};
use crate::session::party::{TURN, started};
use crate::session::threads::aside;
use crate::store::hex;
use privet_kernels::Device;
use privet_net::{Channel, Liveness, NetError, TcpChannel, wait_any, wait_patiently};
use privet_plan::program::NamedPlan;
use privet_plan::{Plan, Program};
use privet_prg::Seed;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Records that one request may ask for.
pub const MAX_RUNS: u64 = 1 << 20;

/// The name of the threads that serve a connection.
const THREAD: &str = "privet-deal";

/// Who is at the other end of a connection.
#[derive(Clone, Copy)]
struct Asker {
    party: u8,
    connection: Number,
}

/// Parties that wait for the others, by deal.
type Waiting = HashMap<Id, (DealRequest, BTreeMap<u8, (Asker, TcpChannel)>)>;

/// All parties of a deal, their connections in the same order, and what they ask for.
type Met = (Vec<Asker>, Vec<TcpChannel>, DealRequest);

/// What a dealer deals for, by hash of the plan, and has dealt.
struct Desk<D> {
    plans: HashMap<String, (PlanName, Arc<Plan>)>,
    parties: usize,
    device: Arc<dyn Device>,
    sessions: Known<D>,
    timeouts: Timeouts,
    waiting: Mutex<Waiting>,
    /// Of `waiting`, when a deal has left it.
    left: Condvar,
}

/// Serve until the process ends.
pub fn serve<D: Deals>(
    links: Links,
    program: &Program,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), NetError> {
    let listener = links.listen()?;
    events.emit(started(&links, &*device));
    if let Ok(address) = listener.local_address()?.to_string().parse() {
        events.emit(Event::Listening { place: Place::Dealer, address });
    }
    let links = Arc::new(links);
    let named = |p: &NamedPlan| {
        let plan = Arc::new(p.plan.clone());
        (hex(&plan.hash()), (PlanName::of(&p.name, &plan), plan))
    };
    let plans = program.plans.iter().map(named);
    let plans = plans.collect();
    let parties = links.config.deployment.parties.len();
    let timeouts = links.config.deployment.timeouts.clone();
    let (waiting, left) = (Mutex::default(), Condvar::new());
    let sessions = Known::new(device.clone());
    let desk = Arc::new(Desk::<D> { plans, parties, sessions, device, timeouts, waiting, left });
    loop {
        let caller = match listener.accept(Duration::from_secs(3600)) {
            Ok(caller) => caller,
            Err(NetError::Timeout { .. }) => continue,
            Err(e) => {
                events.emit(Event::Stranger { reason: e.why() });
                continue;
            }
        };
        let (links, desk, told) = (links.clone(), desk.clone(), events.clone());
        let connection = events.connection();
        // Of what deals share there are only tables, which are whole between two calls: a panic ends its own deal.
        aside(THREAD, &events, move || {
            let events = told;
            let Some(caller) = links.without_doctors(caller) else { return };
            match links.welcome(caller) {
                Ok((channel, Place::Party(party), Purpose::Keys)) => {
                    desk.attend(Asker { party, connection }, channel, events);
                }
                Ok((_, place, purpose)) => {
                    let reason = reason!("access.not_admitted", "the dealer serves the parties alone");
                    events.emit(Event::Refused { connection, place, purpose, reason });
                }
                Err(e) => events.emit(Event::Broken { connection, reason: e.why() }),
            }
        });
    }
}

impl<D: Deals> Desk<D> {
    /// Carry out one deal after the other that a party asks for on its connection, until it ends that. The last party that asks
    /// for a deal carries it out on all connections. From then on each of them has a thread of its own again.
    fn attend(self: Arc<Self>, asker: Asker, channel: TcpChannel, events: Events) {
        let (askers, mut channels, request) = match self.meet(asker, channel) {
            Ok(Some(all)) => all,
            Ok(None) => return,
            Err(e) => {
                let (connection, reason) = (asker.connection, e.why());
                return events.emit(Event::Broken { connection, reason });
            }
        };
        if !self.deal(&mut channels, &request, &events) {
            return;
        }
        for (asker, mut channel) in askers.into_iter().zip(channels) {
            let (desk, told) = (self.clone(), events.clone());
            aside(THREAD, &events, move || {
                if asks_again(&mut channel) {
                    desk.attend(asker, channel, told);
                }
            });
        }
    }

    /// Hear what a party asks for, and keep it waiting for the others, but for no longer than `timeouts.connect`. With the last
    /// of them, give all of them in order. From here on a party that lets the dealer wait for longer than `timeouts.step` in one
    /// step ends the deal.
    fn meet(&self, asker: Asker, mut channel: TcpChannel) -> Result<Option<Met>, TalkError> {
        channel.set_patience(Some(self.timeouts.step));
        let request: DealRequest = hear(&mut channel, Talk::Deal)?;
        let (deal, party) = (request.deal, asker.party);
        let mut present = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, there) = present.entry(deal).or_insert_with(|| (request.clone(), BTreeMap::new()));
        if *first != request || there.contains_key(&party) {
            let (_, others) = present.remove(&deal).unwrap_or((request, BTreeMap::new()));
            drop(present);
            self.left.notify_all();
            let reason = "the parties asked for different deals".to_owned();
            let all = others.into_values().map(|(_, channel)| channel).chain([channel]);
            for mut channel in all {
                say(&mut channel, Talk::Deal, &DealReply::Refused { reason: reason.clone() })?;
            }
            return Ok(None);
        }
        there.insert(party, (asker, channel));
        if there.len() == self.parties {
            let all = present.remove(&deal).map_or(BTreeMap::new(), |(_, all)| all);
            self.left.notify_all();
            let (askers, channels) = all.into_values().unzip();
            return Ok(Some((askers, channels, request)));
        }
        let patience = self.timeouts.connect;
        let waits = |all: &mut Waiting| all.contains_key(&deal);
        let waited = self.left.wait_timeout_while(present, patience, waits);
        let mut present = waited.unwrap_or_else(PoisonError::into_inner).0;
        let Some((_, there)) = present.get_mut(&deal) else { return Ok(None) };
        let missing = (0..self.parties as u8).find(|party| !there.contains_key(party)).unwrap_or_default();
        let own = there.remove(&party);
        if there.is_empty() {
            present.remove(&deal);
        }
        drop(present);
        if let Some((_, mut channel)) = own {
            let seconds = patience.as_secs();
            let reason = format!("party {missing} did not ask for this deal within {seconds} s");
            let reason = format!("{reason}: see its log, and `privet doctor` there");
            say(&mut channel, Talk::Deal, &DealReply::Refused { reason })?;
        }
        Ok(None)
    }

    /// Carry out a deal that all parties asked for. Whether it was dealt, so that connections are good for another.
    fn deal(&self, channels: &mut [TcpChannel], request: &DealRequest, events: &Events) -> bool {
        let plan = self.plans.get(&request.plan).map(|(name, _)| name.clone());
        let job = JobEvents::new(events.clone(), Job::deal(request.deal, plan));
        let (runs, checks) = (Count::of(request.runs), Count::of(request.checks));
        job.emit(|job| Event::DealBegan { job, runs, checks });
        match self.serve(channels, request, &job) {
            Ok(None) => {
                job.emit(|of| Event::DealDone { job: of, runs, took: Secs::of(job.elapsed()) });
                return true;
            }
            Ok(Some(reason)) => job.emit(|job| Event::DealRefused { job, reason }),
            Err(e) => {
                job.emit(|job| Event::DealFailed { job, reason: e.why() });
                let reason = format!("the dealer could not finish this deal: {e}");
                channels.iter_mut().for_each(|c| c.abort(&reason));
            }
        }
        false
    }

    /// Gives why nothing was dealt, where that is so.
    fn serve(
        &self,
        channels: &mut [TcpChannel],
        request: &DealRequest,
        job: &JobEvents,
    ) -> Result<Option<Reason>, TalkError> {
        if let Some(reason) = refusal::<D>(request) {
            return refuse(channels, reason);
        }
        let Some((_, plan)) = self.plans.get(&request.plan) else {
            return refuse(channels, "this dealer does not deal for that plan");
        };
        let new = |master| Session::<D>::from_master(self.parties, plan.clone(), self.device.clone(), master);
        let mut progress = job.progress(plan);
        let mut between = |channels: &mut [TcpChannel]| until_all_have_room(channels, &self.timeouts);
        match (request.session, D::checks().filter(|_| request.checks > 0)) {
            (None, Some(checked)) => {
                let kept = (checked.deal)(channels, request, &new, &mut progress)?;
                kept.into_iter().for_each(|session| drop(self.sessions.keep(session)));
            }
            (None, None) => send_session(
                channels,
                &self.sessions.keep(new(Seed::random())),
                request.runs,
                &mut between,
                &mut progress,
            )?,
            (Some(id), _) => match self.sessions.find(id, &plan.hash()) {
                Some(session) => send_session(channels, &session, request.runs, &mut between, &mut progress)?,
                None => {
                    answer(channels, &DealReply::Forgotten)?;
                    return Ok(Some(reason!(
                        "deal.forgotten",
                        "this dealer knows the session no more, it was restarted"
                    )));
                }
            },
        }
        Ok(None)
    }
}

/// Wait until a party asks for another deal on its connection; false once it has ended that. It may be silent for any time: its
/// heartbeats show that it stands.
fn asks_again(channel: &mut TcpChannel) -> bool {
    wait_any([&mut *channel], None);
    channel.is_open()
}

fn refusal<D: Deals>(request: &DealRequest) -> Option<&'static str> {
    match (request.runs.saturating_mul(request.checks.saturating_add(1)) > MAX_RUNS, D::checks()) {
        (true, _) => Some("more than a million runs at once"),
        (false, Some(checks)) => (checks.refusal)(request),
        (false, None) => (request.checks > 0).then_some("this protocol's dealer cannot be checked"),
    }
}

/// Tells all parties why; gives the reason.
fn refuse(channels: &mut [TcpChannel], reason: &'static str) -> Result<Option<Reason>, TalkError> {
    answer(channels, &DealReply::Refused { reason: reason.to_owned() })?;
    Ok(Some(reason!("deal.refused", "{reason}", reason = Told::of(reason))))
}

fn answer(channels: &mut [TcpChannel], reply: &DealReply) -> Result<(), TalkError> {
    channels.iter_mut().try_for_each(|c| say(c, Talk::Deal, reply))
}

/// Between two records the parties may take their time: those of a stream come as runs use them up. So both sides show turns
/// meanwhile. The wait ends as soon as either connection does, whichever party is the silent one, and with a party whose
/// stream has no turn.
fn until_all_have_room(channels: &mut [TcpChannel], timeouts: &Timeouts) -> Result<(), NetError> {
    let (liveness, since) = (Liveness::new(), Instant::now());
    for channel in channels.iter_mut() {
        channel.show(&liveness);
        channel.set_patience_for_turns(timeouts.turn());
    }
    let mut waiting: Vec<&mut TcpChannel> = channels.iter_mut().collect();
    while !waiting.is_empty() {
        liveness.turn();
        let soon = Some(Instant::now() + TURN);
        let Some(first) = wait_patiently(waiting.iter_mut().map(|c| &mut **c), since, soon) else { continue };
        let channel = waiting.swap_remove(first);
        if !channel.is_open() {
            channel.recv(&Talk::Credit.step(), 0)?;
        }
    }
    channels.iter_mut().for_each(|c| c.set_patience(Some(timeouts.step)));
    Ok(())
}

//! Preparations: each on a thread and connections of its own, while the service goes on with other jobs.
//!
//! The parties agree on a preparation as on any order. Then each starts it and is free. It ends with an event, after which
//! the callers that waited for it are answered. A plan has one at a time; further requests wait their turn.

use super::control::{Preparing, Reply, Request, Talk, say};
use super::family::{Family, Made, Preparer};
use super::job::JobError;
use super::links::{Links, Purpose};
use super::meetings::{Meetings, Name};
use super::order::{Order, Preparation};
use super::party::{Caller, Service, Wake};
use super::peers::{Others, abort};
use super::threads::aside;
use super::work::{Progress, Work};
use crate::config::Place;
use crate::events::{Bytes, Count, Event, Secs};
use privet_net::{Channel, TcpChannel};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Preparations at a time, each of another plan. Each has a connection to every other party and to the dealer.
pub const MOST_PREPARATIONS: usize = 3;

/// What a preparation's thread leaves.
type Left<M> = Arc<Mutex<Option<Result<Made<M>, JobError>>>>;

/// A preparation under way.
pub(super) struct Underway<M> {
    name: Name,
    what: Preparation,
    /// Those that asked for it; they are told how it ends.
    callers: Vec<Caller>,
    progress: Progress,
    left: Left<M>,
}

/// The preparations under way, by plan.
pub(super) type AllUnderway<F> = BTreeMap<String, Underway<<<F as Family>::Preparer as Preparer>::Made>>;

/// Tells the service that a preparation's thread has ended, however it ended.
struct Ended(Name, Sender<Wake>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.1.send(Wake::Prepared(self.0));
    }
}

impl<F: Family> Service<F> {
    /// Start what all parties have agreed to.
    pub fn start_preparation(&mut self, order: &Order, plan: &str, what: &Preparation, callers: Vec<Caller>) {
        let events = self.engine.job_events(order, &callers);
        let (name, progress, left) = (order.digest(), Progress::new(events.clone()), Left::default());
        let job = Job {
            // A failure here is told on the connections, so that nobody waits for this party in vain.
            preparer: self.engine.preparer(plan, what),
            me: self.me,
            links: self.links.clone(),
            meetings: self.meetings.clone(),
            name,
            progress: progress.clone(),
        };
        let (keep, ended) = (left.clone(), Ended(name, self.wakes.clone()));
        let underway = Underway { name, what: *what, callers, progress, left };
        // A plan has one at a time, which was seen to before.
        self.underway.insert(plan.to_owned(), underway);
        let (runs, checks) = (Count::of(what.amount.runs), Count::of(what.amount.checks));
        events.emit(|job| Event::PreparationBegan { job, runs, checks });
        aside("privet-preparation", &self.events, move || {
            let _ended = ended;
            let result = job.run();
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
    }

    /// Take in the end of a preparation, and tell those who asked for it.
    pub fn preparation_ended(&mut self, name: Name) {
        let Some(plan) = self.underway.iter().find(|(_, u)| u.name == name).map(|(plan, _)| plan.clone())
        else {
            return;
        };
        let Some(Underway { what, mut callers, progress, left, .. }) = self.underway.remove(&plan) else {
            return;
        };
        let left = left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = left.unwrap_or(Err(JobError::PreparationPanicked));
        let result = match result {
            Ok(Made { key_bytes, made }) => {
                self.engine.preparation_ended(&plan, &what, Some(made));
                let traffic = progress.traffic();
                // A family that needs no keys has no offline phase, however long its answer took.
                let seconds = if key_bytes > 0 { progress.shown().seconds } else { 0.0 };
                let (sent_bytes, received_bytes, rounds) = (traffic.sent, traffic.received, traffic.rounds);
                let reply = Reply::Prepared { seconds, key_bytes, sent_bytes, received_bytes, rounds };
                // One that has left keeps nobody else from hearing it.
                callers.retain_mut(|c| say(&mut c.channel, Talk::Reply, &reply).is_ok());
                let (runs, keys, took) =
                    (Count::of(what.amount.runs), Bytes::of(key_bytes), Secs::of(progress.elapsed()));
                progress.emit(|job| Event::PreparationDone { job, runs, keys, took });
                Ok(())
            }
            Err(e) => {
                self.engine.preparation_ended(&plan, &what, None);
                Err(e)
            }
        };
        self.finish(callers, result);
    }

    /// Whether a request must wait for a preparation that is under way.
    pub fn must_wait(&self, request: &Request) -> bool {
        match request {
            Request::Prepare { plan, .. } => {
                self.underway.contains_key(plan) || self.underway.len() >= MOST_PREPARATIONS
            }
            _ => false,
        }
    }

    /// Party 0 begins another one when the last has ended there. It ends here at about the same time.
    pub fn await_turn(&mut self, plan: &str) -> Result<(), JobError> {
        let deadline = Instant::now() + self.connect_patience();
        while self.underway.contains_key(plan) || self.underway.len() >= MOST_PREPARATIONS {
            if !self.receive(deadline.saturating_duration_since(Instant::now())) {
                return Err(JobError::StillPreparing { party: self.me });
            }
        }
        Ok(())
    }

    /// How the preparation of a plan goes on.
    pub fn preparing(&self, plan: &str) -> Option<Preparing> {
        self.underway.get(plan).map(|u| u.progress.shown())
    }
}

/// One party's part in a preparation, away from the service.
struct Job<P> {
    preparer: Result<P, JobError>,
    me: u8,
    links: Arc<Links>,
    meetings: Meetings,
    name: Name,
    progress: Progress,
}

impl<P: Preparer> Job<P> {
    fn run(self) -> Result<Made<P::Made>, JobError> {
        let step = self.links.config.deployment.timeouts.step;
        let mut seats = Vec::new();
        let mut others = Others::new(self.meet(&mut seats)?, step);
        let result = self.preparer.and_then(|preparer| {
            let mut work = Work::new(&mut others, self.progress, step);
            let made = preparer.run(&mut work)?;
            work.all_done()?;
            Ok(made)
        });
        // What another party says of its failure comes before what this one saw of it.
        let result = result.map_err(|e| others.last_word().map_or(e, JobError::from));
        if let Err(e) = &result {
            others.abort(&e.to_string());
        }
        result
    }

    /// Connections to all others: of two parties the one of the higher number dials.
    fn meet(&self, seats: &mut Vec<super::door::Seat>) -> Result<BTreeMap<u8, TcpChannel>, JobError> {
        let deployment = &self.links.config.deployment;
        let (me, patience) = (self.me, deployment.timeouts.connect);
        let mut channels = BTreeMap::new();
        let mut met = || {
            for party in 0..me {
                channels.insert(party, self.dial(party)?);
            }
            // Each may first wait for those before it.
            let deadline = Instant::now() + patience;
            for party in me + 1..deployment.parties.len() as u8 {
                let arrived = self.meetings.take(&self.name, party, deadline);
                let (mut channel, seat) =
                    arrived.ok_or(JobError::NoPeer { party, seconds: patience.as_secs() })?;
                channel.send(&Talk::Order.step(), self.name.to_vec())?;
                channels.insert(party, channel);
                seats.push(seat);
            }
            Ok(())
        };
        match met() {
            Ok(()) => Ok(channels),
            Err(e) => {
                let e: JobError = e;
                abort(channels.into_values(), &e.to_string());
                Err(e)
            }
        }
    }

    fn dial(&self, party: u8) -> Result<TcpChannel, JobError> {
        let dialled = self.links.dial(&Place::Party(party), Purpose::Preparation);
        let mut channel = dialled.map_err(|cause| JobError::Unreachable { me: self.me, party, cause })?;
        // It answers once its own preparation has begun, and has met those before this party.
        channel.set_patience(Some(2 * self.links.config.deployment.timeouts.connect));
        match channel.exchange(&Talk::Order.step(), self.name.to_vec(), self.name.len())? == self.name {
            true => Ok(channel),
            false => Err(JobError::OtherOrder(party)),
        }
    }
}

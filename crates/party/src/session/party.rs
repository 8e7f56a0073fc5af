//! A party's service: clients ask all parties, party 0 decides the order of things, all do them.
//!
//! One thread (the service) owns keys, session and the connections between the parties; the door (`door.rs`) takes calls,
//! and a thread a client waits for that client's next request. Everything that touches keys happens in the service.

use super::control::{Reply, Request, Status, Talk, TalkError, say};
use super::door::{Door, Seat, await_request};
use super::engine::{Engine, Served};
use super::family::Family;
use super::job::JobError;
use super::links::Links;
use super::meetings::{Meetings, Name};
use super::order::Order;
use super::peers::{Others, Peers};
use super::preparing::AllUnderway;
use super::threads::{Crew, Watch};
use crate::config::Place;
use crate::events::{Event, Events, Job, JobKind, Name as Word, Number, Why};
use crate::store::{StoreError, in_full};
use privet_kernels::Device;
use privet_net::{Liveness, NetError, TcpChannel, wait_patiently};
use privet_plan::program::NamedPlan;
use privet_plan::{Plan, Program};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Between two turns of a service that has nothing to do.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// Why a party's service ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The network.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The store. The message is for this machine.
    #[error("{}", in_full(.0))]
    Store(#[from] StoreError),
    /// Not a party's configuration.
    #[error(
        "this node is {0}, not a party: `me` in its node file must be \"party:0\", \"party:1\" and so on"
    )]
    NotAParty(Place),
    /// The system gives no threads.
    #[error("a thread cannot be started: {0}; raise the limits of this user (`ulimit -u`)")]
    Thread(#[from] io::Error),
    /// A thread without which nothing is served has panicked.
    #[error(
        "thread {0} panicked, as an earlier line says, so this party serves nobody any more: start it again, and report \
         this as a bug"
    )]
    Panicked(String),
}

/// A client with a request that waits to be served.
pub(super) struct Caller {
    pub channel: TcpChannel,
    pub connection: Number,
    pub place: Place,
    pub request: Request,
    /// When it asked.
    pub since: Instant,
    /// It was told to send tensors, so it may be in the middle of that.
    pub granted: bool,
    /// Its share of the connections that its place may have.
    pub seat: Seat,
}

/// What wakes the service.
pub(super) enum Wake {
    Caller(Box<Caller>),
    /// Another party dialled.
    Peer(u8, Box<TcpChannel>, Seat, Number),
    /// Party 0's next order, with the connection it came on.
    Order(Box<(TcpChannel, Order)>),
    /// The connection to party 0 ended.
    NoOrder(TalkError),
    /// A preparation has ended here.
    Prepared(Name),
    /// A place has no seat left: those who left while they waited are to give theirs up.
    Crowded,
    /// This deployment is served no more, once the job under way has ended.
    Over,
}

/// Serve until the process ends.
pub fn serve(
    links: Links,
    program: Arc<Program>,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), ServeError> {
    let me = match links.config.node.me {
        Place::Party(party) => party,
        ref other => return Err(ServeError::NotAParty(other.clone())),
    };
    events.emit(started(&links, &*device));
    let family = links.config.deployment.protocol.registered();
    (family.serve)(me, Arc::new(links), program, device, events)
}

/// That a node begins to serve, with what.
pub(super) fn started(links: &Links, device: &dyn Device) -> Event {
    let protocol = Word::of(links.config.deployment.protocol.facts().name);
    Event::Started { place: links.config.node.me.clone(), protocol, device: device.into() }
}

/// Every plan of the program with keys and sessions of its own.
pub(super) fn served<F>(
    program: &Program,
    mut family: impl FnMut(&str, Arc<Plan>) -> Result<F, StoreError>,
) -> Result<BTreeMap<String, Served<F>>, StoreError> {
    let one = |named: &NamedPlan| {
        let plan = Arc::new(named.plan.clone());
        Ok((named.name.clone(), Served { plan: plan.clone(), family: family(&named.name, plan)? }))
    };
    program.plans.iter().map(one).collect()
}

/// Returns when a vital thread has panicked, and with an error before that.
pub(super) fn serve_family<F: Family>(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    plans: BTreeMap<String, Served<F>>,
    events: Events,
) -> Result<(), ServeError> {
    let listener = links.listen()?;
    if let Ok(address) = listener.local_address()?.to_string().parse() {
        events.emit(Event::Listening { place: Place::Party(me), address });
    }
    let (crew, watch): (Crew, Watch) = Crew::new();
    let (door, _) = start(me, links, program, plans, events, &crew)?;
    crew.vital("privet-door", move || door.take_calls(&listener))?;
    Err(ServeError::Panicked(watch.first_death()))
}

/// Start a party's service; gives its door, and what wakes it.
pub(super) fn start<F: Family>(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    plans: BTreeMap<String, Served<F>>,
    events: Events,
    crew: &Crew,
) -> Result<(Door, Sender<Wake>), ServeError> {
    let (wakes, inbox) = channel();
    let (meetings, liveness) = (Meetings::default(), Liveness::new());
    let service = Service {
        me,
        engine: Engine::new(me, links.clone(), program, plans, events.clone()),
        peers: Peers::new(links.clone(), liveness.clone()),
        links: links.clone(),
        inbox,
        wakes: wakes.clone(),
        events: events.clone(),
        crew: crew.clone(),
        awaits_order: false,
        away: None,
        order: None,
        leader: None,
        pending: Vec::new(),
        free_since: Instant::now(),
        liveness: liveness.clone(),
        meetings: meetings.clone(),
        underway: AllUnderway::<F>::new(),
        over: false,
    };
    crew.vital("privet-service", move || service.run())?;
    Ok((Door::new(me, links, wakes.clone(), meetings, events, liveness), wakes))
}

/// A party between jobs. How party 0 leads is in `lead.rs`, how the others follow in `follow.rs`.
pub(super) struct Service<F: Family> {
    pub me: u8,
    pub links: Arc<Links>,
    pub engine: Engine<F>,
    /// The other parties, without party 0.
    pub peers: Peers,
    pub inbox: Receiver<Wake>,
    pub wakes: Sender<Wake>,
    pub events: Events,
    pub crew: Crew,
    /// Not party 0: a thread holds the connection to party 0 and waits for its next order.
    pub awaits_order: bool,
    /// Not party 0: why party 0 cannot be reached, as the log said last.
    pub away: Option<NetError>,
    pub order: Option<(TcpChannel, Order)>,
    /// Not party 0: the connection to party 0 between two orders.
    pub leader: Option<TcpChannel>,
    pub pending: Vec<Caller>,
    /// Party 0: when the last job ended.
    pub free_since: Instant,
    /// Turns of this service, for all who wait for it.
    pub liveness: Liveness,
    /// Where other parties' connections for preparations arrive.
    pub meetings: Meetings,
    /// Preparations that go on beside all other jobs.
    pub underway: AllUnderway<F>,
    /// This deployment is served no more.
    pub over: bool,
}

impl<F: Family> Service<F> {
    fn run(mut self) {
        while !self.over {
            match self.me {
                0 => self.lead(),
                _ => self.follow(),
            }
        }
    }

    /// Parties of this deployment.
    pub fn parties(&self) -> u8 {
        self.links.config.deployment.parties.len() as u8
    }

    /// For a peer to come up, shake hands or make up its mind.
    pub fn connect_patience(&self) -> Duration {
        self.links.config.deployment.timeouts.connect
    }

    /// For one step of a job.
    pub fn step_patience(&self) -> Duration {
        self.links.config.deployment.timeouts.step
    }

    /// Do what all parties have agreed to. A preparation goes on by itself: its callers are taken out of `callers`, and
    /// answered when it ends.
    pub fn carry_on(
        &mut self,
        order: &Order,
        callers: &mut Vec<Caller>,
        mut others: Others,
    ) -> Result<(), JobError> {
        let patience = self.step_patience();
        for caller in callers.iter_mut() {
            caller.channel.set_patience(Some(patience));
            caller.channel.count_for(Some(&self.liveness));
        }
        let result = match order {
            Order::Prepare { plan, what, .. } => {
                self.start_preparation(order, plan, what, std::mem::take(callers));
                Ok(())
            }
            order => self.engine.execute(order, callers, &mut others),
        };
        self.peers.keep(others, &result);
        result
    }

    /// The next thing to take in, within `wait`. Looking for it is a turn, however long it takes to come.
    fn next_wake(&self, wait: Duration) -> Result<Wake, RecvTimeoutError> {
        let deadline = Instant::now() + wait;
        loop {
            self.liveness.turn();
            let left = deadline.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left.min(TURN)) {
                Err(RecvTimeoutError::Timeout) if left > TURN => {}
                wake => return wake,
            }
        }
    }

    /// Wait until another party answers, at most for `patience`, after which its connection has ended with that error. Those
    /// who wait for this party see turns meanwhile: this wait ends.
    pub fn await_answer(&self, channel: &mut TcpChannel, patience: Duration) {
        let since = Instant::now();
        channel.set_patience(Some(patience));
        while wait_patiently([&mut *channel], since, Some(Instant::now() + TURN)).is_none() {
            self.liveness.turn();
        }
    }

    /// Take in what has arrived, waiting at most `wait`. False when nothing came.
    pub fn receive(&mut self, wait: Duration) -> bool {
        match self.next_wake(wait) {
            Ok(Wake::Caller(caller)) => {
                let (connection, place) = (caller.connection, caller.place.clone());
                let (request, asks) = (caller.request.id().into(), JobKind::of(&caller.request));
                self.events.emit(Event::Asked { connection, place, request, asks });
                self.pending.push(*caller);
            }
            Ok(Wake::Peer(party, channel, seat, connection)) => {
                drop(seat);
                self.events.emit(Event::PeerConnected { connection, place: Place::Party(party) });
                self.peers.put(party, *channel);
            }
            Ok(Wake::Order(order)) => {
                self.awaits_order = false;
                self.order = Some(*order);
            }
            Ok(Wake::NoOrder(e)) => {
                self.awaits_order = false;
                self.events.emit(Event::NoOrder { reason: e.why() });
            }
            Ok(Wake::Prepared(name)) => self.preparation_ended(name),
            Ok(Wake::Crowded) => {}
            Ok(Wake::Over) => self.over = true,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
        // Whoever left while waiting must not be part of a run; nobody else would remove it.
        self.pending.retain(|c| c.channel.is_open());
        true
    }

    /// What callers ask for together, as events name it.
    pub fn job_of(&self, callers: &[Caller]) -> Option<Job> {
        Job::asked(self.engine.program(), callers.iter().map(|c| (&c.place, &c.request)))
    }

    /// The connection that another party has made, waiting for it to come.
    pub fn await_peer(&mut self, party: u8) -> Result<TcpChannel, JobError> {
        let patience = self.connect_patience();
        let deadline = Instant::now() + patience;
        loop {
            if let Some(channel) = self.peers.take(party) {
                return Ok(channel);
            }
            if !self.receive(deadline.saturating_duration_since(Instant::now())) {
                return Err(JobError::NoPeer { party, seconds: patience.as_secs() });
            }
        }
    }

    pub fn status(&self) -> Status {
        let connected = |party| self.peers.has(party);
        let mut plans = self.engine.status();
        plans.iter_mut().for_each(|(name, plan)| plan.preparing = self.preparing(name));
        Status {
            plans,
            training: self.engine.step(),
            peers: if self.me == 0 { (1..self.parties()).all(connected) } else { self.awaits_order },
        }
    }

    /// Answer those who ask how things stand.
    pub fn answer_status(&mut self) {
        let asks = |c: &mut Caller| matches!(c.request, Request::Status { .. });
        let asking: Vec<Caller> = self.pending.extract_if(.., asks).collect();
        if asking.is_empty() {
            return;
        }
        let status = self.status();
        for mut caller in asking {
            let said = say(&mut caller.channel, Talk::Reply, &Reply::Status(status.clone()));
            self.finish(vec![caller], said.map_err(JobError::from));
        }
    }

    /// Tell the callers how it ended and wait for their next requests.
    pub fn finish(&mut self, callers: Vec<Caller>, result: Result<(), JobError>) {
        match (self.job_of(&callers), &result) {
            (Some(job), Ok(())) => self.events.emit(Event::JobDone { job }),
            (Some(job), Err(e)) => self.events.emit(Event::JobFailed { job, reason: e.why() }),
            (None, _) => {}
        }
        for mut caller in callers {
            if let Err(e) = &result
                && say(&mut caller.channel, Talk::Reply, &Reply::Failed { reason: e.to_string() }).is_err()
            {
                continue;
            }
            // A client that may be in the middle of sending starts over with a fresh connection.
            if result.is_ok() || !caller.granted {
                let Caller { channel, connection, place, seat, .. } = caller;
                await_request(channel, connection, place, seat, self.wakes.clone(), &self.events);
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waits;

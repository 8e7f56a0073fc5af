//! A party's service: clients ask all parties, party 0 decides the order of things, all do them.
//!
//! One thread (the service) owns keys, session and the connections between the parties; a thread a client waits for
//! that client's next request. Everything that touches keys happens in the service.

use super::control::{Reply, Request, Status, Talk, TalkError, hear, say};
use super::engine::{Engine, Served};
use super::family::{Family, Fss, Rep3};
use super::job::JobError;
use super::links::{Links, Purpose};
use super::order::Order;
use super::peers::Peers;
use crate::config::{Place, Protocol};
use crate::store::{Store, StoreError, in_full};
use privet_kernels::Device;
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::program::NamedPlan;
use privet_plan::{Plan, Program};
use privet_rep3::PartyId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use thiserror::Error;

/// One public line an event.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

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
}

/// A client with a request that waits to be served.
pub(super) struct Caller {
    pub channel: TcpChannel,
    pub place: Place,
    pub request: Request,
    /// It was told to send tensors, so it may be in the middle of that.
    pub granted: bool,
}

/// What wakes the service.
pub(super) enum Event {
    Caller(Box<Caller>),
    /// Another party dialled.
    Peer(u8, Box<TcpChannel>),
    /// Party 0's next order, with the connection it came on.
    Order(Box<(TcpChannel, Order)>),
    /// The connection to party 0 ended.
    NoOrder(TalkError),
}

/// Serve until the process ends.
pub fn serve(
    links: Links,
    program: Arc<Program>,
    device: Arc<dyn Device>,
    log: Log,
) -> Result<(), ServeError> {
    let me = match links.config.node.me {
        Place::Party(party) => party,
        ref other => return Err(ServeError::NotAParty(other.clone())),
    };
    let links = Arc::new(links);
    log(&format!("device: {}", device.name()));
    match links.config.deployment.protocol {
        Protocol::Fss => {
            let (bare, space) = (program.bare().is_some(), Fss::space(&links.config.node));
            let family = |name: &str, plan| {
                let dir = &links.config.node.store;
                // Keys are of one plan: each has a store of its own, but the room is the party's.
                let dir = if bare { dir.clone() } else { dir.join(name) };
                let store = Store::open(&dir)?.within(space.clone());
                Ok(Fss::new(me, links.clone(), plan, store, device.clone(), log.clone()))
            };
            let plans = served(&program, family)?;
            serve_family(me, links, program, plans, log)
        }
        Protocol::Rep3 => {
            let party = PartyId::new(me).ok_or(ServeError::NotAParty(Place::Party(me)))?;
            let security = links.config.deployment.security;
            let family = |_: &str, plan| Ok(Rep3::new(party, security, plan, device.clone(), log.clone()));
            let plans = served(&program, family)?;
            serve_family(me, links, program, plans, log)
        }
    }
}

/// Every plan of the program with keys and sessions of its own.
fn served<F>(
    program: &Program,
    mut family: impl FnMut(&str, Arc<Plan>) -> Result<F, StoreError>,
) -> Result<BTreeMap<String, Served<F>>, StoreError> {
    let one = |named: &NamedPlan| {
        let plan = Arc::new(named.plan.clone());
        Ok((named.name.clone(), Served { plan: plan.clone(), family: family(&named.name, plan)? }))
    };
    program.plans.iter().map(one).collect()
}

fn serve_family<F: Family>(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    plans: BTreeMap<String, Served<F>>,
    log: Log,
) -> Result<(), ServeError> {
    let listener = links.listen()?;
    log(&format!("party {me} listens on {}", listener.local_address()?));
    let (events, inbox) = channel();
    let service = Service {
        me,
        engine: Engine::new(me, links.clone(), program, plans, log.clone()),
        peers: Peers::new(links.clone()),
        links: links.clone(),
        inbox,
        events: events.clone(),
        log: log.clone(),
        awaits_order: false,
        order: None,
        leader: None,
        pending: Vec::new(),
    };
    std::thread::spawn(move || service.run());
    loop {
        let caller = match listener.accept(Duration::from_secs(3600)) {
            Ok(caller) => caller,
            Err(NetError::Timeout { .. }) => continue,
            Err(e) => {
                log(&format!("refused a connection: {e}"));
                continue;
            }
        };
        let (links, events, log) = (links.clone(), events.clone(), log.clone());
        std::thread::spawn(move || {
            let Some(caller) = links.without_doctors(caller) else { return };
            match links.welcome(caller) {
                Ok((channel, Place::Party(party), Purpose::Parties)) if party > me => {
                    let _ = events.send(Event::Peer(party, Box::new(channel)));
                }
                Ok((channel, place, Purpose::Client)) => await_request(channel, place, events, log),
                Ok((mut channel, place, _)) => {
                    log(&format!("refused {place}: it called for something that this party does not serve"));
                    channel.abort("this party does not serve that");
                }
                Err(e) => log(&format!("lost a connection: {e}")),
            }
        });
    }
}

/// Wait for a client's next request on a thread of its own.
fn await_request(mut channel: TcpChannel, place: Place, events: Sender<Event>, log: Log) {
    channel.set_patience(None);
    std::thread::spawn(move || match hear::<Request>(&mut channel, Talk::Request) {
        Ok(request) => {
            let caller = Caller { channel, place, request, granted: false };
            let _ = events.send(Event::Caller(Box::new(caller)));
        }
        Err(TalkError::Net(_)) => log(&format!("{place} left")),
        Err(e) => {
            log(&format!("{place}: {e}"));
            channel.abort("the request cannot be read");
        }
    });
}

/// A party between jobs. How party 0 leads is in `lead.rs`, how the others follow in `follow.rs`.
pub(super) struct Service<F: Family> {
    pub me: u8,
    pub links: Arc<Links>,
    pub engine: Engine<F>,
    /// The other parties, without party 0.
    pub peers: Peers,
    pub inbox: Receiver<Event>,
    pub events: Sender<Event>,
    pub log: Log,
    /// Not party 0: a thread holds the connection to party 0 and waits for its next order.
    pub awaits_order: bool,
    pub order: Option<(TcpChannel, Order)>,
    /// Not party 0: the connection to party 0 between two orders.
    pub leader: Option<TcpChannel>,
    pub pending: Vec<Caller>,
}

impl<F: Family> Service<F> {
    fn run(mut self) {
        loop {
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

    /// How long the parties wait for each other in a step of this order's job. What is prepared is not done step by
    /// step: a party that fetches or checks keys takes as long as there are keys.
    pub fn patience_for(&self, order: &Order) -> Option<Duration> {
        (!matches!(order, Order::Prepare { .. })).then(|| self.step_patience())
    }

    /// Take in what has arrived, waiting at most `wait`. False when nothing came.
    pub fn receive(&mut self, wait: Duration) -> bool {
        match self.inbox.recv_timeout(wait) {
            Ok(Event::Caller(caller)) => self.pending.push(*caller),
            Ok(Event::Peer(party, channel)) => {
                (self.log)(&format!("party {party} connected"));
                self.peers.put(party, *channel);
            }
            Ok(Event::Order(order)) => {
                self.awaits_order = false;
                self.order = Some(*order);
            }
            Ok(Event::NoOrder(e)) => {
                self.awaits_order = false;
                (self.log)(&format!("no order from party 0: {e}"));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
        // Whoever left while waiting must not be part of a run; nobody else would remove it.
        self.pending.retain(|c| c.channel.is_open());
        true
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
        Status {
            plans: self.engine.status(),
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
        if let Err(e) = &result {
            (self.log)(&format!("a request failed: {}", in_full(e)));
        }
        for mut caller in callers {
            if let Err(e) = &result
                && say(&mut caller.channel, Talk::Reply, &Reply::Failed { reason: e.to_string() }).is_err()
            {
                continue;
            }
            // A client that may be in the middle of sending starts over with a fresh connection.
            if result.is_ok() || !caller.granted {
                caller.granted = false;
                await_request(caller.channel, caller.place, self.events.clone(), self.log.clone());
            }
        }
    }
}

//! A party's service: clients ask both parties, party 0 decides the order of things, both do them.
//!
//! One thread (the engine) owns the store, the keys and the connection between the parties; a thread a client
//! waits for that client's next request. Everything that touches keys happens in the engine.

use super::control::{Id, Order, Reply, Request, Status, Talk, TalkError, hear, say};
use super::engine::{Engine, JobError};
use super::links::{Links, Purpose};
use crate::config::Place;
use crate::store::{Store, StoreError};
use privet_kernels::Device;
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::Plan;
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
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Not a party's configuration.
    #[error("this node is {0}, not a party: `me` in its node file must be \"party:0\" or \"party:1\"")]
    NotAParty(Place),
}

/// A client with a request that waits to be served.
pub(super) struct Caller {
    pub channel: TcpChannel,
    pub place: Place,
    pub request: Request,
}

enum Event {
    Caller(Box<Caller>),
    Peer(Box<TcpChannel>),
    /// Party 0's next order, with the connection it came on.
    Order(Box<(TcpChannel, Order)>),
    /// The connection to party 0 ended.
    NoOrder(TalkError),
}

/// Serve until the process ends.
pub fn serve(links: Links, plan: Arc<Plan>, device: Arc<dyn Device>, log: Log) -> Result<(), ServeError> {
    let party = match links.config.node.me {
        Place::Party(party) => party,
        ref other => return Err(ServeError::NotAParty(other.clone())),
    };
    let node = &links.config.node;
    let store = Store::open(&node.store)?.with_budget(node.disk_budget.map(|b| b.0));
    let links = Arc::new(links);
    let listener = links.listen()?;
    log(&format!("party {party} listens on {}", listener.local_address()?));
    let (events, inbox) = channel();
    let engine = Engine::new(party, links.clone(), plan, device, store, log.clone());
    let service = Service {
        party,
        links: links.clone(),
        engine,
        inbox,
        events: events.clone(),
        log: log.clone(),
        peer: None,
        peer_is_new: false,
        awaits_order: false,
        order: None,
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
                Ok((channel, Place::Party(1), Purpose::Parties)) if party == 0 => {
                    let _ = events.send(Event::Peer(Box::new(channel)));
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
    std::thread::spawn(move || match hear::<Request>(&mut channel, Talk::Request) {
        Ok(request) => {
            let _ = events.send(Event::Caller(Box::new(Caller { channel, place, request })));
        }
        Err(TalkError::Net(_)) => log(&format!("{place} left")),
        Err(e) => {
            log(&format!("{place}: {e}"));
            channel.abort("the request cannot be read");
        }
    });
}

/// Wait for party 0's next order on a thread of its own.
fn await_order(mut peer: TcpChannel, events: Sender<Event>) {
    std::thread::spawn(move || {
        let event = match hear::<Order>(&mut peer, Talk::Order) {
            Ok(order) => Event::Order(Box::new((peer, order))),
            Err(e) => Event::NoOrder(e),
        };
        let _ = events.send(event);
    });
}

struct Service {
    party: u8,
    links: Arc<Links>,
    engine: Engine,
    inbox: Receiver<Event>,
    events: Sender<Event>,
    log: Log,
    peer: Option<TcpChannel>,
    /// Party 0: whoever is behind the connection has not said yet which session it has open.
    peer_is_new: bool,
    /// Party 1: a thread holds the connection to party 0 and waits for its next order.
    awaits_order: bool,
    order: Option<(TcpChannel, Order)>,
    pending: Vec<Caller>,
}

impl Service {
    fn run(mut self) {
        loop {
            match self.party {
                0 => self.lead(),
                _ => self.follow(),
            }
        }
    }

    /// Take in what has arrived, waiting at most `wait`. False when nothing came.
    fn receive(&mut self, wait: Duration) -> bool {
        match self.inbox.recv_timeout(wait) {
            Ok(Event::Caller(caller)) => self.pending.push(*caller),
            Ok(Event::Peer(channel)) => {
                (self.log)("the other party connected");
                self.peer = Some(*channel);
                self.peer_is_new = true;
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
        true
    }

    /// Party 0: serve what can be served, then wait for more.
    fn lead(&mut self) {
        while let Some(callers) = self.next_job() {
            self.lead_job(callers);
        }
        self.receive(Duration::from_secs(3600));
    }

    /// The callers of the next thing to do: one, or all that a run needs.
    fn next_job(&mut self) -> Option<Vec<Caller>> {
        if let Some(i) = self.pending.iter().position(|c| !matches!(c.request, Request::Run { .. })) {
            return Some(vec![self.pending.remove(i)]);
        }
        let needed = self.engine.places_of_a_run();
        let mut picked = Vec::new();
        for place in &needed {
            picked.push(self.pending.iter().position(|c| &c.place == place)?);
        }
        // A caller without a role in the plan is told so by the engine.
        if picked.is_empty() {
            return (!self.pending.is_empty()).then(|| vec![self.pending.remove(0)]);
        }
        picked.sort_unstable();
        Some(picked.into_iter().rev().map(|i| self.pending.remove(i)).collect())
    }

    fn lead_job(&mut self, mut callers: Vec<Caller>) {
        let result = self.lead_steps(&mut callers);
        self.finish(callers, result);
    }

    fn lead_steps(&mut self, callers: &mut [Caller]) -> Result<(), JobError> {
        if let Some(Caller { channel, request: Request::Status { .. }, .. }) = callers.first_mut() {
            let status = self.status();
            return Ok(say(channel, Talk::Reply, &Reply::Status(status))?);
        }
        let result = self.lead_order(callers);
        if !matches!(result, Err(JobError::SessionLost)) {
            return result;
        }
        (self.log)("the other party was restarted: the open session is over");
        // Keys are dealt for a new session then; and where a party owns the model, it can begin one now.
        match callers.first().map(|c| &c.request) {
            Some(Request::Run { .. }) if self.engine.order_before_run()?.is_none() => result,
            _ => self.lead_order(callers),
        }
    }

    fn lead_order(&mut self, callers: &mut [Caller]) -> Result<(), JobError> {
        if let Some(Request::Run { .. }) = callers.first().map(|c| &c.request)
            && let Some(order) = self.engine.order_before_run()?
        {
            self.carry_out(&order, &mut [])?;
        }
        let order = self.engine.plan_order(callers)?;
        self.carry_out(&order, callers)
    }

    fn carry_out(&mut self, order: &Order, callers: &mut [Caller]) -> Result<(), JobError> {
        self.engine.consent(order, callers)?;
        let mut peer = self.peer_that_agrees(order)?;
        let result = self.engine.execute(order, callers, &mut peer);
        self.keep_peer(peer, &result);
        result
    }

    /// Give the order to party 1 and hear its consent. A connection that turns out dead is replaced
    /// once: nothing that depends on secrets has been sent by then.
    fn peer_that_agrees(&mut self, order: &Order) -> Result<TcpChannel, JobError> {
        for last_try in [false, true] {
            let mut peer = match self.peer.take() {
                Some(peer) => peer,
                None => self.await_peer()?,
            };
            let mut ask = |order: &Order| {
                say(&mut peer, Talk::Order, order)
                    .and_then(|()| hear::<Result<(), String>>(&mut peer, Talk::Order))
            };
            // A party that was restarted has no session open. It is asked before a client's request gets to it.
            if let (true, Order::Run { .. } | Order::Prepare { .. }, Some(session)) =
                (self.peer_is_new, order, self.engine.open_session())
            {
                let confirm = Order::Confirm { session };
                if let Ok(Err(_)) = ask(&confirm) {
                    self.peer = Some(peer);
                    self.peer_is_new = false;
                    self.engine.declined(&confirm);
                    return Err(JobError::SessionLost);
                }
            }
            match ask(order) {
                Ok(Ok(())) => {
                    self.peer_is_new = false;
                    return Ok(peer);
                }
                Ok(Err(reason)) => {
                    self.peer = Some(peer);
                    self.engine.declined(order);
                    return Err(JobError::Peer(reason));
                }
                Err(e) if last_try => return Err(e.into()),
                Err(_) => (self.log)("the connection to the other party was lost; waiting for a new one"),
            }
        }
        unreachable!("the second try returns")
    }

    fn await_peer(&mut self) -> Result<TcpChannel, JobError> {
        let patience = self.links.config.deployment.timeouts.connect;
        let deadline = Instant::now() + patience;
        loop {
            if let Some(peer) = self.peer.take() {
                return Ok(peer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.receive(left) {
                return Err(JobError::NoPeer { party: 1 - self.party, seconds: patience.as_secs() });
            }
        }
    }

    /// Party 1: keep a connection to party 0, do what it orders, and say meanwhile how things stand.
    fn follow(&mut self) {
        if !self.awaits_order {
            let Some(peer) = self.peer.take().or_else(|| self.call_leader()) else { return };
            self.awaits_order = true;
            await_order(peer, self.events.clone());
        }
        self.answer_status();
        self.receive(Duration::from_secs(3600));
        if let Some((peer, order)) = self.order.take() {
            self.follow_order(peer, &order);
        }
    }

    /// Dial party 0; meanwhile clients that come are told, not left hanging.
    fn call_leader(&mut self) -> Option<TcpChannel> {
        match self.links.dial_within(&Place::Party(0), Purpose::Parties, Duration::from_secs(2)) {
            Ok(channel) => {
                (self.log)("connected to party 0");
                Some(channel)
            }
            Err(e) => {
                while self.receive(Duration::ZERO) {}
                if !self.pending.is_empty() || matches!(e, NetError::Refused { .. }) {
                    (self.log)(&format!("party 0 cannot be reached: {e}"));
                }
                for caller in std::mem::take(&mut self.pending) {
                    let reason = format!("party 1 cannot reach party 0: {e}");
                    self.finish(vec![caller], Err(JobError::Peer(reason)));
                }
                std::thread::sleep(Duration::from_millis(200));
                None
            }
        }
    }

    fn follow_order(&mut self, mut peer: TcpChannel, order: &Order) {
        let mut callers = match self.callers_of(order) {
            Ok(callers) => callers,
            Err(e) => {
                let _ = say(&mut peer, Talk::Order, &Err::<(), _>(e.to_string()));
                self.peer = Some(peer);
                return;
            }
        };
        let result = match self.engine.consent(order, &callers) {
            Err(e) => {
                let sent = say(&mut peer, Talk::Order, &Err::<(), _>(e.to_string()));
                if sent.is_ok() {
                    self.peer = Some(peer);
                }
                Err(e)
            }
            Ok(()) => {
                let result = say(&mut peer, Talk::Order, &Ok::<(), String>(()))
                    .map_err(JobError::from)
                    .and_then(|()| self.engine.execute(order, &mut callers, &mut peer));
                self.keep_peer(peer, &result);
                result
            }
        };
        self.finish(callers, result);
    }

    /// The requests that an order names; they come from the clients directly and may be on their way.
    fn callers_of(&mut self, order: &Order) -> Result<Vec<Caller>, JobError> {
        let wanted: Vec<Id> = match order {
            Order::Prepare { id, .. } | Order::Begin { id, .. } => vec![*id],
            Order::BeginFrom { .. } | Order::Confirm { .. } => Vec::new(),
            Order::Run { ids, .. } => ids.clone(),
        };
        let deadline = Instant::now() + self.links.config.deployment.timeouts.connect;
        loop {
            self.answer_status();
            let found: Option<Vec<usize>> =
                wanted.iter().map(|id| self.pending.iter().position(|c| c.request.id() == *id)).collect();
            if let Some(mut found) = found {
                found.sort_unstable();
                return Ok(found.into_iter().rev().map(|i| self.pending.remove(i)).collect());
            }
            if !self.receive(deadline.saturating_duration_since(Instant::now())) {
                return Err(JobError::Peer(
                    "party 1 did not hear from the client: it must connect to both parties".into(),
                ));
            }
        }
    }

    fn answer_status(&mut self) {
        let status = self.status();
        let (asking, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|c| matches!(c.request, Request::Status { .. }));
        self.pending = rest;
        for mut caller in asking {
            let said = say(&mut caller.channel, Talk::Reply, &Reply::Status(status.clone()));
            self.finish(vec![caller], said.map_err(JobError::from));
        }
    }

    fn status(&self) -> Status {
        let (sessions, runs_left) = self.engine.holdings();
        Status {
            sessions,
            open: runs_left.is_some(),
            runs_left,
            peers: self.peer.is_some() || self.awaits_order,
        }
    }

    /// After a failure in the middle both sides may be at different steps: the connection is not used again.
    fn keep_peer(&mut self, mut peer: TcpChannel, result: &Result<(), JobError>) {
        match result {
            Ok(()) | Err(JobError::Dealer(_)) => self.peer = Some(peer),
            Err(e) => peer.abort(&e.public()),
        }
    }

    /// Tell the callers how it ended and wait for their next requests.
    fn finish(&mut self, callers: Vec<Caller>, result: Result<(), JobError>) {
        if let Err(e) = &result {
            (self.log)(&format!("a request failed: {e}"));
        }
        for mut caller in callers {
            if let Err(e) = &result
                && say(&mut caller.channel, Talk::Reply, &Reply::Failed { reason: e.to_string() }).is_err()
            {
                continue;
            }
            // After a failure the client may be in the middle of sending: start over with a fresh connection.
            if result.is_ok() || e_is_clean(&result) {
                await_request(caller.channel, caller.place, self.events.clone(), self.log.clone());
            }
        }
    }
}

/// True where the client had sent nothing but its request when the job failed.
fn e_is_clean(result: &Result<(), JobError>) -> bool {
    matches!(
        result,
        Err(JobError::Dealer(_)
            | JobError::Checked(_)
            | JobError::OtherRequest
            | JobError::Store(_)
            | JobError::NotOpen
            | JobError::SessionLost
            | JobError::NoKeys
            | JobError::NoRole(_)
            | JobError::NoPeer { .. })
    )
}

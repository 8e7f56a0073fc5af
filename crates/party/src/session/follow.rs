//! The parties that party 0 leads: keep a connection to it and do what it orders.

use super::control::{Talk, hear, say};
use super::family::Family;
use super::job::JobError;
use super::lead::take;
use super::order::{Consent, Go, Order};
use super::party::{Caller, Service, TURN, Wake};
use super::peers::{Others, abort};
use super::threads::no_thread;
use crate::config::Place;
use crate::events::{Event, Job, ThreadName, Why};
use privet_net::{Channel, Fault, TcpChannel};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl<F: Family> Service<F> {
    /// Keep a connection to party 0, do what it orders, and say meanwhile how things stand.
    pub(super) fn follow(&mut self) {
        if !self.awaits_order {
            let Some(leader) = self.leader.take().or_else(|| self.call_leader()) else { return };
            self.awaits_order = self.await_order(leader);
        }
        self.answer_status();
        self.receive(TURN);
        if let Some((leader, order)) = self.order.take() {
            self.follow_order(leader, &order);
        }
    }

    /// Wait for party 0's next order on a thread of its own; false where the system gives none. It is vital: where it
    /// panics, this party would hear no order any more. Party 0 may have nothing to order for as long as it likes. Where its
    /// service has no turn, this party dials again.
    fn await_order(&self, mut leader: TcpChannel) -> bool {
        leader.set_patience_for_turns(self.links.config.deployment.timeouts.turn());
        let wakes = self.wakes.clone();
        let wait = move || {
            let wake = match hear::<Order>(&mut leader, Talk::Order) {
                Ok(order) => Wake::Order(Box::new((leader, order))),
                Err(e) => Wake::NoOrder(e),
            };
            let _ = wakes.send(wake);
        };
        match self.crew.vital("privet-order", wait) {
            Ok(()) => true,
            Err(e) => {
                let thread = ThreadName("privet-order");
                self.events.emit(Event::NoThread { thread, reason: no_thread(&e) });
                std::thread::sleep(Duration::from_secs(1));
                false
            }
        }
    }

    /// Dial party 0; meanwhile clients that come are told, not left hanging.
    fn call_leader(&mut self) -> Option<TcpChannel> {
        match self.peers.dial(0, Duration::from_secs(2)) {
            Ok(channel) => {
                self.events.emit(Event::LeaderConnected { connection: self.events.connection() });
                self.away = None;
                Some(channel)
            }
            Err(cause) => {
                while self.receive(Duration::ZERO) {}
                // Once a cause: it is tried again many times.
                if self.away.as_ref() != Some(&cause) {
                    self.events.emit(Event::LeaderAway { reason: cause.why() });
                    self.away = Some(cause.clone());
                }
                for caller in std::mem::take(&mut self.pending) {
                    let e = JobError::Unreachable { me: self.me, party: 0, cause: cause.clone() };
                    self.finish(vec![caller], Err(e));
                }
                // Until somebody has changed a file there is no use in trying often.
                let hopeless = matches!(cause.fault(), Fault::Incompatible | Fault::Configuration);
                std::thread::sleep(Duration::from_millis(if hopeless { 1000 } else { 200 }));
                None
            }
        }
    }

    fn follow_order(&mut self, mut leader: TcpChannel, order: &Order) {
        let callers = order.well_formed().map_err(JobError::Malformed).and_then(|()| self.callers_of(order));
        let (callers, consent) = match callers {
            Ok(callers) => {
                let turn = match order {
                    Order::Prepare { plan, .. } => self.await_turn(plan),
                    _ => Ok(()),
                };
                let consent = turn.and_then(|()| self.engine.consent(order, &callers));
                (callers, consent)
            }
            Err(e) => (Vec::new(), Err(e)),
        };
        let answer = match &consent {
            Ok(()) => Consent::Ready,
            Err(JobError::SessionLost) => Consent::NoSession,
            Err(JobError::Lacks(e)) => Consent::Lacks { reason: e.to_string() },
            Err(e) => Consent::Declined { reason: e.to_string() },
        };
        let said = say(&mut leader, Talk::Order, &answer);
        match consent {
            Ok(()) => {
                let go = said.map_err(JobError::from).and_then(|()| self.hear_go(&mut leader));
                self.act(go, leader, order, callers);
            }
            Err(e) => {
                self.leader = said.is_ok().then_some(leader);
                match e {
                    // Another order for the same requests may come.
                    JobError::SessionLost | JobError::Lacks(_) => self.pending.extend(callers),
                    e => self.finish_order(order, callers, Err(e)),
                }
            }
        }
    }

    /// Party 0 waits for all others, each of which may take its time; more than that it has no reason to.
    fn hear_go(&self, leader: &mut TcpChannel) -> Result<Go, JobError> {
        let each = self.connect_patience() + self.step_patience();
        self.await_answer(leader, 2 * u32::from(self.parties()) * each);
        Ok(hear(leader, Talk::Order)?)
    }

    fn act(&mut self, go: Result<Go, JobError>, leader: TcpChannel, order: &Order, mut callers: Vec<Caller>) {
        let result = match go {
            Ok(Go::Go) => self.carry_out_order(leader, order, &mut callers),
            Ok(Go::Again) => {
                self.engine.called_off();
                self.leader = Some(leader);
                self.pending.extend(callers);
                return;
            }
            Ok(Go::Off { reason }) => {
                self.engine.called_off();
                self.leader = Some(leader);
                Err(JobError::CalledOff(reason))
            }
            Err(e) => {
                self.engine.called_off();
                Err(e)
            }
        };
        self.finish_order(order, callers, result);
    }

    /// The same as [`Service::finish`], also where nobody asked for what was ordered.
    fn finish_order(&mut self, order: &Order, callers: Vec<Caller>, result: Result<(), JobError>) {
        if let (true, Err(e)) = (callers.is_empty(), &result) {
            let job = Job::ordered(self.engine.program(), order);
            self.events.emit(Event::JobFailed { job, reason: e.why() });
        }
        self.finish(callers, result);
    }

    fn carry_out_order(
        &mut self,
        leader: TcpChannel,
        order: &Order,
        callers: &mut Vec<Caller>,
    ) -> Result<(), JobError> {
        let others = match self.meet(leader, order) {
            Ok(others) => others,
            Err(e) => {
                self.engine.called_off();
                return Err(e);
            }
        };
        let result = self.carry_on(order, callers, others);
        // The connection to party 0 waits for the next order by itself.
        self.leader = self.peers.take(0);
        result
    }

    /// Connections to all others that work and on which all were given the same order.
    fn meet(&mut self, leader: TcpChannel, order: &Order) -> Result<Others, JobError> {
        let mut channels = BTreeMap::from([(0, leader)]);
        let digest = order.digest();
        // Two parties meet in the order of their numbers, the same at all: nobody waits in a circle.
        let me = self.me;
        for party in (1..self.parties()).filter(|&p| p != me) {
            match self.meet_one(party, &digest) {
                Ok(channel) => channels.insert(party, channel),
                Err(e) => {
                    abort(channels.into_values(), &e.to_string());
                    return Err(e);
                }
            };
        }
        Ok(Others::new(channels, self.step_patience()))
    }

    /// A connection that turns out dead is replaced, once: nothing that depends on secrets has been sent by then.
    fn meet_one(&mut self, party: u8, digest: &[u8; 32]) -> Result<TcpChannel, JobError> {
        let (me, patience) = (self.me, self.connect_patience());
        let attempt = |service: &mut Self| -> Result<TcpChannel, JobError> {
            while service.receive(Duration::ZERO) {}
            let mut channel = match service.peers.take(party) {
                Some(channel) => channel,
                None if party < me => service
                    .peers
                    .dial(party, patience)
                    .map_err(|cause| JobError::Unreachable { me, party, cause })?,
                None => service.await_peer(party)?,
            };
            channel.send(&Talk::Order.step(), digest.to_vec())?;
            service.await_answer(&mut channel, 2 * patience);
            let theirs = channel.recv(&Talk::Order.step(), digest.len())?;
            match theirs == digest {
                true => Ok(channel),
                false => Err(JobError::OtherOrder(party)),
            }
        };
        match attempt(self) {
            Err(JobError::Talk(e)) => {
                self.events.emit(Event::PeerLost { place: Place::Party(party), reason: e.why() });
                attempt(self)
            }
            met => met,
        }
    }

    /// The requests that an order names; they come from the clients directly and may be on their way.
    fn callers_of(&mut self, order: &Order) -> Result<Vec<Caller>, JobError> {
        let wanted = order.requests();
        let deadline = Instant::now() + self.connect_patience();
        loop {
            self.answer_status();
            let found: Option<Vec<usize>> =
                wanted.iter().map(|id| self.pending.iter().position(|c| c.request.id() == *id)).collect();
            if let Some(found) = found {
                return Ok(take(&mut self.pending, found));
            }
            if !self.receive(deadline.saturating_duration_since(Instant::now())) {
                return Err(JobError::NotAsked(self.me));
            }
        }
    }
}

//! Party 0: what is done next, and that all parties do the same.

use super::control::{Request, Talk, hear, say};
use super::family::Family;
use super::job::JobError;
use super::order::{Consent, Go, Order};
use super::party::{Caller, Service, TURN};
use super::peers::{Others, abort};
use crate::config::Place;
use crate::events::{Event, Why};
use privet_net::TcpChannel;
use std::collections::BTreeMap;
use std::time::Instant;

/// Runs in a row that another party may lack what they use up for, before the job fails. A deal that breaks off leaves
/// one such run at most.
const MOST_PASSED_OVER: usize = 4;

impl<F: Family> Service<F> {
    /// Serve what can be served, then wait for more.
    pub(super) fn lead(&mut self) {
        loop {
            self.answer_status();
            let Some(mut callers) = self.next_job() else { break };
            let result = self.lead_job(&mut callers);
            self.finish(callers, result);
            self.free_since = Instant::now();
        }
        if !self.receive(TURN) {
            self.dismiss();
        }
    }

    /// Tell callers that others, whom their request needs too, have not asked for the same within `timeouts.step`. Where this
    /// party had something else to do, the others may have waited for that, so the time counts from its end.
    fn dismiss(&mut self) {
        let patience = self.step_patience();
        let access = self.engine.access();
        let absent = |c: &Caller| {
            let needed = access.callers(&c.place, &c.request).ok()?;
            let asks = |place: &Place| {
                let same = |o: &Caller| o.place == *place && o.request.subject() == c.request.subject();
                self.pending.iter().any(same)
            };
            needed.into_iter().find(|place| !asks(place))
        };
        if !self.underway.is_empty() || self.free_since.elapsed() < patience {
            return;
        }
        let late = self.pending.iter().enumerate().filter(|(_, c)| c.since.elapsed() >= patience);
        let late: Vec<(usize, Place)> = late.filter_map(|(i, c)| Some((i, absent(c)?))).collect();
        let (indices, absent): (Vec<usize>, Vec<Place>) = late.into_iter().unzip();
        // The last comes first.
        for (caller, place) in take(&mut self.pending, indices).into_iter().zip(absent.into_iter().rev()) {
            let e = JobError::Absent { place, seconds: patience.as_secs() };
            self.finish(vec![caller], Err(e));
        }
    }

    /// The callers of the next thing to do: one, or all that a run or the beginning of a training needs.
    fn next_job(&mut self) -> Option<Vec<Caller>> {
        let access = self.engine.access();
        let needed: Vec<Vec<Place>> = self
            .pending
            .iter()
            // Whoever may not ask for it is told so by the engine, as a caller for itself.
            .map(|c| access.callers(&c.place, &c.request).unwrap_or_else(|_| vec![c.place.clone()]))
            .collect();
        let ready: Vec<usize> =
            (0..needed.len()).filter(|&i| !self.must_wait(&self.pending[i].request)).collect();
        let alone = |i: &&usize| needed[**i] == [self.pending[**i].place.clone()];
        let picked = ready.iter().find(alone).map(|&i| vec![i]);
        let picked = picked.or_else(|| ready.iter().find_map(|&i| self.together(i, &needed[i])));
        let picked = picked.or_else(|| self.at_odds(&needed))?;
        Some(take(&mut self.pending, picked))
    }

    /// All whom the request of caller `i` needs, each with a request for the same thing.
    fn together(&self, i: usize, needed: &[Place]) -> Option<Vec<usize>> {
        let of = |place: &Place| {
            let fits =
                |c: &Caller| c.place == *place && c.request.subject() == self.pending[i].request.subject();
            self.pending.iter().position(fits)
        };
        needed.iter().map(of).collect()
    }

    /// Two callers of whom each needs the other, who asks for something else: nobody else can end that. The engine tells
    /// both.
    fn at_odds(&self, needed: &[Vec<Place>]) -> Option<Vec<usize>> {
        let place = |i: usize| &self.pending[i].place;
        let pairs = (0..needed.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
        let subject = |i: usize| self.pending[i].request.subject();
        // Those who ask for the same wait for a third.
        let mut waiting = pairs.filter(|&(j, i)| place(i) != place(j) && subject(i) != subject(j));
        waiting
            .find(|&(j, i)| needed[i].contains(place(j)) && needed[j].contains(place(i)))
            .map(|(j, i)| vec![j, i])
    }

    fn lead_job(&mut self, callers: &mut Vec<Caller>) -> Result<(), JobError> {
        let mut result = self.lead_order(callers);
        for _ in 0..MOST_PASSED_OVER {
            let Err(e @ JobError::PeerLacks { .. }) = &result else { break };
            // Its number stays used here; the next one may be at both.
            if let Some(job) = self.job_of(callers) {
                self.events.emit(Event::PassedOver { job, reason: e.why() });
            }
            result = self.lead_order(callers);
        }
        if !matches!(result, Err(JobError::SessionLost)) {
            return result;
        }
        if let Some(job) = self.job_of(callers) {
            self.events.emit(Event::SessionLost { job });
        }
        let Some(request) = callers.first().map(|c| c.request.clone()) else { return result };
        if let Some(plan) = request.plan() {
            self.engine.session_lost(plan);
        }
        // Keys are prepared for a new session then; and where no client has to share anything, it can begin now.
        match &request {
            Request::Run { plan, .. } if self.engine.order_before_run(plan)?.is_none() => result,
            _ => self.lead_order(callers),
        }
    }

    fn lead_order(&mut self, callers: &mut Vec<Caller>) -> Result<(), JobError> {
        // Before a session is begun, and keys are used up, for somebody who has no part in it.
        self.engine.admitted(callers)?;
        if let Some(Request::Run { plan, .. }) = callers.first().map(|c| &c.request)
            && let Some(order) = self.engine.order_before_run(plan)?
        {
            self.carry_out(&order, &mut Vec::new())?;
        }
        let order = self.engine.plan_order(callers)?;
        self.carry_out(&order, callers)
    }

    fn carry_out(&mut self, order: &Order, callers: &mut Vec<Caller>) -> Result<(), JobError> {
        self.engine.consent(order, callers)?;
        let others = match self.agreed(order) {
            Ok(others) => others,
            Err(e) => {
                self.engine.called_off();
                return Err(e);
            }
        };
        self.carry_on(order, callers, others)
    }

    /// Give the order to all others and hear that they consent, before any of them is told to go on.
    fn agreed(&mut self, order: &Order) -> Result<Others, JobError> {
        // Nobody is asked while somebody is away.
        for party in 1..self.parties() {
            let channel = self.await_peer(party)?;
            self.peers.put(party, channel);
        }
        let mut asked = BTreeMap::new();
        let consents = match self.ask_all(order, &mut asked) {
            Ok(consents) => consents,
            Err(e) => {
                abort(asked.into_values(), &e.to_string());
                return Err(e);
            }
        };
        let lost = consents.values().any(|c| *c == Consent::NoSession);
        let refusal = consents.iter().find_map(|(&party, consent)| match consent {
            Consent::Declined { reason } => Some((party, reason.clone())),
            _ => None,
        });
        let lacking = consents.iter().find_map(|(&party, consent)| match consent {
            Consent::Lacks { reason } => Some(JobError::PeerLacks { party, reason: reason.clone() }),
            _ => None,
        });
        let (go, outcome) = match (refusal, lost, lacking) {
            (Some((party, reason)), ..) => {
                let e = JobError::Declined { party, reason };
                (Go::Off { reason: e.to_string() }, Err(e))
            }
            (None, true, _) => (Go::Again, Err(JobError::SessionLost)),
            (None, false, Some(e)) => (Go::Again, Err(e)),
            (None, false, None) => (Go::Go, Ok(())),
        };
        let mut said = Ok(());
        for (party, channel) in &mut asked {
            if consents.get(party) == Some(&Consent::Ready) {
                said = said.and(say(channel, Talk::Order, &go));
            }
        }
        if let Err(e) = said {
            abort(asked.into_values(), &e.to_string());
            return outcome.and(Err(e.into()));
        }
        match outcome {
            Ok(()) => Ok(Others::new(asked, self.step_patience())),
            Err(e) => {
                asked.into_iter().for_each(|(party, channel)| self.peers.put(party, channel));
                Err(e)
            }
        }
    }

    /// Ask all at once, then hear all. Nothing that depends on secrets has been sent by then, so a connection that
    /// turns out dead is replaced, once.
    fn ask_all(
        &mut self,
        order: &Order,
        asked: &mut BTreeMap<u8, TcpChannel>,
    ) -> Result<BTreeMap<u8, Consent>, JobError> {
        let patience = self.connect_patience() + self.step_patience();
        let ask = |service: &mut Self, party| -> Result<TcpChannel, JobError> {
            let mut channel = service.await_peer(party)?;
            channel.set_patience(Some(patience));
            // A failure shows where the answer is awaited.
            let _ = say(&mut channel, Talk::Order, order);
            Ok(channel)
        };
        for party in 1..self.parties() {
            asked.insert(party, ask(self, party)?);
        }
        let mut consents = BTreeMap::new();
        for party in 1..self.parties() {
            let hear_from = |service: &Self, asked: &mut BTreeMap<u8, TcpChannel>| {
                let channel = asked.get_mut(&party).ok_or(JobError::NoParty(party))?;
                service.await_answer(channel, patience);
                Ok::<_, JobError>(hear::<Consent>(channel, Talk::Order)?)
            };
            let consent = match hear_from(self, asked) {
                Ok(consent) => consent,
                Err(e) => {
                    self.events.emit(Event::PeerLost { place: Place::Party(party), reason: e.why() });
                    asked.remove(&party);
                    asked.insert(party, ask(self, party)?);
                    hear_from(self, asked)?
                }
            };
            consents.insert(party, consent);
        }
        Ok(consents)
    }
}

/// Take elements by index, in any order.
pub(super) fn take<T>(from: &mut Vec<T>, mut indices: Vec<usize>) -> Vec<T> {
    indices.sort_unstable();
    indices.into_iter().rev().map(|i| from.remove(i)).collect()
}

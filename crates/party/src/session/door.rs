//! A party's door: takes calls, and lets in whom [`admits`] and the [`Seats`] allow.
//!
//! Everybody who gets here has shown a pinned certificate. What such a place may take of this party's threads,
//! descriptors and memory is bounded all the same, place by place, so that one of them, broken or hostile, is in nobody
//! else's way.

use super::access::admits;
use super::control::{Request, Talk, TalkError, hear_up_to};
use super::links::{Links, Purpose};
use super::meetings::Meetings;
use super::party::{Caller, Wake};
use super::preparing::MOST_PREPARATIONS;
use super::threads::aside;
use crate::config::Place;
use crate::events::{Event, Events, Number, Reason, Why, reason};
use privet_net::tcp::Incoming;
use privet_net::{Channel, Listener, Liveness, NetError, TcpChannel};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections of one place as a client, at a time. Each has a thread, a few descriptors and what its peer sends before
/// it is read, and at most one request that waits. A place is one program, or a few that run at once. With those of the
/// other purposes it is what the listener lets a place have at all.
pub const CLIENT_CONNECTIONS: usize = 12;

/// Connections of one party that the service has not taken in yet. A party needs one, and dials again only where it found
/// the one before dead.
pub const PEER_CONNECTIONS: usize = 2;

/// Connections of one party for preparations: as many as are under way at a time, and one whose preparation ends.
pub const PREPARATION_CONNECTIONS: usize = MOST_PREPARATIONS + 1;

/// Calls of one place's `privet doctor` that are answered at a time.
pub const DOCTORS: usize = 2;

/// Largest request, bytes: a name and the public numbers of a run.
const MAX_REQUEST: usize = 1 << 20;

/// How long a caller waits for a seat that another connection of its place is about to give up.
const SEATING: Duration = Duration::from_secs(1);

/// Who sits where: connections by place and purpose.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<BTreeMap<(Place, &'static str), usize>>>);

/// One connection's share of what its place may have; given back when it is dropped.
pub(super) struct Seat {
    seats: Seats,
    key: (Place, &'static str),
    /// Who is told when it is given back.
    announced: Option<(Events, Event)>,
}

impl Seat {
    /// Tell that a connection has it, and when it has it no more.
    fn announce(mut self, events: &Events, connection: Number, place: &Place, purpose: Purpose) -> Seat {
        events.emit(Event::Opened { connection, place: place.clone(), purpose });
        let closed = Event::Closed { connection, place: place.clone(), purpose };
        self.announced = Some((events.clone(), closed));
        self
    }
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Place, &'static str), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a place, unless it has `most` for this purpose.
    pub fn take(&self, place: &Place, purpose: Purpose, most: usize) -> Option<Seat> {
        let key = (place.clone(), purpose.word());
        let mut taken = self.lock();
        let count = taken.entry(key.clone()).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.clone(), key, announced: None })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((events, closed)) = self.announced.take() {
            events.emit(closed);
        }
        let mut taken = self.seats.lock();
        match taken.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.key)),
        }
    }
}

/// How many connections of a place are let in at a time.
fn most(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Client => CLIENT_CONNECTIONS,
        Purpose::Parties => PEER_CONNECTIONS,
        Purpose::Doctor => DOCTORS,
        Purpose::Preparation => PREPARATION_CONNECTIONS,
        // A party serves none.
        Purpose::Keys => 0,
    }
}

/// The door of party `me`.
#[derive(Clone)]
pub(super) struct Door {
    me: u8,
    links: Arc<Links>,
    seats: Seats,
    wakes: Sender<Wake>,
    meetings: Meetings,
    events: Events,
    /// The service's, which clients wait for.
    liveness: Liveness,
}

impl Door {
    pub fn new(
        me: u8,
        links: Arc<Links>,
        wakes: Sender<Wake>,
        meetings: Meetings,
        events: Events,
        liveness: Liveness,
    ) -> Door {
        Door { me, links, seats: Seats::default(), wakes, meetings, events, liveness }
    }

    /// Take calls for ever.
    pub fn take_calls(&self, listener: &Listener) {
        loop {
            match listener.accept(Duration::from_secs(3600)) {
                Ok(caller) => self.take_call(caller),
                Err(NetError::Timeout { .. }) => {}
                Err(e) => self.events.emit(Event::Stranger { reason: e.why() }),
            }
        }
    }

    /// Take one call, on a thread of its own.
    pub fn take_call(&self, caller: Incoming) {
        let door = self.clone();
        aside("privet-caller", &self.events, move || {
            let connection = door.events.connection();
            if let Err(e) = door.take_in(caller, connection) {
                door.events.emit(Event::Broken { connection, reason: e.why() });
            }
        });
    }

    /// Let a caller in, or tell it why not.
    fn take_in(&self, caller: Incoming, connection: Number) -> Result<(), NetError> {
        let (place, purpose) = match self.links.called_by(&caller) {
            Ok(known) => known,
            Err(e) => {
                self.links.refuse(caller, "unknown place or purpose");
                return Err(e);
            }
        };
        let seat = admits(self.me, &place, purpose)
            .map_err(|e| (e.to_owned(), reason!("access.not_admitted", "this party does not serve that")))
            .and_then(|()| self.seat(&place, purpose).ok_or_else(|| no_seat(&place, purpose)));
        let seat = match seat {
            Ok(seat) => seat,
            Err((told, reason)) => {
                self.events.emit(Event::Refused { connection, place, purpose, reason });
                self.links.refuse(caller, &told);
                return Ok(());
            }
        };
        if purpose == Purpose::Doctor {
            // The doctor reports what is wrong; here it is nothing that a job depends on.
            let _ = self.links.answer_doctor(caller);
            return Ok(());
        }
        let channel = self.links.answer(caller, purpose)?;
        match (place, purpose) {
            (Place::Party(party), Purpose::Parties) => {
                let _ = self.wakes.send(Wake::Peer(party, Box::new(channel), seat, connection));
            }
            (Place::Party(party), Purpose::Preparation) => {
                let patience = self.links.config.deployment.timeouts.connect;
                let seat = seat.announce(&self.events, connection, &Place::Party(party), purpose);
                self.meetings.bring(party, channel, seat, patience)?;
            }
            (place, _) => {
                let seat = seat.announce(&self.events, connection, &place, purpose);
                channel.show(&self.liveness);
                await_request(channel, connection, place, seat, self.wakes.clone(), &self.events);
            }
        }
        Ok(())
    }

    /// A seat, waiting a moment for one that is about to be free: of a caller that left while its request waits, only the
    /// service knows.
    fn seat(&self, place: &Place, purpose: Purpose) -> Option<Seat> {
        let deadline = Instant::now() + SEATING;
        loop {
            let seat = self.seats.take(place, purpose, most(purpose));
            if seat.is_some() || Instant::now() >= deadline {
                return seat;
            }
            let _ = self.wakes.send(Wake::Crowded);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// What the caller is told, and what the event says.
fn no_seat(place: &Place, purpose: Purpose) -> (String, Reason) {
    let told = format!(
        "{place} has {} connections for `{}` here, which is as many as a place may have: end some of its programs, or \
         wait for them",
        most(purpose),
        purpose.word()
    );
    (told, reason!("access.no_seat", "it has as many connections as a place may have for this"))
}

/// Wait for a client's next request on a thread of its own.
pub(super) fn await_request(
    mut channel: TcpChannel,
    connection: Number,
    place: Place,
    seat: Seat,
    wakes: Sender<Wake>,
    events: &Events,
) {
    // A client may ask whenever it likes. Nobody waits for that, and it costs a seat.
    channel.set_patience(None);
    channel.count_for(None);
    let told = events.clone();
    aside("privet-request", events, move || {
        match hear_up_to::<Request>(&mut channel, Talk::Request, MAX_REQUEST) {
            Ok(request) => {
                let caller = Caller {
                    channel,
                    connection,
                    place,
                    request,
                    since: Instant::now(),
                    granted: false,
                    seat,
                };
                let _ = wakes.send(Wake::Caller(Box::new(caller)));
            }
            // Its seat says so.
            Err(TalkError::Net(_)) => drop(seat),
            Err(e) => {
                told.emit(Event::Broken { connection, reason: e.why() });
                channel.abort("the request cannot be read");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_by_place_and_purpose_and_come_back() {
        let seats = Seats::default();
        let [a, b] = ["a", "b"].map(|n| Place::Client(n.into()));
        let mut taken: Vec<Seat> = (0..3).map(|_| seats.take(&a, Purpose::Client, 3).unwrap()).collect();
        assert!(seats.take(&a, Purpose::Client, 3).is_none());
        assert!(seats.take(&b, Purpose::Client, 3).is_some(), "another place");
        assert!(seats.take(&a, Purpose::Doctor, 3).is_some(), "another purpose");
        taken.pop();
        taken.push(seats.take(&a, Purpose::Client, 3).unwrap());
        assert!(seats.take(&a, Purpose::Client, 3).is_none());
        taken.clear();
        assert!(seats.lock().is_empty(), "nothing is remembered of places that are gone");
    }
}

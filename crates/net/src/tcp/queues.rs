//! The queues between the protocol's thread and the I/O thread of a connection.
//!
//! Both queues are bounded by memory. A full inbound queue stops reading, which TCP passes on to the peer; it is a
//! hard bound, since what is in it is the peer's choice. A full outbound queue blocks the sender, *unless the inbound
//! queue is full as well*: otherwise two parties that both send more than the bounds before either receives would wait
//! for each other for ever. What the outbound queue then takes are this program's own messages, again up to a hard bound.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::liveness::Liveness;
use super::poll::Waker;
use super::seats::Seat;
use super::watch::Bell;
use crate::NetError;
use crate::frame::{Frame, MAX_CHUNK};
use crate::framed::Message;

/// Memory of unsent messages from which on `send` blocks while the peer may still be heard.
const OUTBOUND_BOUND: usize = 64 << 20;
/// Memory of unsent messages from which on `send` blocks in any case.
const OUTBOUND_MOST: usize = 1 << 30;
/// Memory of frames not yet received by the protocol from which on reading stops.
const INBOUND_BOUND: usize = 64 << 20;
/// What a message or frame takes beside its bytes: its place in a queue that may double, and the allocator's own.
pub(super) const FIXED_COST: usize = 512;
/// Memory of a message that the protocol's thread sends by itself where the I/O thread sleeps. More is encrypted there while the protocol goes on.
const SMALL: usize = 64 << 10;
/// Payload buffers kept for reuse, of each direction.
pub(super) const SPARE_BUFFERS: usize = 4;
/// Bytes of a sent buffer that is kept: small ones cost nothing, large ones are made seldom.
const KEPT: std::ops::RangeInclusive<usize> = 64 << 10..=MAX_CHUNK;

/// How the protocol's side ends the connection.
#[derive(Clone, Debug)]
pub(super) enum Farewell {
    /// After everything queued is sent.
    Bye,
    /// At once, with a reason.
    Abort(String),
    /// At once, without a word.
    Sever,
}

#[derive(Default)]
pub(super) struct State {
    pub outbound: VecDeque<Message>,
    pub outbound_bytes: usize,
    pub inbound: VecDeque<Frame>,
    pub inbound_bytes: usize,
    /// Final; set once, by whichever side notices first.
    pub failure: Option<NetError>,
    pub farewell: Option<Farewell>,
    /// How long a goodbye waits for a peer that takes nothing in.
    pub parting: Duration,
    /// The protocol waits in `next` with nothing to take.
    pub receiving: bool,
    pub sending: bool,
    /// The I/O thread sleeps and has to be woken for new work.
    pub sleeping: bool,
    /// Buffers the protocol is done with.
    pub spare: Vec<Vec<u8>>,
    /// Buffers of messages that are sent.
    pub sent: Vec<Vec<u8>>,
    /// Where the peer dialled: held for as long as the connection costs anything.
    seat: Option<Seat>,
    /// Of whoever waits for this connection among others.
    pub bell: Option<Arc<Bell>>,
    /// What heartbeats tell the peer.
    pub shown: Option<Liveness>,
    /// Turns of the peer that its last heartbeat told of, and when they last rose.
    peer_turns: u64,
    pub peer_moved: Option<Instant>,
}

impl State {
    /// Whether the I/O thread may take in more.
    pub fn may_read(&self) -> bool {
        self.inbound_bytes < INBOUND_BOUND || self.farewell.is_some()
    }

    /// Whether the protocol may queue one more message.
    pub fn may_push(&self) -> bool {
        let bound = if self.may_read() { OUTBOUND_BOUND } else { OUTBOUND_MOST };
        self.outbound_bytes < bound
    }

    /// Whether one message is queued that the protocol's thread may send by itself.
    pub fn has_small(&self) -> bool {
        self.outbound.len() == 1 && self.outbound_bytes <= SMALL && self.farewell.is_none()
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// A connection that is over counts no more once all that came over it is taken.
    pub fn leave_seat(&mut self) {
        if self.failure.is_some() && self.inbound.is_empty() {
            self.seat = None;
        }
    }
}

/// What a frame takes in memory, whatever its peer put into it.
pub(super) fn cost(frame: &Frame) -> usize {
    FIXED_COST + frame.payload.capacity() + frame.name.capacity()
}

/// What the two threads share.
pub(super) struct LinkState {
    state: Mutex<State>,
    pub changed: Condvar,
    pub waker: Waker,
}

impl LinkState {
    pub fn new(seat: Option<Seat>) -> std::io::Result<Self> {
        let state = Mutex::new(State { seat, ..State::default() });
        Ok(Self { state, changed: Condvar::new(), waker: Waker::new()? })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// I/O thread: hands a frame to the protocol.
    pub fn deliver(&self, frame: Frame) {
        let mut state = self.lock();
        if state.farewell.is_some() {
            return; // nobody will take it
        }
        state.inbound_bytes += cost(&frame);
        state.inbound.push_back(frame);
        if state.receiving || (state.sending && state.may_push()) {
            self.changed.notify_all();
        }
        state.ring();
    }

    /// Whoever drives: `bytes` of the outbound queue are gone, and with them the rest of a message that was in `buffer`.
    pub fn sent(&self, bytes: usize, buffer: Option<Vec<u8>>) {
        let mut state = self.lock();
        state.outbound_bytes -= bytes;
        if state.sent.len() < SPARE_BUFFERS {
            state.sent.extend(buffer.filter(|b| KEPT.contains(&b.capacity())));
        }
        if state.sending && state.may_push() {
            self.changed.notify_all();
        }
    }

    /// I/O thread: the peer's heartbeat told of so many turns.
    pub fn peer_turns(&self, turns: u64) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.peer_turns, turns) != turns {
            state.peer_moved = Some(Instant::now());
        }
    }

    /// I/O thread: what a heartbeat is to tell.
    pub fn turns(&self) -> u64 {
        self.lock().shown.as_ref().map_or(0, Liveness::turns)
    }

    /// I/O thread: the connection is over.
    pub fn fail(&self, error: NetError) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        state.leave_seat();
        self.changed.notify_all();
        state.ring();
    }

    /// Protocol's thread, which drives: the message that is queued, if it is alone and small.
    pub fn take_small(&self) -> Option<Message> {
        let mut state = self.lock();
        if state.has_small() { state.outbound.pop_front() } else { None }
    }

    pub fn wake(&self, state: &mut State) {
        if std::mem::replace(&mut state.sleeping, false) {
            self.waker.wake();
        }
    }
}

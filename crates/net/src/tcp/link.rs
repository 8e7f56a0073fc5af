//! The queues between the protocol's thread and the I/O thread of a connection.
//!
//! Both queues are bounded by memory. A full inbound queue stops reading, which TCP passes on to the peer; it is a
//! hard bound, since what is in it is the peer's choice. A full outbound queue blocks the sender, *unless the inbound
//! queue is full as well*: otherwise two parties that both send more than the bounds before either receives would wait
//! for each other for ever. What the outbound queue then takes are this program's own messages, again up to a hard bound.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::liveness::Liveness;
use super::poll::Waker;
use super::seats::Seat;
use super::watch::Bell;
use crate::NetError;
use crate::frame::{Frame, LARGE, MAX_CHUNK};
use crate::framed::{Link, Message, Names};

/// Memory of unsent messages from which on `send` blocks while the peer may still be heard.
const OUTBOUND_BOUND: usize = 64 << 20;
/// Memory of unsent messages from which on `send` blocks in any case.
const OUTBOUND_MOST: usize = 1 << 30;
/// Memory of frames not yet received by the protocol from which on reading stops.
const INBOUND_BOUND: usize = 64 << 20;
/// What a message or frame takes beside its bytes: its place in a queue that may double, and the allocator's own.
pub(super) const FIXED_COST: usize = 512;
/// Bytes of a message for which a receiver, or a sender that waits for room, has its patience once more. With 300 s it is
/// 28 kB/s, a small part of the slowest link that anybody would use.
const PATIENCE_BYTES: u64 = 8 << 20;
/// How long a goodbye waits for a peer that takes nothing in, where the link has no patience of its own.
const PARTING: Duration = Duration::from_secs(10);
/// Payload buffers kept for reuse, of each direction.
const SPARE_BUFFERS: usize = 4;
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
    sending: bool,
    /// The I/O thread sleeps and has to be woken for new work.
    pub sleeping: bool,
    /// Buffers the protocol is done with.
    pub spare: Vec<Vec<u8>>,
    /// Buffers of messages that are sent.
    sent: Vec<Vec<u8>>,
    /// Where the peer dialled: held for as long as the connection costs anything.
    seat: Option<Seat>,
    /// Of whoever waits for this connection among others.
    bell: Option<Arc<Bell>>,
    /// What heartbeats tell the peer.
    shown: Option<Liveness>,
    /// Turns of the peer that its last heartbeat told of, and when they last rose.
    peer_turns: u64,
    peer_moved: Option<Instant>,
}

/// How long to wait for a peer, however alive its process is.
#[derive(Clone, Copy)]
enum Patience {
    /// For frames.
    Frames(Duration),
    /// For frames, or turns of whoever serves this side.
    Turns(Duration),
}

impl Patience {
    fn time(self) -> Duration {
        match self {
            Patience::Frames(time) | Patience::Turns(time) => time,
        }
    }
}

impl State {
    /// Whether the I/O thread may take in more.
    pub fn may_read(&self) -> bool {
        self.inbound_bytes < INBOUND_BOUND || self.farewell.is_some()
    }

    /// Whether the protocol may queue one more message.
    fn may_push(&self) -> bool {
        let bound = if self.may_read() { OUTBOUND_BOUND } else { OUTBOUND_MOST };
        self.outbound_bytes < bound
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// A connection that is over counts no more once all that came over it is taken.
    fn leave_seat(&mut self) {
        if self.failure.is_some() && self.inbound.is_empty() {
            self.seat = None;
        }
    }
}

/// What a frame takes in memory, whatever its peer put into it.
fn cost(frame: &Frame) -> usize {
    FIXED_COST + frame.payload.capacity() + frame.name.capacity()
}

/// What the two threads share.
pub(super) struct LinkState {
    state: Mutex<State>,
    changed: Condvar,
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

    /// I/O thread: `bytes` of the outbound queue are gone, and with them the rest of a message that was in `buffer`.
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

    fn wake(&self, state: &mut State) {
        if std::mem::replace(&mut state.sleeping, false) {
            self.waker.wake();
        }
    }
}

/// Carries frames over a TCP connection; the protocol's side.
pub struct SocketLink {
    shared: Arc<LinkState>,
    io_thread: Option<JoinHandle<()>>,
    encrypted: bool,
    names: Arc<Names>,
    patience: Option<Patience>,
    /// Whose turns the frames are that pass here.
    counted: Option<Liveness>,
}

impl SocketLink {
    pub(super) fn new(
        shared: Arc<LinkState>,
        io_thread: JoinHandle<()>,
        encrypted: bool,
        names: Arc<Names>,
    ) -> Self {
        Self { shared, io_thread: Some(io_thread), encrypted, names, patience: None, counted: None }
    }

    /// How long to wait for the peer to do something at a step, however alive it is; for ever when none.
    pub(super) fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience.map(Patience::Frames);
    }

    /// The same, and each turn that the peer shows begins the wait anew.
    pub(super) fn set_patience_for_turns(&mut self, patience: Duration) {
        self.patience = Some(Patience::Turns(patience));
    }

    /// What heartbeats tell the peer from now on.
    pub(super) fn show(&self, liveness: &Liveness) {
        self.shared.lock().shown = Some(liveness.clone());
    }

    /// Whose turns the frames are that pass here from now on.
    pub(super) fn count_for(&mut self, liveness: Option<&Liveness>) {
        self.counted = liveness.cloned();
    }

    fn moved(&self) {
        self.counted.iter().for_each(Liveness::turn);
    }

    /// Until when a wait lasts that began at `since`, as far as is known now.
    pub(super) fn due(&self, since: Instant) -> Option<Instant> {
        self.due_in(&self.shared.lock(), since)
    }

    fn due_in(&self, state: &State, since: Instant) -> Option<Instant> {
        self.patience.map(|patience| match patience {
            Patience::Frames(time) => since + time,
            Patience::Turns(time) => state.peer_moved.map_or(since, |moved| moved.max(since)) + time,
        })
    }

    /// That the peer let this side wait for too long.
    pub(super) fn stuck(&self) -> NetError {
        let seconds = self.patience.map_or(0, |p| p.time().as_secs());
        NetError::Stuck { peer: self.names.peer.clone(), step: "(its next message)".into(), seconds }
    }

    /// Neither side has ended the connection, as far as this one knows.
    pub(super) fn is_open(&self) -> bool {
        let state = self.shared.lock();
        state.failure.is_none() && state.farewell.is_none()
    }

    /// Over, and all that came is taken.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.shared.lock();
        state.failure.is_some() && state.inbound.is_empty()
    }

    /// A message has begun to come.
    pub(super) fn has_unread(&self) -> bool {
        !self.shared.lock().inbound.is_empty()
    }

    /// Rung at every frame and at the end, until another or none is set.
    pub(super) fn set_bell(&self, bell: Option<Arc<Bell>>) {
        self.shared.lock().bell = bell;
    }

    /// Sleep until the I/O thread changed something; an error once the patience of a wait since `since`, or the time of the
    /// whole message, is past.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        since: Instant,
        whole: Option<Instant>,
    ) -> Result<MutexGuard<'a, State>, NetError> {
        let changed = &self.shared.changed;
        let progress = self.due_in(&state, since);
        let Some(deadline) = [progress, whole].into_iter().flatten().min() else {
            return Ok(changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let (peer, step) = (self.names.peer.clone(), String::new());
            return Err(match progress == Some(deadline) {
                true => self.stuck(),
                false => NetError::Slow { peer, step, kib_per_s: self.slowest_kib_per_s() },
            });
        }
        Ok(changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The rate below which a long message is given up, in KiB a second.
    fn slowest_kib_per_s(&self) -> u64 {
        let seconds = self.patience.map_or(0.0, |p| p.time().as_secs_f64()).max(1e-3);
        (PATIENCE_BYTES as f64 / 1024.0 / seconds) as u64
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Ends the connection and waits for the I/O thread, which bounds how long its last words may take.
    fn finish(&mut self, farewell: Farewell, error: Option<NetError>) {
        {
            let mut state = self.shared.lock();
            state.parting = match self.patience {
                Some(Patience::Frames(time)) => time,
                _ => PARTING,
            };
            state.farewell.get_or_insert(farewell);
            if let Some(error) = error {
                state.failure.get_or_insert(error);
            }
            self.shared.wake(&mut state);
        }
        if let Some(thread) = self.io_thread.take() {
            let _ = thread.join(); // a panic there is reported by `failure`
        }
    }
}

impl Link for SocketLink {
    fn push(&mut self, message: Message) -> Result<(), NetError> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let whole = self.whole_due(state.outbound_bytes as u64);
        let (mut since, mut unsent) = (Instant::now(), state.outbound_bytes);
        while state.failure.is_none() && !state.may_push() {
            if std::mem::replace(&mut unsent, state.outbound_bytes) != state.outbound_bytes {
                since = Instant::now();
                self.moved();
            }
            state.sending = true;
            shared.wake(&mut state);
            state = self.wait(state, since, whole)?;
        }
        state.sending = false;
        if let Some(error) = &state.failure {
            return Err(error.clone());
        }
        state.outbound_bytes += FIXED_COST + message.payload.len();
        state.outbound.push_back(message);
        shared.wake(&mut state);
        Ok(())
    }

    fn whole_due(&self, bytes: u64) -> Option<Instant> {
        let times = u32::try_from(bytes / PATIENCE_BYTES + 1).unwrap_or(u32::MAX);
        self.patience.and_then(|p| Instant::now().checked_add(p.time().saturating_mul(times)))
    }

    fn next(&mut self, whole: Option<Instant>) -> Result<Frame, NetError> {
        let (shared, since) = (self.shared.clone(), Instant::now());
        let mut state = shared.lock();
        loop {
            // What arrived before a failure is still good.
            if let Some(frame) = state.inbound.pop_front() {
                let was_full = !state.may_read();
                state.inbound_bytes -= cost(&frame);
                if was_full && state.may_read() {
                    shared.wake(&mut state);
                }
                state.leave_seat();
                self.moved();
                return Ok(frame);
            }
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            state.receiving = true;
            state = self.wait(state, since, whole)?;
            state.receiving = false;
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() < LARGE {
            return;
        }
        let mut state = self.shared.lock();
        if state.spare.len() < SPARE_BUFFERS {
            state.spare.push(buffer);
        }
    }

    fn spare(&mut self) -> Vec<u8> {
        self.shared.lock().sent.pop().unwrap_or_default()
    }

    fn abort(&mut self, reason: &str, error: NetError) {
        self.shared.lock().inbound.clear();
        self.finish(Farewell::Abort(reason.to_owned()), Some(error));
    }

    fn sever(&mut self, error: NetError) {
        self.shared.lock().inbound.clear();
        self.finish(Farewell::Sever, Some(error));
    }
}

/// Sends what is queued and says goodbye, waiting as long as the peer takes it in. A peer that is alive and takes nothing
/// in is waited for no longer than the link's patience, or ten seconds where it has none.
impl Drop for SocketLink {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.finish(Farewell::Abort("its protocol failed unexpectedly; look at its log".into()), None);
        } else {
            self.finish(Farewell::Bye, None);
        }
    }
}

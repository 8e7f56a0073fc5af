//! The protocol's side of a connection.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::drive::Drive;
use super::liveness::Liveness;
use super::queues::{FIXED_COST, Farewell, LinkState, SPARE_BUFFERS, State, cost};
use super::watch::Bell;
use crate::NetError;
use crate::frame::{Frame, LARGE};
use crate::framed::{Link, Message, Names};

/// Bytes of a message for which a receiver, or a sender that waits for room, has its patience once more. With 300 s it is
/// 28 kB/s, a small part of the slowest link that anybody would use.
const PATIENCE_BYTES: u64 = 8 << 20;
/// How long a goodbye waits for a peer that takes nothing in, where the link has no patience of its own.
const PARTING: Duration = Duration::from_secs(10);
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

/// Carries frames over a TCP connection; the protocol's side.
pub struct SocketLink {
    shared: Arc<LinkState>,
    drive: Arc<Drive>,
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
        drive: Arc<Drive>,
        io_thread: JoinHandle<()>,
        encrypted: bool,
        names: Arc<Names>,
    ) -> Self {
        Self { shared, drive, io_thread: Some(io_thread), encrypted, names, patience: None, counted: None }
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
        if state.sleeping && state.has_small() {
            drop(state);
            if self.drive.send_now() {
                return Ok(());
            }
            state = shared.lock();
        }
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

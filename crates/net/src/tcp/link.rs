//! The queues between the protocol's thread and the I/O thread of a connection.
//!
//! Both queues are bounded by bytes. A full inbound queue stops reading, which TCP passes on to the peer. A
//! full outbound queue blocks the sender, *and lifts the inbound bound while it does*: otherwise two parties
//! that both send more than the bounds before either receives would wait for each other for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::poll::Waker;
use crate::NetError;
use crate::frame::Frame;
use crate::framed::{Link, Message, Names};

/// Bytes of unsent messages above which `send` blocks.
const OUTBOUND_BOUND: usize = 64 << 20;
/// Bytes of frames not yet received by the protocol above which reading stops.
const INBOUND_BOUND: usize = 64 << 20;
/// Payload buffers kept for reuse.
const SPARE_BUFFERS: usize = 8;

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
    /// The protocol waits in `next` with nothing to take.
    pub receiving: bool,
    sending: bool,
    /// The I/O thread sleeps and has to be woken for new work.
    pub sleeping: bool,
    /// Buffers the protocol is done with.
    pub spare: Vec<Vec<u8>>,
}

impl State {
    /// Whether the I/O thread may take in more.
    pub fn may_read(&self) -> bool {
        self.inbound_bytes < INBOUND_BOUND || self.sending || self.farewell.is_some()
    }
}

/// What the two threads share.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    pub waker: Waker,
}

impl Shared {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { state: Mutex::default(), changed: Condvar::new(), waker: Waker::new()? })
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
        state.inbound_bytes += frame.payload.len();
        state.inbound.push_back(frame);
        if state.receiving {
            self.changed.notify_all();
        }
    }

    /// I/O thread: `bytes` of the outbound queue are gone.
    pub fn sent(&self, bytes: usize) {
        let mut state = self.lock();
        state.outbound_bytes -= bytes;
        if state.sending && state.outbound_bytes < OUTBOUND_BOUND {
            self.changed.notify_all();
        }
    }

    /// I/O thread: the connection is over.
    pub fn fail(&self, error: NetError) {
        self.lock().failure.get_or_insert(error);
        self.changed.notify_all();
    }

    fn wake(&self, state: &mut State) {
        if std::mem::replace(&mut state.sleeping, false) {
            self.waker.wake();
        }
    }
}

/// Carries frames over a TCP connection; the protocol's side.
pub struct SocketLink {
    shared: Arc<Shared>,
    io_thread: Option<JoinHandle<()>>,
    encrypted: bool,
    names: Arc<Names>,
    patience: Option<Duration>,
}

impl SocketLink {
    pub(super) fn new(
        shared: Arc<Shared>,
        io_thread: JoinHandle<()>,
        encrypted: bool,
        names: Arc<Names>,
    ) -> Self {
        Self { shared, io_thread: Some(io_thread), encrypted, names, patience: None }
    }

    /// How long to wait for the peer to do something at a step, however alive it is; for ever when none.
    pub(super) fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Neither side has ended the connection, as far as this one knows.
    pub(super) fn is_open(&self) -> bool {
        let state = self.shared.lock();
        state.failure.is_none() && state.farewell.is_none()
    }

    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|p| Instant::now() + p)
    }

    /// Sleep until the I/O thread changed something; an error once `deadline` is past.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, State>, NetError> {
        let changed = &self.shared.changed;
        let Some(deadline) = deadline else {
            return Ok(changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = self.patience.unwrap_or_default().as_secs();
            return Err(NetError::Stuck { peer: self.names.peer.clone(), step: String::new(), seconds });
        }
        Ok(changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Ends the connection and waits for the I/O thread, which bounds how long its last words may take.
    fn finish(&mut self, farewell: Farewell, error: Option<NetError>) {
        {
            let mut state = self.shared.lock();
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
        let (shared, deadline) = (self.shared.clone(), self.deadline());
        let mut state = shared.lock();
        while state.failure.is_none() && state.outbound_bytes >= OUTBOUND_BOUND {
            state.sending = true;
            shared.wake(&mut state);
            state = self.wait(state, deadline)?;
        }
        state.sending = false;
        if let Some(error) = &state.failure {
            return Err(error.clone());
        }
        state.outbound_bytes += message.payload.len();
        state.outbound.push_back(message);
        shared.wake(&mut state);
        Ok(())
    }

    fn next(&mut self) -> Result<Frame, NetError> {
        let (shared, deadline) = (self.shared.clone(), self.deadline());
        let mut state = shared.lock();
        loop {
            // What arrived before a failure is still good.
            if let Some(frame) = state.inbound.pop_front() {
                let was_full = !state.may_read();
                state.inbound_bytes -= frame.payload.len();
                if was_full && state.may_read() {
                    shared.wake(&mut state);
                }
                return Ok(frame);
            }
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            state.receiving = true;
            state = self.wait(state, deadline)?;
            state.receiving = false;
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        let mut state = self.shared.lock();
        if state.spare.len() < SPARE_BUFFERS {
            state.spare.push(buffer);
        }
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

/// Sends what is queued and says goodbye, waiting as long as the peer is alive and takes it in.
impl Drop for SocketLink {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.finish(Farewell::Abort("its protocol failed unexpectedly; look at its log".into()), None);
        } else {
            self.finish(Farewell::Bye, None);
        }
    }
}

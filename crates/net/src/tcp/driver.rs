//! The I/O thread of a connection: sends and receives at once, with heartbeats, until one side ends it.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Options;
use super::poll;
use super::pulse::Pulse;
use super::queues::{FIXED_COST, Farewell, LinkState};
use super::wire::{ReadError, Wire};
use crate::frame::{Decoder, Encoder, Frame, Kind, chunk_at, cut, printable};
use crate::framed::{FrameFilter, Message, Names};
use crate::throttle::Throttle;
use crate::{Meter, NetError};

/// Encrypted bytes that are handed to the socket at a time: few enough to stay in a core's cache.
const BATCH: usize = 256 * 1024;
/// Bytes read before writing gets its turn, and the other way round.
const BUDGET: usize = 1 << 20;
/// A sleep that only an event ends.
const LONG: Duration = Duration::from_secs(3600);
/// How long the words of an abort may take.
const LINGER: Duration = Duration::from_secs(2);
/// Largest reason of an abort, in bytes.
const MAX_REASON: usize = 2000;

pub(super) struct Driver {
    socket: Arc<TcpStream>,
    wire: Wire,
    shared: Arc<LinkState>,
    names: Arc<Names>,
    meter: Arc<Meter>,
    encoder: Encoder,
    decoder: Decoder,
    /// The message being sent and how much of it is on its way.
    current: Option<(Message, usize)>,
    /// When the next chunk of `current` may leave.
    release: Option<Instant>,
    throttle: Option<Throttle>,
    filter: Option<FrameFilter>,
    heartbeat: Duration,
    silence: Duration,
    /// The phase of the last message, under which bytes on the wire are counted.
    phase: usize,
    /// The goodbye is on its way.
    leaving: bool,
    /// While parting: what the peer has not taken in yet, and until when it must have taken in more.
    parting: Option<(u64, Instant)>,
    nap: Duration,
    last_sent: Instant,
    last_received: Instant,
    frames_sent: u64,
    frames_received: u64,
    /// The protocol's thread could not send; the I/O thread deals with it.
    send_failed: bool,
}

/// What the I/O thread does next.
pub(super) enum Next {
    /// Sleep.
    Wait(Wait),
    /// End.
    Farewell(Farewell),
}

/// What a sleep waits for, and how long.
pub(super) struct Wait {
    pub read: bool,
    pub write: bool,
    pub time: Duration,
}

impl Driver {
    pub fn new(
        socket: TcpStream,
        wire: Wire,
        shared: Arc<LinkState>,
        names: Arc<Names>,
        meter: Arc<Meter>,
        options: Options,
    ) -> Self {
        let now = Instant::now();
        // A filter damages frames before they are encrypted, where no record tag would tell.
        let covered = wire.is_tls() && options.filter.is_none();
        let encoder = if covered { Encoder::inside_tls() } else { Encoder::default() };
        Self {
            socket: Arc::new(socket),
            wire,
            shared,
            names,
            meter,
            encoder,
            decoder: Decoder::default(),
            current: None,
            release: None,
            throttle: Throttle::new(&options.network),
            filter: options.filter,
            heartbeat: options.heartbeat,
            silence: options.silence,
            phase: 0,
            leaving: false,
            parting: None,
            nap: Duration::ZERO,
            last_sent: now,
            last_received: now,
            frames_sent: 0,
            frames_received: 0,
            send_failed: false,
        }
    }

    pub fn socket(&self) -> Arc<TcpStream> {
        self.socket.clone()
    }

    /// Takes in what came along with the handshake, and does what is to be done first.
    pub fn begin(&mut self) -> Result<Next, NetError> {
        self.receive()?;
        self.turn()
    }

    /// Goes on after a sleep. `read` says whether it waited for what is to be read, `ready` whether something is, or the end.
    pub fn go_on(&mut self, read: bool, ready: bool) -> Result<Next, NetError> {
        if self.send_failed {
            return Err(self.lost());
        }
        if ready && read {
            self.receive()?;
        } else if ready {
            // Reading is stopped, so this is an error or hang-up.
            return Err(self.lost());
        }
        self.keep_alive(read)?;
        self.turn()
    }

    /// Sends what there is, and says what is to be done then.
    fn turn(&mut self) -> Result<Next, NetError> {
        match self.take_orders() {
            Some(Farewell::Bye) if !self.leaving => self.say_bye()?,
            Some(Farewell::Bye) if poll::unacknowledged(&self.socket) > 0 => {}
            Some(farewell) => return Ok(Next::Farewell(farewell)),
            None => {}
        }
        if self.send().is_err() {
            return Err(self.lost());
        }
        self.check_parting()?;
        Ok(Next::Wait(self.plan_wait()))
    }

    /// Sends the one message that is queued, if it is small and nothing waits before it. Gives whether all of it has left.
    pub fn send_queued(&mut self) -> bool {
        if self.current.is_some() || self.wire.pending() || self.leaving || self.send_failed {
            return false;
        }
        self.current = self.shared.take_small().map(|message| (message, 0));
        self.send_failed = self.send().is_err();
        self.current.is_none() && !self.wire.pending() && !self.send_failed
    }

    /// Last words to a peer, where this side has found something wrong.
    pub fn part(&mut self, error: &NetError) {
        if matches!(error, NetError::BadFrame { .. } | NetError::Stalled { .. }) {
            self.abort(&error.to_string());
        } else {
            let _ = self.wire.flush(&self.socket); // a TLS alert, if there is one
        }
    }

    /// Takes the next message, or the order to end.
    fn take_orders(&mut self) -> Option<Farewell> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        state.sleeping = false;
        self.decoder.recycle(std::mem::take(&mut state.spare));
        if self.current.is_none() {
            self.current = state.outbound.pop_front().map(|message| (message, 0));
        }
        match &state.farewell {
            Some(Farewell::Bye) if self.current.is_some() || self.wire.pending() => None,
            other => other.clone(),
        }
    }

    /// Sends batch by batch, while the socket takes them whole.
    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        loop {
            if !self.wire.pending() {
                self.fill()?;
            }
            match self.flush()? {
                0 => return Ok(()),
                n => sent += n,
            }
            if self.wire.pending() || sent >= BUDGET {
                return Ok(());
            }
        }
    }

    /// Moves chunks into the wire while there is room and the emulated network allows.
    fn fill(&mut self) -> io::Result<()> {
        while self.wire.waiting() < BATCH {
            let Some((message, offset)) = self.current.take() else { return Ok(()) };
            let chunk = chunk_at(&message.payload, offset);
            if let Some(throttle) = &mut self.throttle {
                let size = chunk.len() + crate::frame::HEADER_LEN;
                let release = *self.release.get_or_insert_with(|| throttle.release(message.queued, size));
                if release > Instant::now() {
                    self.current = Some((message, offset));
                    return Ok(());
                }
                self.release = None;
            }
            self.phase = message.phase;
            let (header, name) = self.encoder.data(&message.step, &message.payload, offset);
            self.write_frame(&header, chunk, name)?;
            self.frames_sent += 1;
            let (gone, end) = (chunk.len(), offset + chunk.len());
            if end < message.payload.len() {
                self.current = Some((message, end));
                self.shared.sent(gone, None);
            } else {
                self.shared.sent(gone + FIXED_COST, Some(message.payload));
                self.current = self.shared.lock().outbound.pop_front().map(|message| (message, 0));
            }
        }
        Ok(())
    }

    /// Everything is sent: says so. The connection stays until the peer's host has acknowledged it all, since closing
    /// a socket on which the peer still sends resets it and could destroy what is on its way.
    fn say_bye(&mut self) -> Result<(), NetError> {
        self.leaving = true;
        let header = self.encoder.control(Kind::Bye, &[]);
        if self.write([&header, &[], &[]]).is_err() {
            return Err(self.lost());
        }
        self.wire.close();
        Ok(())
    }

    /// Part of a large frame is on its way while the rest is encrypted.
    fn write_frame(&mut self, header: &[u8], mut chunk: &[u8], name: &[u8]) -> io::Result<()> {
        let mut header = header;
        while self.filter.is_none() && chunk.len() > BATCH {
            let (part, rest) = chunk.split_at(BATCH);
            self.write([std::mem::take(&mut header), part, &[]])?;
            self.flush()?;
            chunk = rest;
        }
        self.write([header, chunk, name])
    }

    fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        let Some(filter) = &mut self.filter else { return self.wire.write(parts) };
        for frame in filter(parts.concat()) {
            self.wire.write([&frame, &[], &[]])?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        let n = self.wire.flush(&self.socket)?;
        if n > 0 {
            self.meter.wire_sent(self.phase, n);
            self.last_sent = Instant::now();
        }
        Ok(n)
    }

    /// Decides what to sleep for and how long, and declares the sleep to the protocol's side.
    fn plan_wait(&mut self) -> Wait {
        let mut state = self.shared.lock();
        let write = self.wire.pending();
        let read = state.may_read();
        let wait = |time| Wait { read, write, time };
        let can_fill = !write && self.release.is_none();
        let work = (self.current.is_some() || !state.outbound.is_empty()) && can_fill;
        let parting = state.farewell.is_some() && !write && self.current.is_none();
        if work || (parting && !self.leaving) {
            return wait(Duration::ZERO);
        }
        if parting {
            self.nap = (self.nap * 2).clamp(Duration::from_micros(50), Duration::from_millis(20));
            return wait(self.nap);
        }
        state.sleeping = true;
        // Only what can be done when its time comes may end the sleep: anything else would be due at once, for ever.
        let silence = read.then_some(self.last_received + self.silence);
        let heartbeat = self.may_beat().then_some(self.last_sent + self.heartbeat);
        let release = self.release.filter(|_| !write);
        let parting = self.parting.map(|(_, due)| due);
        let wake = [silence, heartbeat, release, parting].into_iter().flatten().min();
        wait(wake.map_or(LONG, |at| at.saturating_duration_since(Instant::now())))
    }

    fn receive(&mut self) -> Result<(), NetError> {
        let (shared, names) = (&self.shared, &self.names);
        let mut last_words = None;
        let mut waiting_peer = None;
        let frames_received = &mut self.frames_received;
        let mut sink = |frame: Frame| match frame.header.kind {
            Kind::Data => {
                *frames_received += 1;
                waiting_peer = None;
                shared.deliver(frame);
            }
            Kind::Heartbeat => {
                let pulse = Pulse::decode(&frame.payload);
                pulse.into_iter().for_each(|p| shared.peer_turns(p.turns));
                waiting_peer = pulse.filter(|p| p.waiting);
            }
            Kind::Abort => {
                let reason = printable(&frame.payload[..frame.payload.len().min(MAX_REASON)]);
                last_words.get_or_insert(NetError::Aborted { peer: names.peer.clone(), reason });
            }
            Kind::Bye => {
                last_words.get_or_insert(names.ended());
            }
        };
        let result = self.wire.read(&self.socket, &mut self.decoder, BUDGET, &mut sink);
        if let Some(error) = last_words {
            return Err(error);
        }
        match result {
            Ok(taken) => {
                if taken.bytes > 0 {
                    self.last_received = Instant::now();
                    self.meter.wire_received(taken.bytes);
                }
                if taken.end { Err(self.names.closed()) } else { self.check_stall(waiting_peer) }
            }
            Err(ReadError::Frame(error)) => Err(self.names.bad_frame(error)),
            Err(ReadError::Tls(error)) => {
                Err(NetError::BadRecord { peer: self.names.peer.clone(), what: error.to_string() })
            }
            Err(ReadError::Lost) => Err(self.names.closed()),
        }
    }

    /// The peer is gone; takes in what it sent before, which may be data still wanted, or say why.
    fn lost(&mut self) -> NetError {
        // Bounded: the peer's end of the connection is closed, so only what is in the buffers comes.
        for _ in 0..64 {
            let before = self.last_received;
            if let Err(error) = self.receive() {
                return error;
            }
            if self.last_received == before {
                break;
            }
        }
        self.names.closed()
    }

    /// Sends a heartbeat when one is due; gives the peer up when nothing came for too long.
    fn keep_alive(&mut self, reading: bool) -> Result<(), NetError> {
        let now = Instant::now();
        if !reading {
            self.last_received = now; // its heartbeats wait behind the data that this side does not take in
        } else if now.duration_since(self.last_received) >= self.silence {
            let (peer, address) = (self.names.peer.clone(), self.names.address.clone());
            return Err(NetError::Silent {
                peer,
                address,
                step: String::new(),
                seconds: self.silence.as_secs(),
            });
        }
        if now.duration_since(self.last_sent) >= self.heartbeat && self.may_beat() {
            let (waiting, turns) = (self.is_idle(), self.shared.turns());
            let pulse = Pulse { waiting, sent: self.frames_sent, received: self.frames_received, turns };
            let payload = pulse.encode();
            let header = self.encoder.control(Kind::Heartbeat, &payload);
            self.last_sent = now;
            if self.write([&header, &payload, &[]]).is_err() {
                return Err(self.lost());
            }
        }
        Ok(())
    }

    /// A heartbeat is a sign of life where there is no other, and nothing follows a goodbye.
    fn may_beat(&self) -> bool {
        !self.wire.pending() && !self.leaving
    }

    /// Gives a peer up that takes nothing in while this side says goodbye: nobody may be kept by it who has nothing more to
    /// do with it.
    fn check_parting(&mut self) -> Result<(), NetError> {
        let (patience, unsent) = {
            let state = self.shared.lock();
            match state.farewell {
                Some(Farewell::Bye) => (state.parting, state.outbound_bytes),
                _ => return Ok(()),
            }
        };
        let left = (unsent + self.wire.waiting()) as u64 + poll::unacknowledged(&self.socket) as u64;
        let now = Instant::now();
        match self.parting {
            Some((before, due)) if before == left && now >= due => {
                let (peer, step) = (self.names.peer.clone(), "goodbye".to_owned());
                Err(NetError::Stuck { peer, step, seconds: patience.as_secs() })
            }
            Some((before, _)) if before == left => Ok(()),
            _ => {
                self.parting = Some((left, now + patience));
                Ok(())
            }
        }
    }

    /// Whether the protocol waits for the peer and nothing is on its way to it.
    fn is_idle(&self) -> bool {
        let state = self.shared.lock();
        state.receiving && state.inbound.is_empty() && state.outbound.is_empty() && self.current.is_none()
    }

    /// Both sides wait, and each has received all the other sent: nothing can ever change.
    ///
    /// The peer's pulse is still true when it is read here: it waited with `received` frames taken in, and this
    /// side has sent no more than those; and everything it sent before came in order before the pulse.
    fn check_stall(&self, peer: Option<Pulse>) -> Result<(), NetError> {
        match peer {
            Some(p) if p.received == self.frames_sent && p.sent == self.frames_received && self.is_idle() => {
                Err(NetError::Stalled { peer: self.names.peer.clone(), step: String::new() })
            }
            _ => Ok(()),
        }
    }

    /// Tells the peer why, at once: what is queued is left out. Bounded in time.
    pub fn abort(&mut self, reason: &str) {
        let payload = cut(reason, MAX_REASON).as_bytes();
        let header = self.encoder.control(Kind::Abort, payload);
        if self.write([&header, payload, &[]]).is_err() {
            return;
        }
        self.wire.close();
        let deadline = Instant::now() + LINGER;
        while self.wire.pending() || poll::unacknowledged(&self.socket) > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wire.flush(&self.socket).is_err() {
                return;
            }
            self.nap = (self.nap * 2).clamp(Duration::from_micros(50), Duration::from_millis(20));
            let wait = if self.wire.pending() { left } else { self.nap };
            if poll::wait(&*self.socket, false, self.wire.pending(), &self.shared.waker, wait).is_err() {
                return;
            }
        }
    }
}

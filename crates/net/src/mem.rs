//! Both parties in one process: for tests, simulation, and several parties in one thread.
//!
//! Bytes go through the same frames and checks as over TCP. Sends never block, so one thread can
//! play both sides as long as it sends before it receives.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::frame::{Decoder, Encoder, Frame, FrameError, Kind, chunk_at, printable};
use crate::framed::{FrameFilter, Framed, Link, Message, Names};
use crate::throttle::Throttle;
use crate::{Meter, NetError, NetworkProfile};

/// One end of an in-memory connection.
pub type MemChannel = Framed<MemLink>;

/// Settings of one end.
pub struct MemOptions {
    /// This party's name.
    pub name: String,
    /// Delay and rate of what this end sends.
    pub network: NetworkProfile,
    /// Alters the frames this end sends.
    pub filter: Option<FrameFilter>,
    /// How long a receive waits before it reports that the peer is silent.
    pub patience: Duration,
}

impl MemOptions {
    /// The settings [`pair`] uses, for a party of this name.
    pub fn named(name: impl Into<String>) -> Self {
        let patience = Duration::from_secs(120);
        Self { name: name.into(), network: NetworkProfile::LAN, filter: None, patience }
    }
}

/// Two connected channels, of `party 0` and `party 1`.
pub fn pair() -> (MemChannel, MemChannel) {
    pair_with(MemOptions::named("party 0"), MemOptions::named("party 1"))
}

/// Two connected channels with settings for each end.
pub fn pair_with(a: MemOptions, b: MemOptions) -> (MemChannel, MemChannel) {
    let (to_a, to_b) = (Arc::new(Pipe::default()), Arc::new(Pipe::default()));
    let (name_a, name_b) = (a.name.clone(), b.name.clone());
    (end(a, name_b, to_a.clone(), to_b.clone()), end(b, name_a, to_b, to_a))
}

fn end(options: MemOptions, peer: String, incoming: Arc<Pipe>, outgoing: Arc<Pipe>) -> MemChannel {
    let names = Arc::new(Names { me: options.name, peer, address: "in memory".into() });
    let meter = Arc::new(Meter::default());
    let link = MemLink {
        incoming,
        outgoing,
        encoder: Encoder::default(),
        decoder: Decoder::default(),
        ready: VecDeque::new(),
        throttle: Throttle::new(&options.network),
        filter: options.filter,
        patience: options.patience,
        failure: None,
        names: names.clone(),
        meter: meter.clone(),
    };
    Framed { link, names, meter }
}

/// One direction: bytes with the time they arrive, and whether the sender is gone.
#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    arrived: Condvar,
}

#[derive(Default)]
struct PipeState {
    bytes: VecDeque<(Instant, Vec<u8>)>,
    writer_gone: bool,
    reader_gone: bool,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries frames between two [`MemChannel`]s.
pub struct MemLink {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    encoder: Encoder,
    decoder: Decoder,
    ready: VecDeque<Frame>,
    throttle: Option<Throttle>,
    filter: Option<FrameFilter>,
    patience: Duration,
    failure: Option<NetError>,
    names: Arc<Names>,
    meter: Arc<Meter>,
}

impl MemLink {
    fn write(&mut self, frame: Vec<u8>, ready: Instant, phase: usize) {
        let frames = match &mut self.filter {
            Some(filter) => filter(frame),
            None => vec![frame],
        };
        let mut pipe = self.outgoing.lock();
        for frame in frames {
            let arrival = self.throttle.as_mut().map_or(ready, |t| t.release(ready, frame.len()));
            self.meter.wire_sent(phase, frame.len());
            pipe.bytes.push_back((arrival, frame));
        }
        self.outgoing.arrived.notify_all();
    }

    fn control(&mut self, kind: Kind, payload: &[u8]) {
        let mut frame = self.encoder.control(kind, payload).to_vec();
        frame.extend_from_slice(payload);
        self.write(frame, Instant::now(), 0);
    }

    fn close(&mut self, error: NetError) {
        self.failure.get_or_insert(error);
        self.ready.clear();
        self.outgoing.lock().writer_gone = true;
        self.outgoing.arrived.notify_all();
        self.incoming.lock().reader_gone = true;
    }

    /// Waits for bytes and decodes them.
    fn take_in(&mut self) -> Result<(), NetError> {
        let give_up = Instant::now() + self.patience;
        let mut pipe = self.incoming.lock();
        let bytes = loop {
            let now = Instant::now();
            let wake = match pipe.bytes.front() {
                Some((arrival, _)) if *arrival <= now => break pipe.bytes.pop_front().map(|(_, b)| b),
                Some((arrival, _)) => *arrival,
                None if pipe.writer_gone => break None,
                None => give_up,
            };
            if now >= give_up {
                let (peer, address) = (self.names.peer.clone(), self.names.address.clone());
                let (step, seconds) = (String::new(), self.patience.as_secs());
                return Err(NetError::Silent { peer, address, step, seconds });
            }
            let wait = wake.saturating_duration_since(now).max(Duration::from_micros(10));
            pipe = self.incoming.arrived.wait_timeout(pipe, wait).unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(pipe);
        let Some(bytes) = bytes else {
            let clean = self.decoder.at_boundary();
            return Err(if clean {
                self.names.closed()
            } else {
                self.names.bad_frame(FrameError::Truncated)
            });
        };
        self.meter.wire_received(bytes.len());
        let ready = &mut self.ready;
        self.decoder.feed(&bytes, &mut |frame| ready.push_back(frame)).map_err(|e| self.names.bad_frame(e))
    }

    fn next_frame(&mut self) -> Result<Frame, NetError> {
        loop {
            let Some(frame) = self.ready.pop_front() else {
                if let Some(error) = &self.failure {
                    return Err(error.clone());
                }
                self.take_in()?;
                continue;
            };
            match frame.header.kind {
                Kind::Data => return Ok(frame),
                Kind::Heartbeat => {}
                Kind::Abort => {
                    let (peer, reason) = (self.names.peer.clone(), printable(&frame.payload));
                    return Err(NetError::Aborted { peer, reason });
                }
                Kind::Bye => return Err(self.names.ended()),
            }
        }
    }
}

impl Link for MemLink {
    fn push(&mut self, message: Message) -> Result<(), NetError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        if self.outgoing.lock().reader_gone {
            // Its last words tell more than the fact that it is gone; data before them can still be received.
            let mut unread = VecDeque::new();
            let error = loop {
                match self.next_frame() {
                    Ok(frame) => unread.push_back(frame),
                    Err(error) => break error,
                }
            };
            self.ready = unread;
            self.failure = Some(error.clone());
            return Err(error);
        }
        let mut offset = 0;
        loop {
            let chunk = chunk_at(&message.payload, offset);
            let (header, name) = self.encoder.data(&message.step, &message.payload, offset);
            let frame = [&header[..], chunk, name].concat();
            offset += chunk.len();
            self.write(frame, message.queued, message.phase);
            if offset >= message.payload.len() {
                return Ok(());
            }
        }
    }

    fn whole_due(&self, _bytes: u64) -> Option<Instant> {
        None
    }

    fn next(&mut self, _whole: Option<Instant>) -> Result<Frame, NetError> {
        self.next_frame().inspect_err(|error| {
            self.failure.get_or_insert_with(|| error.clone());
        })
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        self.decoder.recycle(vec![buffer]);
    }

    fn spare(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn abort(&mut self, reason: &str, error: NetError) {
        if self.failure.is_none() {
            self.control(Kind::Abort, reason.as_bytes());
        }
        self.close(error);
    }

    fn sever(&mut self, error: NetError) {
        self.close(error);
    }
}

impl Drop for MemLink {
    fn drop(&mut self) {
        if self.failure.is_none() {
            self.control(Kind::Bye, &[]);
        }
        let error = self.names.ended();
        self.close(error);
    }
}

//! Keys that come while runs use them up: a thread receives one record after the other and stays `ahead` of the runs.
//!
//! Records of a stream come in the order of their numbers, and runs ask for them in that order. So whoever asks for
//! one will never ask for those below it.

use crate::events::{Event, Why};
use crate::session::control::{Id, KeyStream};
use crate::session::family::dealing::fetch::{Accepted, FetchError, record, stored};
use crate::session::links::Links;
use crate::session::party::TURN;
use crate::session::work::{Progress, Work};
use crate::store::Shelf;
use privet_net::{Channel, Liveness, NetError, TcpChannel};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a record of a stream is not there.
#[derive(Clone, Debug, Error)]
pub enum StreamError {
    /// It takes too long.
    #[error(
        "waited {seconds} s for the keys of run {index} ({came} of {all} records came so far): is the dealer running, and have \
         both parties room for keys beside those of other plans? `timeouts.step` bounds this wait"
    )]
    Late {
        /// The record.
        index: u64,
        /// How long was waited.
        seconds: u64,
        /// Records that came.
        came: u64,
        /// Records asked for.
        all: u64,
    },
    /// It has ended before.
    #[error("no further keys come from the dealer ({reason}): prepare more")]
    Ended {
        /// Cause and remedy.
        reason: String,
    },
}

/// Why the first record of a stream is not there.
#[derive(Debug, Error)]
pub enum AwaitError {
    /// The stream.
    #[error("{0}")]
    Stream(#[from] StreamError),
    /// Another party gave up.
    #[error("{0}")]
    Other(#[from] NetError),
}

#[derive(Default)]
struct State {
    came: u64,
    /// Numbers of records that came and that no run has asked for.
    unused: BTreeSet<u64>,
    bytes: u64,
    receiving: Duration,
    waited: Duration,
    /// It has ended, and why if not because all came.
    ended: Option<Option<String>>,
}

struct StreamState {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

impl StreamState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait while `state` is so; false when `deadline` passes first.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
        so: impl Fn(&State) -> bool,
    ) -> (MutexGuard<'a, State>, bool) {
        while so(&state) {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return (state, false),
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        (state, true)
    }
}

/// A stream of records into a store. Dropped, it takes in no further ones.
pub struct Stream {
    /// The session whose records come.
    pub session: Id,
    indices: Vec<u64>,
    shared: Arc<StreamState>,
    shelf: Arc<Shelf>,
}

impl Stream {
    /// Receive the records of `deal` from here on, on a thread of its own. At most `ahead` (over 0) are there that no run
    /// has asked for, counting the one that is coming, and only while the store has room. The first is part of a preparation,
    /// and `channel` has that one's patience. For the others the dealer waits until both parties have room, which may take any
    /// time; a dealer that has no turn for as long as `turn` meanwhile is given up. With the last one `channel` is kept.
    pub fn begin(
        channel: TcpChannel,
        links: &Arc<Links>,
        shelf: Shelf,
        deal: Accepted,
        progress: Progress,
    ) -> Stream {
        let (ahead, turn) = (links.config.node.ahead, links.config.deployment.timeouts.turn());
        let (state, changed, stop) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        let shared = Arc::new(StreamState { state, changed, stop });
        let shelf = Arc::new(shelf);
        let Accepted { session, indices } = deal;
        let stream =
            Stream { session, indices: indices.clone(), shared: shared.clone(), shelf: shelf.clone() };
        let (told, links) = (shared.clone(), links.clone());
        let receive = move || {
            // Whoever waits is told even if this thread panics.
            let _ended = Ended(&shared);
            let mut channel = channel;
            let result = pump(&mut channel, &shelf, session, &indices, (ahead, turn), &progress, &shared);
            match &result {
                Ok(()) => links.keep_to_dealer(channel),
                Err(e) => {
                    progress.emit(|job| Event::StreamEnded { job, reason: e.why() });
                    channel.abort(&e.to_string());
                }
            }
            shared.lock().ended = Some(result.err().map(|e| e.to_string()));
        };
        if let Err(e) = std::thread::Builder::new().name("privet-keys".into()).spawn(receive) {
            told.lock().ended = Some(Some(format!("the system gives no thread for them: {e}")));
        }
        stream
    }

    /// Wait for the first record; gives its bytes. Its patience is that of the connection to the dealer.
    pub fn await_first(&self, work: &mut Work<'_>) -> Result<u64, AwaitError> {
        if self.indices.is_empty() {
            return Ok(0);
        }
        let waits = |s: &State| s.came == 0 && s.ended.is_none();
        let mut bytes = 0;
        loop {
            let look_again = Instant::now() + Duration::from_millis(100);
            let (state, over) = self.shared.wait(self.shared.lock(), Some(look_again), waits);
            match (state.came, &state.ended) {
                (0, Some(reason)) => return Err(AwaitError::Stream(ended(reason))),
                _ if over => return Ok(state.bytes),
                _ => drop(state),
            }
            work.hear_others()?;
            if std::mem::replace(&mut bytes, work.progress.bytes()) < work.progress.bytes() {
                work.sign()?;
            }
        }
    }

    /// The number of the record that comes next, while any does.
    pub fn next(&self) -> Option<u64> {
        let state = self.shared.lock();
        self.indices.get(state.came as usize).copied().filter(|_| state.ended.is_none())
    }

    /// Records that are to come.
    pub fn to_come(&self) -> u64 {
        let state = self.shared.lock();
        if state.ended.is_some() { 0 } else { self.indices.len() as u64 - state.came }
    }

    /// Wait until record `index` is stored, if it is one of those to come; an error where it will not come, or not
    /// within `patience`. Records of other deals are no business of a stream.
    pub fn await_record(&self, index: u64, patience: Duration) -> Result<(), StreamError> {
        let Ok(place) = self.indices.binary_search(&index) else { return Ok(()) };
        let (start, place) = (Instant::now(), place as u64);
        let missing = |s: &State| s.came <= place;
        let state = self.shared.lock();
        let waits = |s: &State| missing(s) && s.ended.is_none();
        let (mut state, in_time) = self.shared.wait(state, Some(start + patience), waits);
        state.waited += start.elapsed();
        match (&state.ended, in_time) {
            _ if !missing(&state) => Ok(()),
            (Some(reason), _) => Err(ended(reason)),
            _ => {
                let (seconds, all) = (patience.as_secs(), self.indices.len() as u64);
                Err(StreamError::Late { index, seconds, came: state.came, all })
            }
        }
    }

    /// A run has asked for record `index`: another may come. Gives the records that were passed over; they may be
    /// removed.
    pub fn asked_for(&self, index: u64) -> Vec<u64> {
        if self.indices.binary_search(&index).is_err() {
            return Vec::new();
        }
        let mut state = self.shared.lock();
        let above = state.unused.split_off(&index.saturating_add(1));
        let mut passed = std::mem::replace(&mut state.unused, above);
        passed.remove(&index);
        drop(state);
        self.shared.changed.notify_all();
        passed.into_iter().collect()
    }

    /// Why no more records come, where they stopped coming too early.
    pub fn failure(&self) -> Option<String> {
        self.shared.lock().ended.clone().flatten()
    }

    /// How it goes.
    pub fn status(&self) -> KeyStream {
        let to_come = self.to_come();
        let state = self.shared.lock();
        KeyStream {
            came: state.came,
            to_come,
            unused: state.unused.len() as u64,
            bytes: state.bytes,
            receiving_s: state.receiving.as_secs_f64(),
            waited_s: state.waited.as_secs_f64(),
            failure: state.ended.clone().flatten(),
        }
    }
}

impl Drop for Stream {
    /// From here on nothing of the stream is stored. Its thread ends when it next hears from the dealer, which hears
    /// that from the other party's thread, if not from this one.
    fn drop(&mut self) {
        let state = self.shared.lock();
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(state);
        self.shared.changed.notify_all();
        self.shelf.wake();
    }
}

struct Ended<'a>(&'a StreamState);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended.get_or_insert_with(|| Some("the thread that receives keys panicked".into()));
        drop(state);
        self.0.changed.notify_all();
    }
}

fn ended(reason: &Option<String>) -> StreamError {
    let reason = reason.clone().unwrap_or_else(|| "all that were asked for came".into());
    StreamError::Ended { reason }
}

fn pump(
    channel: &mut TcpChannel,
    shelf: &Shelf,
    session: Id,
    indices: &[u64],
    (ahead, turn): (usize, Duration),
    progress: &Progress,
    shared: &StreamState,
) -> Result<(), FetchError> {
    // All records of a plan have the same size, known once the first is there.
    let mut size = None;
    // The dealer waits for this thread, which looks for room and for runs again and again.
    let liveness = Liveness::new();
    channel.show(&liveness);
    for &index in indices {
        let stop = &shared.stop;
        let full = |s: &State| s.unused.len() >= ahead && !stop.load(Ordering::SeqCst);
        // A dealer that dies meanwhile is noticed before a run waits for it.
        while channel.is_open() {
            liveness.turn();
            let look_again = Instant::now() + TURN;
            if shared.wait(shared.lock(), Some(look_again), full).1 {
                break;
            }
        }
        let wanted = || {
            liveness.turn();
            !stop.load(Ordering::SeqCst) && channel.is_open()
        };
        let file = shelf.stage(&session.0, index, size, &wanted)?;
        if file.is_none() && !stop.load(Ordering::SeqCst) {
            // Why the dealer's connection has ended.
            stored(channel)?;
        }
        let mut file = file.ok_or(FetchError::Stopped)?;
        if stop.load(Ordering::SeqCst) {
            return Err(FetchError::Stopped);
        }
        let start = Instant::now();
        let bytes = record(channel, &mut file, stop, progress)?;
        {
            let mut state = shared.lock();
            if stop.load(Ordering::SeqCst) {
                return Err(FetchError::Stopped);
            }
            file.commit()?;
            state.came += 1;
            state.unused.insert(index);
            state.bytes += bytes;
            state.receiving += start.elapsed();
        }
        if size.is_none() {
            progress.came();
            channel.set_patience_for_turns(turn);
        }
        shared.changed.notify_all();
        stored(channel)?;
        size = Some(bytes);
    }
    Ok(())
}

//! The dealer's service: both parties ask for the same deal, each gets its stream.

use super::checks::open;
use super::deal::DealerSession;
use super::known::Known;
use super::messages::{DealReply, DealRequest};
use crate::config::{Place, Timeouts};
use crate::events::{Count, Event, Events, Job, JobEvents, PlanName, Reason, Secs, Told, Why, reason};
use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::session::links::{Links, Purpose};
use crate::session::party::started;
use crate::session::threads::aside;
use crate::store::format::RecordSink;
use crate::store::hex;
use privet_kernels::Device;
use privet_net::{Channel, NetError, TcpChannel, wait_any};
use privet_plan::program::NamedPlan;
use privet_plan::{Plan, Program};
use privet_prg::Seed;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes of a key message.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Frames of so many bytes are sent by themselves; smaller ones together.
const OWN_MESSAGE: usize = 64 << 10;
/// Key messages between two credits; at most twice as many are on the way.
pub(super) const CREDIT_CHUNKS: u64 = 16;
/// Records that one request may ask for.
pub const MAX_RUNS: u64 = 1 << 20;

type Waiting = HashMap<Id, (u8, TcpChannel, DealRequest)>;

/// What a dealer deals for, by hash of the plan, and has dealt.
struct Desk {
    plans: HashMap<String, (PlanName, Arc<Plan>)>,
    device: Arc<dyn Device>,
    sessions: Known,
}

/// Serve until the process ends.
pub fn serve(
    links: Links,
    program: &Program,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), NetError> {
    let listener = links.listen()?;
    events.emit(started(&links, &*device));
    if let Ok(address) = listener.local_address()?.to_string().parse() {
        events.emit(Event::Listening { place: Place::Dealer, address });
    }
    let links = Arc::new(links);
    let named = |p: &NamedPlan| {
        let plan = Arc::new(p.plan.clone());
        (hex(&plan.hash()), (PlanName::of(&p.name, &plan), plan))
    };
    let plans = program.plans.iter().map(named);
    let plans = plans.collect();
    let waiting: Arc<Mutex<Waiting>> = Arc::default();
    let desk = Arc::new(Desk { plans, sessions: Known::new(device.clone()), device });
    loop {
        let caller = match listener.accept(Duration::from_secs(3600)) {
            Ok(caller) => caller,
            Err(NetError::Timeout { .. }) => continue,
            Err(e) => {
                events.emit(Event::Stranger { reason: e.why() });
                continue;
            }
        };
        let (links, told) = (links.clone(), events.clone());
        let (waiting, desk) = (waiting.clone(), desk.clone());
        let connection = events.connection();
        // Of what deals share there are only tables, which are whole between two calls: a panic ends its own deal.
        aside("privet-deal", &events, move || {
            let events = told;
            let Some(caller) = links.without_doctors(caller) else { return };
            let pair =
                links.welcome(caller).map_err(TalkError::from).and_then(|(channel, place, purpose)| {
                    match (place, purpose) {
                        (Place::Party(party), Purpose::Keys) => {
                            let Timeouts { connect, step, .. } = links.config.deployment.timeouts;
                            meet(&waiting, party, channel, connect, step)
                        }
                        (place, purpose) => {
                            let reason =
                                reason!("access.not_admitted", "the dealer serves the parties alone");
                            events.emit(Event::Refused { connection, place, purpose, reason });
                            Ok(None)
                        }
                    }
                });
            match pair {
                Err(e) => events.emit(Event::Broken { connection, reason: e.why() }),
                Ok(None) => {}
                Ok(Some((channels, request))) => desk.deal(channels, &request, &events),
            }
        });
    }
}

/// Keep the first party of a deal waiting, but not for longer than `patience`; with the second, give both
/// channels in order. From here on a party that lets the dealer wait for longer than `step` in one step ends the deal.
fn meet(
    waiting: &Mutex<Waiting>,
    party: u8,
    mut channel: TcpChannel,
    patience: Duration,
    step: Duration,
) -> Result<Option<([TcpChannel; 2], DealRequest)>, TalkError> {
    channel.set_patience(Some(step));
    let request: DealRequest = hear(&mut channel, Talk::Deal)?;
    let deal = request.deal;
    let lock = || waiting.lock().unwrap_or_else(|e| e.into_inner());
    let mut present = lock();
    match present.remove(&deal) {
        None => {
            present.insert(deal, (party, channel, request));
            drop(present);
            std::thread::sleep(patience);
            if let Some((_, mut channel, _)) = lock().remove(&deal) {
                let seconds = patience.as_secs();
                let reason = format!("party {} did not ask for this deal within {seconds} s", 1 - party);
                let reason = format!("{reason}: see its log, and `privet doctor` there");
                say(&mut channel, Talk::Deal, &DealReply::Refused { reason })?;
            }
            Ok(None)
        }
        Some((other, first, theirs)) => {
            let mut both = if party == 0 { [channel, first] } else { [first, channel] };
            if other == party || theirs != request {
                let reason = "the two parties asked for different deals".to_owned();
                for channel in &mut both {
                    say(channel, Talk::Deal, &DealReply::Refused { reason: reason.clone() })?;
                }
                return Ok(None);
            }
            Ok(Some((both, request)))
        }
    }
}

impl Desk {
    /// Carry out a deal that both parties asked for.
    fn deal(&self, mut channels: [TcpChannel; 2], request: &DealRequest, events: &Events) {
        let plan = self.plans.get(&request.plan).map(|(name, _)| name.clone());
        let job = JobEvents::new(events.clone(), Job::deal(request.deal, plan));
        let (runs, checks) = (Count::of(request.runs), Count::of(request.checks));
        job.emit(|job| Event::DealBegan { job, runs, checks });
        match self.serve(&mut channels, request, &job) {
            Ok(None) => job.emit(|of| Event::DealDone { job: of, runs, took: Secs::of(job.elapsed()) }),
            Ok(Some(reason)) => job.emit(|job| Event::DealRefused { job, reason }),
            Err(e) => {
                job.emit(|job| Event::DealFailed { job, reason: e.why() });
                let reason = format!("the dealer could not finish this deal: {e}");
                channels.iter_mut().for_each(|c| c.abort(&reason));
            }
        }
    }

    /// Gives why nothing was dealt, where that is so.
    fn serve(
        &self,
        channels: &mut [TcpChannel; 2],
        request: &DealRequest,
        job: &JobEvents,
    ) -> Result<Option<Reason>, TalkError> {
        if let Some(reason) = refusal(request) {
            return refuse(channels, reason);
        }
        let Some((_, plan)) = self.plans.get(&request.plan) else {
            return refuse(channels, "this dealer does not deal for that plan");
        };
        let new = |master| DealerSession::from_master(plan.clone(), self.device.clone(), master);
        let mut progress = job.progress(plan);
        match request.session {
            None if request.checks > 0 => {
                let kept = open::deal(channels, request, &new, &mut progress)?;
                kept.into_iter().for_each(|session| drop(self.sessions.keep(session)));
            }
            None => send_session(
                channels,
                &self.sessions.keep(new(Seed::random())),
                request.runs,
                until_both_have_room,
                &mut progress,
            )?,
            Some(id) => match self.sessions.find(id, &plan.hash()) {
                Some(session) => {
                    send_session(channels, &session, request.runs, until_both_have_room, &mut progress)?
                }
                None => {
                    answer(channels, &DealReply::Forgotten)?;
                    return Ok(Some(reason!(
                        "deal.forgotten",
                        "this dealer knows the session no more, it was restarted"
                    )));
                }
            },
        }
        Ok(None)
    }
}

fn refusal(request: &DealRequest) -> Option<&'static str> {
    match request.runs.saturating_mul(request.checks.saturating_add(1)) > MAX_RUNS {
        true => Some("more than a million runs at once"),
        false => open::refusal(request),
    }
}

/// Tells both parties why; gives the reason.
fn refuse(channels: &mut [TcpChannel; 2], reason: &'static str) -> Result<Option<Reason>, TalkError> {
    answer(channels, &DealReply::Refused { reason: reason.to_owned() })?;
    Ok(Some(reason!("deal.refused", "{reason}", reason = Told::of(reason))))
}

fn answer(channels: &mut [TcpChannel; 2], reply: &DealReply) -> Result<(), TalkError> {
    channels.iter_mut().try_for_each(|c| say(c, Talk::Deal, reply))
}

/// Between two records the parties may take their time: those of a stream come as runs use them up. It ends as soon as
/// either connection does, whichever party is the silent one.
fn until_both_have_room(channels: &mut [TcpChannel; 2]) {
    let mut waiting: Vec<&mut TcpChannel> = channels.iter_mut().collect();
    while let Some(first) = wait_any(waiting.iter_mut().map(|c| &mut **c), None) {
        if !waiting.swap_remove(first).is_open() {
            return;
        }
    }
}

/// Send both parties the session's keys and `runs` further records, each once both have said that they have room for it:
/// the slower party sets the pace. `between` waits for that before each record but the first.
pub(super) fn send_session<C: Channel>(
    channels: &mut [C; 2],
    session: &DealerSession,
    runs: u64,
    between: fn(&mut [C; 2]),
    progress: &mut dyn FnMut(usize),
) -> Result<(), TalkError> {
    let indices = session.take_indices(runs);
    let name = Id(session.session);
    for (channel, keys) in channels.iter_mut().zip(session.keys()) {
        say(channel, Talk::Deal, &DealReply::Dealing { session: name, indices: indices.clone() })?;
        channel.send(&Talk::Keys.step(), keys.encode().to_vec())?;
    }
    for (i, index) in indices.into_iter().enumerate() {
        if i > 0 {
            between(channels);
        }
        for channel in channels.iter_mut() {
            channel.recv(&Talk::Credit.step(), 0)?;
        }
        let [c0, c1] = &mut *channels;
        let writers: [&mut dyn Channel; 2] = [c0, c1];
        let writers = writers.map(|channel| ChunkWriter { channel, buffer: Vec::new(), sent: 0 });
        let failed = |e: String| TalkError::Garbled {
            peer: "a party".into(),
            what: "acknowledgement of keys".into(),
            cause: e,
        };
        // The channels have threads that encrypt and send; a third pair would only move frames between caches.
        let writers = session.deal_directly(index, writers, progress).map_err(|e| failed(e.to_string()))?;
        for writer in writers {
            writer.finish().map_err(|e| failed(e.to_string()))?;
        }
    }
    Ok(())
}

/// Sends a record in chunks and waits for credits, so that a slow party bounds the dealer's memory.
struct ChunkWriter<'a> {
    channel: &'a mut dyn Channel,
    buffer: Vec<u8>,
    sent: u64,
}

impl ChunkWriter<'_> {
    fn send(&mut self) -> io::Result<()> {
        // An empty message would mean the end.
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.buffer);
        self.channel.send(&Talk::Keys.step(), chunk).map_err(io::Error::other)?;
        self.sent += 1;
        if self.sent.is_multiple_of(CREDIT_CHUNKS) && self.sent > CREDIT_CHUNKS {
            self.channel.recv(&Talk::Credit.step(), 0).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Send what is left, an empty chunk as the end mark, and wait until all is stored.
    fn finish(mut self) -> io::Result<()> {
        self.send()?;
        self.channel.send(&Talk::Keys.step(), Vec::new()).map_err(io::Error::other)?;
        // One credit is outstanding once the first stretch was sent; the last one says "stored".
        let outstanding = u64::from(self.sent >= CREDIT_CHUNKS) + 1;
        for _ in 0..outstanding {
            self.channel.recv(&Talk::Credit.step(), 0).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl Write for ChunkWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = data.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&data[..n]);
        if self.buffer.len() == CHUNK_BYTES {
            self.send()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordSink for ChunkWriter<'_> {
    /// A large frame is a message of its own: it is not copied here, and an evaluator that holds it in memory reads it where
    /// it lies.
    fn put(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        if !(OWN_MESSAGE..=CHUNK_BYTES).contains(&frame.len()) {
            return self.write_all(frame);
        }
        self.send()?;
        self.buffer = std::mem::take(frame);
        self.send()
    }
}

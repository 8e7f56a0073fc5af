//! What a preparation has while it works: the other parties, and the time that it may take.
//!
//! Parties that prepare may have nothing to say to each other for long. So each gives a sign whenever it got further, at most
//! one a second, and says when it has finished a part. Nobody waits for longer than `timeouts.step` without such a sign. A party
//! that gives up ends its connections with the reason, which the others hear at once, whomever they wait for.

use super::control::{Preparing, Talk};
use super::job::JobError;
use super::peers::Others;
use crate::events::{Bytes, Count, Event, Job, JobEvents};
use privet_net::{Channel, Meter, NetError, PhaseCount, Step, TcpChannel, wait_any};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two signs of one party.
const SIGNS: Duration = Duration::from_secs(1);
/// Between two events of its progress.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// A party is at work.
const AT_WORK: u8 = 0;
/// It has finished the part that all are at.
const DONE: u8 = 1;

/// How far a preparation is, for all who want to know.
#[derive(Clone)]
pub struct Progress(Arc<Counts>);

struct Counts {
    job: JobEvents,
    /// Milliseconds from the beginning to the last event.
    told: AtomicU64,
    came: AtomicU64,
    expected: AtomicU64,
    bytes: AtomicU64,
    /// Of its connections, with what had passed over each before.
    meters: Mutex<Vec<(Arc<Meter>, PhaseCount)>>,
}

impl Progress {
    /// At the beginning of a job.
    pub fn new(job: JobEvents) -> Progress {
        let [told, came, expected, bytes] = [const { AtomicU64::new(0) }; 4];
        Progress(Arc::new(Counts { job, told, came, expected, bytes, meters: Mutex::default() }))
    }

    /// Tell of something in this job.
    pub fn emit(&self, event: impl FnOnce(Job) -> Event) {
        self.0.job.emit(event);
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.0.job.elapsed()
    }

    /// Tell how far it is, now and then.
    fn tell(&self) {
        let (now, every) = (self.elapsed().as_millis() as u64, TOLD_EVERY.as_millis() as u64);
        let told = self.0.told.load(Ordering::Relaxed);
        let swap = |told| self.0.told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed);
        if now.saturating_sub(told) < every || swap(told).is_err() {
            return;
        }
        let came = self.0.came.load(Ordering::Relaxed);
        let expected = self.0.expected.load(Ordering::Relaxed);
        let (came, expected, bytes) = (Count::of(came), Count::of(expected), Bytes::of(self.bytes()));
        self.emit(|job| Event::Preparing { job, came, expected, bytes });
    }

    /// So many records are to come in all.
    pub fn expect(&self, records: u64) {
        self.0.expected.store(records, Ordering::Relaxed);
    }

    /// A record is complete.
    pub fn came(&self) {
        self.0.came.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    /// Bytes of keys came.
    pub fn got(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.tell();
    }

    /// Bytes of keys that came.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// What passes over a channel from here on belongs to it.
    pub fn count(&self, channel: &dyn Channel) {
        let meter = channel.meter();
        let before = meter.total();
        self.0.meters.lock().unwrap_or_else(PoisonError::into_inner).push((meter, before));
    }

    /// What passed over all channels.
    pub fn traffic(&self) -> PhaseCount {
        let meters = self.0.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = meters.iter().map(|(meter, before)| (meter.total(), before));
        passed.fold(PhaseCount::default(), |sum, (now, before)| PhaseCount {
            sent: sum.sent + now.sent - before.sent,
            received: sum.received + now.received - before.received,
            rounds: sum.rounds + now.rounds - before.rounds,
            ..sum
        })
    }

    /// As the status has it.
    pub fn shown(&self) -> Preparing {
        let came = self.0.came.load(Ordering::Relaxed);
        Preparing {
            came,
            to_come: self.0.expected.load(Ordering::Relaxed).saturating_sub(came),
            bytes: self.bytes(),
            seconds: self.elapsed().as_secs_f64(),
        }
    }
}

/// The work of one party in a preparation.
pub struct Work<'a> {
    others: &'a mut Others,
    /// How far it is.
    pub progress: Progress,
    /// Without a sign of somebody.
    patience: Duration,
    signed: Instant,
    /// Those that finished the part that all are at.
    done: BTreeSet<u8>,
    /// Between two parts of the work: parties send each other the family's messages, which are not to be mixed with words.
    talking: bool,
}

impl<'a> Work<'a> {
    /// With connections for this preparation alone.
    pub(super) fn new(others: &'a mut Others, progress: Progress, patience: Duration) -> Work<'a> {
        others.all().for_each(|(_, channel)| progress.count(channel));
        Work { others, progress, patience, signed: Instant::now(), done: BTreeSet::new(), talking: false }
    }

    /// The other parties, in order.
    pub(in crate::session) fn parties(&self) -> Vec<u8> {
        self.others.parties()
    }

    /// The connections to all other parties, in their order, between two parts of the work ([`Work::all_done`]).
    pub(in crate::session) fn all(&mut self) -> impl Iterator<Item = (u8, &mut TcpChannel)> {
        self.others.all()
    }

    /// The connection to another party, between two parts of the work ([`Work::all_done`]).
    pub(in crate::session) fn to(&mut self, party: u8) -> Result<&mut TcpChannel, JobError> {
        self.others.to(party)
    }

    /// The next part of the work begins, in which parties have nothing to say to each other but that they are at it.
    pub fn resume(&mut self) {
        self.talking = false;
    }

    /// This party got further: the others hear of it now and then.
    pub fn sign(&mut self) -> Result<(), NetError> {
        if self.talking || self.signed.elapsed() < SIGNS.min(self.patience / 4) {
            return Ok(());
        }
        self.signed = Instant::now();
        self.say(AT_WORK)
    }

    fn say(&mut self, word: u8) -> Result<(), NetError> {
        self.others.all().try_for_each(|(_, channel)| channel.send(&Talk::Work.step(), vec![word]))
    }

    /// Take in a word of a party; its reason where it gave up.
    fn hear(&mut self, party: u8) -> Result<(), NetError> {
        let Some((_, channel)) = self.others.all().find(|(p, _)| *p == party) else { return Ok(()) };
        if channel.recv(&Talk::Work.step(), 1)? == [DONE] {
            self.done.insert(party);
        }
        Ok(())
    }

    /// Take in what the others have said; an error where one gave up.
    pub fn hear_others(&mut self) -> Result<(), NetError> {
        loop {
            let parties = self.parties();
            match wait_any(self.others.all().map(|(_, c)| c), Some(Instant::now())) {
                Some(place) => self.hear(parties[place])?,
                None => return Ok(()),
            }
        }
    }

    /// Wait until `source` has something to read, or has ended.
    fn await_source(&mut self, source: &mut TcpChannel, step: &Step) -> Result<(), NetError> {
        if self.talking {
            // What the others send now is not for here. The source has the same patience.
            return Ok(());
        }
        let deadline = Instant::now() + self.patience;
        let parties = self.parties();
        loop {
            // A party's reason comes before what the source makes of it.
            let others = self.others.all().map(|(_, c)| c);
            match wait_any(others.chain([&mut *source]), Some(deadline)) {
                Some(place) if place < parties.len() => self.hear(parties[place])?,
                Some(_) => return Ok(()),
                None => {
                    let (peer, seconds) = (source.peer().to_owned(), self.patience.as_secs());
                    let error = NetError::Stuck { peer, step: step.to_string(), seconds };
                    source.abort(&error.to_string());
                    return Err(error);
                }
            }
        }
    }

    /// Wait until all others have finished the part of the work that this party has finished. After it the parties may talk,
    /// until [`Work::resume`].
    pub fn all_done(&mut self) -> Result<(), NetError> {
        self.say(DONE)?;
        // A party that waits for a silent dealer is to give up, and to name it, before others give up that party.
        let patience = self.patience + 2 * SIGNS;
        let now = Instant::now();
        let mut due: BTreeMap<u8, Instant> =
            self.parties().into_iter().map(|p| (p, now + patience)).collect();
        loop {
            due.retain(|party, _| !self.done.contains(party));
            let Some((&latest, &deadline)) = due.iter().min_by_key(|(_, due)| **due) else { break };
            let parties: Vec<u8> = due.keys().copied().collect();
            let waited = self.others.all().filter(|(p, _)| due.contains_key(p)).map(|(_, c)| c);
            match wait_any(waited, Some(deadline)) {
                Some(place) => {
                    self.hear(parties[place])?;
                    due.insert(parties[place], Instant::now() + patience);
                }
                None => {
                    let peer = format!("party:{latest}");
                    let step = Talk::Work.step().to_string();
                    return Err(NetError::Stuck { peer, step, seconds: patience.as_secs() });
                }
            }
        }
        self.done.clear();
        self.talking = true;
        Ok(())
    }

    /// A connection beside those to the parties, for example to the dealer, during one part of the work.
    pub fn attend<'w>(&'w mut self, source: &'w mut TcpChannel) -> Attended<'w, 'a> {
        source.set_patience(Some(self.patience));
        self.progress.count(source);
        Attended { source, work: self }
    }
}

/// A connection of a party that hears the others while it waits. What comes is a sign that it got further.
pub struct Attended<'w, 'a> {
    source: &'w mut TcpChannel,
    /// The work that it is part of.
    pub work: &'w mut Work<'a>,
}

impl Channel for Attended<'_, '_> {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        self.source.send(step, payload)
    }

    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        self.work.await_source(self.source, step)?;
        let message = self.source.recv(step, len)?;
        self.work.sign()?;
        Ok(message)
    }

    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        self.work.await_source(self.source, step)?;
        let message = self.source.recv_up_to(step, max)?;
        self.work.sign()?;
        Ok(message)
    }

    fn peer(&self) -> &str {
        self.source.peer()
    }

    fn meter(&self) -> Arc<Meter> {
        self.source.meter()
    }

    fn abort(&mut self, reason: &str) {
        self.source.abort(reason);
    }

    fn sever(&mut self) {
        self.source.sever();
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::Purpose;
    use super::super::testing::{deployment, job_events, links};
    use super::*;
    use crate::config::Place;

    const PATIENCE: Duration = Duration::from_secs(2);

    /// Both ends of two connections between parties: for words, and in the place of a source.
    fn lines() -> [(TcpChannel, TcpChannel); 2] {
        let text = deployment();
        let party = links(&text, &Place::Party(0));
        let listener = party.listen().unwrap();
        [(); 2].map(|()| {
            std::thread::scope(|scope| {
                let other = links(&text, &Place::Party(1));
                let dialled =
                    scope.spawn(move || other.dial(&Place::Party(0), Purpose::Preparation).unwrap());
                let caller = listener.accept(Duration::from_secs(20)).unwrap();
                (party.answer(caller, Purpose::Preparation).unwrap(), dialled.join().unwrap())
            })
        })
    }

    fn others(channel: TcpChannel) -> Others {
        Others::new(BTreeMap::from([(1, channel)]), PATIENCE)
    }

    fn word(channel: &mut TcpChannel, word: u8) {
        channel.send(&Talk::Work.step(), vec![word]).unwrap();
    }

    #[test]
    fn a_party_that_is_silent_is_given_up_and_one_that_gives_signs_is_not() {
        let [(here, mut there), _] = lines();
        let mut others = others(here);
        let mut work = Work::new(&mut others, Progress::new(job_events()), PATIENCE);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Longer in all than anybody waits for one sign.
                for _ in 0..8 {
                    std::thread::sleep(Duration::from_millis(900));
                    word(&mut there, AT_WORK);
                }
                word(&mut there, DONE);
            });
            work.all_done().unwrap();
        });
        let error = work.all_done().unwrap_err();
        assert!(matches!(&error, NetError::Stuck { peer, .. } if peer == "party:1"), "{error}");
    }

    #[test]
    fn a_failure_of_another_party_is_heard_while_a_source_is_waited_for() {
        let [(here, mut there), (mut source, _source_there)] = lines();
        let mut others = others(here);
        let mut work = Work::new(&mut others, Progress::new(job_events()), Duration::from_secs(600));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                word(&mut there, AT_WORK);
                there.abort("its disk is full");
            });
            let error = work.attend(&mut source).recv(&Talk::Keys.step(), 1).unwrap_err();
            assert!(
                matches!(&error, NetError::Aborted { reason, .. } if reason == "its disk is full"),
                "{error}"
            );
        });
    }

    #[test]
    fn a_silent_source_is_named_and_what_comes_counts() {
        let [(here, mut there), (mut source, mut source_there)] = lines();
        // What passed before is of another preparation.
        source_there.send(&Talk::Keys.step(), vec![1; 5]).unwrap();
        source.recv(&Talk::Keys.step(), 5).unwrap();
        let mut others = others(here);
        let mut work = Work::new(&mut others, Progress::new(job_events()), PATIENCE);
        source_there.send(&Talk::Keys.step(), vec![1; 9]).unwrap();
        // Words between do not end the wait, and are not lost.
        word(&mut there, AT_WORK);
        word(&mut there, DONE);
        let mut attended = work.attend(&mut source);
        assert_eq!(attended.recv(&Talk::Keys.step(), 9).unwrap(), [1; 9]);
        let error = attended.recv_up_to(&Talk::Keys.step(), 9).unwrap_err();
        assert!(matches!(error, NetError::Stuck { seconds: 2, .. }), "{error}");
        let told = source_there.recv(&Talk::Credit.step(), 0).unwrap_err();
        assert!(matches!(&told, NetError::Aborted { .. }), "{told}");
        work.all_done().unwrap();
        assert_eq!(work.progress.traffic().received, 9 + 2);
    }
}

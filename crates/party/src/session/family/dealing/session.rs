//! Dealing records: a session at the dealer, and a pipeline from the family's dealer to a record writer a party.

use super::{Deals, Streams};
use crate::registry::DealToFiles;
use crate::store::format::{Header, RecordSink, RecordWriter};
use crate::store::{PendingFile, SessionFile, SessionId, StoreError, pending_record, write_session};
use privet_family::NodeStats;
use privet_family::keys::KeyError;
use privet_kernels::Device;
use privet_plan::Plan;
use privet_prg::{Domain, Seed};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

/// Frames on the way from the gates to a writer, at most: bounds the dealer's memory.
const FRAMES_IN_FLIGHT: usize = 8;

/// A session at the dealer. Its secrets live in this process alone: after a restart a session gets no
/// further records, and no record is ever dealt twice.
///
/// Everything in it follows from one master seed M, which is only ever derived from, never expanded:
/// the public name is `M.derive(Public, 0)`, the seed of the family's [`Deals`] `M.derive(Session, 0)`, and the
/// seed of record i is K = `M.derive(Record, i)`. The public name of the set that all parties' records i make up is
/// `K.derive(Public, 0)`. As a derivation is a PRF keyed by M, name and keys say nothing
/// about M; whoever is given M can deal the session again, bit for bit (`docs/dealer-checks.md`).
pub struct Session<D> {
    /// The session's public name.
    pub session: [u8; 16],
    /// The plan.
    pub plan: Arc<Plan>,
    plan_hash: [u8; 32],
    pub(in crate::session::family) device: Arc<dyn Device>,
    master: Seed,
    pub(in crate::session::family) dealer: D,
    parties: usize,
    next: Arc<AtomicU64>,
}

/// All that a [`Session`] is made of: it can be dropped, and made again with the same keys. Its records are counted
/// on, also by others that are made of it.
#[derive(Clone)]
pub struct SessionSeed {
    plan: Arc<Plan>,
    parties: usize,
    master: Seed,
    next: Arc<AtomicU64>,
}

impl SessionSeed {
    /// The session's public name.
    pub fn name(&self) -> [u8; 16] {
        *self.master.derive(Domain::Public, 0).expose()
    }

    /// The session.
    pub fn session<D: Deals>(&self, device: Arc<dyn Device>) -> Session<D> {
        let session = Session::from_master(self.parties, self.plan.clone(), device, self.master.clone());
        Session { next: self.next.clone(), ..session }
    }
}

impl<D: Deals> Session<D> {
    /// A new session with fresh randomness, for so many parties.
    pub fn new(parties: usize, plan: Arc<Plan>, device: Arc<dyn Device>) -> Session<D> {
        Session::from_master(parties, plan, device, Seed::random())
    }

    /// The session of a master seed. It gives its records' numbers from 0 again: for sessions that were
    /// opened, and for the dealer itself.
    pub fn from_master(parties: usize, plan: Arc<Plan>, device: Arc<dyn Device>, master: Seed) -> Session<D> {
        let dealer = D::new(&plan, device.as_ref(), parties, &master.derive(Domain::Session, 0));
        let session = *master.derive(Domain::Public, 0).expose();
        let (plan_hash, next) = (plan.hash(), Arc::default());
        Session { session, plan_hash, plan, device, master, dealer, parties, next }
    }

    /// What it can be made again of.
    pub fn seed(&self) -> SessionSeed {
        let Session { plan, parties, master, next, .. } = self;
        SessionSeed { plan: plan.clone(), parties: *parties, master: master.clone(), next: next.clone() }
    }

    /// What each party keeps of the session, and is given.
    pub fn files(&self) -> Vec<SessionFile> {
        let keys = (0..).zip(self.dealer.keys());
        keys.map(|(party, keys)| SessionFile { id: self.id(party), checks: 0, keys }).collect()
    }

    fn id(&self, party: u8) -> SessionId {
        SessionId { session: self.session, party, plan: self.plan_hash }
    }

    /// Hash of the plan it deals for.
    pub fn plan_hash(&self) -> &[u8; 32] {
        &self.plan_hash
    }

    /// The numbers of the next `runs` records; never given again, however many deals of the session are under way.
    pub fn take_indices(&self, runs: u64) -> Vec<u64> {
        let more = |first: u64| Some(first.saturating_add(runs));
        // The closure always gives a number.
        let first = self.next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).unwrap_or(u64::MAX);
        (first..first.saturating_add(runs)).collect()
    }

    /// The headers of the parties' records `index`.
    pub fn headers(&self, index: u64) -> Vec<Header> {
        let record = self.record(index);
        let set = *record.derive(Domain::Public, 0).expose();
        let seeds = (0..).zip(self.dealer.record_seeds(&record));
        seeds.map(|(party, seed)| Header { id: self.id(party).record(index), set, seed }).collect()
    }

    /// The seed of a record.
    pub(in crate::session::family) fn record(&self, index: u64) -> Seed {
        self.master.derive(Domain::Record, index)
    }

    fn streams(
        &self,
        index: u64,
        sink: &mut dyn Streams,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        self.dealer.deal(&self.plan, self.device.as_ref(), index, &self.record(index), sink, progress)
    }

    /// Deal record `index` into one sink a party, on this thread: for sinks that pass frames on to other threads. Gives the
    /// sinks back.
    pub fn deal_directly<W: RecordSink>(
        &self,
        index: u64,
        sinks: Vec<W>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<W>, KeyError> {
        let begin = |(sink, header): (W, Header)| RecordWriter::new(sink, &header);
        let records = sinks.into_iter().zip(self.headers(index)).map(begin).collect::<Result<_, _>>()?;
        let mut all = Direct(records);
        self.streams(index, &mut all, progress)?;
        Ok(all.0.into_iter().map(RecordWriter::finish).collect::<Result<_, _>>()?)
    }

    /// Deal record `index` into one writer a party, each on a thread of its own; gives the writers back and the cost of
    /// each node.
    pub fn deal<W: Write + Send>(
        &self,
        index: u64,
        writers: Vec<W>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(Vec<W>, Vec<NodeStats>), KeyError> {
        std::thread::scope(|scope| {
            let lane = |(w, header): (W, Header)| {
                let (send, frames) = sync_channel(FRAMES_IN_FLIGHT);
                let (recycle, spare) = channel();
                let handle = scope.spawn(move || write_record(w, &header, frames, recycle));
                (Lane { frames: Some(send), spare }, handle)
            };
            let (lanes, handles): (Vec<_>, Vec<_>) =
                writers.into_iter().zip(self.headers(index)).map(lane).unzip();
            let mut lanes = Lanes(lanes);
            let dealt = self.streams(index, &mut lanes, progress);
            drop(lanes);
            let panicked = || Err(io::Error::other("a thread that writes keys panicked"));
            let writers = handles.into_iter().map(|h| h.join().unwrap_or_else(|_| panicked()));
            // A writer's error is the cause; the gates only see that nobody takes their frames.
            Ok((writers.collect::<Result<_, _>>()?, dealt?))
        })
    }

    /// Write the session into all parties' stores and deal `indices` into record files there.
    pub fn deal_to_stores<S: AsRef<Path>>(
        &self,
        stores: &[S],
        indices: &[u64],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, StoreError> {
        for (file, store) in self.files().iter().zip(stores) {
            write_session(store.as_ref(), file)?;
        }
        let mut total: Vec<NodeStats> = Vec::new();
        for &index in indices {
            let files = stores.iter().map(|s| pending_record(s.as_ref(), &self.session, index));
            let error = |e: KeyError| StoreError::Io {
                path: stores
                    .iter()
                    .map(|s| s.as_ref().display().to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
                source: match e {
                    KeyError::Io(e) => e,
                    KeyError::Corrupt(s) => io::Error::other(s),
                },
            };
            let (files, stats) =
                self.deal(index, files.collect::<Result<_, _>>()?, progress).map_err(error)?;
            files.into_iter().try_for_each(PendingFile::commit)?;
            match total.is_empty() {
                true => total = stats,
                false => total.iter_mut().zip(&stats).for_each(|(t, s)| t.add(s)),
            }
        }
        Ok(total)
    }
}

impl<D: Deals> DealToFiles for Session<D> {
    fn deal(&mut self, stores: &[PathBuf], runs: u64) -> Result<Vec<NodeStats>, StoreError> {
        self.deal_to_stores(stores, &self.take_indices(runs), &mut |_| {})
    }
}

fn write_record<W: Write>(
    w: W,
    header: &Header,
    frames: Receiver<Vec<u8>>,
    recycle: std::sync::mpsc::Sender<Vec<u8>>,
) -> io::Result<W> {
    let mut record = RecordWriter::new(w, header)?;
    for frame in frames {
        record.frame(&frame)?;
        let _ = recycle.send(frame);
    }
    record.finish()
}

/// The stream of a party that there is none of.
fn nobody(party: usize) -> KeyError {
    KeyError::Corrupt(format!("frames for party {party}, which nobody takes"))
}

struct Direct<W>(Vec<RecordWriter<W>>);

impl<W: RecordSink> Streams for Direct<W> {
    fn put(&mut self, party: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        Ok(self.0.get_mut(party).ok_or_else(|| nobody(party))?.keep_frame(frame)?)
    }
}

struct Lane {
    frames: Option<SyncSender<Vec<u8>>>,
    spare: Receiver<Vec<u8>>,
}

struct Lanes(Vec<Lane>);

impl Streams for Lanes {
    fn put(&mut self, party: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        let lane = self.0.get(party).ok_or_else(|| nobody(party))?;
        let full = std::mem::replace(frame, lane.spare.try_recv().unwrap_or_default());
        let gone = || KeyError::Io(io::ErrorKind::BrokenPipe.into());
        lane.frames.as_ref().ok_or_else(gone)?.send(full).map_err(|_| gone())
    }
}

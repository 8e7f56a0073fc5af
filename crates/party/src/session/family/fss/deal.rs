//! Dealing records: the dealer's masks of a session, and a pipeline from gates to two record writers.

use super::keys::SessionKeys;
use crate::store::format::{Header, RecordSink, RecordWriter};
use crate::store::{PendingFile, SessionId, StoreError, pending_record, write_session};
use privet_family::NodeStats;
use privet_fss::keys::{KeyError, KeySink};
use privet_fss::{Dealer, SessionMasks};
use privet_kernels::Device;
use privet_plan::Plan;
use privet_prg::{Domain, Seed};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

/// Frames on the way from the gates to a writer, at most: bounds the dealer's memory.
const FRAMES_IN_FLIGHT: usize = 8;

/// A session at the dealer. Its secrets live in this process alone: after a restart a session gets no
/// further records, and no record is ever dealt twice.
///
/// Everything in it follows from one master seed M, which is only ever derived from, never expanded:
/// the public name is `M.derive(Public, 0)`, the seed of [`SessionMasks`] `M.derive(Session, 0)`, and the
/// seed of record i is K = `M.derive(Record, i)`. The public name of the set that both parties' records i make up is
/// `K.derive(Public, 0)`. As a derivation is a PRF keyed by M, name and keys say nothing
/// about M; whoever is given M can deal the session again, bit for bit (`docs/dealer-checks.md`).
pub struct DealerSession {
    /// The session's public name.
    pub session: [u8; 16],
    /// The plan.
    pub plan: Arc<Plan>,
    plan_hash: [u8; 32],
    device: Arc<dyn Device>,
    master: Seed,
    masks: SessionMasks,
    next: Arc<AtomicU64>,
}

/// All that a [`DealerSession`] is made of: it can be dropped, and made again with the same keys. Its records are counted
/// on, also by others that are made of it.
#[derive(Clone)]
pub struct SessionSeed {
    plan: Arc<Plan>,
    master: Seed,
    next: Arc<AtomicU64>,
}

impl SessionSeed {
    /// The session's public name.
    pub fn name(&self) -> [u8; 16] {
        *self.master.derive(Domain::Public, 0).expose()
    }

    /// The session.
    pub fn session(&self, device: Arc<dyn Device>) -> DealerSession {
        let session = DealerSession::from_master(self.plan.clone(), device, self.master.clone());
        DealerSession { next: self.next.clone(), ..session }
    }
}

impl DealerSession {
    /// A new session with fresh randomness.
    pub fn new(plan: Arc<Plan>, device: Arc<dyn Device>) -> DealerSession {
        DealerSession::from_master(plan, device, Seed::random())
    }

    /// The session of a master seed. It gives its records' numbers from 0 again: for sessions that were
    /// opened, and for the dealer itself.
    pub fn from_master(plan: Arc<Plan>, device: Arc<dyn Device>, master: Seed) -> DealerSession {
        let masks = SessionMasks::new(&plan, device.as_ref(), &master.derive(Domain::Session, 0));
        let session = *master.derive(Domain::Public, 0).expose();
        DealerSession { session, plan_hash: plan.hash(), plan, device, master, masks, next: Arc::default() }
    }

    /// What it can be made again of.
    pub fn seed(&self) -> SessionSeed {
        SessionSeed { plan: self.plan.clone(), master: self.master.clone(), next: self.next.clone() }
    }

    /// What each party must be given of the session.
    pub fn keys(&self) -> [SessionKeys; 2] {
        [0, 1].map(|party| SessionKeys {
            id: self.id(party as u8),
            seed: self.masks.party_seeds()[party].seed().clone(),
            hash: *self.masks.hash_keys(),
        })
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

    /// The header of `party`'s record `index`.
    pub fn header(&self, index: u64, party: u8) -> Header {
        let record = self.record(index);
        let [s0, s1] = Dealer::record_seeds(&record);
        Header {
            id: self.id(party).record(index),
            set: *record.derive(Domain::Public, 0).expose(),
            seed: if party == 0 { s0 } else { s1 },
        }
    }

    fn record(&self, index: u64) -> Seed {
        self.master.derive(Domain::Record, index)
    }

    /// Deal the frames of record `index`; gives the cost of each node.
    pub fn frames(
        &self,
        index: u64,
        sink: &mut dyn KeySink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        let dealer = Dealer::new(&self.plan, self.device.as_ref(), &self.masks);
        dealer.deal(index, &self.record(index), sink, progress)
    }

    /// Deal record `index` into one sink a party, on this thread: for sinks that pass frames on to other threads. Gives the
    /// sinks back.
    pub fn deal_directly<W: RecordSink>(
        &self,
        index: u64,
        sinks: [W; 2],
        progress: &mut dyn FnMut(usize),
    ) -> Result<[W; 2], KeyError> {
        let [s0, s1] = sinks;
        let mut both = Direct([
            RecordWriter::new(s0, &self.header(index, 0))?,
            RecordWriter::new(s1, &self.header(index, 1))?,
        ]);
        self.frames(index, &mut both, progress)?;
        let [w0, w1] = both.0;
        Ok([w0.finish()?, w1.finish()?])
    }

    /// Deal record `index` into one writer a party, each on a thread of its own; gives the writers back and the cost of
    /// each node.
    pub fn deal<W: Write + Send>(
        &self,
        index: u64,
        writers: [W; 2],
        progress: &mut dyn FnMut(usize),
    ) -> Result<([W; 2], Vec<NodeStats>), KeyError> {
        std::thread::scope(|scope| {
            let [w0, w1] = writers;
            let lanes = [(0, w0), (1, w1)].map(|(party, w)| {
                let (send, frames) = sync_channel(FRAMES_IN_FLIGHT);
                let (recycle, spare) = channel();
                let header = self.header(index, party);
                let handle = scope.spawn(move || write_record(w, &header, frames, recycle));
                (Lane { frames: Some(send), spare }, handle)
            });
            let [(l0, h0), (l1, h1)] = lanes;
            let mut lanes = Lanes([l0, l1]);
            let dealt = self.frames(index, &mut lanes, progress);
            drop(lanes);
            let writers = [h0, h1].map(|h| {
                h.join().unwrap_or_else(|_| Err(io::Error::other("a thread that writes keys panicked")))
            });
            // A writer's error is the cause; the gates only see that nobody takes their frames.
            let [w0, w1] = writers;
            Ok(([w0?, w1?], dealt?))
        })
    }

    /// Write the session into both parties' stores and deal `indices` into record files there.
    pub fn deal_to_stores(
        &self,
        stores: [&Path; 2],
        indices: &[u64],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, StoreError> {
        for (keys, store) in self.keys().iter().zip(stores) {
            write_session(store, &keys.file(0))?;
        }
        let mut total: Vec<NodeStats> = Vec::new();
        for &index in indices {
            let [f0, f1] = stores.map(|s| pending_record(s, &self.session, index));
            let error = |e: KeyError| StoreError::Io {
                path: stores.map(|s| s.display().to_string()).join(" or "),
                source: match e {
                    KeyError::Io(e) => e,
                    KeyError::Corrupt(s) => io::Error::other(s),
                },
            };
            let (files, stats) = self.deal(index, [f0?, f1?], progress).map_err(error)?;
            files.into_iter().try_for_each(PendingFile::commit)?;
            match total.is_empty() {
                true => total = stats,
                false => total.iter_mut().zip(&stats).for_each(|(t, s)| t.add(s)),
            }
        }
        Ok(total)
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

struct Direct<W>([RecordWriter<W>; 2]);

impl<W: RecordSink> KeySink for Direct<W> {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (record, frame) in self.0.iter_mut().zip(frames).filter(|(_, frame)| !frame.is_empty()) {
            record.keep_frame(frame)?;
        }
        Ok(())
    }
}

struct Lane {
    frames: Option<SyncSender<Vec<u8>>>,
    spare: Receiver<Vec<u8>>,
}

struct Lanes([Lane; 2]);

impl KeySink for Lanes {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (lane, frame) in self.0.iter_mut().zip(frames) {
            if frame.is_empty() {
                continue;
            }
            let full = std::mem::replace(frame, lane.spare.try_recv().unwrap_or_default());
            let gone = || KeyError::Io(io::ErrorKind::BrokenPipe.into());
            lane.frames.as_ref().ok_or_else(gone)?.send(full).map_err(|_| gone())?;
        }
        Ok(())
    }
}

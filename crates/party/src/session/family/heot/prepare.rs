//! A party's part in a preparation: material for so many runs, and, of a session that is open, their masks.

use super::session::{Kind, link, masks_name};
use super::{Heot, HeotError};
use crate::events::{Bytes, Count, Event};
use crate::session::family::records::{Agreed, Pending, channels};
use crate::session::family::{Made, Preparer};
use crate::session::job::JobError;
use crate::session::order::Preparation;
use crate::session::work::Work;
use crate::store::format::Header;
use crate::store::{SessionFile, SessionId, Shelf};
use privet_family::Parameters;
use privet_heot::{Keep, MaterialMaker, Session, Side};
use privet_net::Channel;
use privet_plan::Plan;
use privet_prg::Seed;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Uses of what the parties agree on.
const CONTEXT: &str = "privet heot: what parties agree on v1";

/// The preparation of records.
pub(in crate::session) struct Maker {
    side: Side,
    /// That encryption computes with.
    threads: usize,
    /// What the deployment says.
    chosen: Parameters,
    id: SessionId,
    plan: Arc<Plan>,
    shelf: Shelf,
    what: Preparation,
    /// Of a session that is open: its name, and its hints or weights.
    open: Option<([u8; 16], Arc<Session>)>,
    /// The least number that is free here.
    next: u64,
}

impl Maker {
    /// For a new session, or the one that is open.
    pub fn new(family: &Heot, what: &Preparation) -> Result<Maker, JobError> {
        let (open, next) = match (what.session, &family.open) {
            (None, _) => (None, 0),
            (Some(session), Some(open)) if open.id == session => {
                let next = family.store.next_record(&session.0).map_err(HeotError::from)?;
                (Some((open.name, Arc::clone(&open.session))), Kind::next_run(next))
            }
            (Some(_), _) => return Err(JobError::NotOpen),
        };
        Ok(Maker {
            side: family.side,
            threads: family.links.config.node.thread_count(),
            chosen: family.links.config.deployment.parameters.clone(),
            id: family.session_id(what.session.unwrap_or(what.deal)),
            plan: family.plan.clone(),
            shelf: family.store.shelf().map_err(HeotError::from)?,
            what: *what,
            open,
            next,
        })
    }

    fn talk(&self, work: &mut Work<'_>) -> Result<u64, JobError> {
        let agreed = Agreed::among(work, self.id.party, self.next, self.what.amount.runs, CONTEXT)?;
        let name = match &self.open {
            Some((name, _)) => *name,
            None => agreed.derive("name of the session", &self.id, 0),
        };
        let file = SessionFile { id: self.id, checks: 0, keys: Zeroizing::new(name.to_vec()) };
        let indices: Vec<u64> = agreed
            .numbers
            .iter()
            .flat_map(|run| [Kind::Material, Kind::Masks].map(|k| k.index(*run)))
            .collect();
        let shelved = match &self.open {
            None => self.shelf.new_session(&file, indices.len() as u64),
            Some(_) => self.shelf.further_records(&file, &indices),
        };
        shelved.map_err(HeotError::from)?;
        let mut maker = self.begin(agreed.numbers.len(), work)?;
        let mut bytes = 0;
        for runs in agreed.numbers.chunks(TOGETHER) {
            for run in runs {
                bytes += self.material(&agreed, *run, &mut maker, work)?;
                work.progress.came();
            }
            if let Some((name, session)) = &self.open {
                let mut all = channels(work);
                let peer = all.first_mut().ok_or(JobError::OtherRequest)?;
                bytes += further_masks(&self.plan, (name, session), &self.shelf, &self.id, runs, *peer)?;
            }
        }
        Ok(bytes)
    }

    /// Begin the material of so many runs.
    fn begin(&self, runs: usize, work: &mut Work<'_>) -> Result<MaterialMaker, JobError> {
        let mut all = channels(work);
        let peer = all.first_mut().ok_or(JobError::OtherRequest)?;
        let link = link(&self.chosen, *peer)?;
        let maker = MaterialMaker::start(&self.plan, (self.side, link), self.threads, runs, *peer);
        Ok(maker.map_err(HeotError::from)?)
    }

    /// Makes the material of a run; gives its bytes.
    fn material(
        &self,
        agreed: &Agreed,
        run: u64,
        maker: &mut MaterialMaker,
        work: &mut Work<'_>,
    ) -> Result<u64, JobError> {
        let index = Kind::Material.index(run);
        // nothing follows from the seed: what transfers follow from is drawn afresh, and is not kept
        let seed = Seed::random();
        let header = Header { id: self.id.record(index), set: agreed.set(&self.id, index), seed };
        let mut record = Pending::new(&self.shelf, &header)?;
        let progress = work.progress.clone();
        let mut all = channels(work);
        let peer = all.first_mut().ok_or(JobError::OtherRequest)?;
        let keep = &mut |frame: &[u8]| record.counted(frame, &progress);
        maker.run(*peer, keep).map_err(HeotError::from)?;
        record.whole(all)
    }
}

impl Preparer for Maker {
    type Made = ();

    fn run(self, work: &mut Work<'_>) -> Result<Made<()>, JobError> {
        let runs = self.what.amount.runs;
        work.progress.expect(runs);
        // They talk from here on: nobody has anything to do alone.
        work.all_done()?;
        let made = self.talk(work);
        work.resume();
        let bytes = made?;
        let (runs, keys) = (Count::of(runs), Bytes::of(bytes));
        work.progress.emit(|job| Event::KeysStored { job, runs, keys });
        Ok(Made { key_bytes: bytes, made: () })
    }
}

/// Runs whose masks are made together: each has a file open.
pub(super) const TOGETHER: usize = 8;

/// The records of some runs' masks on their way to files. They are drawn when they are made, and kept for one run each.
pub(super) struct Masks(Vec<Pending>);

impl Masks {
    /// Of runs in the session of this name.
    pub fn of(name: &[u8; 16], shelf: &Shelf, id: &SessionId, runs: &[u64]) -> Result<Masks, JobError> {
        let begun = |run: &u64| {
            // nothing follows from the seed: masks are drawn afresh
            let (id, seed) = (id.record(Kind::Masks.index(*run)), Seed::random());
            Ok(Pending::new(shelf, &Header { id, set: masks_name(name, *run), seed })?)
        };
        Ok(Masks(runs.iter().map(begun).collect::<Result<_, JobError>>()?))
    }

    /// Have them made, run by run of each layer.
    pub fn kept<T>(&mut self, make: impl FnOnce(&mut [Keep<'_>]) -> T) -> T {
        let mut keeps: Vec<_> = self.0.iter_mut().map(|run| |frame: &[u8]| run.frame(frame)).collect();
        let mut keeps: Vec<Keep<'_>> = keeps.iter_mut().map(|keep| keep as Keep<'_>).collect();
        make(&mut keeps)
    }

    /// They get their names once the other party has the same; gives their bytes.
    pub fn whole(self, channel: &mut dyn Channel) -> Result<u64, JobError> {
        self.0.into_iter().map(|run| run.whole(vec![&mut *channel])).sum()
    }
}

/// Makes the masks of runs with the other party, in an open session of a name; gives their bytes.
pub(super) fn further_masks(
    plan: &Plan,
    (name, session): (&[u8; 16], &Session),
    shelf: &Shelf,
    id: &SessionId,
    runs: &[u64],
    channel: &mut dyn Channel,
) -> Result<u64, JobError> {
    let mut masks = Masks::of(name, shelf, id, runs)?;
    masks.kept(|keeps| session.make_masks(plan, channel, keeps)).map_err(HeotError::from)?;
    masks.whole(channel)
}

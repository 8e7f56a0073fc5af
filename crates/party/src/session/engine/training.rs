//! What a party does when a training begins, is resumed, or ends a step.

use super::{Engine, tell};
use crate::events::{ErrorKind, Event, JobEvents, Number, Why, reason};
use crate::session::control::{At, Id, Reply, Request, Talk, hear, say};
use crate::session::family::Family;
use crate::session::job::JobError;
use crate::session::kept::forget_old;
use crate::session::order::{Order, Start, Version};
use crate::session::owner::{Shared, states};
use crate::session::party::Caller;
use crate::session::peers::Others;
use crate::session::states::Training;
use privet_plan::Plan;
use privet_plan::ir::Op;
use std::collections::BTreeMap;

/// Most versions that a party is told of by another.
const MAX_VERSIONS: usize = 4096;

impl<F: Family> Engine<F> {
    /// The states that a run of `plan` reads, of which the callers named the step.
    pub(super) fn start_of(&self, plan: &Plan, from: Option<At>) -> Result<Option<Start>, JobError> {
        let reads = plan.nodes.iter().any(|n| matches!(n.op, Op::State { .. }));
        match (reads, from) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(JobError::NoStates),
            (true, None) => Err(JobError::NoStep),
            (true, Some(at)) => {
                let training = self.training.as_ref().ok_or(JobError::NoTraining)?;
                let held =
                    || training.versions().map(|v| v.step.to_string()).collect::<Vec<_>>().join(" and ");
                let start = training.start(at).ok_or_else(|| JobError::OtherStep {
                    wanted: at,
                    training: training.id(),
                    held: held(),
                })?;
                Ok(Some(start))
            }
        }
    }

    pub(super) fn plan_training(&self, checkpoint_every: u64, callers: &[Caller]) -> Result<Order, JobError> {
        self.consent_to_training(checkpoint_every, callers)?;
        let ids = callers.iter().map(|c| c.request.id()).collect();
        Ok(Order::BeginTraining { ids, training: Id::fresh(), checkpoint_every })
    }

    pub(super) fn consent_to_training(
        &self,
        checkpoint_every: u64,
        callers: &[Caller],
    ) -> Result<(), JobError> {
        self.complete(callers)?;
        for c in callers {
            match c.request {
                Request::BeginTraining { checkpoint_every: theirs, .. } if theirs == checkpoint_every => {}
                Request::BeginTraining { .. } => {
                    return Err(JobError::Differ {
                        first: callers[0].place.clone(),
                        second: c.place.clone(),
                        what: "how many steps there are from one checkpoint to the next".into(),
                    });
                }
                _ => return Err(JobError::OtherRequest),
            }
        }
        Ok(())
    }

    pub(super) fn consent_to_resuming(&self, training: Id, callers: &[Caller]) -> Result<(), JobError> {
        self.complete(callers)?;
        match callers {
            [Caller { request: Request::Resume { training: theirs, .. }, .. }] if *theirs == training => {
                Ok(())
            }
            _ => Err(JobError::OtherRequest),
        }
    }

    pub(super) fn begin_training(
        &mut self,
        id: Id,
        checkpoint_every: u64,
        callers: &mut [Caller],
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        let Some(served) = self.plans.values().next() else { return Err(JobError::NoStates) };
        let tensors = self.receive(&served.family, Shared::States, &states(&self.program), callers)?;
        let (states, version) = (served.family.hold(tensors), Version::first(id));
        served.family.compare(&self.program, &context(id, version), &states, others)?;
        self.training = Some(Training::at(id, checkpoint_every, version, states));
        job.emit(|job| Event::TrainingBegan { job, training: id.into() });
        self.write_checkpoint(job)?;
        self.forget_old_trainings(job);
        tell(callers, &Reply::Training { at: At { training: id, step: 0 } })
    }

    /// The run of `order` ended well: take its updates over, and write a checkpoint if one is due. Gives the states' step.
    pub(super) fn replace(
        &mut self,
        order: &Order,
        plan: &Plan,
        start: &Start,
        updates: F::States,
        job: &JobEvents,
    ) -> Result<At, JobError> {
        let Some(training) = &mut self.training else { return Err(JobError::NoTraining) };
        if plan.updates.is_empty() {
            return Ok(At { training: start.training, step: start.version.step });
        }
        training.replace(start, order, updates);
        let at = training.step();
        if let Err(e) = self.write_checkpoint(job) {
            // The step did not end well here: every party has a checkpoint of each step that is due, or is not past it.
            self.training.iter_mut().for_each(|training| training.go_back(start.version));
            return Err(e);
        }
        Ok(at)
    }

    fn write_checkpoint(&mut self, job: &JobEvents) -> Result<(), JobError> {
        let (Some(training), Some(served)) = (&mut self.training, self.plans.values().next()) else {
            return Ok(());
        };
        if !training.due() {
            return Ok(());
        }
        let shares = served.family.save(&self.program, training.states())?;
        let (id, version, every) = (training.id(), training.version(), training.checkpoint_every);
        self.checkpoints.write(id, version, every, &shares, training.kept_checkpoint())?;
        training.checkpoint_written();
        let at = training.step();
        let (training, step) = (at.training.into(), Number::of(at.step));
        job.emit(|job| Event::CheckpointWritten { job, training, step });
        Ok(())
    }

    /// A training has begun and has its first checkpoint: those of old ones go. What cannot be removed does no harm.
    fn forget_old_trainings(&self, job: &JobEvents) {
        let Some(training) = self.training.as_ref().filter(|t| t.checkpoint_every > 0) else { return };
        let node = &self.links.config.node;
        match forget_old(&node.checkpoints, training.id(), node.checkpoints_kept) {
            Ok(removed) => removed
                .into_iter()
                .for_each(|id| job.emit(|job| Event::CheckpointsRemoved { job, training: id.into() })),
            Err(e) => {
                let reason = reason!("system.files", "{kind}", kind = ErrorKind::from(&e));
                job.emit(|job| Event::CheckpointsLeft { job, reason });
            }
        }
    }

    /// Go on at the last version that all parties have. They tell each other what they have, and every one of them takes
    /// the same: versions that one party does not have, or has only in a file that was refused, do not count.
    pub(super) fn resume(
        &mut self,
        id: Id,
        callers: &mut [Caller],
        others: &mut Others,
        job: &JobEvents,
    ) -> Result<(), JobError> {
        let (files, refused) = self.checkpoints.list(id);
        for e in &refused {
            job.emit(|job| Event::CheckpointRefused { job, file: e.file(), reason: e.why() });
        }
        let every: BTreeMap<Version, u64> = files.iter().map(|h| (h.version, h.checkpoint_every)).collect();
        let in_memory = self.training.as_ref().filter(|t| t.id() == id);
        let memory: Vec<Version> = in_memory.into_iter().flat_map(Training::versions).collect();
        let mut ours: Vec<Version> = every.keys().chain(&memory).copied().collect();
        ours.sort();
        ours.dedup();

        let theirs = self.tell_versions(&ours, others)?;
        let common = ours.iter().rev().find(|v| theirs.values().all(|t| t.contains(v)));
        let Some(&version) = common else {
            let all = theirs.into_iter().chain([(self.party, ours)]).collect::<BTreeMap<_, _>>();
            let refused = refused.iter().map(|e| format!("; {e}")).collect();
            return Err(JobError::NoCommonStep { training: id, have: listed(&all), refused });
        };
        if memory.contains(&version) {
            if let Some(training) = &mut self.training {
                training.go_back(version);
            }
        } else {
            let every = every.get(&version).copied().unwrap_or(0);
            self.training = Some(self.restored(id, version, every)?);
        }
        let (Some(training), Some(served)) = (&self.training, self.plans.values().next()) else {
            return Err(JobError::NoTraining);
        };
        let at = training.step();
        let fit = served.family.compare(&self.program, &context(id, version), training.states(), others);
        if let Err(e) = fit {
            // Shares that do not belong together are of no use to anybody.
            self.training = None;
            return Err(e);
        }
        let (training, step) = (at.training.into(), Number::of(at.step));
        job.emit(|job| Event::TrainingResumed { job, training, step });
        tell(callers, &Reply::Training { at })
    }

    fn restored(&self, id: Id, version: Version, every: u64) -> Result<Training<F::States>, JobError> {
        let Some(served) = self.plans.values().next() else { return Err(JobError::NoStates) };
        let found = self.checkpoints.read(id, version)?;
        let states = served.family.restore(&self.program, &found.shares);
        let states = states.map_err(JobError::Restore)?;
        let mut training = Training::at(id, every, version, states);
        training.checkpoint_written();
        Ok(training)
    }

    /// Tell all others what this party has, and hear what they have.
    fn tell_versions(
        &self,
        ours: &[Version],
        others: &mut Others,
    ) -> Result<BTreeMap<u8, Vec<Version>>, JobError> {
        let parties = others.parties();
        for &party in &parties {
            say(others.to(party)?, Talk::Digest, &ours)?;
        }
        let mut theirs = BTreeMap::new();
        for party in parties {
            let mut versions: Vec<Version> = hear(others.to(party)?, Talk::Digest)?;
            versions.truncate(MAX_VERSIONS);
            theirs.insert(party, versions);
        }
        Ok(theirs)
    }
}

/// What the parties compare beside their shares: which states they are.
fn context(training: Id, version: Version) -> Vec<u8> {
    [&training.0[..], &version.step.to_le_bytes(), &version.trail.0].concat()
}

fn listed(all: &BTreeMap<u8, Vec<Version>>) -> String {
    let of = |(party, versions): (&u8, &Vec<Version>)| {
        let steps: Vec<String> = versions.iter().map(|v| v.step.to_string()).collect();
        match steps[..] {
            [] => format!("party {party} has none"),
            _ => format!("party {party} has {}", steps.join(", ")),
        }
    };
    all.iter().map(of).collect::<Vec<_>>().join("; ")
}

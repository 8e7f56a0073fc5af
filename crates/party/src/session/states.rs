//! The states of a training at one party: which it has, and how a run replaces them.
//!
//! All parties replace their states or none does, without another message to say so. A run is ordered from one version of
//! the states, and begins only when every party has consented, which it does only if it holds that version. After the run
//! every party holds it still, beside the next one where the run ended well. So whatever fails at whichever party, all of
//! them hold the version that the run started from, and the next order may name it again. Callers say which step they start
//! from, so no party decides it.

use super::control::{At, Id};
use super::family::Held;
use super::order::{Order, Start, Version};

/// A training under way.
pub(super) struct Training<S> {
    id: Id,
    /// Steps from one checkpoint to the next; 0 for none.
    pub checkpoint_every: u64,
    /// The checkpoints that are kept: of the newest step, and the one before it.
    written: Vec<Version>,
    now: (Version, S),
    /// Those that the last step started from.
    before: Option<(Version, S)>,
}

impl<S: Held> Training<S> {
    /// At a version of its states: the first, or one that was restored.
    pub fn at(id: Id, checkpoint_every: u64, version: Version, states: S) -> Training<S> {
        Training { id, checkpoint_every, written: Vec::new(), now: (version, states), before: None }
    }

    /// Its name.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The newest states' version.
    pub fn version(&self) -> Version {
        self.now.0
    }

    /// The newest states.
    pub fn states(&self) -> &S {
        &self.now.1
    }

    /// The step that it is at, as clients are told.
    pub fn step(&self) -> At {
        At { training: self.id, step: self.now.0.step }
    }

    /// What it holds, the newest first.
    pub fn versions(&self) -> impl Iterator<Item = Version> {
        self.held().map(|(version, _)| *version)
    }

    fn held(&self) -> impl Iterator<Item = &(Version, S)> {
        std::iter::once(&self.now).chain(&self.before)
    }

    /// Which of its states a client means by a step.
    pub fn start(&self, at: At) -> Option<Start> {
        let version = self.versions().find(|v| v.step == at.step && at.training == self.id)?;
        Some(Start { training: self.id, version })
    }

    /// The states that a run starts from.
    pub fn get(&self, start: &Start) -> Option<&S> {
        let held = self.held().find(|(version, _)| *version == start.version && start.training == self.id);
        held.map(|(_, states)| states)
    }

    /// Go back to a version that it holds. What came after it is gone.
    pub fn go_back(&mut self, version: Version) {
        if self.now.0 != version
            && let Some(before) = self.before.take_if(|(v, _)| *v == version)
        {
            self.now = before;
        }
    }

    /// The run of `order` from `start` ended well: `updates` replace states of the same names. The states that it started
    /// from are kept until the next one ends well.
    pub fn replace(&mut self, start: &Start, order: &Order, updates: S) {
        let Some(states) = self.get(start) else { return };
        let mut next = states.clone();
        next.replace(updates);
        self.go_back(start.version);
        let before = std::mem::replace(&mut self.now, (start.version.after(order), next));
        self.before = Some(before);
    }

    /// The checkpoint to be kept beside one of the newest states: the last of an earlier step. Another party may have been
    /// stopped before it wrote one of this step, even where this party writes it for the second time.
    pub fn kept_checkpoint(&self) -> Option<Version> {
        self.written.iter().copied().filter(|v| v.step < self.now.0.step).max_by_key(|v| v.step)
    }

    /// There is a checkpoint of the newest states.
    pub fn checkpoint_written(&mut self) {
        self.written = self.kept_checkpoint().into_iter().chain([self.now.0]).collect();
    }

    /// Whether a checkpoint is due.
    pub fn due(&self) -> bool {
        self.checkpoint_every > 0 && self.now.0.step.is_multiple_of(self.checkpoint_every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Default, PartialEq, Debug)]
    struct Numbers(BTreeMap<&'static str, u64>);

    impl Held for Numbers {
        fn replace(&mut self, mut updates: Numbers) {
            self.0.append(&mut updates.0);
        }
    }

    fn numbers(a: u64, b: u64) -> Numbers {
        Numbers([("a", a), ("b", b)].into())
    }

    fn order(index: u64, from: Start) -> Order {
        let (session, ids) = (Id([5; 16]), vec![]);
        Order::Run { ids, plan: "train".into(), session, index, from: Some(from), publics: BTreeMap::new() }
    }

    /// One step that sets b; gives where it started.
    fn step(training: &mut Training<Numbers>, step: u64, index: u64, b: u64) -> Start {
        let start = training.start(At { training: training.id(), step }).unwrap();
        training.replace(&start, &order(index, start), Numbers([("b", b)].into()));
        start
    }

    #[test]
    fn steps_replace_what_they_update_and_the_last_one_can_be_done_again() {
        let id = Id([1; 16]);
        let mut training = Training::at(id, 2, Version::first(id), numbers(10, 20));
        assert!(training.due());
        let first = step(&mut training, 0, 0, 21);
        assert_eq!((training.step().step, training.states()), (1, &numbers(10, 21)));
        assert!(!training.due());
        let abandoned = training.version();
        // Another party failed in that step: it is done again, with other randomness, by another order.
        step(&mut training, 0, 1, 22);
        assert_eq!((training.step().step, training.states()), (1, &numbers(10, 22)));
        assert_ne!(training.version(), abandoned);
        let gone = Start { training: id, version: abandoned };
        assert!(training.get(&gone).is_none(), "two parties would go on from different first steps");
        step(&mut training, 1, 2, 23);
        assert!(training.due());
        assert_eq!(training.versions().map(|v| v.step).collect::<Vec<_>>(), [2, 1]);
        assert!(training.get(&first).is_none() && training.start(At { training: id, step: 0 }).is_none());
        let other = At { training: Id([2; 16]), step: 2 };
        assert!(training.start(other).is_none(), "a step of another training");
    }

    #[test]
    fn trails_tell_histories_apart() {
        let id = Id([1; 16]);
        let start = Start { training: id, version: Version::first(id) };
        let next = start.version.after(&order(4, start));
        assert_eq!((next, next.step), (start.version.after(&order(4, start)), 1));
        assert_ne!(next.trail, start.version.after(&order(5, start)).trail);
        let later = next.after(&order(5, start));
        assert_ne!(later.trail, start.version.after(&order(5, start)).trail);
    }

    #[test]
    fn a_checkpoint_that_is_written_again_does_not_push_out_the_one_before() {
        let id = Id([1; 16]);
        let mut training = Training::at(id, 1, Version::first(id), numbers(1, 2));
        assert_eq!(training.kept_checkpoint(), None);
        training.checkpoint_written();
        for index in 0..3 {
            step(&mut training, 0, index, index);
            assert_eq!(training.kept_checkpoint(), Some(Version::first(id)), "attempt {index}");
            training.checkpoint_written();
        }
        let first = training.version();
        step(&mut training, 1, 7, 4);
        assert_eq!(training.kept_checkpoint(), Some(first));
    }

    #[test]
    fn going_back_forgets_what_came_after() {
        let id = Id([1; 16]);
        let mut training = Training::at(id, 0, Version::first(id), numbers(1, 2));
        let start = step(&mut training, 0, 0, 3);
        training.go_back(start.version);
        assert_eq!(training.versions().collect::<Vec<_>>(), [start.version]);
        training.go_back(Version { step: 9, trail: id });
        assert_eq!(training.states(), &numbers(1, 2));
        assert!(!training.due(), "no checkpoints were asked for");
    }
}

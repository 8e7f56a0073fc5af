//! Hints at a plan's weights, made once in a process and shared by all its sessions with the plan, whoever the client is.

use super::HeotError;
use crate::events::{Bytes, Count, Event, Events, Name};
use privet_heot::{Hints, Link, PackingAim, Spool, Weights, packed_for};
use privet_plan::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Hints that memory does not hold rest in a store's folder, in a file that has no name: it is gone with the process.
pub(super) fn spool(store: &Path) -> Spool {
    let store = store.to_owned();
    Spool::new(move || tempfile::tempfile_in(&store))
}

/// A plan's hints at the server.
pub(super) struct Pool {
    plan: Arc<Plan>,
    threads: usize,
    /// Where hints rest.
    store: PathBuf,
    events: Events,
    weights: OnceLock<Arc<Weights>>,
    /// By packing, and whether it was said that a set is whole.
    sets: Mutex<BTreeMap<PackingAim, (Arc<Hints>, bool)>>,
}

impl Pool {
    /// Without weights, and so without hints.
    pub fn new(plan: Arc<Plan>, threads: usize, store: &Path, events: Events) -> Pool {
        Pool {
            plan,
            threads,
            store: store.to_owned(),
            events,
            weights: OnceLock::new(),
            sets: Mutex::default(),
        }
    }

    /// Whether it has the weights; once it has, it keeps them.
    pub fn has_weights(&self) -> bool {
        self.weights.get().is_some()
    }

    /// Take the weights in, by name in the rings of their nodes. Those that are there already stay; then none are given.
    pub fn give(&self, weights: BTreeMap<String, Vec<u64>>) -> Result<(), HeotError> {
        if !self.has_weights() {
            let weights = Weights::new(&self.plan, weights)?;
            // of two who give them at a time the first counts: both read the same file
            let _ = self.weights.set(Arc::new(weights));
        }
        Ok(())
    }

    /// Hints for a session that begins with so many runs prepared: those that are there, where they serve as many still. Each layer's is
    /// made by the session that first comes to it, and others wait for that.
    pub fn hints(&self, runs: usize, link: Link) -> Result<Arc<Hints>, HeotError> {
        let weights = self.weights.get().ok_or(HeotError::NoWeights)?;
        let packing = PackingAim { runs: packed_for(runs), link };
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((hints, _)) = sets.get(&packing).filter(|(hints, _)| hints.runs_left() >= runs as u64) {
            return Ok(Arc::clone(hints));
        }
        let new =
            Arc::new(Hints::new(&self.plan, Arc::clone(weights), packing, self.threads, spool(&self.store)));
        sets.insert(packing, (Arc::clone(&new), false));
        Ok(new)
    }

    /// A session has all of these hints: what is said of a set, once.
    pub fn whole(&self, hints: &Arc<Hints>) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let said = sets.values_mut().find(|(set, said)| Arc::ptr_eq(set, hints) && !said);
        if let Some((_, said)) = said {
            *said = true;
            let (plan, bytes) = (Name::of(&self.plan.name), Bytes::of(hints.bytes()));
            let (runs, serves) = (Count::of(hints.packed_for().runs as u64), Count::of(hints.runs_left()));
            self.events.emit(Event::HintsMade { plan, runs, bytes, serves });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::recorded;
    use privet_heot::PACKED_FOR;
    use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type};

    fn plan(outputs: usize) -> Plan {
        let node = |op, inputs: &[usize], shape: &[usize], frac| Node {
            op,
            inputs: inputs.to_vec(),
            ty: Type { shape: shape.to_vec(), bits: 37, frac },
            layer: "fc".into(),
            form: None,
        };
        let nodes = vec![
            node(Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 8.0 }, &[], &[1, 2], 12),
            node(Op::Weight { name: "w".into(), owner: "model_owner".into() }, &[], &[outputs, 2], 12),
            node(Op::Linear, &[0, 1], &[1, outputs], 24),
        ];
        let outputs = vec![Output { value: 2, name: "y".into(), to: "receiver".into() }];
        Plan { version: PLAN_VERSION, name: "pooled".into(), batch: 1, nodes, outputs, updates: vec![] }
    }

    fn pool(seen: &Events) -> Pool {
        let pool = Pool::new(Arc::new(plan(3)), 1, &std::env::temp_dir(), seen.clone());
        pool.give(BTreeMap::from([("w".to_owned(), vec![1; 6])])).unwrap();
        pool
    }

    #[test]
    fn hints_are_made_once_for_a_packing_however_many_ask_at_once() {
        let (events, seen) = recorded();
        let pool = pool(&events);
        let ask = |runs| {
            let hints = pool.hints(runs, Link::Near).unwrap();
            pool.whole(&hints);
            hints
        };
        let all: Vec<Arc<Hints>> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|i| scope.spawn(move || ask([4, 10, 31][i % 3]))).collect();
            asking.into_iter().map(|asks| asks.join().unwrap()).collect()
        });
        assert!(all.iter().all(|hints| Arc::ptr_eq(hints, &all[0]) && hints.packed_for().runs == 10));
        for (runs, packing) in [(1, 1), (3, 1), (4, 10), (32, 100), (1 << 20, 100)] {
            assert_eq!(ask(runs).packed_for().runs, packing, "{runs} runs");
        }
        assert_eq!(seen.lock().unwrap().len(), PACKED_FOR.len(), "one event a set");
    }

    #[test]
    fn a_session_gets_hints_that_serve_what_it_has_prepared() {
        let pool = pool(&Events::unheard());
        let first = pool.hints(100, Link::Near).unwrap();
        let whole = first.runs_left();
        assert!(
            Arc::ptr_eq(&first, &pool.hints(usize::try_from(whole).unwrap(), Link::Near).unwrap()),
            "just enough"
        );
        let beyond = pool.hints(usize::try_from(whole).unwrap() + 1, Link::Near).unwrap();
        assert!(!Arc::ptr_eq(&first, &beyond), "one run more than they serve");
    }

    #[test]
    fn without_weights_there_are_no_hints() {
        let pool = Pool::new(Arc::new(plan(3)), 1, &std::env::temp_dir(), Events::unheard());
        assert!(!pool.has_weights() && pool.hints(1, Link::Near).is_err());
        let two = BTreeMap::from([("w".to_owned(), vec![1; 2])]);
        assert!(pool.give(two).unwrap_err().to_string().contains("was not given"));
        assert!(!pool.has_weights());
    }
}

//! What a dealer remembers of the sessions that it dealt: enough to deal further records of them, and no more.

use super::{Deals, Session, SessionSeed};
use crate::session::control::Id;
use privet_kernels::Device;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions of which more records can be dealt, those that were dealt for last. Parties extend the one that is open, and know few
/// that are not; of a session that is forgotten they ask for a new one, as after a restart of the dealer.
const MOST: usize = 1024;

/// A session shared between the dealer's connections.
pub type SharedSession<D> = Arc<Session<D>>;

struct Sessions<D> {
    /// In the order in which they were last dealt for.
    seeds: VecDeque<SessionSeed>,
    /// Of each plan, the last one with the masks of its weights, which take as much memory as the weights. Others' are made again.
    ready: BTreeMap<[u8; 32], SharedSession<D>>,
}

/// The sessions of a dealer, whose secrets are here alone.
pub struct Known<D> {
    device: Arc<dyn Device>,
    sessions: Mutex<Sessions<D>>,
}

impl<D: Deals> Known<D> {
    /// None yet.
    pub fn new(device: Arc<dyn Device>) -> Known<D> {
        let (seeds, ready) = (VecDeque::new(), BTreeMap::new());
        Known { device, sessions: Mutex::new(Sessions { seeds, ready }) }
    }

    /// Remember a session that was, or is to be, dealt for; it comes before all others.
    pub fn keep(&self, session: Session<D>) -> SharedSession<D> {
        let session = Arc::new(session);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.seeds.retain(|seed| seed.name() != session.session);
        sessions.seeds.push_back(session.seed());
        if sessions.seeds.len() > MOST {
            sessions.seeds.pop_front();
        }
        sessions.ready.insert(*session.plan_hash(), session.clone());
        session
    }

    /// A session of a plan, if it is remembered.
    pub fn find(&self, id: Id, plan: &[u8; 32]) -> Option<SharedSession<D>> {
        let seed = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let ready = sessions.ready.get(plan).filter(|s| s.session == id.0).cloned();
            if ready.is_some() {
                return ready;
            }
            sessions.seeds.iter().find(|s| s.name() == id.0).cloned()?
        };
        // Outside the lock: making masks of many weights takes a while.
        let session = seed.session(self.device.clone());
        (session.plan_hash() == plan).then(|| self.keep(session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::family::fss::deal::FssDealer;
    use privet_plan::Plan;
    use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type};

    fn plan(name: &str) -> Arc<Plan> {
        let ty = Type { shape: vec![2], bits: 64, frac: 12 };
        let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 8.0 };
        let nodes = vec![Node { op, inputs: vec![], ty, layer: String::new(), form: None }];
        let outputs = vec![Output { value: 0, name: "y".into(), to: "receiver".into() }];
        Arc::new(Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs, updates: vec![] })
    }

    fn new(known: &Known<FssDealer>, plan: &Arc<Plan>) -> Id {
        Id(known.keep(Session::new(2, plan.clone(), privet_kernels::cpu(1))).session)
    }

    #[test]
    fn a_session_that_others_came_between_goes_on_where_it_was() {
        let known = Known::new(privet_kernels::cpu(1));
        let (train, other) = (plan("train"), plan("other"));
        let first = new(&known, &train);
        let held = known.find(first, &train.hash()).unwrap();
        assert_eq!(held.take_indices(3), [0, 1, 2]);
        new(&known, &train);
        new(&known, &other);
        // Made again from its seed, while a deal of it is still under way: no number is given twice.
        let again = known.find(first, &train.hash()).unwrap();
        assert!(!Arc::ptr_eq(&held, &again));
        assert_eq!(
            (again.take_indices(2), held.take_indices(1), again.take_indices(1)),
            (vec![3, 4], vec![5], vec![6])
        );
        assert_eq!(
            again.files().iter().map(|f| f.encode()).collect::<Vec<_>>(),
            held.files().iter().map(|f| f.encode()).collect::<Vec<_>>()
        );
        assert!(Arc::ptr_eq(&again, &known.find(first, &train.hash()).unwrap()), "it is ready now");
        assert!(known.find(first, &other.hash()).is_none(), "of another plan");
        assert!(known.find(Id([7; 16]), &train.hash()).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let known = Known::new(privet_kernels::cpu(1));
        let plans = [plan("train"), plan("evaluate")];
        let all: Vec<Id> = (0..MOST).map(|i| new(&known, &plans[i % 2])).collect();
        // Asked for again, the first one is the newest.
        assert!(known.find(all[0], &plans[0].hash()).is_some());
        let more: Vec<Id> = (0..10).map(|i| new(&known, &plans[i % 2])).collect();
        let there = |i: usize| known.find(all[i], &plans[i % 2].hash()).is_some();
        assert!(there(0) && (1..=10).all(|i| !there(i)) && (11..MOST).all(there));
        assert!(more.iter().enumerate().all(|(i, id)| known.find(*id, &plans[i % 2].hash()).is_some()));
        let sessions = known.sessions.lock().unwrap();
        assert_eq!((sessions.seeds.len(), sessions.ready.len()), (MOST, 2));
    }
}

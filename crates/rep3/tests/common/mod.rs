//! One run over in-memory channels: owners, three parties and a receiver, with a hand on every channel.
#![allow(dead_code, reason = "every test uses a part")]

pub mod attacks;
pub mod cheat;
pub mod small;

use privet_kernels::{Device, cpu};
use privet_net::mem::{self, MemChannel, MemOptions};
use privet_net::{Channel, Meter, NetError, Step};
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::suite::Operands;
use privet_prg::{Domain, Seed};
use privet_rep3::{
    Evaluator, Given, Keys, Outcome, Party, PartyId, Portion, Revealed, RunError, Security, Share,
    SharedWeights, States, run_coins,
};
use privet_ring::Ring;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the parties hold before a run's first step.
pub struct World {
    pub plan: Plan,
    pub security: Security,
    pub device: Arc<dyn Device>,
    pub keys: [Keys; 3],
    pub inputs: [HashMap<ValueId, Share>; 3],
    pub weights: [BTreeMap<String, Share>; 3],
    pub states: [States; 3],
    pub publics: BTreeMap<String, u64>,
}

/// The channels of every party: to the one before, to the one after.
pub type Ends = [(Box<dyn Channel>, Box<dyn Channel>); 3];

/// Fixed by `seed`, as a session would agree on them.
pub fn keys(seed: &Seed) -> [Keys; 3] {
    let key = |id: PartyId| seed.derive(Domain::Pair, id.index() as u64);
    PartyId::ALL.map(|id| Keys { own: key(id), next: key(id.next()), common: seed.derive(Domain::Common, 0) })
}

/// The key of the coins of a run with these keys.
pub fn coins_of(keys: &[Keys; 3]) -> Seed {
    run_coins(keys.each_ref().map(|keys| &keys.own))
}

/// Keys of one use of a session's, at all parties.
pub fn derived(keys: &[Keys; 3], index: u64) -> [Keys; 3] {
    keys.each_ref().map(|keys| keys.derive(index))
}

impl World {
    /// Share the operands; everything random is derived from `seed`.
    pub fn new(plan: &Plan, security: Security, [inputs, weights]: &[Operands; 2], seed: &Seed) -> World {
        let mut world = World {
            plan: plan.clone(),
            security,
            device: cpu(1),
            keys: keys(&seed.derive(Domain::Session, 0)),
            inputs: Default::default(),
            weights: Default::default(),
            states: Default::default(),
            publics: BTreeMap::new(),
        };
        for (v, node) in plan.nodes.iter().enumerate() {
            let tensor = match &node.op {
                Op::Input { name, .. } => &inputs[name],
                Op::Weight { name, .. } | Op::State { name, .. } => &weights[name],
                Op::Public { name, .. } => {
                    world.publics.insert(name.clone(), inputs[name].data()[0]);
                    continue;
                }
                _ => continue,
            };
            let ring = Ring::new(node.ty.bits);
            let seeds = [0, 1].map(|i| seed.derive(Domain::Mask, 2 * v as u64 + i));
            for (i, portion) in Portion::from_seeds(ring, tensor.data(), seeds).into_iter().enumerate() {
                let share = portion.expand(ring, tensor.len());
                match &node.op {
                    Op::Input { .. } => drop(world.inputs[i].insert(v, share)),
                    Op::Weight { name, .. } => drop(world.weights[i].insert(name.clone(), share)),
                    Op::State { name, .. } => drop(world.states[i].insert(name.clone(), share)),
                    _ => {}
                }
            }
        }
        world
    }

    /// Party `id` to the end of the plan.
    pub fn evaluate(
        &self,
        id: PartyId,
        prev: &mut dyn Channel,
        next: &mut dyn Channel,
    ) -> Result<Outcome, RunError> {
        let (i, device) = (id.index(), self.device.as_ref());
        let weights = SharedWeights::new(&self.plan, device, id, self.weights[i].clone())?;
        let mut cx = Party::new(id, self.security, device, self.keys[i].derive(0), prev, next);
        let given = Given {
            inputs: self.inputs[i].clone(),
            states: self.states[i].clone(),
            publics: self.publics.clone(),
        };
        Evaluator::new(&self.plan, &weights).run(&mut cx, given, &mut |_| {})
    }

    /// All parties, each in a thread; its channels are dropped when it is done.
    pub fn run(&self, ends: Ends) -> [Result<Outcome, RunError>; 3] {
        parties(ends, |id, prev, next| self.evaluate(id, prev, next))
    }

    /// What each party sends in a sound run.
    pub fn transcript(&self) -> [Vec<Sent>; 3] {
        let (ends, logs) = recorded(sound());
        self.run(ends).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        logs.map(|log| std::mem::take(&mut *log.lock().unwrap()))
    }

    /// The outputs as a receiver puts them together.
    pub fn outputs(&self, outcomes: [&Outcome; 3]) -> Vec<Vec<u64>> {
        let outputs = self.plan.outputs.iter().enumerate();
        outputs
            .map(|(i, o)| {
                let ring = Ring::new(self.plan.nodes[o.value].ty.bits);
                Revealed::combine(ring, outcomes.map(|y| Revealed::of(&y.outputs[i]))).unwrap()
            })
            .collect()
    }
}

/// The values of the states that a run updated, by name; fails unless the holders of every component agree.
pub fn updated(plan: &Plan, outcomes: [&Outcome; 3]) -> BTreeMap<String, Vec<u64>> {
    let mut values = BTreeMap::new();
    for node in &plan.nodes {
        let Op::State { name, .. } = &node.op else { continue };
        let shares = outcomes.map(|y| y.states.get(name));
        if let [Some(a), Some(b), Some(c)] = shares {
            let parts = [a, b, c].map(Revealed::of);
            values.insert(name.clone(), Revealed::combine(Ring::new(node.ty.bits), parts).unwrap());
        }
    }
    assert!(outcomes.iter().all(|y| y.states.len() == values.len()), "states of nobody, or of some");
    values
}

/// The same program at every party, each in a thread.
pub fn parties<T: Send>(
    ends: Ends,
    program: impl Fn(PartyId, &mut dyn Channel, &mut dyn Channel) -> T + Sync,
) -> [T; 3] {
    std::thread::scope(|scope| {
        let program = &program;
        let threads: Vec<_> = PartyId::ALL
            .into_iter()
            .zip(ends)
            .map(|(id, (prev, next))| {
                scope.spawn(move || {
                    let (mut prev, mut next) = (prev, next);
                    program(id, prev.as_mut(), next.as_mut())
                })
            })
            .collect();
        let results: Vec<T> = threads.into_iter().map(|t| t.join().expect("a party panicked")).collect();
        results.try_into().unwrap_or_else(|_| unreachable!("three threads"))
    })
}

/// Channels between all parties: `pairs[j]` has the ends of parties j and j + 1.
pub fn pairs(patience: Duration) -> [(MemChannel, MemChannel); 3] {
    PartyId::ALL.map(|id| {
        let options = |id: PartyId| MemOptions { patience, ..MemOptions::named(id.to_string()) };
        mem::pair_with(options(id), options(id.next()))
    })
}

/// To every party its ends.
pub fn ends(pairs: [(MemChannel, MemChannel); 3]) -> Ends {
    let [(a0, a1), (b1, b2), (c2, c0)] = pairs;
    [(Box::new(c0), Box::new(a0)), (Box::new(a1), Box::new(b1)), (Box::new(b2), Box::new(c2))]
}

/// Sound channels.
pub fn sound() -> Ends {
    ends(pairs(Duration::from_secs(60)))
}

/// A message that a party sent.
#[derive(Clone)]
pub struct Sent {
    pub step: Step,
    pub to: PartyId,
    pub bytes: Vec<u8>,
}

/// What a party sent, in order.
pub type Log = Arc<Mutex<Vec<Sent>>>;

/// A channel that remembers what went out.
pub struct Recorder {
    pub inner: Box<dyn Channel>,
    pub to: PartyId,
    pub log: Log,
}

impl Channel for Recorder {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        let sent = Sent { step: step.clone(), to: self.to, bytes: payload.clone() };
        self.log.lock().unwrap().push(sent);
        self.inner.send(step, payload)
    }
    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        self.inner.recv(step, len)
    }
    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        self.inner.recv_up_to(step, max)
    }
    fn peer(&self) -> &str {
        self.inner.peer()
    }
    fn meter(&self) -> Arc<Meter> {
        self.inner.meter()
    }
    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
    fn sever(&mut self) {
        self.inner.sever();
    }
}

/// Channels that remember, and what each party sent.
pub fn recorded(ends: Ends) -> (Ends, [Log; 3]) {
    let logs: [Log; 3] = Default::default();
    let mut parties = PartyId::ALL.into_iter().zip(&logs);
    let ends = ends.map(|(prev, next)| {
        let (id, log) = parties.next().unwrap();
        let record = |inner, to| Box::new(Recorder { inner, to, log: log.clone() }) as Box<dyn Channel>;
        (record(prev, id.prev()), record(next, id.next()))
    });
    (ends, logs)
}

/// `work` on every number below `n`, by so many threads.
pub fn spread(n: usize, threads: usize, work: impl Fn(usize) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    work(i);
                }
            });
        }
    });
}

//! One run over in-memory channels: owners, three parties and a receiver, with a hand on every channel.
#![allow(dead_code, reason = "every test uses a part")]

pub mod cheat;
pub mod small;

use privet_kernels::{Device, cpu};
use privet_net::Channel;
use privet_plan::Coins;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::suite::Operands;
use privet_prg::{Domain, Seed};
use privet_rep3::{
    Evaluator, Given, Keys, Outcome, Party, PartyId, Portion, Revealed, RunError, Security, Share,
    SharedWeights, States, dropout_coins, hidden_coins, masked_block, rounding_coins, run_coins,
};
use privet_ring::Ring;
use privet_testkit::{Mesh, Sent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    /// From so few bytes of statements on they are verified beside the protocol, where it is not what a party does by itself.
    pub beside: Option<u64>,
    /// From so few elements on results of layers with tags are combined ahead of the verification, likewise.
    pub ahead: Option<usize>,
}

/// Fixed by `seed`, as a session would agree on them.
pub fn keys(seed: &Seed) -> [Keys; 3] {
    let key = |id: PartyId| seed.derive(Domain::Pair, id.index() as u64);
    PartyId::ALL.map(|id| Keys { own: key(id), next: key(id.next()), common: seed.derive(Domain::Common, 0) })
}

/// The key of the coins of a run with these keys.
pub fn coins_of(keys: &[Keys; 3]) -> Seed {
    run_coins(keys.each_ref().map(|keys| &keys.own))
}

/// The coins of a run of a plan with these keys, for the interpreter.
pub struct Common<'a>(pub &'a Plan, pub Security, pub [Keys; 3]);

impl Common<'_> {
    /// How many functions of a masked value are dealt at a node, if its coins are hidden from the dealer.
    fn dealt(&self, node: ValueId) -> Option<usize> {
        let node = &self.0.nodes[node];
        match &node.op {
            Op::Waves { waves, .. } => Some(2 * waves.len()),
            Op::Exponential { .. } if self.1 == Security::SemiHonest => {
                let x = &self.0.nodes[node.inputs[0]].ty;
                Some(1 << (x.bits - x.frac))
            }
            _ => None,
        }
    }
}

impl Coins for Common<'_> {
    fn draw(&mut self, node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        let terms = self.dealt(node);
        let Common(plan, _, keys) = self;
        let Some(terms) = terms else {
            return Some(rounding_coins(&coins_of(keys), node, shift, count));
        };
        let bits = plan.nodes[plan.nodes[node].inputs[0]].ty.bits;
        let pairs = keys.each_ref().map(|keys| &keys.own);
        let mut coins = hidden_coins(pairs, node, bits, count, masked_block(terms));
        coins.iter_mut().for_each(|d| *d = Ring::new(shift).wrap(*d));
        Some(coins)
    }
    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some(dropout_coins(&coins_of(&self.2), stream, count))
    }
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
            beside: None,
            ahead: None,
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

    /// Party `id` to the end of the plan, with what it prepares of weights before.
    pub fn evaluate(
        &self,
        id: PartyId,
        prev: &mut dyn Channel,
        next: &mut dyn Channel,
    ) -> Result<Outcome, RunError> {
        let mut cx = self.party(id, prev, next);
        let weights = self.prepare(&mut cx)?;
        self.run_with(&mut cx, &weights)
    }

    /// One run at a party that has prepared the weights.
    pub fn run_with(&self, cx: &mut Party, weights: &SharedWeights) -> Result<Outcome, RunError> {
        let i = cx.id().index();
        let given = Given {
            inputs: self.inputs[i].clone(),
            states: self.states[i].clone(),
            publics: self.publics.clone(),
        };
        Evaluator::new(&self.plan, weights).run(cx, given, &mut |_| {})
    }

    /// Party `id` before it does anything.
    pub fn party<'a>(
        &'a self,
        id: PartyId,
        prev: &'a mut dyn Channel,
        next: &'a mut dyn Channel,
    ) -> Party<'a> {
        let keys = self.keys[id.index()].derive(0);
        let mut cx = Party::new(id, self.security, self.device.as_ref(), keys, prev, next);
        self.beside.into_iter().for_each(|bytes| cx.verify_from(bytes));
        self.ahead.into_iter().for_each(|elements| cx.combine_ahead_from(elements));
        cx
    }

    /// What it prepares of the weights.
    pub fn prepare(&self, cx: &mut Party) -> Result<SharedWeights, RunError> {
        SharedWeights::new(cx, &self.plan, self.weights[cx.id().index()].clone())
    }

    /// All parties; each one's links are dropped when it is done.
    pub fn run(&self, mesh: Mesh) -> [Result<Outcome, RunError>; 3] {
        parties(mesh, |id, prev, next| self.evaluate(id, prev, next))
    }

    /// What each party sends before a sound run: what is prepared of weights.
    pub fn prepared(&self) -> [Vec<Sent>; 3] {
        let mut mesh = Mesh::new(3);
        let log = mesh.record();
        parties(mesh, |id, prev, next| drop(self.prepare(&mut self.party(id, prev, next)).unwrap()));
        three(log.all())
    }

    /// Of what each party sent what was not prepared before.
    pub fn of_run(&self, logs: [Vec<Sent>; 3]) -> [Vec<Sent>; 3] {
        let mut prepared = self.prepared().into_iter();
        logs.map(|mut sent| sent.split_off(prepared.next().map_or(0, |sent| sent.len())))
    }

    /// What each party sends in a sound run.
    pub fn transcript(&self) -> [Vec<Sent>; 3] {
        let mut mesh = Mesh::new(3);
        let log = mesh.record();
        self.run(mesh).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        three(log.all())
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

/// The same program at every party, with its links to the one before and the one after.
#[track_caller]
pub fn parties<T: Send>(
    mesh: Mesh,
    program: impl Fn(PartyId, &mut dyn Channel, &mut dyn Channel) -> T + Sync,
) -> [T; 3] {
    three(mesh.run(|links| {
        let id = PartyId::ALL[links.me()];
        let [prev, next] = links.both([id.prev().index(), id.next().index()]);
        program(id, prev, next)
    }))
}

/// One thing of every party.
pub fn three<T>(all: Vec<T>) -> [T; 3] {
    all.try_into().unwrap_or_else(|_| panic!("there are three parties"))
}

//! One record over in-memory channels: dealer, owners and both evaluators, with a hand on every channel.
#![allow(dead_code, reason = "every test uses a part")]

use privet_family::NodeStats;
use privet_fss::keys::{KeySource, MemoryKeys};
use privet_fss::{
    Dealer, Done, Eval, EvalError, Evaluator, Given, MaskedWeights, PartyId, PartySeed, RecordSeeds,
    SessionMasks, SessionSeeds, States, dropout_coins, expand_state, mask_coins, share_state,
};
use privet_kernels::{Device, cpu};
use privet_net::Channel;
use privet_plan::ir::{Node, Op, Plan};
pub use privet_plan::suite::in_form;
use privet_plan::suite::{Case, Operands};
use privet_plan::{Coins, Form};
use privet_prg::{Domain, HashKeys, Seed};
use privet_ring::Ring;
use privet_testkit::{Mesh, Sent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What evaluators hold before a record's first step.
pub struct World {
    pub plan: Plan,
    pub device: Arc<dyn Device>,
    pub hash: HashKeys,
    pub session_seeds: [PartySeed; 2],
    pub seeds: [PartySeed; 2],
    pub inputs: HashMap<usize, Vec<u64>>,
    pub weights: BTreeMap<String, Vec<u64>>,
    pub publics: BTreeMap<String, u64>,
    /// By evaluator.
    pub states: [States; 2],
    /// What the dealer counted, node by node.
    pub dealt: Vec<NodeStats>,
}

/// Forms of comparisons that tests run beside the tree: usual ones, one level, many levels, whole bytes.
pub const CHUNKED: [Form; 5] = [
    Form::Chunks { width: 4, fan: 4 },
    Form::Chunks { width: 7, fan: 9 },
    Form::Chunks { width: 2, fan: 3 },
    Form::Chunks { width: 1, fan: 2 },
    Form::Chunks { width: 8, fan: 2 },
];

/// These cases in every form: as they are, then those that compare in each other form, called so.
pub fn in_every_form(cases: Vec<Case>) -> Vec<Case> {
    let other = |form: Form| {
        let formed = move |case: &Case| {
            let plan = in_form(&case.plan, form)?;
            Some(Case { name: format!("{}, {form}", case.name), plan })
        };
        cases.iter().filter_map(formed).collect::<Vec<Case>>()
    };
    let others: Vec<Case> = CHUNKED.into_iter().flat_map(other).collect();
    cases.into_iter().chain(others).collect()
}

/// The number of every test's record.
pub const NUMBER: u64 = 5;

/// The coins that the dealer of a record uses, for the interpreter.
pub struct RecordCoins<'a> {
    pub plan: &'a Plan,
    pub session: SessionMasks,
    pub record: &'a Seed,
}

impl Coins for RecordCoins<'_> {
    fn draw(&mut self, node: usize, _count: usize, _shift: u32) -> Option<Vec<u64>> {
        mask_coins(self.plan, &self.session, NUMBER, self.record, node)
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some(dropout_coins(self.session.hash_keys(), NUMBER, stream, count))
    }
}

pub fn add(ring: Ring, a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

impl World {
    /// Deal a record and mask the operands.
    pub fn new(
        plan: &Plan,
        [inputs, weights]: &[Operands; 2],
        session: &Seed,
        record: &Seed,
    ) -> (World, [MemoryKeys; 2]) {
        let states = |v: usize| record.derive(Domain::Public, v as u64);
        let (session, record) = (SessionSeeds::of(session), RecordSeeds::of(record));
        World::with(plan, [inputs, weights], session, record, &states)
    }

    /// The same from seeds that were drawn one by one; `states` gives the seeds that states are shared by.
    pub fn with(
        plan: &Plan,
        [inputs, weights]: [&Operands; 2],
        session: SessionSeeds,
        record: RecordSeeds,
        states: &dyn Fn(usize) -> Seed,
    ) -> (World, [MemoryKeys; 2]) {
        let device = cpu(1);
        let masks = SessionMasks::with(plan, device.as_ref(), session);
        let mut keys = [MemoryKeys::default(), MemoryKeys::default()];
        let dealer = Dealer::new(plan, device.as_ref(), &masks);
        let dealt = dealer.deal_with(NUMBER, &record, &mut keys, &mut |_| {}).unwrap();
        let mut world = World {
            plan: plan.clone(),
            device,
            hash: *masks.hash_keys(),
            session_seeds: masks.party_seeds().clone(),
            seeds: record.parties,
            inputs: HashMap::new(),
            weights: BTreeMap::new(),
            publics: BTreeMap::new(),
            states: [States::new(), States::new()],
            dealt,
        };
        for (v, node) in plan.nodes.iter().enumerate() {
            let ring = Ring::new(node.ty.bits);
            let mask = |seeds: &[PartySeed; 2]| {
                let [a, b] = seeds.each_ref().map(|s| s.operand_mask_share(plan, v));
                add(ring, &a, &b)
            };
            match &node.op {
                Op::Input { name, .. } => {
                    let masked = add(ring, inputs[name].data(), &mask(&world.seeds));
                    world.inputs.insert(v, masked);
                }
                Op::Weight { name, .. } => {
                    let masked = add(ring, weights[name].data(), &mask(&world.session_seeds));
                    world.weights.insert(name.clone(), masked);
                }
                Op::State { name, .. } => {
                    let (value, seed) = (weights[name].data(), states(v));
                    world.states[0].insert(name, expand_state(&seed, ring, value.len()));
                    world.states[1].insert(name, share_state(value, ring, &seed));
                }
                Op::Public { name, .. } => drop(world.publics.insert(name.clone(), inputs[name].data()[0])),
                _ => {}
            }
        }
        (world, keys)
    }

    /// Evaluator `b` to the end of the plan.
    pub fn evaluate(
        &self,
        b: usize,
        keys: &mut dyn KeySource,
        channel: &mut dyn Channel,
    ) -> Result<Done, EvalError> {
        let device = self.device.as_ref();
        let seed = self.session_seeds[b].clone();
        let weights = MaskedWeights::new(&self.plan, device, seed, self.weights.clone())?;
        let (party, seed) = (PartyId::BOTH[b], self.seeds[b].seed().clone());
        let mut cx = Eval::new(party, device, &self.hash, NUMBER, seed, keys, channel);
        let (inputs, publics) = (self.inputs.clone(), self.publics.clone());
        let given = Given { inputs, publics, states: &self.states[b] };
        Evaluator::new(&self.plan, &weights).run(&mut cx, given, &mut |_| {})
    }

    /// Both evaluators; each one's channel is dropped when it is done.
    pub fn run(&self, keys: [&mut (dyn KeySource + Send); 2], mesh: Mesh) -> [Result<Done, EvalError>; 2] {
        both(mesh.run_with(keys, |links, keys| {
            let b = links.me();
            self.evaluate(b, keys, links.to(1 - b))
        }))
    }

    /// The outputs from both evaluators' shares.
    pub fn outputs(&self, [a, b]: [&Done; 2]) -> Vec<Vec<u64>> {
        let ring = |i: usize| Ring::new(self.plan.nodes[self.plan.outputs[i].value].ty.bits);
        (0..self.plan.outputs.len()).map(|i| add(ring(i), &a.outputs[i], &b.outputs[i])).collect()
    }

    /// The states after the run, those that have an update.
    pub fn updates(&self, [a, b]: [&Done; 2]) -> BTreeMap<String, Vec<u64>> {
        let updated = self.plan.updates.iter().map(|u| &self.plan.nodes[u.state]);
        let sum = |node: &Node| match &node.op {
            Op::State { name, .. } => {
                let [a, b] = [a, b].map(|done| done.updates.get(name).unwrap());
                (name.clone(), add(Ring::new(node.ty.bits), a, b))
            }
            op => panic!("{op:?} is no state"),
        };
        updated.map(sum).collect()
    }
}

/// One thing of each evaluator.
pub fn both<T>(all: Vec<T>) -> [T; 2] {
    all.try_into().unwrap_or_else(|_| panic!("there are two evaluators"))
}

/// What a sound run leaves behind.
pub struct Transcript {
    pub outputs: Vec<Vec<u64>>,
    /// By party, in order.
    pub sent: [Vec<Sent>; 2],
    /// Key frames by party, as dealt.
    pub frames: [Vec<Vec<u8>>; 2],
}

/// One sound run.
pub fn transcript(plan: &Plan, operands: &[Operands; 2], session: &Seed, record: &Seed) -> Transcript {
    let (world, mut keys) = World::new(plan, operands, session, record);
    let frames = keys.each_ref().map(|k| k.frames().map(<[u8]>::to_vec).collect());
    let mut mesh = Mesh::new(2);
    let log = mesh.record();
    let [k0, k1] = &mut keys;
    let [y0, y1] = world.run([k0, k1], mesh).map(Result::unwrap);
    Transcript { outputs: world.outputs([&y0, &y1]), sent: both(log.all()), frames }
}

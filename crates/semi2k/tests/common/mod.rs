//! One record over in-memory channels: a helper, owners and all parties, with a hand on every channel.
#![allow(dead_code, reason = "every test uses a part")]

use privet_family::keys::{KeySource, MemoryKeys};
use privet_family::{NodeStats, States, expand_state, share_state};
use privet_kernels::{Device, cpu};
use privet_plan::ir::{Node, Op, Plan};
use privet_plan::suite::{Case, Operands as Tensors, in_form};
use privet_plan::{Coins, Form, Prices};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_semi2k::{
    Done, Eval, EvalError, Evaluator, Given, Helper, HelperSession, MaskedWeights, PartySeed, Public, Semi2k,
    all_seeds, mask_coins, prepare,
};
use privet_testkit::{Links, Mesh, Sent};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The number of every test's record.
pub const NUMBER: u64 = 5;

/// What the parties hold before a record's first step.
pub struct World {
    pub plan: Plan,
    pub device: Arc<dyn Device>,
    pub public: Public,
    pub session: Vec<PartySeed>,
    pub seeds: Vec<PartySeed>,
    pub inputs: HashMap<usize, Vec<u64>>,
    pub weights: BTreeMap<String, Vec<u64>>,
    pub publics: BTreeMap<String, u64>,
    /// By party.
    pub states: Vec<States>,
    /// What preparing kept, node by node.
    pub prepared: Vec<NodeStats>,
}

/// Forms of comparisons that tests run beside the usual one: one level, many levels, wide chunks.
pub const CHUNKED: [Form; 4] = [
    Form::Chunks { width: 4, fan: 4 },
    Form::Chunks { width: 3, fan: 6 },
    Form::Chunks { width: 1, fan: 2 },
    Form::Chunks { width: 5, fan: 3 },
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

/// Those that the family has, with a helper or without.
pub fn that_it_has(helper: bool, cases: Vec<Case>) -> Vec<Case> {
    let family = Semi2k { helper, ..Semi2k::helped(2) };
    cases.into_iter().filter(|case| case.plan.nodes.iter().all(|node| family.has(&node.op))).collect()
}

/// The coins of a record, for the interpreter.
pub struct RecordCoins<'a> {
    pub plan: &'a Plan,
    pub public: Public,
    /// Of session and record.
    pub seeds: [&'a [PartySeed]; 2],
}

impl Coins for RecordCoins<'_> {
    fn draw(&mut self, node: usize, _count: usize, _shift: u32) -> Option<Vec<u64>> {
        mask_coins(self.plan, self.seeds, &self.public, node)
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        Some(self.public.dropout_coins(stream, count))
    }
}

fn add(ring: Ring, a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

fn sum<'a>(ring: Ring, shares: impl IntoIterator<Item = &'a [u64]>) -> Vec<u64> {
    let mut shares = shares.into_iter();
    let first = shares.next().expect("a party").to_vec();
    shares.fold(first, |sum, share| add(ring, &sum, share))
}

/// The seeds of one test.
pub struct Seeds {
    pub session: Vec<PartySeed>,
    pub record: Vec<PartySeed>,
    pub public: Seed,
    /// Of states' shares, one for each party but the last.
    pub states: Vec<Seed>,
}

impl Seeds {
    /// All of one.
    pub fn of(parties: usize, seed: &Seed) -> Seeds {
        let of = |i| seed.derive(Domain::Session, i);
        let states = (1..parties as u64).map(|i| of(10 + i)).collect();
        Seeds {
            session: all_seeds(parties, &of(0)),
            record: all_seeds(parties, &of(1)),
            public: of(2),
            states,
        }
    }

    /// The same of a session whose weights one party knows, if so.
    pub fn owned(mut self, owner: Option<usize>) -> Seeds {
        self.session = self.session.into_iter().map(|seed| seed.with_owner(owner)).collect();
        self
    }
}

impl World {
    /// Prepare a record and mask the operands.
    pub fn new(plan: &Plan, operands: &[Tensors; 2], seeds: Seeds) -> (World, Vec<MemoryKeys>) {
        World::with(plan, operands, seeds, |helper| prepare(plan, helper, &mut |_| {}).unwrap())
    }

    /// The same with a hand on what the helper does.
    pub fn with(
        plan: &Plan,
        [inputs, weights]: &[Tensors; 2],
        seeds: Seeds,
        run: impl FnOnce(&mut Helper) -> Vec<NodeStats>,
    ) -> (World, Vec<MemoryKeys>) {
        let (device, parties) = (cpu(1), seeds.record.len());
        let session = HelperSession::with(plan, device.as_ref(), seeds.session.clone(), seeds.public.clone());
        let mut keys: Vec<MemoryKeys> = (0..parties).map(|_| MemoryKeys::default()).collect();
        let mut helper = Helper::new(device.as_ref(), &session, NUMBER, &seeds.record, &mut keys);
        let prepared = run(&mut helper);
        (World::prepared(plan, [inputs, weights], seeds, prepared), keys)
    }

    /// Mask the operands, for records that are there.
    pub fn prepared(
        plan: &Plan,
        [inputs, weights]: [&Tensors; 2],
        seeds: Seeds,
        prepared: Vec<NodeStats>,
    ) -> World {
        let (device, parties) = (cpu(1), seeds.record.len());
        let mut world = World {
            plan: plan.clone(),
            device,
            public: Public::new(&seeds.public, NUMBER),
            session: seeds.session,
            seeds: seeds.record,
            inputs: HashMap::new(),
            weights: BTreeMap::new(),
            publics: BTreeMap::new(),
            states: (0..parties).map(|_| States::new()).collect(),
            prepared,
        };
        for (v, node) in plan.nodes.iter().enumerate() {
            let ring = Ring::new(node.ty.bits);
            let masked = |value: &[u64], seeds: &[PartySeed]| {
                let masks: Vec<_> = seeds.iter().map(|seed| seed.operand_mask(plan, v)).collect();
                sum(ring, std::iter::once(value).chain(masks.iter().map(|mask| mask.as_slice())))
            };
            match &node.op {
                Op::Input { name, .. } => {
                    drop(world.inputs.insert(v, masked(inputs[name].data(), &world.seeds)));
                }
                Op::Weight { name, .. } => {
                    drop(world.weights.insert(name.clone(), masked(weights[name].data(), &world.session)));
                }
                Op::State { name, .. } => {
                    let value = weights[name].data();
                    let of: Vec<Seed> =
                        seeds.states.iter().map(|s| s.derive(Domain::Public, v as u64)).collect();
                    for (states, seed) in world.states.iter_mut().zip(&of) {
                        states.insert(name, expand_state(seed, ring, value.len()));
                    }
                    let left = of.iter().fold(value.to_vec(), |left, seed| share_state(&left, ring, seed));
                    world.states[parties - 1].insert(name, left);
                }
                Op::Public { name, .. } => drop(world.publics.insert(name.clone(), inputs[name].data()[0])),
                _ => {}
            }
        }
        world
    }

    /// Party `links.me()` to the end of the plan; gives also what it opened.
    pub fn evaluate(
        &self,
        keys: &mut dyn KeySource,
        links: &mut Links,
    ) -> Result<(Done, Vec<privet_family::Opening>), EvalError> {
        let (device, me) = (self.device.as_ref(), links.me());
        let weights = MaskedWeights::new(&self.plan, device, self.session[me].clone(), self.weights.clone())?;
        let peers = links.others().map(|(_, channel)| channel).collect();
        let mut cx = Eval::new(device, self.public.clone(), self.seeds[me].clone(), keys, peers);
        let (inputs, publics) = (self.inputs.clone(), self.publics.clone());
        let given = Given { inputs, publics, states: &self.states[me] };
        let done = Evaluator::new(&self.plan, &weights).run(&mut cx, given, &mut |_| {})?;
        Ok((done, cx.openings().to_vec()))
    }

    /// All parties; each one's channels are dropped when it is done.
    pub fn run(
        &self,
        keys: Vec<&mut (dyn KeySource + Send)>,
        mesh: Mesh,
    ) -> Vec<Result<(Done, Vec<privet_family::Opening>), EvalError>> {
        mesh.run_with(keys, |links, keys| self.evaluate(keys, links))
    }

    /// The outputs from all parties' shares.
    pub fn outputs(&self, all: &[Done]) -> Vec<Vec<u64>> {
        let ring = |i: usize| Ring::new(self.plan.nodes[self.plan.outputs[i].value].ty.bits);
        let output = |i: usize| sum(ring(i), all.iter().map(|done| done.outputs[i].as_slice()));
        (0..self.plan.outputs.len()).map(output).collect()
    }

    /// The states after the run, those that have an update.
    pub fn updates(&self, all: &[Done]) -> BTreeMap<String, Vec<u64>> {
        let updated = self.plan.updates.iter().map(|u| &self.plan.nodes[u.state]);
        let value = |node: &Node| match &node.op {
            Op::State { name, .. } => {
                let shares = all.iter().map(|done| done.updates.get(name).unwrap());
                (name.clone(), sum(Ring::new(node.ty.bits), shares))
            }
            op => panic!("{op:?} is no state"),
        };
        updated.map(value).collect()
    }
}

/// All parties' frames, as sources.
pub fn sources(keys: &mut [MemoryKeys]) -> Vec<&mut (dyn KeySource + Send)> {
    keys.iter_mut().map(|keys| keys as &mut (dyn KeySource + Send)).collect()
}

/// What a sound run leaves behind.
pub struct Transcript {
    pub outputs: Vec<Vec<u64>>,
    /// By party, in order.
    pub sent: Vec<Vec<Sent>>,
    /// Frames by party, as prepared.
    pub frames: Vec<Vec<Vec<u8>>>,
    pub world: World,
}

/// One sound run.
pub fn transcript(plan: &Plan, operands: &[Tensors; 2], seeds: Seeds) -> Transcript {
    let parties = seeds.record.len();
    let (world, mut keys) = World::new(plan, operands, seeds);
    let frames = keys.iter().map(|k| k.frames().map(<[u8]>::to_vec).collect()).collect();
    let mut mesh = Mesh::new(parties);
    let log = mesh.record();
    let done: Vec<Done> = world.run(sources(&mut keys), mesh).into_iter().map(|r| r.unwrap().0).collect();
    Transcript { outputs: world.outputs(&done), sent: log.all(), frames, world }
}

//! Cheating before and after the run itself: when keys are agreed on, when copies of inputs are compared, and when the
//! receiver is sent the outputs.

mod common;

use common::cheat::honest;
use common::small::gates;
use common::{parties, three};
use privet_kernels::cpu;
use privet_net::Channel;
use privet_plan::interpret;
use privet_plan::ir::{Op, Plan};
use privet_plan::suite::{Case, Operands};
use privet_prg::{Domain, Prg, Seed};
use privet_rep3::{
    Digests, Evaluator, Given, Keys, Party, PartyId, Portion, Revealed, RunError, Security, SharedWeights,
    SharingError, rounding_coins, run_coins,
};
use privet_ring::{Ring, Tensor};
use privet_testkit::{Action, Attack, Mesh, Sent, spread};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Messages that a party sends before the run: three rounds of the agreement and the comparison of copies, to both.
const BEFORE: usize = 8;

/// A whole job: owners, three parties and a receiver.
struct Job {
    plan: Plan,
    operands: [Operands; 2],
}

/// What a job gave one party.
struct Done {
    keys: Keys,
    /// The party's bytes to the receiver, one message an output.
    revealed: Vec<Vec<u8>>,
}

impl Job {
    fn new(case: &Case, seed: &Seed) -> Job {
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let mut operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        for node in &case.plan.nodes {
            // what a truncation that keeps its ring is promised, or the interpreter would refuse it
            if let (Op::Truncate { shift, .. }, &[x]) = (&node.op, &node.inputs[..])
                && let (Op::Input { name, .. }, ty) = (&case.plan.nodes[x].op, &case.plan.nodes[x].ty)
                && node.ty.bits > ty.bits - shift
                && let Some(operand) = operands[0].get_mut(name)
            {
                let small = Ring::new(ty.bits - 2);
                let data = operand.data().iter().map(|v| small.wrap(*v)).collect();
                *operand = Tensor::new(ty.shape.clone(), data).unwrap();
            }
        }
        Job { plan: case.plan.clone(), operands }
    }

    /// The owners' portions for every party, by node.
    fn portions(&self) -> [HashMap<usize, Portion>; 3] {
        let mut all: [HashMap<usize, Portion>; 3] = Default::default();
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let tensor = match &node.op {
                Op::Input { name, .. } => &self.operands[0][name],
                Op::Weight { name, .. } => &self.operands[1][name],
                _ => continue,
            };
            let portions = Portion::of(Ring::new(node.ty.bits), tensor.data());
            all.iter_mut().zip(portions).for_each(|(of, portion)| drop(of.insert(v, portion)));
        }
        all
    }

    fn party(
        &self,
        id: PartyId,
        portions: &HashMap<usize, Portion>,
        prev: &mut dyn Channel,
        next: &mut dyn Channel,
    ) -> Result<Done, RunError> {
        let device = cpu(1);
        let keys = Keys::agree(id, prev, next)?;
        let (mut inputs, mut weights, mut digests) = (HashMap::new(), BTreeMap::new(), Digests::default());
        for (v, node) in self.plan.nodes.iter().enumerate() {
            let Some(portion) = portions.get(&v) else { continue };
            let ring = Ring::new(node.ty.bits);
            let share = portion.clone().expand(ring, node.ty.len());
            digests.add(&v.to_string(), ring, &share);
            match &node.op {
                Op::Weight { name, .. } => drop(weights.insert(name.clone(), share)),
                _ => drop(inputs.insert(v, share)),
            }
        }
        let mut cx = Party::new(id, Security::Malicious, device.as_ref(), keys.derive(0), prev, next);
        cx.compare("inputs", digests)?;
        let weights = SharedWeights::new(&mut cx, &self.plan, weights)?;
        let mut cx = Party::new(id, Security::Malicious, device.as_ref(), keys.derive(1), prev, next);
        let given = Given { inputs, ..Given::default() };
        let outcome = Evaluator::new(&self.plan, &weights).run(&mut cx, given, &mut |_| {})?;
        let revealed = outcome.outputs.iter().zip(&self.plan.outputs).map(|(share, output)| {
            let mut bytes = Vec::new();
            Revealed::of(share).encode(Ring::new(self.plan.nodes[output.value].ty.bits), &mut bytes);
            bytes
        });
        Ok(Done { keys, revealed: revealed.collect() })
    }

    fn run(
        &self,
        attack: Option<&Attack>,
        patience: Duration,
    ) -> ([Result<Done, RunError>; 3], [Vec<Sent>; 3]) {
        let mut mesh = Mesh::patient(3, patience);
        if let Some(attack) = attack {
            mesh.attack(attack);
        }
        let log = mesh.record();
        let portions = self.portions();
        let results = parties(mesh, |id, prev, next| self.party(id, &portions[id.index()], prev, next));
        (results, three(log.all()))
    }

    /// What the outputs should be, for the coins that the parties drew.
    fn truth(&self, keys: [&Keys; 3]) -> Vec<Tensor> {
        let coin_key = run_coins(keys.map(|keys| keys.derive(1).own).each_ref());
        let mut coins = |node, count, shift| rounding_coins(&coin_key, node, shift, count);
        interpret(&self.plan, &self.operands[0], &self.operands[1], &mut coins).unwrap()
    }

    /// The receiver of output `i`.
    fn receive(&self, i: usize, from: [&[u8]; 3]) -> Result<Vec<u64>, SharingError> {
        let ty = &self.plan.nodes[self.plan.outputs[i].value].ty;
        let ring = Ring::new(ty.bits);
        let [a, b, c] = from.map(|bytes| Revealed::decode(ring, ty.len(), bytes));
        Revealed::combine(ring, [a?, b?, c?])
    }

    /// The receiver gets the right outputs or an error, whatever the corrupt party sends it in the end.
    #[track_caller]
    fn right_or_refused(&self, done: [&Done; 3], what: &str) -> bool {
        let mut right = true;
        for (i, truth) in self.truth(done.map(|done| &done.keys)).iter().enumerate() {
            match self.receive(i, done.map(|done| &done.revealed[i][..])) {
                Ok(found) => {
                    let value = self.plan.outputs[i].value;
                    let ring = Ring::new(self.plan.nodes[value].ty.bits);
                    let slack = privet_plan::slack(&self.plan)[value].unwrap();
                    let off = |(a, b): (&u64, &u64)| ring.signed(a.wrapping_sub(*b)).unsigned_abs();
                    let most = found.iter().zip(truth.data()).map(off).max().unwrap();
                    assert_eq!(found.len(), truth.data().len(), "{what}");
                    assert!(most <= slack, "{what}: a wrong output was accepted, off by {most}");
                }
                Err(_) => right = false,
            }
        }
        right
    }
}

/// Changes of one message of `bytes` bytes that do not depend on what it holds.
fn changes(bytes: usize, random: &mut Prg) -> Vec<Action> {
    let xor = |bits: &[usize]| {
        let mut xor = vec![0; bytes];
        bits.iter().for_each(|bit| xor[bit / 8] ^= 1 << (bit % 8));
        Action::Xor(xor)
    };
    let mut any = vec![0; bytes];
    random.fill_bytes(&mut any);
    let mut all: Vec<_> = (0..bytes).map(|byte| xor(&[8 * byte + byte % 8])).collect();
    all.extend([
        Action::Xor(any.clone()),
        Action::Replace(any),
        Action::Replace(vec![0; bytes]),
        Action::Kill,
    ]);
    all.extend([Action::Replace(vec![7; bytes - 1]), Action::Replace(vec![7; bytes + 1]), Action::Duplicate]);
    all
}

#[test]
fn whatever_is_said_before_the_run_the_result_is_right_or_there_is_none() {
    let case = gates().into_iter().find(|case| case.name.starts_with("truncate stochastically")).unwrap();
    let job = Job::new(&case, &Seed::random());
    let (done, sent) = job.run(None, Duration::from_secs(60));
    let done = done.map(Result::unwrap);
    assert!(job.right_or_refused(done.each_ref(), "nobody cheats"));
    let mut attacks = Vec::new();
    for by in PartyId::ALL {
        let mut random = Seed::random().stream();
        for (number, sent) in sent[by.index()].iter().take(BEFORE).enumerate() {
            for change in changes(sent.bytes.len(), &mut random) {
                let what =
                    format!("{change:?} of message {number} to party {} at step {}", sent.to, sent.step);
                attacks.push(Attack { by: by.index(), what, changes: vec![(number, change)] });
            }
        }
    }
    let detected = std::sync::atomic::AtomicUsize::new(0);
    spread(attacks.len(), 2, |i| {
        let attack = &attacks[i];
        let by = PartyId::ALL[attack.by];
        let what = format!("{} by {by}", attack.what);
        let (done, _) = job.run(Some(attack), Duration::from_secs(20));
        let errors: Vec<String> = honest(by)
            .iter()
            .filter_map(|id| done[id.index()].as_ref().err().map(|e| e.to_string()))
            .collect();
        if let [Ok(a), Ok(b), Ok(c)] = &done {
            job.right_or_refused([a, b, c], &what);
        }
        match errors.len() {
            0 => {}
            _ => {
                let named = |e: &String| e.contains("step") && e.contains(&by.to_string());
                assert!(errors.iter().any(named), "{what}: {errors:?}");
                detected.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    let detected = detected.into_inner();
    println!("before the run: {detected} of {} changes detected", attacks.len());
    assert!(4 * detected > 3 * attacks.len());
}

#[test]
fn a_receiver_accepts_no_component_that_one_party_changed() {
    let (mut refused, mut sent) = (0, 0);
    for case in gates() {
        let job = Job::new(&case, &Seed::random());
        let [a, b] = [(); 2].map(|()| job.run(None, Duration::from_secs(60)).0.map(Result::unwrap));
        assert!(job.right_or_refused(a.each_ref(), &case.name));
        let mut random = Seed::random().stream();
        for by in PartyId::ALL {
            for i in 0..case.plan.outputs.len() {
                let honest = a.each_ref().map(|done| &done.revealed[i][..]);
                let mine = honest[by.index()];
                let mut wrong: Vec<Vec<u8>> = vec![
                    b[by.index()].revealed[i].clone(),
                    honest[by.next().index()].to_vec(),
                    honest[by.prev().index()].to_vec(),
                    vec![],
                    vec![0; mine.len()],
                    mine[..mine.len() - 1].to_vec(),
                    [mine, &[0]].concat(),
                ];
                wrong.extend((0..200).map(|_| {
                    let bit = (random.elements(Ring::R64, 1)[0] % (8 * mine.len() as u64)) as usize;
                    let mut bytes = mine.to_vec();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    bytes
                }));
                for bytes in wrong {
                    let mut from = honest;
                    from[by.index()] = &bytes;
                    match job.receive(i, from) {
                        Ok(_) => panic!("{}: {by} changed the output unnoticed", case.name),
                        Err(SharingError::Disagree { first, second }) => {
                            assert!([first, second].contains(&by), "{}: {first} and {second}", case.name);
                            refused += 1;
                        }
                        Err(_) => refused += 1,
                    }
                    sent += 1;
                }
            }
        }
    }
    println!("{refused} of {sent} changed components refused");
    assert_eq!(refused, sent);
}

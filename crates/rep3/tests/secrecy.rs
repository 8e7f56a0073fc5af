//! What a party receives says nothing: to a party whose own keys and components are fixed, every message is uniform,
//! by the one key that it does not have, whatever the secrets are; and no mask serves twice.

mod common;

use common::World;
use privet_plan::ir::{Op, Rounding};
use privet_plan::suite::{
    Case, ChiSquare, LIMIT, cases, constant, fixed_inputs, gate, optional_cases, training_cases,
};
use privet_prg::{Domain, Seed};
use privet_rep3::{PartyId, Security};
use privet_ring::Ring;
use privet_testkit::{Mesh, Sent, spread};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Runs with the same inputs and the receiver's own randomness, under fresh hidden keys.
const RUNS: u64 = 48;

/// Fixed seed: a statistical test that passes once passes always.
fn seed(case: usize, run: u64) -> Seed {
    Seed::from_bytes(*b"secrecy of rep3.").derive(Domain::Public, case as u64).derive(Domain::Public, run)
}

/// Give the two parties other than `receiver` another key, the one that `receiver` does not hold.
fn hide_anew(world: &mut World, receiver: PartyId, key: &Seed) {
    world.keys[receiver.next().index()].next = key.clone();
    world.keys[receiver.prev().index()].own = key.clone();
}

/// What `receiver` is sent in one run, as far as it has not said it at the same step.
fn received(world: &World, receiver: PartyId) -> Vec<(PartyId, Sent)> {
    let transcript = world.transcript();
    let mut own: HashMap<u32, HashSet<[u8; 8]>> = HashMap::new();
    for sent in &transcript[receiver.index()] {
        own.entry(sent.step.id).or_default().extend(words(&sent.bytes));
    }
    let transcript_of_receiver = transcript[receiver.index()].clone();
    let sent = PartyId::ALL.into_iter().zip(transcript);
    let to_receiver = |(id, messages): (PartyId, Vec<Sent>)| messages.into_iter().map(move |m| (id, m));
    let mut received: Vec<_> =
        sent.flat_map(to_receiver).filter(|(_, sent)| sent.to == receiver.index()).collect();
    for (_, sent) in &mut received {
        sent.bytes.drain(..opened(&sent.bytes, &transcript_of_receiver));
        let of_proofs = sent.step.name.contains("/ proof: ");
        if let Some(own) = own.get(&sent.step.id).filter(|_| of_proofs) {
            sent.bytes.truncate(news(&sent.bytes, own));
        }
    }
    received
}

/// Bytes of a component of the difference of tags.
const COMPONENT: usize = 512;

/// How many bytes a message begins with that its receiver knows, as they are what it has sent the party before it: so much of a difference is opened.
fn opened(bytes: &[u8], of_receiver: &[Sent]) -> usize {
    let values = of_receiver.iter().filter(|own| own.step.name.ends_with("/ proof: values"));
    let mut known = values.filter_map(|own| own.bytes.first_chunk::<COMPONENT>());
    if known.any(|known| bytes.starts_with(known)) { COMPONENT } else { 0 }
}

/// The last eight bytes of a message, and those before them.
fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    bytes.rchunks_exact(8).map(|word| word.try_into().unwrap())
}

/// What a message says to its receiver, which has sent all of `own` at the same step: parties tell each other challenges again that both know
/// by then, at the end of a message.
fn news(bytes: &[u8], own: &HashSet<[u8; 8]>) -> usize {
    bytes.len() - 8 * words(bytes).take_while(|word| own.contains(word)).count()
}

/// Ones by place of one message over many runs.
#[derive(Default)]
struct Places {
    ones: Vec<u32>,
    runs: u32,
}

impl Places {
    fn add(&mut self, bytes: &[u8]) {
        self.ones.resize(8 * bytes.len(), 0);
        assert_eq!(self.ones.len(), 8 * bytes.len());
        for (place, ones) in self.ones.iter_mut().enumerate() {
            *ones += u32::from(bytes[place / 8] >> (place % 8) & 1);
        }
        self.runs += 1;
    }

    /// Places that fill up the last byte of packed elements: always zero, at the top of a byte, never all of it.
    fn padding(&self) -> Vec<bool> {
        let never = |byte: &[u32]| byte.iter().rev().take_while(|&&ones| ones == 0).count();
        let byte = |byte: &[u32]| {
            let top = never(byte) % 8;
            (0..8).map(|i| i >= 8 - top).collect::<Vec<_>>()
        };
        self.ones.chunks(8).flat_map(byte).collect()
    }

    #[track_caller]
    fn uniform(&self, what: &str) {
        let (mut places, mut bits) = (ChiSquare::new(), [(0, 0); 8]);
        for (place, (&ones, padding)) in self.ones.iter().zip(self.padding()).enumerate() {
            if !padding {
                places.coin(ones.into(), self.runs.into());
                bits[place % 8] = (bits[place % 8].0 + ones, bits[place % 8].1 + self.runs);
            }
        }
        let mut columns = ChiSquare::new();
        bits.iter().filter(|(_, n)| *n > 0).for_each(|&(ones, n)| columns.coin(ones.into(), n.into()));
        for (chi, how) in [(places, "place by place"), (columns, "bit by bit")] {
            let z = chi.deviate();
            assert!(z < LIMIT, "{what}: {} bits are not uniform {how} (deviate {z:.1})", self.ones.len());
        }
    }
}

fn messages_are_uniform(number: usize, case: &Case, security: Security, beside: Option<u64>) {
    for (i, receiver) in PartyId::ALL.into_iter().enumerate() {
        // every case meets every input at some party, every party every input over the cases
        let (input, word) = fixed_inputs()[(i + number) % 3];
        let mut world = World::new(&case.plan, security, &constant(&case.plan, word), &seed(number, 0));
        world.beside = beside;
        let mut messages: BTreeMap<(u32, PartyId), (String, Places)> = BTreeMap::new();
        // proofs take most of the time
        let runs = if security == Security::Malicious { RUNS / 2 } else { RUNS };
        for run in 0..runs {
            hide_anew(&mut world, receiver, &seed(number, 1 + run * 3 + i as u64));
            for (from, sent) in received(&world, receiver) {
                // one byte that says how far a proof is, of which there is only one while it is sound
                if sent.step.name.contains("/ proof: ") && sent.bytes.len() == 1 {
                    assert_eq!(sent.bytes, [1]);
                    continue;
                }
                let entry = messages.entry((sent.step.id, from)).or_default();
                entry.0 = sent.step.to_string();
                entry.1.add(&sent.bytes);
            }
        }
        for ((_, from), (step, places)) in &messages {
            places.uniform(&format!(
                "{} {security}, inputs {input}: what {from} sends {receiver} at step {step}",
                case.name
            ));
        }
    }
}

/// Inference's operations, and training's.
fn all() -> Vec<Case> {
    cases().into_iter().chain(training_cases()).collect()
}

/// On both processors.
fn over_all_cases(check: impl Fn(usize, &Case) + Sync) {
    let all = all();
    spread(all.len(), 2, |i| check(i, &all[i]));
}

#[test]
fn messages_are_uniform_to_their_receivers() {
    over_all_cases(|i, case| messages_are_uniform(i, case, Security::SemiHonest, None));
    for (i, case) in optional_cases().iter().enumerate() {
        messages_are_uniform(all().len() + i, case, Security::SemiHonest, None);
    }
}

/// The same messages, and those of the proofs, over some of the cases: the others differ in sizes alone.
#[test]
fn messages_and_proofs_are_uniform_to_their_receivers() {
    over_all_cases(|i, case| {
        if proved(i, case) {
            messages_are_uniform(i, case, Security::Malicious, None);
        }
    });
}

/// The same where statements are proved beside what the protocol does next.
#[test]
fn messages_and_proofs_beside_them_are_uniform() {
    over_all_cases(|i, case| {
        if ["small network", "choose by a sign, 2 bits, 70 elements"].contains(&&case.name[..]) {
            messages_are_uniform(i, case, Security::Malicious, Some(0));
        }
    });
}

fn proved(number: usize, case: &Case) -> bool {
    let kinds = [
        "linear with bias, 37 bits",
        "convolution, 24 bits, 2 groups",
        "argmax over 7",
        "truncate 9 bits by 7 Stochastic to 9, 60 elements",
        "truncate 40 bits by 8 OneUlp to 64, 100 elements",
        "choose by a sign, 2 bits, 70 elements",
        "relu of 37 bits cut by 12, into 37, 300 elements",
    ];
    kinds.contains(&&case.name[..]) || number % 40 == 2
}

#[test]
fn a_weak_mask_is_found_out() {
    let mut places = Places::default();
    for run in 0..RUNS {
        let mut bytes = [0; 64];
        seed(0, run).stream().fill_bytes(&mut bytes);
        bytes[13] = 0;
        places.add(&bytes);
    }
    let found = std::panic::catch_unwind(|| places.uniform("a byte without a mask"));
    assert!(found.is_err(), "a byte that is always zero must not pass");
}

/// What two parties tell the third, each by itself: shares of coins; and challenges, at one step or at the end of a message
/// of a later one.
fn challenges(sent: &[Sent]) -> HashSet<Vec<u8>> {
    let kinds = ["run / coins", "/ proof: coefficients", "/ proof: challenge"];
    let public =
        sent.iter().filter(|m| m.bytes.len() > 1 && kinds.iter().any(|kind| m.step.name.ends_with(kind)));
    public.map(|m| m.bytes.clone()).collect()
}

/// With inputs zero a message is a mask and a function of masks: the same mask twice shows as the same words twice.
/// 12 bytes never meet by chance (some 10^5 messages: probability below 10^-18).
#[test]
fn no_mask_serves_two_steps_runs_or_sessions() {
    let mut seen = HashSet::new();
    let mut messages = 0;
    for (i, case) in all().iter().enumerate() {
        let operands = constant(&case.plan, |_| 0);
        for security in [Security::SemiHonest, Security::Malicious] {
            if security == Security::Malicious && !proved(i, case) {
                continue;
            }
            for _ in 0..2 {
                let mut world = World::new(&case.plan, security, &operands, &Seed::random());
                for run in 0..2 {
                    world.beside = (run == 1).then_some(0);
                    world.keys = world.keys.each_ref().map(|keys| keys.derive(run));
                    let mut of_parties = world.transcript();
                    let as_sent = of_parties.clone();
                    for sent in of_parties.iter_mut().flatten() {
                        sent.bytes.drain(..opened(&sent.bytes, &as_sent[sent.to]));
                    }
                    let sent = of_parties.concat();
                    let challenges = challenges(&sent);
                    for sent in &sent {
                        let mut fresh = &sent.bytes[..];
                        while let Some(again) = challenges.iter().find(|c| fresh.ends_with(c)) {
                            fresh = &fresh[..fresh.len() - again.len()];
                        }
                        for words in fresh.chunks_exact(12) {
                            let words: [u8; 12] = words.try_into().unwrap();
                            assert!(seen.insert(words), "{}: step {} repeats words", case.name, sent.step);
                        }
                        messages += 1;
                    }
                }
            }
        }
    }
    assert!(messages > 1000, "{messages}");
}

/// `x` rounds up with probability frac(x), each element by its own coin.
#[test]
fn stochastic_rounding_has_the_right_distribution() {
    let (n, shift, bits) = (4096usize, 4u32, 24u32);
    let op = Op::Truncate { shift, rounding: Rounding::Stochastic };
    let plan = gate(op, 1, n, bits, bits - shift);
    let (ring, reduced) = (Ring::new(bits), Ring::new(bits - shift));
    let mut chi = ChiSquare::new();
    for (i, x) in (0..16i64).map(|low| 16 * 1000 + low).chain((0..16).map(|low| -16 * 77 + low)).enumerate() {
        let operands = constant(&plan, |_| x as u64);
        let world = World::new(&plan, Security::SemiHonest, &operands, &seed(3000, i as u64));
        let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
        let floor = ring.signed(ring.wrap(x as u64)) >> shift;
        let (mut up, mut pairs, mut last) = (0, [0u64; 4], 0);
        for &y in &world.outputs(outcomes.each_ref())[0] {
            let above = reduced.signed(y) - floor;
            assert!((0..=1).contains(&above), "{x} became {}", reduced.signed(y));
            up += above as u64;
            pairs[(last * 2 + above) as usize] += 1;
            last = above;
        }
        match x.rem_euclid(16) {
            0 => assert_eq!(up, 0, "a whole number must not be rounded"),
            8 => {
                chi.biased(up, n as u64, 0.5);
                chi.die(&pairs); // neighbours' coins are independent
            }
            low => chi.biased(up, n as u64, low as f64 / 16.0),
        }
    }
    assert!(chi.deviate() < LIMIT, "deviate {:.1}", chi.deviate());
}

/// What a receiver is given of a value does not tell how the parties held it: its components are new in every run, and
/// uniform but for their sum.
#[test]
fn outputs_have_fresh_components() {
    let plan = gate(Op::Neg, 1, 300, 64, 64);
    let operands = constant(&plan, |_| 1);
    let mut world = World::new(&plan, Security::SemiHonest, &operands, &seed(4000, 0));
    let mut seen = HashSet::new();
    for run in 0..20 {
        let common = seed(4000, 1 + run);
        world.keys.iter_mut().for_each(|keys| keys.common = common.clone());
        let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
        for outcome in &outcomes {
            assert!(outcome.outputs[0].own.iter().all(|&word| seen.insert(word)), "a component came twice");
        }
    }
}

//! What leaves an evaluator says nothing: openings of fixed inputs are uniform, and no mask serves twice.

mod common;

use common::{in_form, transcript};
use privet_plan::Form;
use privet_plan::ir::{Op, Plan, Rounding};
use privet_plan::suite::{
    Case, ChiSquare, LIMIT, Tally, cases, constant, fixed_inputs, gate, optional_cases, training_cases,
};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, unpack};
use privet_testkit::Sent;
use std::collections::{BTreeMap, HashSet};

/// Runs with the same inputs and fresh keys.
const RUNS: u64 = 24;

/// Fixed seed: a statistical test that passes once passes always.
fn seed(case: usize, run: u64) -> Seed {
    Seed::from_bytes(*b"secrecy of privt").derive(Domain::Public, case as u64).derive(Domain::Public, run)
}

/// The words of a message: ring elements, or single bits of the opened comparison results.
struct Words {
    ring: Ring,
    bitwise: bool,
}

/// How a step's payload is to be read: the step's name says which layer it is and what is opened.
fn words_of(plan: &Plan, sent: &Sent) -> Words {
    let (layer, what) = sent.step.name.split_once(" / ").unwrap();
    let node = &plan.nodes[layer.strip_prefix("node").unwrap().parse::<usize>().unwrap()];
    let bits = match what {
        "sign bit" | "carry bit" | "equality bit" => return Words { ring: Ring::new(1), bitwise: true },
        levels if levels.contains(", level ") => return Words { ring: Ring::new(1), bitwise: true },
        "larger" => plan.nodes[node.inputs[0]].ty.bits,
        _ => node.ty.bits,
    };
    Words { ring: Ring::new(bits), bitwise: false }
}

impl Words {
    fn read(&self, bytes: &[u8]) -> Vec<u64> {
        let n = bytes.len() * 8 / self.ring.bits() as usize;
        unpack(self.ring, &bytes[..self.ring.packed_bytes(n)], n).unwrap()
    }

    fn opened(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let open =
            |(a, b): (&u64, &u64)| if self.bitwise { a ^ b } else { self.ring.wrap(a.wrapping_add(*b)) };
        a.iter().zip(b).map(open).collect()
    }
}

fn openings_are_uniform(number: usize, case: &Case) {
    for (fill, (input, word)) in fixed_inputs().into_iter().enumerate() {
        let operands = constant(&case.plan, word);
        let mut tallies: BTreeMap<(u32, &str), (String, Tally)> = BTreeMap::new();
        for run in 0..RUNS {
            let base = seed(number, run * 3 + fill as u64);
            let (session, record) = (base.derive(Domain::Session, 0), base.derive(Domain::Record, 0));
            let t = transcript(&case.plan, &operands, &session, &record);
            assert_eq!(t.sent[0].len(), t.sent[1].len());
            for (a, b) in t.sent[0].iter().zip(&t.sent[1]) {
                let words = words_of(&case.plan, a);
                let (wa, wb) = (words.read(&a.bytes), words.read(&b.bytes));
                // The bits of a byte past the last element are no words: they are zero on both sides.
                let n = if words.bitwise {
                    wa.len() - padding(&case.plan, a)
                } else {
                    elements(&case.plan, a, wa.len())
                };
                let opened = words.opened(&wa, &wb);
                for (view, w) in [("party 0 sends", &wa), ("party 1 sends", &wb), ("is opened", &opened)] {
                    let entry = tallies.entry((a.step.id, view)).or_default();
                    entry.0 = a.step.to_string();
                    entry.1.add(words.ring, &w[..n]);
                }
            }
        }
        for ((_, view), (step, tally)) in &tallies {
            tally.uniform(&format!("{}, inputs {input}: what {view} at step {step}", case.name));
        }
    }
}

/// Elements among the `words` that a message of elements of a small ring seems to hold.
fn elements(plan: &Plan, sent: &Sent, words: usize) -> usize {
    let node = &plan.nodes[sent.step.name[4..].split(' ').next().unwrap().parse::<usize>().unwrap()];
    match node.op {
        Op::MaxPool2d { .. } | Op::Argmax { .. } => words,
        _ => words.min(node.ty.len()),
    }
}

/// Bits that fill up the last byte of a message of bits, known from the gate's operand where it is one vector.
fn padding(plan: &Plan, sent: &Sent) -> usize {
    let node = &plan.nodes[sent.step.name[4..].split(' ').next().unwrap().parse::<usize>().unwrap()];
    match node.op {
        // Planes are opened whole.
        _ if sent.step.name.contains(", level ") => 0,
        // Tournaments open as many bits as a level has pairs; the last byte is left out altogether.
        Op::MaxPool2d { .. } | Op::Argmax { .. } => 8.min(sent.bytes.len() * 8),
        _ => sent.bytes.len() * 8 - plan.nodes[node.inputs[0]].ty.len(),
    }
}

/// Every case, and those that compare once more by chunks in several levels.
fn all_cases() -> Vec<Case> {
    let all: Vec<Case> = cases().into_iter().chain(training_cases()).chain(optional_cases()).collect();
    let chunked = |case: &Case| {
        let plan = in_form(&case.plan, Form::Chunks { width: 2, fan: 3 })?;
        Some(Case { name: format!("{}, by chunks", case.name), plan })
    };
    let others: Vec<Case> = all.iter().filter_map(chunked).collect();
    all.into_iter().chain(others).collect()
}

#[test]
fn openings_of_fixed_inputs_are_uniform() {
    let all = all_cases();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(case) = all.get(i) else { break };
                    openings_are_uniform(i, case);
                }
            });
        }
    });
}

#[test]
fn a_constant_opening_is_found_out() {
    let mut tally = Tally::default();
    for run in 0..RUNS {
        let mut stream = seed(0, run).stream();
        let mut words = stream.elements(Ring::R64, 64);
        words[7] &= !(1 << 40);
        words.iter_mut().for_each(|w| *w &= !(run & 1));
        tally.add(Ring::R64, &words);
    }
    let found = std::panic::catch_unwind(|| tally.uniform("a weak mask"));
    assert!(found.is_err(), "a bit that is zero half of the time must not pass");
}

/// With inputs zero an opening is the sum of mask and a function of zero: the same mask twice shows as the same
/// words twice. 12 bytes never meet by chance (some 10^5 messages: probability below 10^-18).
#[test]
fn no_mask_serves_two_wires_records_or_sessions() {
    let mut seen = HashSet::new();
    let mut messages = 0;
    let sessions = [Seed::random(), Seed::random()];
    for case in all_cases() {
        let operands = constant(&case.plan, |_| 0);
        for session in &sessions {
            for _ in 0..2 {
                let t = transcript(&case.plan, &operands, session, &Seed::random());
                for party in &t.sent {
                    for message in party.iter().filter(|m| m.bytes.len() >= 24) {
                        for words in message.bytes.chunks_exact(12) {
                            let words: [u8; 12] = words.try_into().unwrap();
                            assert!(seen.insert(words), "{}: step {} repeats words", case.name, message.step);
                        }
                        messages += 1;
                    }
                }
            }
        }
    }
    assert!(messages > 1000, "{messages}");
}

/// Masks themselves, wire by wire: a repeated 64-bit word or a zero mask would be seen here.
#[test]
fn mask_words_never_repeat() {
    let plan = gate(Op::Relu, 1, 4, 64, 64);
    let mut seen = HashSet::new();
    for _ in 0..200 {
        let record = Seed::random();
        for seed in privet_fss::RecordSeeds::of(&record).parties {
            for word in seed.operand_mask_share(&plan, 0).iter() {
                assert!(seen.insert(*word), "a mask word came twice");
            }
        }
    }
    assert!(!seen.contains(&0));
}

/// The dealt words of tables hide what they are shares of, from either evaluator: 70,000 elements make two
/// frames of products, one to each.
#[test]
fn dealt_words_are_uniform() {
    let plan = gate(Op::Mul, 2, 70_000, 64, 64);
    let mut tallies = [Tally::default(), Tally::default()];
    for run in 0..4 {
        let base = seed(1000, run);
        let (session, record) = (base.derive(Domain::Session, 0), base.derive(Domain::Record, 0));
        let t = transcript(&plan, &constant(&plan, |_| 1), &session, &record);
        for (tally, frames) in tallies.iter_mut().zip(&t.frames) {
            assert_eq!(frames.len(), 1);
            tally.add(Ring::R64, &unpack(Ring::R64, &frames[0], frames[0].len() / 8).unwrap());
        }
    }
    tallies.iter().enumerate().for_each(|(b, t)| t.uniform(&format!("products dealt to evaluator {b}")));
}

/// Bits of a comparison key, place by place over many keys of the *same* secret threshold: all are fair coins
/// but the root's control bit, which only says which evaluator it is.
#[test]
fn comparison_keys_hide_the_threshold() {
    use privet_kernels::{CompareShape, cpu};
    use privet_prg::{HashKeys, TreeHash};
    let (runs, device) = (400u64, cpu(1));
    let shape = CompareShape { bits: 20, count: 1 };
    for alpha in [0u64, 1, (1 << 20) - 1, 0x5A5A5] {
        let mut ones = [vec![0u64; shape.key_bytes() * 8], vec![0u64; shape.key_bytes() * 8]];
        let hash = TreeHash::new(HashKeys::from_seed(&seed(2000, alpha)));
        for run in 0..runs {
            let mut keys = [vec![0u8; shape.key_bytes()], vec![0u8; shape.key_bytes()]];
            let mut blocks = [0u128; 2];
            seed(2001, run).stream().fill_blocks(&mut blocks);
            let [k0, k1] = &mut keys;
            device.compare_gen(&hash, shape, &[alpha], &blocks[..1], &blocks[1..], k0, k1);
            for (ones, key) in ones.iter_mut().zip(&keys) {
                for (i, one) in ones.iter_mut().enumerate() {
                    *one += u64::from(key[i / 8] >> (i % 8) & 1);
                }
            }
        }
        for (b, ones) in ones.iter().enumerate() {
            let fixed = ones.iter().filter(|&&o| o == 0 || o == runs).count();
            assert!(fixed <= 1, "{fixed} bits of evaluator {b}'s key never change, threshold {alpha}");
            let mut chi = ChiSquare::new();
            ones.iter().filter(|&&o| o != 0 && o != runs).for_each(|&o| chi.coin(o, runs));
            assert!(chi.deviate() < LIMIT, "key of evaluator {b}, threshold {alpha}: {:.1}", chi.deviate());
        }
    }
}

/// `x` rounds up with probability frac(x), each element by its own coin.
#[test]
fn stochastic_rounding_has_the_right_distribution() {
    for to in [20, 24] {
        rounds_stochastically(4, 24, to);
    }
}

fn rounds_stochastically(shift: u32, bits: u32, to: u32) {
    let n = 4096usize;
    let op = Op::Truncate { shift, rounding: Rounding::Stochastic };
    let plan = gate(op, 1, n, bits, to);
    let (ring, reduced) = (Ring::new(bits), Ring::new(to));
    let mut chi = ChiSquare::new();
    for (i, x) in (0..16i64).map(|low| 16 * 1000 + low).chain((0..16).map(|low| -16 * 77 + low)).enumerate() {
        let base = seed(3000 + to as usize, i as u64);
        let (session, record) = (base.derive(Domain::Session, 0), base.derive(Domain::Record, 0));
        let t = transcript(&plan, &constant(&plan, |_| x as u64), &session, &record);
        let floor = ring.signed(ring.wrap(x as u64)) >> shift;
        let mut up = 0;
        let mut pairs = [0u64; 4];
        let mut last = 0;
        for &y in &t.outputs[0] {
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

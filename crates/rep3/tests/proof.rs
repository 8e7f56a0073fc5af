//! The proofs' own messages: whichever is changed on its way, the honest parties stop; and they say nothing.

mod common;

use common::{Ends, Sent, World, sound};
use privet_net::{Channel, Meter, NetError, Step};
use privet_plan::Plan;
use privet_plan::ir::{Op, Type};
use privet_plan::suite::{ChiSquare, LIMIT, constant, fixed_inputs, gate};
use privet_prg::{Domain, Prg, Seed};
use privet_rep3::{PartyId, Security};
use privet_ring::Ring;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits, ring products and matrix products.
fn plans() -> Vec<Plan> {
    let mut linear = gate(Op::Mul, 2, 1, 40, 40);
    for (node, shape) in linear.nodes.iter_mut().zip([[3, 5], [4, 5], [3, 4]]) {
        node.ty = Type { shape: shape.to_vec(), ..node.ty.clone() };
    }
    linear.nodes[2].op = Op::Linear;
    vec![gate(Op::Relu, 1, 200, 9, 9), gate(Op::Mul, 2, 70, 64, 64), linear]
}

fn of_proof(step: &Step) -> bool {
    step.name.contains("/ proof: ")
}

/// A link on which one message of the proofs is changed in one bit.
struct Bent {
    inner: Box<dyn Channel>,
    /// How many messages of proofs pass before.
    wait: Option<usize>,
    place: u64,
}

impl Channel for Bent {
    fn send(&mut self, step: &Step, mut payload: Vec<u8>) -> Result<(), NetError> {
        if of_proof(step) {
            if self.wait == Some(0) {
                let bit = self.place % (8 * payload.len() as u64);
                payload[bit as usize / 8] ^= 1 << (bit % 8);
            }
            self.wait = self.wait.and_then(|n| n.checked_sub(1));
        }
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

fn below(prg: &mut Prg, n: usize) -> usize {
    (prg.elements(Ring::R64, 1)[0] % n as u64) as usize
}

#[test]
fn every_changed_message_of_a_proof_is_found_out() {
    let mut prg = Seed::from_bytes(*b"changed messages").stream();
    for (i, plan) in plans().iter().enumerate() {
        let seed = Seed::from_bytes([i as u8; 16]);
        let world = World::new(plan, Security::Malicious, &constant(plan, |_| 3), &seed);
        let sent = world.transcript();
        for attempt in 0..400 {
            let (liar, forward) = (PartyId::ALL[attempt % 3], attempt % 2 == 0);
            let to = if forward { liar.next() } else { liar.prev() };
            let count = sent[liar.index()].iter().filter(|m| m.to == to && of_proof(&m.step)).count();
            let (wait, place) = (Some(below(&mut prg, count)), prg.elements(Ring::R64, 1)[0]);
            let mut id = 0;
            let ends: Ends = sound().map(|(prev, next)| {
                let bend = |inner, here| {
                    let wait = if here { wait } else { None };
                    Box::new(Bent { inner, wait, place }) as Box<dyn Channel>
                };
                let here = id == liar.index();
                id += 1;
                (bend(prev, here && !forward), bend(next, here && forward))
            });
            let outcomes = world.run(ends);
            let which = wait.unwrap_or(0);
            assert!(outcomes[to.index()].is_err(), "plan {i}: message {which} of {liar} to {to} was taken");
            // only a verdict that one party alone is told may leave the other to go on, with what is right
            let verdict = which + 1 == count;
            let honest = PartyId::ALL.into_iter().filter(|p| *p != liar);
            for p in honest {
                assert!(
                    outcomes[p.index()].is_err() || verdict,
                    "plan {i}: {p} went on after message {which}"
                );
            }
        }
    }
}

/// Runs under fresh hidden keys.
const RUNS: u64 = 40;

#[test]
fn proofs_are_uniform_to_who_receives_them() {
    for (i, plan) in plans().iter().enumerate() {
        for (j, receiver) in PartyId::ALL.into_iter().enumerate() {
            let (input, word) = fixed_inputs()[(i + j) % 3];
            let seed = Seed::from_bytes([40 + i as u8; 16]);
            let mut world = World::new(plan, Security::Malicious, &constant(plan, word), &seed);
            // ones by place, of every message
            let mut ones: BTreeMap<(u32, PartyId), Vec<u32>> = BTreeMap::new();
            for run in 0..RUNS {
                // the key that the receiver does not hold
                let key = seed.derive(Domain::Public, 3 * run + j as u64);
                world.keys[receiver.next().index()].next = key.clone();
                world.keys[receiver.prev().index()].own = key;
                let messages = PartyId::ALL.into_iter().zip(world.transcript());
                let messages = messages.flat_map(|(id, sent)| sent.into_iter().map(move |m| (id, m)));
                // signals are one byte
                let counts = |m: &Sent| m.to == receiver && of_proof(&m.step) && m.bytes.len() > 1;
                for (from, m) in messages.filter(|(_, m)| counts(m)) {
                    let ones = ones.entry((m.step.id, from)).or_default();
                    ones.resize(8 * m.bytes.len(), 0);
                    for (place, ones) in ones.iter_mut().enumerate() {
                        *ones += u32::from(m.bytes[place / 8] >> (place % 8) & 1);
                    }
                }
            }
            assert!(ones.len() >= 6, "seeds, values, challenges and last values");
            for ((step, from), ones) in ones {
                let mut chi = ChiSquare::new();
                ones.iter().for_each(|&ones| chi.coin(ones.into(), RUNS));
                let z = chi.deviate();
                assert!(
                    z < LIMIT,
                    "plan {i}, inputs {input}: step {step}, {from} to {receiver}: deviate {z:.1}"
                );
            }
        }
    }
}

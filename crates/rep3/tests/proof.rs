//! The proofs' own messages: whichever is changed on its way, the honest parties stop.

mod common;

use common::{Ends, World, sound};
use privet_net::{Channel, Meter, NetError, Step};
use privet_plan::Plan;
use privet_plan::ir::{Op, Type};
use privet_plan::suite::{constant, gate};
use privet_prg::{Prg, Seed};
use privet_rep3::{PartyId, Security};
use privet_ring::Ring;
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
        for attempt in 0..200 {
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

//! The proofs' own messages: whichever is changed on its way, the honest parties stop.

mod common;

use common::World;
use privet_net::Step;
use privet_plan::Plan;
use privet_plan::ir::{Op, Type};
use privet_plan::suite::{constant, gate};
use privet_prg::Seed;
use privet_rep3::{PartyId, RunError, Security};
use privet_ring::Ring;
use privet_testkit::attack::below;
use privet_testkit::{Action, Mesh, When};
use std::time::Duration;

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
            // the messages of proofs on this link, by their numbers among all on it
            let on_link = sent[liar.index()].iter().filter(|m| m.to == to.index()).enumerate();
            let of_proofs: Vec<u64> =
                on_link.filter(|(_, m)| of_proof(&m.step)).map(|(i, _)| i as u64).collect();
            let count = of_proofs.len();
            let (which, bit) = (below(&mut prg, count), prg.elements(Ring::R64, 1)[0]);
            let mut mesh = Mesh::patient(3, Duration::from_secs(60));
            let fault = (When::Message(of_proofs[which]), Action::FlipBit(bit as usize));
            mesh.fault(liar.index(), to.index(), [fault]);
            let outcomes = world.run(mesh);
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

/// A verifier that tells a prover other coefficients or challenges than both verifiers drew: the prover and the other verifier both know before
/// they open anything to each other. Else the sum of what both verifiers open would be a function of secrets.
#[test]
fn lies_to_a_prover_are_known_before_last_values() {
    for (i, plan) in plans().iter().enumerate() {
        let seed = Seed::from_bytes([40 + i as u8; 16]);
        let world = World::new(plan, Security::Malicious, &constant(plan, |_| 3), &seed);
        let sent = world.transcript();
        let mut lies = 0;
        for (liar, prover) in PartyId::ALL.into_iter().flat_map(|p| [(p, p.next()), (p, p.prev())]) {
            let on_link = sent[liar.index()].iter().filter(|m| m.to == prover.index()).enumerate();
            let tells = |step: &Step| {
                ["proof: coefficients", "proof: challenge"].iter().any(|what| step.name.ends_with(what))
            };
            let told: Vec<_> =
                on_link.filter(|(_, m)| tells(&m.step) && m.bytes.len() > 1).map(|(at, _)| at).collect();
            for at in told {
                let mut mesh = Mesh::patient(3, Duration::from_secs(60));
                let log = mesh.record();
                mesh.fault(liar.index(), prover.index(), [(When::Message(at as u64), Action::FlipBit(77))]);
                let outcomes = world.run(mesh);
                let other = PartyId::ALL.into_iter().find(|p| ![liar, prover].contains(p)).unwrap();
                let [of_prover, of_other] = [prover, other].map(|p| outcomes[p.index()].as_ref().err());
                let what = format!("plan {i}, message {at} of {liar}: {of_prover:?}, {of_other:?}");
                assert!(matches!(of_prover, Some(RunError::Challenge { .. })), "{what}");
                let named = matches!(of_other, Some(RunError::Report { prover: p, verifier, .. }) if (*p, *verifier) == (prover, liar));
                assert!(named, "{what}");
                for honest in [prover, other] {
                    let opened =
                        log.all()[honest.index()].iter().any(|m| m.step.name.ends_with("proof: last values"));
                    assert!(!opened, "{what}: {honest} opened its last values");
                }
                lies += 1;
            }
        }
        // halves of three seeds by both verifiers, and challenges of two folds where there are three
        assert!(lies >= 6, "plan {i}: {lies} lies");
    }
}

/// A prover is told one half of its seed by each verifier, and the other's half a step later: by then each knows that the other has all messages.
#[test]
fn halves_of_seeds_come_a_step_apart() {
    let plan = &plans()[0];
    let seed = Seed::from_bytes(*b"halves of seeds.");
    let sent = World::new(plan, Security::Malicious, &constant(plan, |_| 3), &seed).transcript();
    let find = |from: PartyId, to: PartyId, what: &str| {
        let mut messages = sent[from.index()].iter().filter(|m| m.to == to.index());
        messages.find(|m| m.step.name.ends_with(what)).expect("sent").clone()
    };
    let contains = |bytes: &[u8], half: &[u8]| bytes.windows(half.len()).any(|some| some == half);
    for prover in PartyId::ALL {
        let [before, after] =
            [prover.prev(), prover.next()].map(|verifier| find(verifier, prover, "proof: coefficients"));
        assert_eq!([before.bytes.len(), after.bytes.len()], [Seed::BYTES; 2]);
        assert_ne!(before.bytes, after.bytes);
        for (verifier, others) in [(prover.prev(), &after), (prover.next(), &before)] {
            let again = find(verifier, prover, "proof: values");
            assert!(again.step.id > others.step.id && contains(&again.bytes, &others.bytes));
        }
    }
}

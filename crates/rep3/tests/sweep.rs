//! Every bit of every message of small plans, and parties that do not agree on what they withstand.
//!
//! `PRIVET_NIGHTLY=1` tries every bit; without it the protocol's own bits and some of the proofs', which are many more.

mod common;

use common::cheat::{Trial, Verdict, honest, judge};
use common::small::world;
use common::{World, parties};
use privet_plan::ir::{Op, Rounding};
use privet_plan::suite::{Case, gate};
use privet_prg::Seed;
use privet_rep3::{Digests, Keys, Party, PartyId, RunError, Security};
use privet_testkit::{Action, Attack, Mesh, Tally, spread};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bits of proofs that are tried of each plan, but for the nightly mode.
const SOME: usize = 600;

/// Every kind of move, and every kind of statement, in as few bits as may be.
fn tiny() -> Vec<Case> {
    let of =
        |name: &str, op, inputs, n, from, to| Case { name: name.into(), plan: gate(op, inputs, n, from, to) };
    vec![
        of("relu", Op::Relu, 1, 3, 3, 3),
        of("mul", Op::Mul, 2, 2, 5, 5),
        of("truncate", Op::Truncate { shift: 2, rounding: Rounding::Stochastic }, 1, 2, 5, 3),
    ]
}

/// A bit of a message: by whom, of which of its messages.
type Bit = (PartyId, usize, usize);

/// The bits that are tried: all that are not of proofs, and of those all or some.
fn bits(truth: &Trial) -> Vec<Bit> {
    let (mut all, mut of_proofs) = (vec![], vec![]);
    for by in PartyId::ALL {
        for (number, sent) in truth.sent[by.index()].iter().enumerate() {
            let long = sent.step.name.contains("/ proof: ") && sent.bytes.len() > 1;
            let to = if long { &mut of_proofs } else { &mut all };
            to.extend((0..8 * sent.bytes.len()).map(|bit| (by, number, bit)));
        }
    }
    let nightly = std::env::var_os("PRIVET_NIGHTLY").is_some();
    // a stride that shares no factor with words or bytes meets all their places
    let stride = if nightly { 1 } else { (of_proofs.len() / SOME) | 1 };
    all.extend(of_proofs.into_iter().step_by(stride));
    all
}

#[test]
fn every_bit_of_every_message_flipped() {
    for case in tiny() {
        let world = world(&case, Security::Malicious, &Seed::random());
        let truth = Trial::honest(&world);
        let bits = bits(&truth);
        let tally = Tally::<(), 4>::default();
        spread(bits.len(), 2, |i| {
            let (by, number, bit) = bits[i];
            let sent = &truth.sent[by.index()][number];
            let mut xor = vec![0; sent.bytes.len()];
            xor[bit / 8] = 1 << (bit % 8);
            let what = format!("{}: bit {bit} of message {number} (step {})", case.name, sent.step);
            let attack = Attack { by: by.index(), what, changes: vec![(number, Action::Xor(xor))] };
            let verdict = judge(&truth, &Trial::attacked(&world, &attack, PATIENCE), &attack);
            tally.count((), verdict as usize);
        });
        let ends = tally.total();
        println!("{}: {} bits, detected, harmless, halved, accepted {ends:?}", case.name, bits.len());
        let detected = ends[Verdict::Detected as usize];
        assert!(10 * detected > 9 * bits.len(), "{}: {ends:?}", case.name);
    }
}

/// Parties of which one trusts the others compare nothing but that, and end.
#[test]
fn parties_of_different_security_do_not_begin() {
    for trusting in PartyId::ALL {
        for (one, rest) in
            [(Security::SemiHonest, Security::Malicious), (Security::Malicious, Security::SemiHonest)]
        {
            let device = privet_kernels::cpu(1);
            let errors = parties(Mesh::patient(3, PATIENCE), |id, prev, next| {
                let keys = Keys::agree(id, prev, next).unwrap();
                let security = if id == trusting { one } else { rest };
                let mut cx = Party::new(id, security, device.as_ref(), keys.derive(1), prev, next);
                cx.compare("shared inputs", Digests::default()).unwrap_err()
            });
            for error in &errors {
                let text = error.to_string();
                assert!(matches!(error, RunError::Mode { .. }) || text.contains("party"), "{text}");
            }
            let told = |e: &RunError| e.to_string().contains("make the files of all parties alike");
            assert!(errors.iter().any(told), "{errors:?}");
        }
    }
}

/// Where they begin all the same, those that do not trust give out nothing that was not proved to them.
#[test]
fn a_party_that_proves_nothing_gets_nothing_from_those_that_ask_for_proofs() {
    for case in tiny() {
        let seed = Seed::random();
        let strict = world(&case, Security::Malicious, &seed);
        let lax = World { security: Security::SemiHonest, ..world(&case, Security::Malicious, &seed) };
        for trusting in PartyId::ALL {
            let results = parties(Mesh::patient(3, PATIENCE), |id, prev, next| {
                let world = if id == trusting { &lax } else { &strict };
                world.evaluate(id, prev, next).map(|_| ())
            });
            for id in honest(trusting) {
                assert!(results[id.index()].is_err(), "{}: {id} went on with {trusting}", case.name);
            }
        }
    }
}

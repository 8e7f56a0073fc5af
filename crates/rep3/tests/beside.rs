//! Verification in the rounds of what the protocol does next: as exact, as strict and as silent as before anything else.

mod common;

use common::cheat::{Trial, judge};
use common::small::{gates, networks};
use common::{Common, World, derived, three, updated};
use privet_plan::interpret_step;
use privet_plan::suite::{Case, cases, joined_cases, training_cases};
use privet_prg::{Domain, Seed};
use privet_rep3::{PartyId, Security};
use privet_ring::Ring;
use privet_testkit::{Kind, Mesh, Tally, Target, record, spread};
use std::collections::BTreeMap;
use std::time::Duration;

/// A run of a case in which whatever is stated is verified at once, beside what follows.
fn world(case: &Case, seed: &Seed) -> World {
    World { beside: Some(0), ..common::small::world(case, Security::Malicious, seed) }
}

/// Results are the interpreter's, and what is sent is counted.
#[test]
fn results_are_exact_and_rounds_are_the_protocols() {
    let joined = joined_cases().into_iter().flatten();
    let all: Vec<Case> = cases().into_iter().chain(training_cases()).chain(joined).collect();
    let shared = Tally::<(), 2>::default();
    spread(all.len(), 2, |i| {
        let (case, seed) = (&all[i], Seed::random());
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let world = world(case, &seed);
        let mut coins = Common(&case.plan, Security::Malicious, derived(&world.keys, 0));
        let (truth, next) = interpret_step(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();
        let mut mesh = Mesh::new(3);
        let log = mesh.record();
        let outcomes = world.run(mesh).map(|y| y.unwrap_or_else(|e| panic!("{}: {e}", case.name)));
        case.compare(&world.outputs(outcomes.each_ref()), &truth);
        let next: BTreeMap<String, Vec<u64>> =
            next.into_iter().map(|(name, tensor)| (name, tensor.data().to_vec())).collect();
        assert_eq!(updated(&case.plan, outcomes.each_ref()), next, "{}: states", case.name);

        let mut logs = world.of_run(three(log.all()));
        let mut rounds = 0;
        for (outcome, log) in outcomes.iter().zip(&mut logs) {
            log.retain(|sent| &*sent.step.name != "run / coins");
            let mut total = outcome.checks;
            outcome.nodes.iter().for_each(|node| total.add(node));
            assert_eq!(total.sent_bytes, record::bytes(&*log), "{}: bytes", case.name);
            rounds = total.rounds;
        }
        // a step is a round of the protocol, or one of a proof, or of both at once: then there are more steps than rounds
        let steps = record::rounds(logs.iter().flatten());
        assert!(rounds <= steps, "{}: {rounds} rounds", case.name);
        shared.count((), usize::from(rounds < steps));
    });
    let [alone, shared] = shared.total();
    assert!(shared > 10, "{alone} cases are verified at their ends alone, {shared} also beside the protocol");
}

/// Every message of every party, of the protocol and of the proofs beside it.
#[test]
fn every_message_changed_is_found() {
    let each = if cfg!(debug_assertions) { 7 } else { 1 };
    let tally = Tally::<Kind, 4>::default();
    for case in gates().into_iter().step_by(4).chain(networks()) {
        let seed = Seed::random();
        let at = world(&case, &seed);
        let truth = Trial::honest(&at);
        let other = Trial::honest(&world(&case, &seed.derive(Domain::Public, 1)));
        let of = |id: PartyId| (0..truth.sent[id.index()].len()).map(move |number| (id, number));
        let targets: Vec<_> = PartyId::ALL.into_iter().flat_map(of).step_by(each).collect();
        let kinds =
            [Kind::FlipAny, Kind::Replay, Kind::OtherInstance, Kind::Zero, Kind::Truncate, Kind::Sever];
        spread(targets.len(), 2, |i| {
            let ((by, number), kind) = (targets[i], kinds[i % kinds.len()]);
            let target =
                Target { by: by.index(), sent: &truth.sent[by.index()], other: &other.sent[by.index()] };
            if let Some(attack) = target.attack(kind, number, &mut Seed::random().stream()) {
                let trial = Trial::attacked(&at, &attack, Duration::from_secs(60));
                tally.count(kind, judge(&truth, &trial, &attack) as usize);
            }
        });
    }
    print!("detected, harmless, halved, accepted\n{tally}");
}

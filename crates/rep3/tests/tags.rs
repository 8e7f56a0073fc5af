//! What a run that ends badly leaves of the session's weights: somebody who cheated may know something of the tags' keys by then.

mod common;

use common::small::world;
use common::{World, derived, parties};
use privet_plan::suite::cases;
use privet_prg::Seed;
use privet_rep3::{Outcome, RunError, Security, SharedWeights};
use privet_testkit::{Action, Attack, Mesh, Sent};
use std::time::Duration;

/// With weights of the session.
fn of(name: &str) -> World {
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    world(&case, Security::Malicious, &Seed::random())
}

fn prepared(world: &World) -> [SharedWeights; 3] {
    parties(Mesh::new(3), |id, prev, next| world.prepare(&mut world.party(id, prev, next)).unwrap())
}

/// A run under keys of its own, and what the parties sent.
fn run(
    world: &mut World,
    weights: &[SharedWeights; 3],
    attack: Option<&Attack>,
) -> ([Result<Outcome, RunError>; 3], [Vec<Sent>; 3]) {
    world.keys = derived(&world.keys, 1);
    let mut mesh = Mesh::patient(3, Duration::from_secs(60));
    if let Some(attack) = attack {
        mesh.attack(attack);
    }
    let log = mesh.record();
    let world = &*world;
    let results = parties(mesh, |id, prev, next| {
        world.run_with(&mut world.party(id, prev, next), &weights[id.index()])
    });
    (results, common::three(log.all()))
}

/// The messages of a party in an honest run, by their steps' names.
fn numbers(sent: &[Sent], name: &str) -> Vec<usize> {
    let named = |(_, sent): &(usize, &Sent)| sent.step.name.ends_with(name);
    sent.iter().enumerate().filter(named).map(|(number, _)| number).collect()
}

#[test]
fn weights_serve_runs_until_one_ends_while_tags_are_compared() {
    let mut world = of("small network");
    let weights = prepared(&world);
    let mut sent = [vec![], vec![], vec![]];
    for _ in 0..3 {
        let (results, all) = run(&mut world, &weights, None);
        assert!(results.iter().all(Result::is_ok));
        sent = all;
    }
    // before anything of tags is opened, a link that breaks costs a run and no more
    let seeds = numbers(&sent[0], "/ proof: coefficients")[0];
    let attack = |by, number, action| Attack { by, what: String::new(), changes: vec![(number, action)] };
    let (results, _) = run(&mut world, &weights, Some(&attack(0, seeds, Action::Kill)));
    assert!(results.iter().all(Result::is_err) && weights.iter().all(|weights| !weights.are_spent()));
    assert!(run(&mut world, &weights, None).0.iter().all(Result::is_ok));

    // after that nobody knows who has seen what
    let last = numbers(&sent[0], "/ proof: last values")[0];
    let (results, _) = run(&mut world, &weights, Some(&attack(0, last, Action::Kill)));
    assert!(results.iter().all(Result::is_err));
    assert!(weights.iter().all(SharedWeights::are_spent));
    let (results, sent) = run(&mut world, &weights, None);
    assert!(results.iter().all(|result| matches!(result, Err(RunError::Spent))));
    assert!(sent.iter().all(Vec::is_empty), "nothing is sent");
}

/// The party before the one that changed it finds it, the other honest one hears of it, and neither has another run.
#[test]
fn a_wrong_product_ends_the_session() {
    for by in 0..3 {
        let mut world = of("linear with bias, 64 bits");
        let weights = prepared(&world);
        let (_, sent) = run(&mut world, &weights, None);
        let product = numbers(&sent[by], "/ product")[0];
        let attack = Attack { by, what: String::new(), changes: vec![(product, Action::FlipBit(3))] };
        let (results, _) = run(&mut world, &weights, Some(&attack));
        let honest = [(by + 1) % 3, (by + 2) % 3];
        let found = |i: usize| matches!(results[i], Err(RunError::Products { .. }));
        let heard = |i: usize| matches!(results[i], Err(RunError::Refused { .. }));
        let errors = results.each_ref().map(|r| r.as_ref().map(|_| ()).map_err(RunError::to_string));
        assert!(
            honest.iter().any(|&i| found(i)) && honest.iter().all(|&i| found(i) || heard(i)),
            "{errors:?}"
        );
        assert!(honest.iter().all(|&i| weights[i].are_spent()));
    }
}

/// Else the verdict of a run would tell whoever changed a tag something of what it was multiplied with.
#[test]
fn a_wrong_tag_is_found_before_any_run() {
    let world = of("small network");
    for (by, sent) in world.prepared().into_iter().enumerate() {
        let tags = numbers(&sent, "/ tags");
        assert!(!tags.is_empty());
        for number in tags {
            let mut mesh = Mesh::patient(3, Duration::from_secs(60));
            mesh.attack(&Attack { by, what: String::new(), changes: vec![(number, Action::FlipBit(77))] });
            let results =
                parties(mesh, |id, prev, next| world.prepare(&mut world.party(id, prev, next)).map(drop));
            let honest = [(by + 1) % 3, (by + 2) % 3];
            assert!(honest.iter().all(|&i| results[i].is_err()), "{by}: {results:?}");
            assert!(honest.iter().any(|&i| matches!(results[i], Err(RunError::Dishonest { .. }))));
        }
    }
}

/// Messages that halves of seeds come with, and a bit of each half: those of the step after a product whose rows are combined.
fn halves_ahead(sent: &[Sent]) -> Vec<(usize, usize)> {
    let product = &sent[numbers(sent, "/ product")[0]];
    let next = sent.iter().enumerate().filter(|(_, message)| message.step.id == product.step.id + 1);
    next.map(|(number, message)| (number, 8 * message.bytes.len() - 3)).collect()
}

/// With other coefficients at one honest party what both open would be a function of secrets.
#[test]
fn nothing_of_tags_is_opened_to_whoever_lied_about_coefficients() {
    let mut world = of("small network");
    let weights = prepared(&world);
    let (_, honest) = run(&mut world, &weights, None);
    for (by, honest) in honest.into_iter().enumerate() {
        let seeds = numbers(&honest, "/ proof: coefficients").into_iter().map(|number| (number, 5));
        let ahead = halves_ahead(&honest);
        assert!(!ahead.is_empty(), "rows are combined ahead");
        for (number, bit) in seeds.chain(ahead) {
            let weights = prepared(&world);
            let attack = Attack { by, what: String::new(), changes: vec![(number, Action::FlipBit(bit))] };
            let (results, sent) = run(&mut world, &weights, Some(&attack));
            let [after, before] = [(by + 1) % 3, (by + 2) % 3];
            assert!(results[after].is_err() && results[before].is_err());
            // the party after the one that lied would open to it
            let opens = |sent: &&Sent| sent.to == by && sent.bytes.len() >= 512;
            let named =
                |sent: &&Sent| ["challenge", "last values"].iter().any(|k| sent.step.name.ends_with(k));
            assert_eq!(sent[after].iter().filter(opens).filter(named).count(), 0, "{by}, message {number}");
        }
    }
}

//! The coins of a run: nobody knows them before the inputs are fixed, nobody chooses them, and a party that spoils them is
//! named.

mod common;

use common::cheat::{Trial, honest};
use common::small::{gates, world};
use common::{World, coins_of, derived};
use privet_plan::suite::Case;
use privet_prg::{Domain, Seed};
use privet_rep3::{PartyId, RunError, Security, rounding_coins};
use privet_testkit::{Action, Attack, Mesh};
use std::collections::HashSet;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const BOTH: [Security; 2] = [Security::SemiHonest, Security::Malicious];

/// A plan that draws coins.
fn case() -> Case {
    gates().into_iter().find(|case| case.name.starts_with("truncate stochastically")).unwrap()
}

/// Give the two parties other than `id` another key, the one that `id` does not hold.
fn hide_anew(world: &mut World, id: PartyId, key: &Seed) {
    world.keys[id.next().index()].next = key.clone();
    world.keys[id.prev().index()].own = key.clone();
}

/// A party's own keys and the common one say nothing of the coins: with all of them fixed, and in the same run, they are others
/// whenever the key that it lacks is.
#[test]
fn a_partys_own_keys_do_not_give_the_coins() {
    let case = case();
    for id in PartyId::ALL {
        let mut world = world(&case, Security::SemiHonest, &Seed::from_bytes([1; 16]));
        let (mut coins, mut results) = (HashSet::new(), HashSet::new());
        for i in 0..8 {
            hide_anew(&mut world, id, &Seed::from_bytes([2; 16]).derive(Domain::Public, i));
            let key = coins_of(&derived(&world.keys, 0));
            assert!(coins.insert(rounding_coins(&key, 1, 5, 130)), "{id}: coins came twice");
            let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
            results.insert(world.outputs(outcomes.each_ref()));
        }
        // 130 elements are rounded by the coins and by nothing else that changed
        assert_eq!(results.len(), 8, "{id}: results do not follow the coins");
    }
}

/// The shares of the coins are the first thing that a party sends in a run, to each neighbour the one that it lacks, and never
/// a key.
#[test]
fn shares_of_the_coins_come_first_and_are_what_the_other_lacks() {
    let world = world(&case(), Security::Malicious, &Seed::random());
    for (id, sent) in PartyId::ALL.into_iter().zip(world.transcript()) {
        let coins: Vec<_> = sent.iter().filter(|sent| sent.step.name.ends_with("/ coins")).collect();
        assert_eq!(coins.len(), 2);
        assert!(sent[..2].iter().all(|sent| sent.step.id == 1 && sent.step.name.ends_with("/ coins")));
        for message in coins {
            // the key that both know, of which the receiver has the other end nowhere
            let keys = &world.keys[id.index()].derive(0);
            let key = if message.to == id.prev().index() { &keys.next } else { &keys.own };
            assert_eq!(message.bytes, key.derive(Domain::Common, 0).expose());
            assert!(message.bytes != key.expose()[..], "a key itself");
        }
    }
}

/// Both other holders send a share, so that one of them alone changes nothing.
#[test]
fn a_wrong_share_of_the_coins_is_found_out_and_its_sender_named() {
    let case = case();
    for security in BOTH {
        let world = world(&case, security, &Seed::random());
        for by in PartyId::ALL {
            for number in 0..2 {
                for bit in (0..128).step_by(5) {
                    let mut xor = vec![0; 16];
                    xor[bit / 8] = 1 << (bit % 8);
                    let what = format!("bit {bit} of share {number} by {by}");
                    let changes = vec![(number, Action::Xor(xor))];
                    let attack = Attack { by: by.index(), what: what.clone(), changes };
                    let trial = Trial::attacked(&world, &attack, PATIENCE);
                    let errors = honest(by).map(|id| trial.results[id.index()].as_ref().err());
                    assert!(errors.iter().all(Option::is_some), "{what}: {errors:?}");
                    let named = |e: &Option<&RunError>| match e {
                        Some(RunError::Coins { before, after, .. }) => [before, after].contains(&&by),
                        _ => false,
                    };
                    assert!(errors.iter().any(named), "{what}: {errors:?}");
                }
            }
        }
    }
}

/// Two runs of a session, and two sessions, have nothing of their coins in common.
#[test]
fn coins_of_runs_differ() {
    let mut seen = HashSet::new();
    for session in 0..3 {
        let keys = common::keys(&Seed::from_bytes([session; 16]));
        for run in 1..20 {
            assert!(seen.insert(*coins_of(&derived(&keys, run)).expose()));
        }
    }
}

//! One party changes one message of a run, any message in any way: the honest ones end with an error that names it, or
//! have the right result.

mod common;

use common::World;
use common::cheat::{Trial, Verdict, honest, judge, step_of, verdict};
use common::small::{gates, networks, world};
use privet_plan::suite::{Case, cases, training_cases};
use privet_prg::{Domain, Prg, Seed};
use privet_rep3::{PartyId, RunError, Security};
use privet_testkit::{Attack, Kind, Tally, Target, spread};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Whether there is time for everything: a run takes several times as long without optimisation.
const OPTIMISED: bool = !cfg!(debug_assertions);
/// What no attack makes an honest party wait for, but one that leaves a message out.
const PATIENCE: Duration = Duration::from_secs(60);
/// For those.
const SHORT: Duration = Duration::from_secs(2);

/// Verdicts by kind of change.
type Verdicts = Tally<Kind, 4>;

fn print(what: &str, tally: &Verdicts) {
    print!("{what}: detected, harmless, halved, accepted\n{tally}");
}

/// All messages of all parties.
fn targets(truth: &Trial) -> Vec<(PartyId, usize)> {
    let of = |id: PartyId| (0..truth.sent[id.index()].len()).map(move |number| (id, number));
    PartyId::ALL.into_iter().flat_map(of).collect()
}

/// All of them, without optimisation some.
fn sample(targets: Vec<(PartyId, usize)>) -> Vec<(PartyId, usize)> {
    targets.into_iter().step_by(if OPTIMISED { 1 } else { 7 }).collect()
}

/// An honest run, one of another instance, and attacks on it.
struct Stage {
    name: String,
    world: World,
    truth: Trial,
    other: Trial,
}

impl Stage {
    fn new(case: &Case, security: Security, seed: &Seed) -> Stage {
        let at = world(case, security, seed);
        let truth = Trial::honest(&at);
        let other = Trial::honest(&world(case, security, &seed.derive(Domain::Public, 1)));
        Stage { name: case.name.clone(), world: at, truth, other }
    }

    fn attack(&self, kind: Kind, (by, number): (PartyId, usize), random: &mut Prg) -> Option<Attack> {
        self.target(by).attack(kind, number, random)
    }

    fn target(&self, by: PartyId) -> Target<'_> {
        let by = by.index();
        Target { by, sent: &self.truth.sent[by], other: &self.other.sent[by] }
    }

    fn judge(&self, attack: &Attack, patience: Duration) -> Verdict {
        let attack = &Attack { what: format!("{}: {}", self.name, attack.what), ..attack.clone() };
        judge(&self.truth, &Trial::attacked(&self.world, attack, patience), attack)
    }

    /// Every message of every party changed in every one of `kinds`; without optimisation some messages, in two of them.
    fn all(&self, kinds: &[Kind], tally: &Verdicts) {
        let targets = sample(targets(&self.truth));
        let each = if OPTIMISED { kinds.len() } else { 2 };
        spread(targets.len() * each, 2, |i| {
            let (target, turn) = (i % targets.len(), i / targets.len());
            let kind = kinds[(target + turn) % kinds.len()];
            let mut random = Seed::random().stream();
            if let Some(attack) = self.attack(kind, targets[target], &mut random) {
                tally.count(kind, self.judge(&attack, PATIENCE) as usize);
            }
        });
    }
}

/// All that need no waiting.
fn prompt() -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Omit | Kind::Reorder)).collect()
}

#[test]
fn every_message_of_every_gate_changed_in_every_way() {
    let tally = Verdicts::default();
    for case in gates() {
        Stage::new(&case, Security::Malicious, &Seed::random()).all(&prompt(), &tally);
    }
    print("gates", &tally);
}

#[test]
fn every_message_of_networks_changed() {
    let tally = Verdicts::default();
    for case in networks() {
        let kinds = [Kind::FlipAny];
        Stage::new(&case, Security::Malicious, &Seed::random()).all(&kinds, &tally);
    }
    print("networks", &tally);
}

/// A message that is left out, or comes after the next, which its sender may never come to: patience ends the run.
#[test]
fn a_message_left_out_ends_the_run_at_both_honest_parties() {
    let tally = Verdicts::default();
    for case in gates().into_iter().step_by(5) {
        let stage = Stage::new(&case, Security::Malicious, &Seed::random());
        let targets = sample(targets(&stage.truth));
        // The threads wait; they do not compute.
        spread(2 * targets.len(), 32, |i| {
            let (kind, target) = ([Kind::Omit, Kind::Reorder][i % 2], targets[i / 2]);
            if let Some(attack) = stage.attack(kind, target, &mut Seed::random().stream()) {
                tally.count(kind, stage.judge(&attack, SHORT) as usize);
            }
        });
    }
    print("left out", &tally);
}

/// The first step at which an honest party found something wrong by itself. What it sets off elsewhere depends on who is
/// faster.
fn noticed(trial: &Trial, by: PartyId) -> Option<u32> {
    let errors = honest(by).into_iter().filter_map(|id| trial.results[id.index()].as_ref().err());
    errors.filter(|error| !matches!(error, RunError::Net(_))).filter_map(step_of).min()
}

/// Whether an attack is noticed, and when, says nothing about what the honest parties hold.
#[test]
fn what_an_attacker_sees_of_its_detection_does_not_depend_on_secrets() {
    for (i, case) in gates().into_iter().enumerate() {
        let seed = Seed::random();
        let [a, b] = [0, 1].map(|inputs| {
            // the same keys over other inputs
            let mut world = world(&case, Security::Malicious, &seed.derive(Domain::Public, inputs));
            world.keys = common::keys(&seed);
            // at the end, and beside what the protocol does
            world.beside = (i % 2 == 1).then_some(0);
            let truth = Trial::honest(&world);
            (world, truth)
        });
        let targets = sample(targets(&a.1));
        spread(targets.len(), 2, |i| {
            let ((by, number), kind) = (targets[i], [Kind::FlipAny, Kind::Random][i % 2]);
            let target = Target { by: by.index(), sent: &a.1.sent[by.index()], other: &[] };
            let attack = target.attack(kind, number, &mut Seed::random().stream()).unwrap();
            let ends = [&a, &b].map(|(world, truth)| {
                // The same difference is made to whatever is sent.
                let attack = attack.shifted(&a.1.sent[by.index()], &truth.sent[by.index()]);
                let trial = Trial::attacked(world, &attack, PATIENCE);
                (verdict(truth, &trial, by), noticed(&trial, by))
            });
            assert_eq!(ends[0], ends[1], "{}: {} by {by}", case.name, attack.what);
        });
    }
}

/// The same changes where nobody proves anything: they go through, so what detects them above is the proofs.
#[test]
fn without_proofs_wrong_outputs_are_accepted() {
    let accepted = AtomicUsize::new(0);
    let stages: Vec<_> =
        gates().iter().map(|case| Stage::new(case, Security::SemiHonest, &Seed::random())).collect();
    for stage in &stages {
        let targets = targets(&stage.truth);
        spread(targets.len(), 2, |i| {
            let mut random = Seed::random().stream();
            let attack = stage.attack(Kind::Random, targets[i], &mut random).unwrap();
            let trial = Trial::attacked(&stage.world, &attack, PATIENCE);
            if verdict(&stage.truth, &trial, targets[i].0) == Verdict::Accepted {
                accepted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let all: usize = stages.iter().map(|stage| targets(&stage.truth).len()).sum();
    let accepted = accepted.into_inner();
    println!("without proofs {accepted} of {all} changed messages give wrong outputs that are accepted");
    assert!(2 * accepted > all, "{accepted} of {all}");
}

/// The plans that are attacked have a message of every kind that any plan of the suite has.
#[test]
fn every_kind_of_message_is_attacked() {
    let kinds = |cases: Vec<Case>| -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for case in cases {
            let truth = Trial::honest(&world(&case, Security::Malicious, &Seed::random()));
            for sent in truth.sent.iter().flatten() {
                kinds.insert(sent.step.name.split_once(" / ").unwrap().1.to_owned());
            }
        }
        kinds
    };
    let attacked = kinds(gates());
    println!("{attacked:#?}");
    let all = cases().into_iter().chain(training_cases()).collect();
    let missing: Vec<_> = kinds(all).difference(&attacked).cloned().collect();
    assert!(missing.is_empty(), "never attacked: {missing:?}");
}

/// 10,000 attempts: random worlds, parties, messages and changes, of up to three messages. Without optimisation 500.
#[test]
fn ten_thousand_random_attempts() {
    const WORLDS: usize = if OPTIMISED { 400 } else { 20 };
    const EACH: usize = 25;
    let cases = gates();
    let tally = Tally::<(), 4>::default();
    spread(WORLDS, 2, |i| {
        let seed = Seed::random();
        let stage = Stage::new(&cases[i % cases.len()], Security::Malicious, &seed);
        let mut random = seed.derive(Domain::Public, 2).stream();
        for attempt in 0..EACH {
            let attack = stage.target(PartyId::ALL[(i + attempt) % 3]).any(&prompt(), &mut random);
            tally.count((), stage.judge(&attack, PATIENCE) as usize);
        }
    });
    let counts = tally.total();
    println!(
        "{} attempts: {} detected, {} harmless, {} halved, {} accepted",
        WORLDS * EACH,
        counts[0],
        counts[1],
        counts[2],
        counts[3]
    );
    assert_eq!((counts.iter().sum::<usize>(), counts[3]), (WORLDS * EACH, 0));
}

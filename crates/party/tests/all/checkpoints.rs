//! Which checkpoints stay at a party when trainings follow each other, whoever is killed meanwhile, and `privet checkpoint`.

use crate::nodes::learning::{School, Truth, first_states, rate};
use crate::nodes::{FSS, Family, Nodes, REP3};
use privet_party::session::control::Id;
use privet_party::store::hex;
use privet_prg::Seed;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Files of checkpoints at a party, by training.
fn files(nodes: &Nodes, party: &str) -> BTreeMap<String, Vec<String>> {
    let names = |dir: &std::path::Path| -> Vec<String> {
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let dir = nodes.path(party).join("checkpoints");
    names(&dir).into_iter().map(|training| (training.clone(), names(&dir.join(training)))).collect()
}

fn trainings(nodes: &Nodes, party: &str) -> Vec<String> {
    files(nodes, party).into_keys().collect()
}

fn sorted(trainings: &[Id]) -> Vec<String> {
    let mut names: Vec<String> = trainings.iter().map(|id| hex(&id.0)).collect();
    names.sort();
    names
}

/// `privet checkpoint` at a party; what it printed, and whether it succeeded.
fn checkpoint(nodes: &Nodes, party: &str, what: &str, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
    command.args(["checkpoint", what, "--config"]).arg(nodes.path(party).join("node.toml")).args(more);
    let done = command.output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(said).unwrap())
}

/// Begin a training and do a step of it.
fn trained(school: &mut School) -> Id {
    let training = school.carol.begin_training(&first_states(), 1).unwrap();
    school.alice.join_training().unwrap();
    school.bob.join_training().unwrap();
    school.step(&rate(0.5)).unwrap();
    training
}

#[test]
fn a_new_training_pushes_out_the_oldest_and_resuming_needs_what_stays() {
    for family in [FSS, REP3] {
        let mut school = School::open_with(family, "lan", "checkpoints_kept = 3");
        school.prepare("train", 5);
        let all: Vec<Id> = (0..4).map(|_| trained(&mut school)).collect();
        // One that takes no step is kept while it is under way, and takes the place of the oldest.
        let idle = school.carol.begin_training(&first_states(), 1).unwrap();
        for party in family.parties {
            assert_eq!(trainings(&school.nodes, party), sorted(&[all[2], all[3], idle]), "{party}");
            let log = school.nodes.log(party);
            assert!(
                log.contains(&format!("removed the checkpoints of training {}", all[0].short())),
                "{log}"
            );
        }
        school.refused(all[1], "no step of training");
        assert_eq!(school.resumed(all[2]).step, 1);
        let newest = trained(&mut school);
        for party in family.parties {
            let left = files(&school.nodes, party);
            assert_eq!(
                left.keys().cloned().collect::<Vec<_>>(),
                sorted(&[all[2], all[3], newest]),
                "{party}"
            );
            assert!(left.values().all(|f| *f == ["0.checkpoint", "1.checkpoint"]), "{left:?}");
        }
        // A training that keeps no checkpoints pushes nothing out.
        school.carol.begin_training(&first_states(), 0).unwrap();
        assert_eq!(trainings(&school.nodes, "party0").len(), 3);

        let last = *family.parties.last().unwrap();
        let name = hex(&all[2].0);
        let (good, said) = checkpoint(&school.nodes, last, "list", &[]);
        assert!(good && said.contains(&name) && said.contains("step 1"), "{said}");
        for (names, says) in [
            (vec![""], "3 trainings in"),
            (vec![&name[..], "no training"], "0 trainings in"),
            (vec![], "required"),
        ] {
            let (good, said) = checkpoint(&school.nodes, last, "remove", &names);
            assert!(!good && said.contains(says) && !said.contains("panicked"), "{said}");
        }
        assert_eq!(trainings(&school.nodes, last).len(), 3, "a name that fits none, and all stay");
        let (good, said) = checkpoint(&school.nodes, last, "remove", &[&name[..12], &name]);
        assert!(good && said.contains(&name), "{said}");
        assert_eq!(trainings(&school.nodes, last), sorted(&[all[3], newest]));
        let number = &last["party".len()..];
        school.refused(all[2], &format!("party {number} has none"));
        assert_eq!(school.resumed(all[3]).step, 1);
        let mut truth = Truth::begin();
        truth.step(0, &rate(0.5));
        assert_eq!(school.reveal(), truth.states());
    }
}

/// Begin one training after the other while a party is killed: what stays is bounded, and can be used.
fn survives(family: Family) {
    let mut school = School::open_with(family, "lan", "checkpoints_kept = 2");
    let mut moments = Seed::random().stream();
    for _ in 0..20 {
        let word = moments.elements(privet_ring::Ring::R64, 1)[0];
        let victim = family.parties[(word >> 32) as usize % family.parties.len()];
        std::thread::scope(|scope| {
            let School { nodes, carol, .. } = &mut school;
            scope.spawn(|| carol.begin_training(&first_states(), 1).ok());
            // Most of the time goes by before files are written.
            std::thread::sleep(Duration::from_micros(word % 60_000));
            nodes.kill(victim);
            nodes.start(victim);
        });
        for party in family.parties {
            let left = files(&school.nodes, party);
            // One more of each: where it was killed between writing and removing.
            assert!(left.values().all(|f| f.len() <= 3), "{party}: {left:?}");
        }
    }
    let mut tries = 0;
    while school.alice.prepare("train", 1, 0).is_err()
        || school.carol.begin_training(&first_states(), 1).is_err()
    {
        tries += 1;
        assert!(tries < 500, "{}", school.nodes.log("party0"));
        std::thread::sleep(Duration::from_millis(50));
    }
    let newest = school.carol.join_training().unwrap().training;
    school.alice.join_training().unwrap();
    school.bob.join_training().unwrap();
    school.step(&rate(0.5)).unwrap();
    for party in family.parties {
        let left = files(&school.nodes, party);
        assert_eq!(left.len(), 2, "{party}: {left:?}");
        assert_eq!(left[&hex(&newest.0)], ["0.checkpoint", "1.checkpoint"], "{party}: {left:?}");
        school.nodes.kill(party);
        school.nodes.start(party);
    }
    assert_eq!(school.resumed(newest).step, 1);
    let mut truth = Truth::begin();
    truth.step(0, &rate(0.5));
    assert_eq!(school.reveal(), truth.states());
}

#[test]
fn killed_while_trainings_begin_parties_keep_no_more_and_lose_nothing() {
    survives(FSS);
    survives(REP3);
}

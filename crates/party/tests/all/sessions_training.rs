//! Training between real processes over TLS, the same for every protocol family: rows, labels and model belong to three
//! clients; parties and clients die, disagree, and get bad checkpoints. What comes out is what the interpreter says,
//! integer by integer.

use crate::nodes::learning::{School, Truth, batch, client, first_states, program, rate};
use crate::nodes::{FSS, Family, REP3, copy, cut, families};
use privet_party::session::client::{ClientError, Publics};
use privet_party::session::control::{At, Id};
use privet_party::session::outcome::Outcome;
use privet_party::store::hex;
use privet_party::tensors::Tensors;
use privet_prg::Seed;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// A checkpoint file of a party.
fn checkpoint(school: &School, party: &str, training: Id, step: u64) -> PathBuf {
    school.nodes.path(party).join("checkpoints").join(hex(&training.0)).join(format!("{step}.checkpoint"))
}

#[test]
fn steps_are_the_interpreters() {
    for family in families().into_iter().filter(|family| family.trains()) {
        let (mut school, mut truth) = (School::open(family, "lan"), Truth::begin());
        assert!(school.step(&rate(0.5)).is_err(), "nothing to train yet");
        let training = school.carol.begin_training(&first_states(), 0).unwrap();
        school.prepare("train", 3);
        for (step, r) in [0.5, 0.25, 0.125].into_iter().enumerate() {
            let outcome = school.step(&rate(r)).unwrap();
            assert_eq!(outcome.outputs, truth.step(step as u64, &rate(r)), "{family:?}, step {step}");
            assert_eq!(outcome.accounts[0].at, Some(At { training, step: step as u64 + 1 }));
            assert_eq!(outcome.accounts[0].plan, "train");
        }
        school.prepare("evaluate", 1);
        let (x, _) = batch(7);
        let predicted = school.alice.step("evaluate", &x, &Publics::new()).unwrap();
        assert_eq!(predicted.outputs, truth.run("evaluate", &x, &Publics::new()));
        assert_eq!(school.reveal(), truth.states());
        for status in school.bob.status().unwrap() {
            assert_eq!(status.training, Some(At { training, step: 3 }));
            assert_eq!(status.plans["train"].runs_left, family.uses_up.map(|_| 0));
            assert!(status.plans["evaluate"].open && status.plans["reveal"].open);
        }
        if let Some(what) = family.uses_up {
            let error = school.step(&rate(0.5)).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("no {what} are left")), "{error}");
        }
        school.nodes.nothing_secret_was_said(&[&first_states(), &batch(0).0, &batch(0).1, &truth.states()]);
    }
}

#[test]
fn callers_that_differ_are_named_and_nothing_is_done() {
    for family in [FSS, REP3] {
        let (mut school, mut truth) = (School::open(family, "lan"), Truth::begin());
        let training = school.carol.begin_training(&first_states(), 0).unwrap();
        school.prepare("train", 3);
        // Whoever asked last is named first.
        let named = ["client:alice and client:bob", "client:bob and client:alice"];
        let differ = "ask for different things in one job: other public numbers";
        let said = school
            .step_with(&batch(0), [&rate(0.5), &rate(0.25)])
            .map(|o: Result<Outcome, ClientError>| o.map(drop).expect_err("they differ").to_string());
        assert!(
            said.iter().any(|s| named.iter().any(|names| s.contains(&format!("{names} {differ}")))),
            "{said:?}"
        );
        truth.step(0, &rate(0.5));
        school.step(&rate(0.5)).unwrap();
        // Bob did not hear that the step ended well.
        school.bob = client(&school.nodes, "bob");
        school.bob.join_training().unwrap();
        school.alice = client(&school.nodes, "alice");
        let (x, y) = batch(1);
        let mut stale = client(&school.nodes, "bob");
        std::thread::scope(|scope| {
            // The step before, which all parties still hold.
            let alice = scope.spawn(|| school.alice.step("train", &x, &rate(0.5)).map(drop));
            let bob = scope.spawn(|| {
                stale.set_training(At { training, step: 0 });
                stale.step("train", &y, &rate(0.5)).map(drop)
            });
            let said = [alice.join().unwrap(), bob.join().unwrap()].map(|r| r.unwrap_err().to_string());
            assert!(said.iter().any(|s| s.contains("step 0 of training")), "{said:?}");
        });
        // Out of range, NaN, missing, and numbers that no plan has: refused before anything is sent.
        for bad in [rate(1.5), rate(f64::NAN), Publics::new()] {
            assert!(school.alice.step("train", &x, &bad).is_err());
        }
        let unknown = school.alice.step("nothing", &x, &Publics::new()).map(drop).unwrap_err().to_string();
        assert!(unknown.contains("`nothing`") && unknown.contains("train"), "{unknown}");
        // Another role cannot begin a training.
        let message = school.alice.begin_training(&first_states(), 0).unwrap_err().to_string();
        assert!(message.contains("client:alice has no role in this"), "{message}");
        let elsewhere = school.alice.resume(Id([3; 16])).unwrap_err().to_string();
        assert!(elsewhere.contains("no step of training 030303030303 is at all parties"), "{elsewhere}");
        school.alice.join_training().unwrap();
        school.bob.join_training().unwrap();
        assert_eq!(school.step(&rate(0.25)).unwrap().outputs, truth.step(1, &rate(0.25)));
        assert_eq!(school.reveal(), truth.states());
    }
}

fn survives_kills(family: Family, steps: u64, every: u64) {
    let (mut school, mut truth) = (School::open(family, "lan"), Truth::begin());
    let mut moments = Seed::random().stream();
    let mut below = |n: u64| moments.elements(privet_ring::Ring::R64, 1)[0] % n;
    let training = school.carol.begin_training(&first_states(), every).unwrap();
    let mut at = school.alice.join_training().unwrap();
    school.bob.join_training().unwrap();
    let mut killed = 0;
    while at.step < steps {
        let _ = school.alice.prepare("train", 1, 0);
        let (delay, victim) = (below(60_000), family.parties[below(family.parties.len() as u64) as usize]);
        let kill = below(2) == 0 || (killed == 0 && at.step + 1 == steps); // at least one
        let (batch, rate) = (batch(at.step), &rate(0.25));
        let stepped = std::thread::scope(|scope| {
            let School { nodes, alice, bob, .. } = &mut school;
            let (x, y) = &batch;
            let a = scope.spawn(move || alice.step("train", x, rate).is_ok());
            let b = scope.spawn(move || bob.step("train", y, rate).is_ok());
            if kill {
                std::thread::sleep(Duration::from_micros(delay));
                nodes.kill(victim);
                nodes.start(victim);
                killed += 1;
            }
            a.join().unwrap() & b.join().unwrap()
        });
        at = match stepped && !kill {
            true => school.alice.training().unwrap(),
            false => school.resumed(training),
        };
    }
    for step in 0..steps {
        truth.step(step, &rate(0.25));
    }
    assert!(killed > 0);
    assert_eq!(school.reveal(), truth.states(), "{family:?} after {killed} kills");
    for party in family.parties {
        assert!(!school.nodes.log(party).contains("panicked"), "{}", school.nodes.log(party));
    }
    school.nodes.nothing_secret_was_said(&[&first_states(), &truth.states()]);
}

#[test]
fn parties_killed_at_any_moment_go_on_to_the_same_states() {
    survives_kills(FSS, 12, 1);
    survives_kills(FSS, 8, 3);
    survives_kills(REP3, 12, 1);
    survives_kills(REP3, 8, 3);
}

#[test]
fn all_parties_killed_go_on_from_their_checkpoints() {
    for family in families().into_iter().filter(|family| family.trains()) {
        let (mut school, mut truth) = (School::open(family, "lan"), Truth::begin());
        let training = school.carol.begin_training(&first_states(), 2).unwrap();
        school.prepare("train", 5);
        for step in 0..5 {
            school.step(&rate(0.5)).unwrap();
            if step < 4 {
                truth.step(step, &rate(0.5));
            }
        }
        for party in family.parties {
            let mut files: Vec<_> = fs::read_dir(checkpoint(&school, party, training, 4).parent().unwrap())
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            assert_eq!(files, ["2.checkpoint", "4.checkpoint"], "the last two are kept");
            let meta = fs::metadata(checkpoint(&school, party, training, 4)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
            school.nodes.kill(party);
            school.nodes.start(party);
        }
        school.prepare("train", 1);
        let lost = school.step(&rate(0.5)).map(drop).unwrap_err().to_string();
        assert!(lost.contains("resume"), "{lost}");
        assert_eq!(school.resumed(training), At { training, step: 4 });
        assert_eq!(school.step(&rate(0.25)).unwrap().outputs, truth.step(4, &rate(0.25)), "{family:?}");
        assert_eq!(school.reveal(), truth.states());
    }
}

#[test]
fn bad_checkpoints_are_refused_by_name() {
    for family in [FSS, REP3] {
        let mut school = School::open(family, "lan");
        let other = school.carol.begin_training(&first_states(), 1).unwrap();
        let training = school.carol.begin_training(&first_states(), 1).unwrap();
        school.prepare("train", 2);
        school.step(&rate(0.5)).unwrap();
        school.step(&rate(0.5)).unwrap();
        let last = *family.parties.last().unwrap();
        let file = |school: &School, step| checkpoint(school, last, training, step);
        let good = [1, 2].map(|step| fs::read(file(&school, step)).unwrap());
        let elsewhere = checkpoint(&school, "party0", training, 2);
        let of_other = checkpoint(&school, last, other, 0);
        type Spoil<'a> = &'a dyn Fn(&std::path::Path);
        let flipped = |at_end: bool| {
            let bytes = good[1].clone();
            move |path: &std::path::Path| {
                let mut bytes = bytes.clone();
                let at = if at_end { bytes.len() - 40 } else { 20 };
                bytes[at] ^= 1;
                fs::write(path, bytes).unwrap();
            }
        };
        let (in_header, in_shares) = (flipped(false), flipped(true));
        let swapped = |path: &std::path::Path| fs::write(path, &good[0]).unwrap();
        let spoils: [(Spoil, &str); 7] = [
            (&|path| cut(path, 60), "cut off"),
            (&|path| cut(path, good[1].len() as u64 - 1), "cut off, or was changed"),
            (&in_header, "changed"),
            (&in_shares, "changed"),
            (&|path| copy(&elsewhere, path), "it is party 0's, and this is party"),
            (&|path| copy(&of_other, path), "it is of training"),
            (&swapped, "it holds step 1, which its name does not say"),
        ];
        for (spoil, says) in spoils {
            spoil(&file(&school, 2));
            for party in family.parties {
                school.nodes.kill(party);
                school.nodes.start(party);
            }
            // The step before is whole at all parties.
            assert_eq!(school.resumed(training).step, 1, "{says}");
            let log = school.nodes.log(last);
            assert!(log.contains("2.checkpoint is refused") && log.contains(says), "`{says}`: {log}");
            fs::write(file(&school, 2), &good[1]).unwrap();
        }
        // Both are bad at one party: nothing to go on from, and the error says which files and why.
        for step in [1, 2] {
            cut(&file(&school, step), 30);
        }
        school.nodes.kill(last);
        school.nodes.start(last);
        let number = &last["party".len()..];
        let error = school.refused(training, &format!("party {number} has none"));
        assert!(error.contains("begin the training anew"), "{error}");
        for (step, good) in [1, 2].into_iter().zip(&good) {
            fs::write(file(&school, step), good).unwrap();
        }
        assert_eq!(school.resumed(training).step, 2);
        let truth = &mut Truth::begin();
        truth.step(0, &rate(0.5));
        truth.step(1, &rate(0.5));
        assert_eq!(school.reveal(), truth.states());
    }
}

#[test]
fn rep3_finds_a_party_that_restores_other_shares() {
    let mut school = School::open(REP3, "lan");
    let training = school.carol.begin_training(&first_states(), 1).unwrap();
    let path = checkpoint(&school, "party1", training, 0);
    let good = fs::read(&path).unwrap();
    let mut bytes = good.clone();
    let end = bytes.len() - 32;
    bytes[end - 1] ^= 1;
    let digest = *blake3::hash(&bytes[..end]).as_bytes();
    bytes[end..].copy_from_slice(&digest);
    fs::write(&path, &bytes).unwrap();
    for party in REP3.parties {
        school.nodes.kill(party);
        school.nodes.start(party);
    }
    school.refused(training, "training / states");
    fs::write(&path, good).unwrap();
    assert_eq!(school.resumed(training).step, 0);
    assert_eq!(school.reveal(), Truth::begin().states());
}

#[test]
fn commands_know_programs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program.json");
    fs::write(&file, program().to_json()).unwrap();
    let privet = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_privet"))
            .args(args)
            .arg(&file)
            .args(if args[1] == "show" { &[][..] } else { &["--protocol", "rep3"] })
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for what in ["show", "estimate", "audit"] {
        let text = privet(&["plan", what]);
        let positions: Vec<_> =
            ["train", "evaluate", "reveal"].map(|p| text.find(&format!("--- {p} ---"))).into();
        assert!(positions.is_sorted() && positions[0].is_some(), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&privet(&["plan", "show", "--json"])).unwrap();
    assert_eq!(json["hash"], hex(&program().hash()));
    assert_eq!(json["plans"][0]["updates"], 2);
    let audit: serde_json::Value =
        serde_json::from_str(&privet(&["plan", "audit", "--of", "reveal", "--json"])).unwrap();
    let to: Vec<_> = audit["openings"].as_array().unwrap().iter().map(|o| o["to"].to_string()).collect();
    assert!(to.iter().any(|c| c.contains("model_owner")), "{audit}");
    let _: Tensors = first_states();
}

//! Records of `semi2k` between real processes over TLS: prepared among the parties or by a dealer, never the one in place of the
//! other; single use, whoever is killed when; two parties, three, five.

use crate::nodes::{Family, Nodes, SEMI2K, SEMI2K_DEALT, named, numbers, small, truth};
use privet_party::session::client::{ClientError, Prepared};
use privet_party::tensors::Tensors;
use privet_plan::program::ONLY_PLAN;
use privet_prg::Seed;
use privet_ring::Ring;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Nothing takes this long.
const HANGS: Duration = Duration::from_secs(60);

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs(salt: usize) -> Tensors {
    named("x", numbers(&[2, 3], salt))
}

#[track_caller]
fn works(nodes: &Nodes, more: &[&str], salt: usize) {
    nodes.run(more, &inputs(salt)).good();
    assert_eq!(nodes.outputs(), truth(&small(), &inputs(salt), &weights()), "inputs {salt}");
}

fn started(family: crate::nodes::Family) -> Nodes {
    let mut nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
    nodes.start_all();
    nodes
}

type Answer = Receiver<Result<Prepared, ClientError>>;

/// Ask for records, in the background.
fn prepare(nodes: &Nodes, runs: u64) -> Answer {
    let mut client = nodes.client("client");
    let (done, result) = channel();
    std::thread::spawn(move || done.send(client.prepare(ONLY_PLAN, runs, 0)));
    result
}

#[track_caller]
fn answered(answer: &Answer) -> Result<Prepared, ClientError> {
    answer.recv_timeout(HANGS).expect("the preparation hangs")
}

#[test]
fn two_three_and_five_parties_compute_what_the_interpreter_does() {
    for n in [2, 3, 5] {
        let nodes = started(SEMI2K.among(n));
        let prepared = answered(&prepare(&nodes, 2)).unwrap();
        assert!(prepared.key_bytes > 0 && prepared.sent_bytes > 0 && prepared.rounds > 0, "{n} parties");
        works(&nodes, &[], 2);
        works(&nodes, &[], 3);
        nodes.run(&[], &inputs(4)).says(&["no records are left"]);
        // Of the session that is open: nobody shares the model again.
        works(&nodes, &["--prepare", "1"], 5);
        let sessions: BTreeSet<String> =
            nodes.runs("party0").iter().map(|run| run.split('/').next().unwrap().to_owned()).collect();
        assert_eq!(sessions.len(), 1, "{n} parties");
        nodes.used_once();
        nodes.nothing_secret_was_said(&[&weights(), &inputs(2), &inputs(3), &inputs(5)]);
    }
}

/// As the first test, with transfers that a code makes of few: fewer bytes for the same records.
#[test]
fn parties_make_transfers_as_their_deployment_says() {
    const SILENT: Family = Family { set: &["transfers=ferret"], ..SEMI2K };
    let [few, many] = [SILENT, SEMI2K].map(|family| {
        let nodes = started(family.among(2));
        let prepared = answered(&prepare(&nodes, 40)).unwrap();
        works(&nodes, &[], 2);
        nodes.used_once();
        prepared
    });
    assert_eq!(few.key_bytes, many.key_bytes);
    assert!(few.sent_bytes != many.sent_bytes, "{} bytes both ways", few.sent_bytes);
}

#[test]
fn what_records_cannot_be_is_refused() {
    for family in [SEMI2K, SEMI2K_DEALT] {
        let nodes = started(family);
        nodes.run(&["--prepare", "2", "--checks", "1"], &inputs(1)).says(&["cannot be checked"]);
        nodes.run(&["--prepare", "2", "--stream"], &inputs(1)).says(&["without a stream"]);
        works(&nodes, &["--prepare", "1"], 2);
    }
}

#[test]
fn records_of_a_dealer_are_used_only_where_the_deployment_has_one() {
    for family in [SEMI2K.among(2), SEMI2K_DEALT] {
        let mut nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
        // Files of a dealer, carried to the parties.
        let mut deal = Command::new(env!("CARGO_BIN_EXE_privet"));
        deal.args(["deal", "--protocol", "semi2k", "--set", "helper=dealer", "--runs", "2", "--plan"]);
        deal.arg(nodes.path("plan.json")).arg("--stores");
        deal.args(family.parties.iter().map(|party| nodes.path(party).join("store")));
        let done = deal.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(family.parties.iter().all(|party| nodes.records(party).len() == 2));
        nodes.start_all();
        if family.dealer {
            works(&nodes, &[], 1);
        } else {
            nodes.run(&[], &inputs(1)).says(&["no records are left"]);
            works(&nodes, &["--prepare", "1"], 1);
            assert!(
                family.parties.iter().all(|party| nodes.records(party).len() == 2),
                "they stay where they are"
            );
        }
        nodes.used_once();
    }
}

/// Numbers of the records that a party holds, by session.
fn held(nodes: &Nodes, party: &str) -> BTreeSet<String> {
    let name = |path: &std::path::PathBuf| {
        let session = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        format!("{session}/{}", path.file_stem().unwrap().to_str().unwrap())
    };
    nodes.records(party).iter().map(name).collect()
}

#[test]
fn killed_at_any_moment_of_a_preparation_a_party_leaves_nothing_that_others_count_on() {
    let family = SEMI2K.among(3);
    let mut nodes = started(family);
    let mut moments = Seed::random().stream();
    for life in 0..12 {
        let word = moments.elements(Ring::R64, 1)[0];
        let victim = family.parties[(word % 3) as usize];
        let answer = prepare(&nodes, 200);
        std::thread::sleep(Duration::from_millis(word >> 32 & 0x1FF));
        nodes.kill(victim);
        let ended = answered(&answer).map(drop).map_err(|e| e.to_string());
        // Whoever lives holds a record that others lack only where that party died between the last word and the name.
        let all: Vec<BTreeSet<String>> = family.parties.iter().map(|party| held(&nodes, party)).collect();
        for (party, records) in family.parties.iter().zip(&all) {
            let lacking = all.iter().map(|others| records.difference(others).count()).max().unwrap();
            assert!(lacking <= life + 1, "{party} holds {lacking} that others lack: {ended:?}");
        }
        nodes.start(victim);
        if let Err(e) = ended {
            assert!(!e.contains("panicked"), "{e}");
        }
        nodes.used_once();
    }
    let mut tries = 0;
    while let Err(e) = answered(&prepare(&nodes, 3)) {
        tries += 1;
        assert!(tries < 100, "{e}");
        std::thread::sleep(Duration::from_millis(100));
    }
    (0..3).for_each(|salt| works(&nodes, &[], salt));
    for party in family.parties {
        assert!(!nodes.log(party).contains("panicked"), "{}", nodes.log(party));
    }
    nodes.used_once();
}

#[test]
fn killed_at_any_moment_of_runs_no_record_is_used_twice() {
    let family = SEMI2K.among(3);
    let mut nodes = started(family);
    let mut moments = Seed::random().stream();
    for life in 0..12 {
        let client = nodes.begin(&["--prepare", "4"], &inputs(life));
        let word = moments.elements(Ring::R64, 1)[0];
        std::thread::sleep(Duration::from_micros(word % 600_000));
        let victim = family.parties[life % 3];
        nodes.kill(victim);
        nodes.start(victim);
        // It may have finished before, or have failed; it must end.
        let ran = nodes.finish(client);
        assert!(ran.code == Some(0) || ran.err.contains("fix:"), "{}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        nodes.used_once();
    }
    works(&nodes, &["--prepare", "1"], 77);
    nodes.used_once();
}

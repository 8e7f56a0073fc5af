//! A server with weights and its client, as real processes over TLS: records of transfers and masks, single use whoever is killed
//! when; weights at party 0 alone; several clients, a deployment each.

use crate::nodes::{HEOT, Nodes, named, numbers, small, truth};
use privet_party::tensors::Tensors;
use privet_prg::Seed;
use privet_ring::Ring;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

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

fn started() -> Nodes {
    let mut nodes = Nodes::of(HEOT, &small(), Some(&weights()), "lan", &[]);
    nodes.start_all();
    nodes
}

fn sessions(nodes: &Nodes) -> usize {
    let runs = nodes.runs("party0");
    runs.iter().map(|run| run.split('/').next().unwrap()).collect::<BTreeSet<_>>().len()
}

#[test]
fn records_made_before_and_within_a_session_serve_its_runs() {
    let nodes = started();
    works(&nodes, &["--prepare", "4"], 2);
    (3..6).for_each(|salt| works(&nodes, &[], salt));
    nodes.run(&[], &inputs(6)).says(&["no records are left"]);
    // Of the session that is open: transfers and masks, and no new hints.
    works(&nodes, &["--prepare", "1"], 7);
    assert_eq!(sessions(&nodes), 1);
    for party in HEOT.parties {
        assert_eq!(nodes.records(party).len(), 0, "both records of each run are gone from {party}");
    }
    nodes.used_once();
    nodes.nothing_secret_was_said(&[&weights(), &inputs(2), &inputs(7)]);
}

/// Masks of the first runs are made while hints pass, of further ones afterwards: each serves one run, whichever it is.
#[test]
fn masks_of_more_runs_than_are_made_with_hints_serve_as_well() {
    let nodes = started();
    works(&nodes, &["--prepare", "10"], 2);
    (3..12).for_each(|salt| works(&nodes, &[], salt));
    nodes.run(&[], &inputs(12)).says(&["no records are left"]);
    nodes.used_once();
}

#[test]
fn what_records_cannot_be_is_refused() {
    let nodes = started();
    nodes.run(&["--prepare", "2", "--checks", "1"], &inputs(1)).says(&["cannot be checked"]);
    nodes.run(&["--prepare", "2", "--stream"], &inputs(1)).says(&["without a stream"]);
    works(&nodes, &["--prepare", "1"], 2);
}

#[test]
fn nobody_but_the_server_may_own_weights() {
    for owner in ["party:1", "client:client"] {
        let dir = tempfile::tempdir().unwrap();
        let plan = dir.path().join("plan.json");
        std::fs::write(&plan, privet_plan::Program::from(small()).to_json()).unwrap();
        let mut init = Command::new(env!("CARGO_BIN_EXE_privet"));
        init.args(["init", "--protocol", "heot", "--model-owner", owner, "--local"]);
        let done = init.arg(dir.path().join("d")).arg("--plan").arg(&plan).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains("party 0, computes with the weights"), "{said}");
    }
}

#[test]
fn killed_at_any_moment_no_record_is_used_twice() {
    let mut nodes = started();
    let mut moments = Seed::random().stream();
    for life in 0..10 {
        let client = nodes.begin(&["--prepare", "4"], &inputs(life));
        let word = moments.elements(Ring::R64, 1)[0];
        std::thread::sleep(Duration::from_micros(word % 900_000));
        let victim = HEOT.parties[life % 2];
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
    for party in HEOT.parties {
        assert!(!nodes.log(party).contains("panicked"), "{}", nodes.log(party));
    }
}

/// A deployment a client: one that is killed costs the other nothing.
#[test]
fn two_clients_of_one_model_are_apart() {
    let (mut first, second) = (started(), started());
    works(&first, &["--prepare", "4"], 1);
    works(&second, &["--prepare", "4"], 2);
    first.kill("party1");
    works(&second, &[], 3);
    first.start("party1");
    works(&second, &[], 4);
    works(&first, &["--prepare", "1"], 5);
    first.used_once();
    second.used_once();
}

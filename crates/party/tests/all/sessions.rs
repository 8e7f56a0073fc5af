//! Sessions of `fss` between real processes over TLS: what can happen to keys, their store and the dealer. Each fault ends
//! in bounded time with a message that says cause and remedy, and the next proper run works. What can happen to sessions
//! of any family is in `sessions_all.rs`.

use crate::nodes::{Nodes, PARTIES, copy, cut, deep, named, numbers, small, truth};
use privet_party::tensors::Tensors;
use privet_plan::FloatTensor;
use privet_prg::Seed;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs(salt: usize) -> Tensors {
    named("x", numbers(&[2, 3], salt))
}

/// A run that has to work, with the interpreter's result.
#[track_caller]
fn works(nodes: &Nodes, more: &[&str], salt: usize) {
    nodes.run(more, &inputs(salt)).good();
    assert_eq!(nodes.outputs(), truth(&small(), &inputs(salt), &weights()), "inputs {salt}");
}

fn started() -> Nodes {
    let mut nodes = Nodes::new(&small(), &weights(), "lan");
    nodes.start_all();
    nodes
}

#[test]
fn results_are_the_interpreters() {
    let nodes = started();
    works(&nodes, &["--prepare", "2"], 2);
    works(&nodes, &[], 3);
    nodes.run(&[], &inputs(4)).says(&["no keys are left for another run: prepare more", "fix:"]);
    works(&nodes, &["--prepare", "1"], 5);
    for name in PARTIES {
        assert_eq!(nodes.records(name).len(), 0);
    }
    nodes.nothing_secret_was_said(&[&weights(), &inputs(2), &inputs(3), &inputs(4), &inputs(5)]);
}

#[test]
fn a_client_can_own_the_model() {
    let mut nodes = Nodes::with_owner(&small(), None, "lan");
    nodes.start_all();
    let file = nodes.path("client/weights.safetensors");
    privet_party::tensors::save(&file, &weights()).unwrap();
    let with = ["--weights", file.to_str().unwrap()];
    nodes.run(&[], &inputs(1)).says(&["no session is open: the model owner must share the model first"]);
    works(&nodes, &[&["--prepare", "2"][..], &with].concat(), 2);
    works(&nodes, &with, 3);
    // A restarted party has lost the open session; the message says what to do, and it works.
    nodes.kill("party1");
    nodes.start("party1");
    works(&nodes, &[&["--prepare", "1"][..], &with].concat(), 4);
    nodes.nothing_secret_was_said(&[&weights(), &inputs(1), &inputs(2), &inputs(3), &inputs(4)]);
}

#[test]
fn a_restarted_party_gets_a_new_session_by_itself() {
    let mut nodes = started();
    works(&nodes, &["--prepare", "3"], 1);
    nodes.kill("party1");
    nodes.start("party1");
    nodes.run(&[], &inputs(2)).says(&["no keys are left for another run: prepare more"]);
    works(&nodes, &["--prepare", "1"], 3);
    nodes.kill("party0");
    nodes.start("party0");
    works(&nodes, &["--prepare", "1"], 4);
    nodes.kill("dealer");
    nodes.start("dealer");
    works(&nodes, &["--prepare", "1"], 5);
}

#[test]
fn the_dealer_killed_while_dealing() {
    let (plan, n) = (deep(4, 2000), 2000);
    let bias = named("fc.weight", numbers(&[n], 1));
    let x = named("x", numbers(&[n], 2));
    let mut nodes = Nodes::new(&plan, &bias, "lan");
    nodes.start_all();
    let client = nodes.begin(&["--prepare", "200"], &x);
    nodes.until("the first keys", |n| n.records("party0").len() > 1 && n.records("party1").len() > 1);
    nodes.kill("dealer");
    nodes.finish(client).says(&["no keys from the dealer", "dealer", "closed the connection", "fix:"]);
    nodes.run(&["--prepare", "1"], &x).says(&[
        "no keys from the dealer",
        "nobody listens at",
        "start the peer there",
    ]);
    nodes.start("dealer");
    for name in PARTIES {
        assert!(!nodes.records(name).is_empty(), "nothing stored whole stayed at {name}");
        assert_eq!(nodes.parts(name), 0, "half a record is left at {name}");
    }
    // What was stored whole still works.
    nodes.run(&[], &x).good();
    nodes.run(&["--prepare", "1"], &x).good();
    assert_eq!(nodes.outputs(), truth(&plan, &x, &bias));
    for name in PARTIES {
        // The open session ended with the dealer that knew it, and took its keys along.
        assert!(nodes.records(name).is_empty(), "keys of an ended session stay at {name}");
        assert_eq!(nodes.parts(name), 0, "half a record is left at {name}");
    }
}

#[test]
fn a_party_that_cannot_reach_the_dealer_ends_the_preparation_of_both() {
    let mut nodes = started();
    // Party 1 calls a dealer that is not there.
    let file = nodes.path("deployment.toml");
    let other = nodes.path("party1/deployment.toml");
    let text = fs::read_to_string(&file).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = text.find("[dealer]").unwrap();
    let line = text[at..].find("address").unwrap() + at;
    let end = text[line..].find('\n').unwrap() + line;
    let changed = format!("{}address = \"127.0.0.1:{port}\"{}", &text[..line], &text[end..]);
    fs::write(&other, changed.replace("\"plan.json\"", "\"../plan.json\"")).unwrap();
    let node = nodes.path("party1/node.toml");
    let kept = fs::read_to_string(&node).unwrap();
    fs::write(&node, kept.replace("../deployment.toml", "deployment.toml")).unwrap();
    nodes.kill("party1");
    nodes.start("party1");
    // Both parties end it at once, whichever answers the client first: party 1 tells party 0 why.
    nodes.run(&["--prepare", "1"], &inputs(1)).says(&["no keys from the dealer", "nobody listens at"]);
    for name in PARTIES {
        nodes.until("its log", |n| n.log(name).contains("nobody listens at"));
    }
    fs::write(&node, kept).unwrap();
    nodes.kill("party1");
    nodes.start("party1");
    works(&nodes, &["--prepare", "1"], 2);
}

#[test]
fn a_port_or_a_store_in_use_is_named() {
    let mut nodes = Nodes::new(&small(), &weights(), "lan");
    let deployment = privet_party::config::load_deployment(&nodes.path("deployment.toml")).unwrap();
    let address = deployment.address(&"party:0".parse().unwrap()).unwrap().to_string();
    let held = TcpListener::bind(&address).unwrap();
    nodes.start_refused("party0").says(&[&address, "the port is in use", "stop the other process"]);
    drop(held);
    nodes.start_all();
    works(&nodes, &["--prepare", "1"], 1);
    nodes.start_refused("party0").says(&["another privet process uses this key store", "`store` directory"]);
    works(&nodes, &["--prepare", "1"], 2);
}

#[test]
fn a_session_that_cannot_begin_is_not_used_up() {
    let mut nodes = started();
    nodes.run(&["--prepare", "1", "--no-run"], &inputs(1)).good();
    // The model's owner has lost its file, or has another model.
    let node = nodes.path("party1/node.toml");
    let kept = fs::read_to_string(&node).unwrap();
    let file = kept.lines().find(|l| l.starts_with("weights")).unwrap().to_owned();
    let other = nodes.path("other.safetensors");
    privet_party::tensors::save(&other, &named("fc.weight", numbers(&[3, 4], 1))).unwrap();
    let changes = [
        ("".to_owned(), "names no `weights` file"),
        (format!("weights = {other:?}"), "the weights do not fit the plan"),
    ];
    for (line, says) in changes {
        fs::write(&node, kept.replace(&file, &line)).unwrap();
        nodes.kill("party1");
        nodes.start("party1");
        nodes.run(&[], &inputs(1)).says(&["party 1 declined", says]);
    }
    fs::write(&node, kept).unwrap();
    nodes.kill("party1");
    nodes.start("party1");
    for name in PARTIES {
        assert_eq!(nodes.journal(name).len(), 0, "{:?}", nodes.journal(name));
    }
    works(&nodes, &[], 2);
}

#[test]
fn bad_inputs_are_refused_before_anything_is_sent() {
    let nodes = started();
    nodes.run(&["--prepare", "1", "--no-run"], &inputs(1)).good();
    let with = |i: usize, value: f64| {
        let mut x = numbers(&[2, 3], 9);
        x.data[i] = value;
        named("x", x)
    };
    let refuse = |x: &Tensors, says: &[&str]| nodes.run(&[], x).says(says);
    refuse(&with(4, f64::NAN), &["input `x`", "4", "NaN", "fix:"]);
    refuse(&with(0, f64::INFINITY), &["input `x`", "0", "fix:"]);
    refuse(&with(5, f64::NEG_INFINITY), &["input `x`", "5", "fix:"]);
    refuse(&with(2, 98_765.432), &["input `x`", "2", "calibrate with inputs like it"]);
    refuse(&with(2, -8.5), &["input `x`", "2", "calibrate with inputs like it"]);
    refuse(&named("x", numbers(&[3, 2], 9)), &["input `x` has shape [3, 2], but the plan takes [2, 3]"]);
    refuse(&named("x", numbers(&[6], 9)), &["has shape [6]"]);
    refuse(&named("y", numbers(&[2, 3], 9)), &["input `x` was not given"]);
    for name in PARTIES {
        assert_eq!(nodes.records(name).len(), 1, "a refused input must not cost keys");
    }
    works(&nodes, &[], 2);
    let secret = named("x", FloatTensor { shape: vec![1], data: vec![98_765.432] });
    nodes.nothing_secret_was_said(&[&weights(), &secret, &named("x", numbers(&[2, 3], 9))]);
}

#[test]
fn used_truncated_and_swapped_key_files_are_refused() {
    let mut nodes = started();
    nodes.run(&["--prepare", "8", "--no-run"], &inputs(1)).good();
    let files = PARTIES.map(|p| nodes.records(p));
    let saved = PARTIES.map(|p| {
        let to = nodes.path(&format!("saved-{p}"));
        copy(&nodes.records(p)[0], &to);
        to
    });
    works(&nodes, &[], 2);
    // Put back after use: record 1 is next, and record 0 stays out.
    (0..2).for_each(|p| copy(&saved[p], &files[p][0]));
    works(&nodes, &[], 3);
    assert!(nodes.journal("party0").last().unwrap().ends_with("/1"));
    // Copied over an unused one, at either party.
    copy(&saved[0], &files[0][2]);
    nodes.run(&[], &inputs(4)).says(&["another run (found 0, wanted 2)", "put back the right file"]);
    copy(&saved[1], &files[1][3]);
    nodes.run(&[], &inputs(4)).says(&["another run (found 0, wanted 3)", "put back the right file"]);
    // The other party's file.
    copy(&files[0][4], &files[1][4]);
    nodes.run(&[], &inputs(4)).says(&["another party (found 0, wanted 1)", "put back the right file"]);
    cut(&files[0][5], 300);
    nodes.run(&[], &inputs(4)).says(&["/5: the key record is truncated (300 bytes)", "deal new keys"]);
    // Which file it is, that party's own log says, and nobody else is told; where the store is, nobody.
    let session = files[0][5].parent().unwrap().file_name().unwrap().to_str().unwrap();
    let place = format!("{session}/5.keys is truncated (300 bytes)");
    assert!(nodes.log("party0").contains(&place) && !nodes.log("party1").contains("5.keys"));
    assert!(!nodes.log("party0").contains(&nodes.path("party0").display().to_string()));
    fs::remove_file(&files[1][6]).unwrap();
    // Where one party has none at all, it is passed over, and used up at the other.
    works(&nodes, &[], 5);
    assert!(nodes.journal("party0").iter().rev().take(2).rev().map(|l| &l[l.len() - 2..]).eq(["/6", "/7"]));
    assert!(nodes.journal("party1").last().unwrap().ends_with("/7"));
    assert!(nodes.log("party0").contains("/6 is not in the store"), "{}", nodes.log("party0"));
    nodes.run(&[], &inputs(6)).says(&["no keys are left"]);
    // After a restart the session is over, whatever files there are.
    (0..2).for_each(|p| copy(&saved[p], &files[p][0]));
    for name in PARTIES {
        nodes.kill(name);
        nodes.start(name);
    }
    nodes.run(&[], &inputs(6)).says(&["no keys are left"]);
    works(&nodes, &["--prepare", "1"], 7);
}

#[test]
fn parties_killed_at_any_moment_use_no_record_twice_and_recover() {
    let mut nodes = started();
    let mut moments = Seed::random().stream();
    for life in 0..50 {
        let client = nodes.begin(&["--prepare", "2"], &inputs(life));
        let word = moments.elements(privet_ring::Ring::R64, 1)[0];
        std::thread::sleep(Duration::from_micros(word % 400_000));
        let victim = PARTIES[life % 2];
        nodes.kill(victim);
        nodes.start(victim);
        // It may have finished before, or have failed; it must end.
        let ran = nodes.finish(client);
        assert!(ran.code == Some(0) || ran.err.contains("fix:"), "{}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
    works(&nodes, &["--prepare", "1"], 77);
    nodes.used_once();
    for name in PARTIES {
        assert!(!nodes.log(name).contains("panicked"), "{}", nodes.log(name));
    }
    // A record's number is used by both parties in one session, or was burnt by one of them: never in two.
    let records = PARTIES.map(|p| nodes.journal(p).into_iter().filter(|l| l.starts_with("record")).count());
    assert!(records[0] > 0 && records[1] > 0, "{records:?}");
    nodes.nothing_secret_was_said(&[&weights(), &inputs(0), &inputs(49)]);
}

//! Preparations between real processes over TLS: other jobs go on meanwhile, nobody waits for ever, a failure is told to all,
//! and whoever is killed leaves nothing that counts.

use crate::nodes::{FSS, HEOT, Nodes, PARTIES, REP3, SEMI2K, named, numbers, small, truth};
use privet_net::TcpChannel;
use privet_party::session::client::{ClientError, Prepared};
use privet_party::session::control::{Preparing, Talk, hear};
use privet_party::session::family::dealing::messages::DealRequest;
use privet_party::tensors::Tensors;
use privet_plan::program::ONLY_PLAN;
use privet_prg::Seed;
use privet_ring::Ring;
use std::fs;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Nothing takes this long.
const HANGS: Duration = Duration::from_secs(60);

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

/// A deployment whose model party 1 owns, with other timeouts; nobody runs yet.
fn deployed(timeouts: &[(&str, &str)]) -> Nodes {
    let nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    let file = nodes.path("deployment.toml");
    let mut text = fs::read_to_string(&file).unwrap();
    for (old, new) in timeouts {
        assert!(text.contains(old), "{old} is not in {text}");
        text = text.replace(old, new);
    }
    fs::write(&file, text).unwrap();
    nodes
}

/// One in which a process that is stopped is silent for long, and not given up.
fn patient() -> Nodes {
    let mut nodes = deployed(&[("connect = 4", "connect = 60"), ("heartbeat = 1", "heartbeat = 30")]);
    nodes.start_all();
    nodes
}

/// A run with the interpreter's result. On a thread of its own, so that one that hangs fails the test.
#[track_caller]
fn runs_right(nodes: &Nodes, salt: usize) {
    let mut client = nodes.client("client");
    let (done, result) = channel();
    let inputs = named("x", numbers(&[2, 3], salt));
    let given = inputs.clone();
    std::thread::spawn(move || {
        let _ = done.send(client.run(&given).map(|o| o.outputs).map_err(|e| e.to_string()));
    });
    let outputs = result.recv_timeout(HANGS).expect("the run hangs").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(outputs, truth(&small(), &inputs, &weights()), "inputs {salt}");
}

type Answer = Receiver<Result<Prepared, ClientError>>;

/// Ask for keys, in the background.
fn prepare(nodes: &Nodes, runs: u64, checks: u64) -> Answer {
    let mut client = nodes.client("client");
    let (done, result) = channel();
    std::thread::spawn(move || done.send(client.prepare(ONLY_PLAN, runs, checks)));
    result
}

#[track_caller]
fn answered(answer: &Answer) -> Result<Prepared, ClientError> {
    answer.recv_timeout(HANGS).expect("the preparation hangs")
}

/// Both parties' preparations, once `so` holds of both.
fn until(nodes: &Nodes, what: &str, so: impl Fn(&Option<Preparing>) -> bool) -> Vec<Option<Preparing>> {
    let mut client = nodes.client("client");
    for _ in 0..6000 {
        let all: Vec<_> =
            client.status().unwrap().into_iter().map(|s| s.plans[ONLY_PLAN].preparing.clone()).collect();
        if all.iter().all(&so) {
            return all;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}: {:?}", client.status().unwrap());
}

fn signal(nodes: &Nodes, name: &str, signal: &str) {
    let pid = nodes.pid(name).to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// Bytes of unfinished files at a party. An empty one may stay, since its writer may be about to lock it.
fn half_records(nodes: &Nodes, party: &str) -> u64 {
    let sessions = fs::read_dir(nodes.path(party).join("store")).unwrap().map(|e| e.unwrap().path());
    let files = sessions.filter(|p| p.is_dir()).flat_map(|dir| fs::read_dir(dir).unwrap().flatten());
    let parts = files.filter(|e| e.path().extension().is_some_and(|e| e == "part"));
    parts.map(|e| e.metadata().map_or(0, |m| m.len())).sum()
}

/// A dealer that is alive, takes every request, and says nothing; for so many requests.
fn silent_dealer(nodes: &Nodes, requests: usize) -> Receiver<Vec<TcpChannel>> {
    let (links, _) = nodes.links("dealer");
    let listener = links.listen().unwrap();
    let (sender, all) = channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for _ in 0..requests {
            let (mut channel, _, _) = links.welcome(listener.accept(HANGS).unwrap()).unwrap();
            let _: DealRequest = hear(&mut channel, Talk::Deal).unwrap();
            held.push(channel);
        }
        let _ = sender.send(held);
    });
    all
}

#[test]
fn a_live_silent_dealer_stops_no_run_and_is_named_in_time() {
    for (checks, stream) in [(0, false), (2, false), (0, true)] {
        let mut nodes = deployed(&[("step = 300", "step = 6")]);
        nodes.start_all();
        nodes.client("client").prepare(ONLY_PLAN, 3, 0).unwrap();
        runs_right(&nodes, 1);
        nodes.kill("dealer");
        let held = silent_dealer(&nodes, 2);
        let answer = match stream {
            false => prepare(&nodes, 4, checks),
            true => {
                let (mut client, (done, result)) = (nodes.client("client"), channel());
                std::thread::spawn(move || done.send(client.prepare_stream(ONLY_PLAN, 4)));
                result
            }
        };
        // Held to the end: they are alive all the time.
        let _held = held.recv_timeout(HANGS).unwrap();
        runs_right(&nodes, 2);
        let error = answered(&answer).map(drop).unwrap_err().to_string();
        assert!(error.contains("dealer is alive, but this party waited for it in vain for 6 s"), "{error}");
        assert!(stream || error.contains(&format!("(0 of {} records came)", 4 * (checks + 1))), "{error}");
        until(&nodes, "the end", Option::is_none);
        runs_right(&nodes, 3);
        nodes.used_once();
    }
}

#[test]
fn runs_go_on_while_keys_come_and_the_status_shows_how_many() {
    let nodes = patient();
    let first = nodes.client("client").prepare(ONLY_PLAN, 3, 0).unwrap();
    runs_right(&nodes, 1);
    let answer = prepare(&nodes, 3000, 0);
    until(&nodes, "records", |p| p.as_ref().is_some_and(|p| p.came > 10));
    signal(&nodes, "dealer", "-STOP");
    let all = until(&nodes, "the preparation", Option::is_some);
    assert!(all.iter().flatten().all(|p| p.came + p.to_come == 3000 && p.to_come > 0), "{all:?}");
    assert!(all.iter().flatten().all(|p| p.bytes > 0 && p.seconds > 0.0), "{all:?}");
    // Also of records that came just now, for the session that is open.
    (2..8).for_each(|salt| runs_right(&nodes, salt));
    assert!(answer.try_recv().is_err(), "it is under way");
    signal(&nodes, "dealer", "-CONT");
    let prepared = answered(&answer).unwrap();
    assert_eq!(prepared.key_bytes, 1000 * first.key_bytes);
    assert!(
        prepared.received_bytes > prepared.key_bytes && prepared.sent_bytes > 0 && prepared.rounds > 3000
    );
    until(&nodes, "the end", Option::is_none);
    assert_eq!(nodes.client("client").status().unwrap()[0].plans[ONLY_PLAN].runs_left, Some(2996));
    nodes.used_once();
    nodes.nothing_secret_was_said(&[&weights()]);
}

#[test]
fn a_party_without_room_tells_the_other_and_the_client_why() {
    for checks in [0, 1] {
        let mut nodes = deployed(&[]);
        let file = nodes.path("party1").join("node.toml");
        fs::write(&file, format!("disk_budget = 20000\n{}", fs::read_to_string(&file).unwrap())).unwrap();
        nodes.start_all();
        let error = answered(&prepare(&nodes, 500, checks)).map(drop).unwrap_err().to_string();
        assert!(error.contains("disk_budget"), "{error}");
        for party in PARTIES {
            nodes.until(&format!("{party}'s log"), |n| {
                n.told(party, "job_failed")
                    .iter()
                    .any(|e| e["message"].as_str().unwrap().contains("disk_budget"))
            });
        }
        let log = nodes.log("party0");
        assert!(log.contains("party:1 gave up"), "{log}");
        assert!(!log.contains(&nodes.path("party1").display().to_string()), "a path was told: {log}");
        // What came without checks stays usable; of a check nothing stays, and fewer fit.
        if checks > 0 {
            answered(&prepare(&nodes, 1, 0)).unwrap();
        }
        runs_right(&nodes, 1);
        nodes.used_once();
    }
}

#[test]
fn a_second_preparation_of_a_plan_waits_its_turn() {
    let nodes = patient();
    signal(&nodes, "dealer", "-STOP");
    let both = [prepare(&nodes, 2, 0), prepare(&nodes, 3, 0)];
    until(&nodes, "one", |p| p.as_ref().is_some_and(|p| [2, 3].contains(&p.to_come)));
    std::thread::sleep(Duration::from_millis(300));
    assert!(both.iter().all(|b| b.try_recv().is_err()));
    signal(&nodes, "dealer", "-CONT");
    assert!(both.iter().all(|b| answered(b).unwrap().key_bytes > 0));
    for party in PARTIES {
        assert_eq!(nodes.records(party).len(), 5, "{party}");
        let begun = nodes.told(party, "preparation_began").len();
        assert_eq!(begun, 2, "{party}");
    }
    (0..5).for_each(|salt| runs_right(&nodes, salt));
    nodes.used_once();
}

#[test]
fn whoever_is_killed_in_a_preparation_is_named_and_leaves_no_half_record() {
    for (victim, checks) in [("party0", 0), ("party1", 0), ("dealer", 0), ("party1", 1), ("dealer", 1)] {
        let mut nodes = patient();
        let answer = prepare(&nodes, 3000, checks);
        until(&nodes, "a record", |p| p.as_ref().is_some_and(|p| p.came > 0));
        nodes.kill(victim);
        let error = answered(&answer).map(drop).unwrap_err().to_string();
        let name = victim.replace("party", "party:");
        assert!(error.contains(&name) && error.contains("closed"), "{victim}: {error}");
        for party in PARTIES.iter().filter(|p| **p != victim) {
            nodes.until("the survivor's log", |n| n.log(party).contains("a request failed"));
            assert!(nodes.log(party).contains(&name), "{}", nodes.log(party));
        }
        nodes.start(victim);
        answered(&prepare(&nodes, 2, checks)).unwrap();
        // Of a party that was killed as well: it removed what was cut off when it started.
        assert_eq!(PARTIES.map(|p| half_records(&nodes, p)), [0, 0]);
        (0..2).for_each(|salt| runs_right(&nodes, salt));
        nodes.used_once();
    }
}

#[test]
fn killed_at_any_moment_of_preparations_all_recover() {
    let mut nodes = deployed(&[]);
    nodes.start_all();
    let mut moments = Seed::random().stream();
    for life in 0..15 {
        let word = moments.elements(Ring::R64, 1)[0];
        let victim = ["party0", "party1", "dealer"][(word % 3) as usize];
        let answer = prepare(&nodes, 200, life % 2);
        std::thread::sleep(Duration::from_millis(word >> 32 & 0x1FF));
        nodes.kill(victim);
        nodes.start(victim);
        // It may have ended before, or have failed; it must end.
        if let Err(e) = answered(&answer) {
            assert!(!e.to_string().contains("panicked"), "{e}");
        }
        nodes.used_once();
    }
    let mut tries = 0;
    while let Err(e) = answered(&prepare(&nodes, 3, 0)) {
        tries += 1;
        assert!(tries < 100, "{e}");
        std::thread::sleep(Duration::from_millis(100));
    }
    (0..3).for_each(|salt| runs_right(&nodes, salt));
    for party in PARTIES {
        assert!(!nodes.log(party).contains("panicked"), "{}", nodes.log(party));
    }
    nodes.used_once();
}

#[test]
fn a_family_without_keys_prepares_nothing_at_once() {
    let mut nodes = Nodes::of(REP3, &small(), Some(&weights()), "lan", &[]);
    nodes.start_all();
    let prepared = answered(&prepare(&nodes, 5, 0)).unwrap();
    assert_eq!((prepared.seconds, prepared.key_bytes), (0.0, 0));
    runs_right(&nodes, 1);
    let error = answered(&prepare(&nodes, 5, 1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("no dealer"), "{error}");
}

/// Numbers that were announced and never came are passed over at the party that saw them and at the one that forgot them.
#[test]
fn a_session_whose_preparation_was_cut_short_is_used_and_extended() {
    const RUNS: usize = 300;
    for family in [SEMI2K.among(2), HEOT] {
        let mut nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
        nodes.start_all();
        let answer = prepare(&nodes, RUNS as u64, 0);
        nodes.until("records at both parties", |nodes| {
            family.parties.iter().all(|party| nodes.records(party).len() >= 2)
        });
        nodes.kill("party0");
        nodes.start("party0");
        let ended = answered(&answer);
        assert!(ended.is_err() && nodes.records("party1").len() < RUNS, "{}: it was done", family.protocol);
        runs_right(&nodes, 1);
        let before = nodes.runs("party1");
        answered(&prepare(&nodes, 1, 0)).unwrap();
        runs_right(&nodes, 2);
        let all = nodes.runs("party1");
        let session = |run: &String| run.split('/').next().unwrap().to_owned();
        assert_eq!(session(&all[all.len() - 1]), session(&before[0]), "{}: of one session", family.protocol);
        nodes.used_once();
    }
}

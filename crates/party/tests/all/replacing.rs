//! A dealer that tries to put other keys in the place of those that the parties hold, between processes over TLS: every
//! attempt is refused by each party, changes no file, and the next run gives the right result.

use crate::nodes::dealing::{Answer, One, Played, dealt};
use crate::nodes::{FSS, Nodes, PARTIES, named, numbers, small, truth};
use privet_party::session::client::Client;
use privet_party::session::control::Id;
use privet_party::session::family::dealing::messages::DealRequest;
use privet_party::store::format::{Header, RecordWriter};
use privet_party::tensors::Tensors;
use privet_plan::program::ONLY_PLAN;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

/// Both parties, and no dealer yet. Party 1 owns the model.
fn parties(deployment: &str) -> Nodes {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    let file = nodes.path("deployment.toml");
    fs::write(&file, format!("{}{deployment}", fs::read_to_string(&file).unwrap())).unwrap();
    PARTIES.iter().for_each(|party| nodes.start(party));
    nodes
}

#[track_caller]
fn runs_right(client: &mut Client, salt: usize) {
    let inputs = named("x", numbers(&[2, 3], salt));
    let outputs = client.run(&inputs).unwrap_or_else(|e| panic!("{e}")).outputs;
    assert_eq!(outputs, truth(&small(), &inputs, &weights()), "inputs {salt}");
}

/// Every file of both parties' sessions.
fn sessions(nodes: &Nodes) -> BTreeMap<PathBuf, Vec<u8>> {
    fn below(dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            match path.is_dir() {
                true => below(&path, all),
                false => drop(all.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    let mut all = BTreeMap::new();
    PARTIES.iter().for_each(|party| below(&nodes.path(party).join("store"), &mut all));
    all
}

/// The session that both parties hold.
fn held(nodes: &Nodes) -> Id {
    let path = sessions(nodes).into_keys().find(|p| p.ends_with("session.key")).unwrap();
    let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    Id(privet_party::store::unhex(&name).unwrap())
}

/// Have keys asked for, by a preparation or a stream, and answered by a dealer that cheats. Both parties must refuse with
/// words that hold `says`, and nothing they hold may change. Gives the request.
#[track_caller]
fn refused(
    nodes: &Nodes,
    client: &mut Client,
    runs: u64,
    stream: bool,
    says: &str,
    answer: impl Fn(&DealRequest) -> Answer + Send,
) -> DealRequest {
    let before = sessions(nodes);
    let cheat = Played::new(nodes);
    let (request, result) = std::thread::scope(|scope| {
        let dealer = scope.spawn(|| cheat.answer(answer));
        let result =
            if stream { client.prepare_stream(ONLY_PLAN, runs) } else { client.prepare(ONLY_PLAN, runs, 0) };
        (dealer.join().unwrap(), result)
    });
    let error = result.map(drop).expect_err("the keys were accepted").to_string();
    assert!(error.contains(says), "`{says}` is not in: {error}");
    assert!(!error.contains(&nodes.path("").display().to_string()), "a path was told: {error}");
    for party in PARTIES {
        nodes.until(&format!("{party} refuses"), |n| n.log(party).contains(says));
    }
    assert!(sessions(nodes) == before, "what the parties held has changed");
    request
}

#[test]
fn keys_that_were_checked_are_never_replaced_or_mixed_with_others() {
    let mut nodes = parties("");
    let mut client = nodes.client("client");
    nodes.start("dealer");
    client.prepare(ONLY_PLAN, 3, 1).unwrap();
    nodes.kill("dealer");
    let session = held(&nodes);
    let again = |runs: u64| {
        let other = dealt();
        move |_: &DealRequest| Answer {
            session,
            indices: (0..runs).collect(),
            keys: [other.clone(), other.clone()],
            set: None,
        }
    };
    // Before it is begun, by both ways to get keys; while it is open; and when some of its records are used.
    for stream in [false, true] {
        let request = refused(&nodes, &mut client, 3, stream, "knows that name", again(3));
        assert_eq!(request.session, None);
    }
    runs_right(&mut client, 1);
    for stream in [false, true] {
        let request = refused(&nodes, &mut client, 2, stream, "knows that name", again(2));
        assert_eq!(request.session, None, "a checked session takes no unchecked extension");
    }
    runs_right(&mut client, 2);
    runs_right(&mut client, 3);
    let error = client.run(&named("x", numbers(&[2, 3], 4))).err().unwrap().to_string();
    assert!(error.contains("prepare more"), "{error}");
    nodes.used_once();
}

#[test]
fn further_records_have_numbers_that_no_party_has_seen() {
    let nodes = parties("");
    let mut client = nodes.client("client");
    let honest = dealt();
    let session = Id(honest.session);
    let give = |indices: &[u64]| {
        let (indices, honest) = (indices.to_vec(), honest.clone());
        move |_: &DealRequest| Answer {
            session,
            indices: indices.clone(),
            keys: [honest.clone(), honest.clone()],
            set: None,
        }
    };
    let accepted = |client: &mut Client, indices: &[u64]| {
        let cheat = Played::new(&nodes);
        std::thread::scope(|scope| {
            let dealer = scope.spawn(|| cheat.answer(give(indices)));
            client.prepare(ONLY_PLAN, indices.len() as u64, 0).unwrap_or_else(|e| panic!("{e}"));
            dealer.join().unwrap()
        })
    };
    assert_eq!(accepted(&mut client, &[0, 1]).session, None);
    runs_right(&mut client, 1);
    // Used; there; and both, by both ways to get keys.
    for stream in [false, true] {
        for indices in [&[0, 2][..], &[1, 2], &[0, 1], &[1, u64::MAX]] {
            let says = "but this party has seen number 1 of it";
            let request = refused(&nodes, &mut client, 2, stream, says, give(indices));
            assert_eq!(request.session, Some(session));
        }
    }
    // Another seed of the session: neither beside the right one nor in its place.
    let other = dealt();
    let changed = |_: &DealRequest| Answer {
        session,
        indices: vec![2],
        keys: [other.clone(), other.clone()],
        set: None,
    };
    refused(&nodes, &mut client, 1, false, "other keys of the session", changed);
    // Numbers of a deal that was refused are no reason to refuse the right ones.
    assert_eq!(accepted(&mut client, &[2, 5]).session, Some(session));
    refused(&nodes, &mut client, 1, false, "seen number 5", give(&[4]));
    (2..5).for_each(|salt| runs_right(&mut client, salt));
    nodes.used_once();
}

#[test]
fn a_deployment_that_demands_checks_gets_no_unchecked_keys() {
    let mut nodes = parties("\n[fss]\nmin_checks = 2\n");
    let mut client = nodes.client("client");
    let says = |error: Option<String>, words: &[&str]| {
        let error = error.expect("the keys were accepted");
        assert!(words.iter().all(|w| error.contains(w)), "{words:?}: {error}");
    };
    // No dealer is running: the parties refuse before they ask one.
    for checks in [0, 1] {
        let error = client.prepare(ONLY_PLAN, 1, checks).err().map(|e| e.to_string());
        let asked = format!("and {checks} were asked for");
        says(error, &["this deployment demands 2 checks", "min_checks", &asked]);
    }
    let error = client.prepare_stream(ONLY_PLAN, 1).err().map(|e| e.to_string());
    says(error, &["this deployment demands 2 checks", "a stream of keys cannot be checked"]);
    nodes.start("dealer");
    client.prepare(ONLY_PLAN, 1, 2).unwrap();
    runs_right(&mut client, 1);
    // Files that were carried here without a check.
    let inputs = named("x", numbers(&[2, 3], 2));
    let stores = PARTIES.map(|party| nodes.path(party).join("store"));
    dealt().deal_to_stores(&[&stores[0], &stores[1]], &[0], &mut |_| {}).unwrap();
    let error = client.run(&inputs).err().map(|e| e.to_string());
    says(error, &["was accepted with 0 checks", "this deployment demands 2"]);
    // They are in nobody's way.
    client.prepare(ONLY_PLAN, 1, 3).unwrap();
    runs_right(&mut client, 3);
}

#[test]
fn records_that_were_not_dealt_together_are_found_before_the_parties_compute() {
    let nodes = parties("");
    let mut client = nodes.client("client");
    let deals = [dealt(), dealt()];
    // Two deals under one name: first as they are, then with the hash keys and sets of one.
    let cheat = Played::new(&nodes);
    let session = Id(deals[0].session);
    let mixed = |_: &DealRequest| Answer { session, indices: vec![0], keys: deals.clone(), set: None };
    let prepared = |client: &mut Client, answer: &(dyn Fn(&DealRequest) -> Answer + Sync)| {
        std::thread::scope(|scope| {
            let dealer = scope.spawn(|| cheat.answer(answer));
            client.prepare(ONLY_PLAN, 1, 0).unwrap_or_else(|e| panic!("{e}"));
            dealer.join().unwrap();
        });
    };
    let run = |client: &mut Client| client.run(&named("x", numbers(&[2, 3], 1))).err().unwrap().to_string();
    prepared(&mut client, &mixed);
    let error = run(&mut client);
    assert!(error.contains("not made together"), "the session's public parts differ: {error}");
    // The sessions are the same, and the records are not.
    let right = dealt();
    let whole = |_: &DealRequest| Answer {
        session: Id(right.session),
        indices: vec![0],
        keys: [right.clone(), right.clone()],
        set: None,
    };
    prepared(&mut client, &whole);
    let path = |party: &str| {
        let name = privet_party::store::hex(&right.session);
        nodes.path(party).join("store").join(name).join("0.keys")
    };
    // As a party's store would be after files of another deal, whose dealer gave its session the same name, were put in.
    let Header { id, seed, .. } = right.headers(0).swap_remove(1);
    let header = Header { id, set: [7; 16], seed };
    let mut one = One { party: 1, record: RecordWriter::new(Vec::new(), &header).unwrap() };
    right.frames(0, &mut one, &mut |_| {}).unwrap();
    fs::write(path("party1"), one.record.finish().unwrap()).unwrap();
    let error = run(&mut client);
    assert!(error.contains("not made together"), "{error}");
    nodes.used_once();
}

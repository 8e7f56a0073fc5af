//! Sessions between real processes over TLS, the same for every protocol family: who may own and receive what, and what
//! happens when somebody dies, is restarted, or is the wrong one.

use crate::nodes::{
    FSS, Family, Nodes, REP3, SEMI2K_DEALT, copy, deep, families, named, numbers, small, truth,
};
use privet_party::tensors::{self, Tensors};
use privet_prg::Seed;
use std::fs;
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

/// A deployment whose model party 1 owns, and everybody running.
fn started(family: Family) -> Nodes {
    let mut nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
    nodes.start_all();
    nodes
}

#[test]
fn results_are_the_interpreters() {
    for family in families() {
        let nodes = started(family);
        works(&nodes, family.prepare("4"), 2);
        works(&nodes, &[], 3);
        works(&nodes, &[], 4);
        for party in family.parties {
            nodes.until("three runs in its log", |n| n.runs(party).len() >= 3);
            assert_eq!(nodes.runs(party).len(), 3, "{}", nodes.log(party));
        }
        nodes.nothing_secret_was_said(&[&weights(), &inputs(2), &inputs(3), &inputs(4)]);
    }
}

#[test]
fn owners_and_receivers_are_who_the_deployment_says() {
    // Three clients; parties as owners and receivers; one client for all.
    let settings = [
        ["client:alice", "client:carol", "client:bob"],
        ["party:1", "client:carol", "client:bob"],
        ["client:alice", "client:alice", "party:0"],
        ["party:0", "client:bob", "party:0"],
    ];
    for family in families() {
        for [data, model, receiver] in settings {
            let held = family.owner().map(|party| format!("party:{party}"));
            let model = held.as_deref().unwrap_or(model);
            let roles =
                ["--data-owner", data, "--model-owner", model, "--receiver", receiver, "--client", "client"];
            let mut nodes = Nodes::of(family, &small(), None, "lan", &roles);
            nodes.start_all();
            let node = |place: &str| place.trim_start_matches("client:").replace("party:", "party");
            let path = nodes.path("weights.safetensors");
            tensors::save(&path, &weights()).unwrap();
            let share = ["--no-run", "--weights", path.to_str().unwrap()];
            let share = [family.prepare("1"), &share].concat();
            nodes.finish(nodes.begin_as(&node(model), &share, None, &nodes.output())).good();

            let nowhere = nodes.path("nothing");
            let mut running = Vec::new();
            if receiver != data {
                running.push(nodes.begin_as(&node(receiver), &[], None, &nodes.output()));
            }
            let file = if receiver == data { nodes.output() } else { nowhere.clone() };
            running.push(nodes.begin_as(&node(data), &[], Some(&inputs(5)), &file));
            running.into_iter().for_each(|child| nodes.finish(child).good());
            assert_eq!(nodes.outputs(), truth(&small(), &inputs(5), &weights()), "{family:?} {roles:?}");
            if receiver != data {
                assert!(tensors::load(&nowhere).unwrap().is_empty(), "an owner learned the result");
            }
            // Whoever has no role is told so at once, by name, and nobody else is held up.
            nodes.run(&[], &inputs(6)).says(&["client:client has no role in this", "[roles]"]);
            let refused = nodes.begin_as("client", &share[share.len() - 2..], None, &nowhere);
            nodes.finish(refused).says(&["no role", "fix:"]);
            nodes.nothing_secret_was_said(&[&weights(), &inputs(5)]);
        }
    }
}

#[test]
fn a_party_killed_in_the_middle_of_a_run_is_named_to_all() {
    let (plan, n) = (deep(16, 64), 64);
    let bias = named("fc.weight", numbers(&[n], 1));
    let x = named("x", numbers(&[n], 2));
    // records that a dealer makes: the parties' own preparation would take minutes over such links
    for family in [FSS, REP3, SEMI2K_DEALT] {
        for &victim in family.parties {
            let mut nodes = Nodes::of(family, &plan, Some(&bias), "rtt=100ms,bandwidth=1Gbit/s", &[]);
            nodes.start_all();
            let client = nodes.begin(family.prepare("4"), &x);
            nodes.until("the run", |n| family.parties.iter().all(|p| !n.runs(p).is_empty()));
            // Over three seconds of rounds follow: neither a slow start nor a slow kill misses them.
            std::thread::sleep(Duration::from_millis(1200));
            nodes.kill(victim);
            let name = victim.replace("party", "party:");
            nodes.finish(client).says(&[
                &name,
                "closed the connection",
                "its process ended or was killed",
                "fix:",
            ]);
            for survivor in family.parties.iter().filter(|p| **p != victim) {
                nodes.until("the survivor's log", |n| n.log(survivor).contains("a request failed"));
                let log = nodes.log(survivor);
                assert!(log.contains(&format!("{name} (")) && log.contains("relu"), "{log}");
            }
            // Nobody else needs a restart, and nothing of the failed run is used again.
            nodes.start(victim);
            nodes.run(family.prepare("1"), &x).good();
            assert_eq!(nodes.outputs(), truth(&plan, &x, &bias));
            nodes.used_once();
            nodes.nothing_secret_was_said(&[&bias, &x]);
        }
    }
}

#[test]
fn parties_killed_at_any_moment_repeat_no_run_and_recover() {
    let family = REP3;
    let mut nodes = started(family);
    let mut moments = Seed::random().stream();
    for life in 0..30 {
        let client = nodes.begin(&[], &inputs(life));
        let word = moments.elements(privet_ring::Ring::R64, 1)[0];
        std::thread::sleep(Duration::from_micros(word % 300_000));
        let victim = family.parties[life % 3];
        nodes.kill(victim);
        nodes.start(victim);
        // It may have finished before, or have failed; it must end.
        let ran = nodes.finish(client);
        assert!(ran.code == Some(0) || ran.err.contains("fix:"), "{}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
    // The last kill may have left the parties at different counts of runs: who asks first is told, and the session ends (docs/rep3.md, 1).
    let told = nodes.run(&[], &inputs(30));
    assert!(told.code == Some(0) || told.err.contains("this party's session is over"), "{}", told.err);
    works(&nodes, &[], 77);
    works(&nodes, &[], 78);
    nodes.used_once();
    for party in family.parties {
        assert!(!nodes.log(party).contains("panicked"), "{}", nodes.log(party));
    }
    nodes.nothing_secret_was_said(&[&weights(), &inputs(0), &inputs(29)]);
}

#[test]
fn a_restarted_party_gets_a_new_session() {
    for family in families() {
        // A party's model is shared again by itself; a client's by the client, who is told.
        let mut nodes = started(family);
        works(&nodes, family.prepare("1"), 1);
        for &party in family.parties {
            nodes.kill(party);
            nodes.start(party);
            works(&nodes, family.prepare("1"), 2);
        }
        if family.owner().is_some() {
            continue;
        }
        let mut nodes = Nodes::of(family, &small(), None, "lan", &[]);
        nodes.start_all();
        let file = nodes.path("client/weights.safetensors");
        tensors::save(&file, &weights()).unwrap();
        let with = [family.prepare("1"), &["--weights", file.to_str().unwrap()]].concat();
        nodes.run(&[], &inputs(1)).says(&["no session is open: the model owner must share the model first"]);
        works(&nodes, &with, 2);
        let last = *family.parties.last().unwrap();
        nodes.kill(last);
        nodes.start(last);
        nodes.run(family.prepare("1"), &inputs(1)).says(&["the model owner must share the model"]);
        works(&nodes, &with, 3);
    }
}

#[test]
fn a_party_that_is_away_or_runs_another_plan_is_named() {
    for family in families() {
        let last = *family.parties.last().unwrap();
        let number = &last["party".len()..];
        let mut nodes = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
        family.services().filter(|s| *s != last).for_each(|s| nodes.start(s));
        nodes.run(&[], &inputs(1)).says(&["nobody listens at", "start the peer there"]);

        let own = fs::read_to_string(nodes.path("deployment.toml")).unwrap();
        fs::write(nodes.path(last).join("deployment.toml"), own).unwrap();
        let mut other = small();
        other.name = "another".into();
        fs::write(nodes.path(last).join("plan.json"), other.to_json()).unwrap();
        let node = nodes.path(last).join("node.toml");
        let kept = fs::read_to_string(&node).unwrap();
        fs::write(&node, kept.replace("../deployment.toml", "deployment.toml")).unwrap();
        nodes.start(last);
        nodes
            .run(&[], &inputs(2))
            .says(&[&format!("party:{number} has plan"), "give every party the same compiled plan file"]);
        fs::write(&node, kept).unwrap();
        nodes.kill(last);
        nodes.start(last);
        works(&nodes, family.prepare("1"), 3);
    }
}

#[test]
fn a_stranger_with_another_certificate_is_refused() {
    for family in [FSS, REP3] {
        let nodes = started(family);
        let stranger = Nodes::of(family, &small(), Some(&weights()), "lan", &[]);
        for file in ["cert.pem", "key.pem"] {
            copy(&stranger.path("client").join(file), &nodes.path("client").join(file));
        }
        nodes.run(&[], &inputs(1)).says(&["refused this party's certificate", "pin this fingerprint"]);
        nodes.until("party 0's log", |n| n.log("party0").contains("refused a connection"));
    }
}

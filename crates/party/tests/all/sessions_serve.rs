//! One server process and many clients, as real processes over TLS: several at once, each in a deployment of its own. Hints are made
//! once. Clients are killed, added and removed, or pretend to be another.

use crate::nodes::{HEOT, Nodes, copy, deep, named, numbers, small, truth};
use privet_party::config::Place;
use privet_party::session::control::{Reply, Talk, hear};
use privet_party::session::links::Purpose;
use privet_party::tensors::{self, Tensors};
use privet_plan::Plan;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const SERVER: &str = "party0";
const CLIENTS: [&str; 8] = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"];

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs(salt: usize) -> Tensors {
    named("x", numbers(&[2, 3], salt))
}

/// Files of a server and so many clients.
fn deployed(plan: &Plan, weights: &Tensors, clients: &[&str], network: &'static str) -> Nodes {
    deployed_with(&[], plan, weights, clients, network)
}

/// The same with further words to `init`.
fn deployed_with(
    more: &[&str],
    plan: &Plan,
    weights: &Tensors,
    clients: &[&str],
    network: &'static str,
) -> Nodes {
    let mut more = [&["--each-client"], more].concat();
    clients.iter().for_each(|client| more.extend(["--client", client]));
    Nodes::of(HEOT, plan, Some(weights), network, &more)
}

/// A command of `privet` on a node.
fn privet(nodes: &Nodes, word: &str, node: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
    command.arg(word).arg("--config").arg(nodes.path(node).join("node.toml"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn start(nodes: &mut Nodes, node: &'static str, network: &str) {
    let mut command = privet(nodes, if node == SERVER { "serve" } else { "party" }, node);
    command.args(["--network", network, "--log-format", "json", "--log-level", "debug"]);
    nodes.start_process(node, command);
}

/// The server and its clients, all running.
fn started(clients: &[&'static str]) -> Nodes {
    // a busy machine may measure a long way to one client and a short one to another, which makes two sets of hints
    let mut nodes = deployed_with(&["--set", "packing=near"], &small(), &weights(), clients, "lan");
    start(&mut nodes, SERVER, "lan");
    clients.iter().for_each(|client| start(&mut nodes, client, "lan"));
    nodes
}

fn file(nodes: &Nodes, client: &str) -> PathBuf {
    nodes.path(client).join("output.safetensors")
}

fn begin(nodes: &Nodes, client: &str, more: &[&str], inputs: &Tensors) -> Child {
    let _ = fs::remove_file(file(nodes, client));
    nodes.begin_as(client, more, Some(inputs), &file(nodes, client))
}

/// A run has ended well, and with what the interpreter says.
#[track_caller]
fn ends_well(nodes: &Nodes, client: &str, run: Child, (plan, weights, inputs): (&Plan, &Tensors, &Tensors)) {
    nodes.finish(run).good();
    let outputs = tensors::load(&file(nodes, client)).unwrap();
    assert_eq!(outputs, truth(plan, inputs, weights), "{client}");
}

/// Runs of all these clients at once, each with an input of its own.
#[track_caller]
fn all_work(nodes: &Nodes, clients: &[&str], more: &[&str], salt: usize) {
    let inputs: Vec<Tensors> = (0..clients.len()).map(|i| inputs(salt + i)).collect();
    let running: Vec<Child> = clients.iter().zip(&inputs).map(|(c, x)| begin(nodes, c, more, x)).collect();
    for ((client, x), run) in clients.iter().zip(&inputs).zip(running) {
        ends_well(nodes, client, run, (&small(), &weights(), x));
    }
}

/// Nothing is in a journal twice, and no run took place twice: at the server, and at each client.
#[track_caller]
fn used_once(nodes: &Nodes, clients: &[&str]) {
    for node in clients.iter().chain([&SERVER]) {
        for lines in [nodes.journal(node), nodes.runs(node)] {
            let distinct: HashSet<&String> = lines.iter().collect();
            assert_eq!(distinct.len(), lines.len(), "{node}: {lines:?}");
        }
        assert!(!nodes.log(node).contains("panicked"), "{}", nodes.log(node));
    }
}

#[test]
fn one_two_and_eight_clients_at_once_get_what_the_interpreter_says() {
    for n in [1, 2, 8] {
        let clients = &CLIENTS[..n];
        let nodes = started(clients);
        all_work(&nodes, clients, &["--prepare", "2"], 10);
        all_work(&nodes, clients, &[], 30);
        // further records of the open sessions
        all_work(&nodes, clients, &["--prepare", "1"], 50);
        nodes.until("all runs in the log", |nodes| nodes.runs(SERVER).len() >= 3 * n);
        let sessions = nodes.told(SERVER, "session_open");
        assert!(sessions.len() >= n, "{sessions:?}");
        for client in clients {
            let of = |e: &&serde_json::Value| e["client"] == format!("client:{client}");
            assert_eq!(nodes.told(SERVER, "run_began").iter().filter(of).count(), 3, "{client}");
            let stored = nodes.path(SERVER).join("store").join(client).join("journal");
            assert!(stored.exists(), "a store of its own: {}", stored.display());
        }
        let made = nodes.told(SERVER, "hints_made");
        assert_eq!(made.len(), 1, "hints are made once for all clients and their sessions: {made:?}");
        used_once(&nodes, clients);
        nodes.nothing_secret_was_said(&[&weights(), &inputs(10), &inputs(30), &inputs(50)]);
    }
}

#[test]
fn a_client_that_is_killed_costs_the_others_nothing() {
    let (plan, bias) = (deep(12, 32), named("fc.weight", numbers(&[32], 1)));
    let x = |salt| named("x", numbers(&[32], salt));
    let clients = &CLIENTS[..3];
    let network = "rtt=8ms,bandwidth=1Gbit/s";
    let mut nodes = deployed(&plan, &bias, clients, network);
    start(&mut nodes, SERVER, network);
    clients.iter().for_each(|client| start(&mut nodes, client, network));
    let of_alice = |nodes: &Nodes, event: &str| {
        nodes.told(SERVER, event).iter().filter(|e| e["client"] == "client:alice").count()
    };
    for (life, moment, more) in
        [(0, "preparation_began", ["--prepare", "40"]), (1, "run_began", ["--prepare", "1"])]
    {
        let before = of_alice(&nodes, moment);
        let away = |nodes: &Nodes| ["bob", "carol"].map(|c| nodes.told(c, "leader_away").len());
        let (others_away, victims_begun) = (away(&nodes), of_alice(&nodes, "preparation_done"));
        let victim = begin(&nodes, "alice", &more, &x(life));
        nodes.until(moment, |nodes| of_alice(nodes, moment) > before);
        let others: Vec<(&str, Child, Tensors)> = ["bob", "carol"]
            .into_iter()
            .enumerate()
            .map(|(i, client)| {
                let x = x(10 * life + i + 5);
                (client, begin(&nodes, client, &["--prepare", "1"], &x), x)
            })
            .collect();
        nodes.kill("alice");
        let ran = nodes.finish(victim);
        assert!(ran.code == Some(1) && ran.err.contains("fix:"), "killed at {moment}: {}", ran.err);
        let done = |event| of_alice(&nodes, event);
        assert_eq!(
            (done("preparation_done"), done("run_done")),
            (victims_begun + life, 0),
            "it was killed in the middle of what began with {moment}"
        );
        for (client, run, x) in others {
            ends_well(&nodes, client, run, (&plan, &bias, &x));
        }
        assert_eq!(away(&nodes), others_away, "nobody else lost the server");
        start(&mut nodes, "alice", network);
    }
    let again = x(99);
    let run = begin(&nodes, "alice", &["--prepare", "1"], &again);
    ends_well(&nodes, "alice", run, (&plan, &bias, &again));
    used_once(&nodes, clients);
    let failed = nodes.told(SERVER, "job_failed");
    assert!(failed.iter().all(|e| e["client"] == "client:alice"), "{failed:?}");
}

#[test]
fn a_server_that_is_restarted_serves_all_again() {
    let clients = &CLIENTS[..2];
    let mut nodes = started(clients);
    all_work(&nodes, clients, &["--prepare", "1"], 10);
    nodes.kill(SERVER);
    start(&mut nodes, SERVER, "lan");
    all_work(&nodes, clients, &["--prepare", "1"], 20);
    assert_eq!(nodes.told(SERVER, "hints_made").len(), 2, "one set a process");
    used_once(&nodes, clients);
}

#[test]
fn whoever_pretends_to_be_another_client_reaches_nobody() {
    let nodes = started(&CLIENTS[..2]);
    all_work(&nodes, &CLIENTS[..1], &["--prepare", "2"], 10);
    // Bob's key, and files that say alice.
    let mallory = nodes.path("mallory");
    fs::create_dir(&mallory).unwrap();
    copy(&nodes.path("alice/node.toml"), &mallory.join("node.toml"));
    for file in ["cert.pem", "key.pem"] {
        copy(&nodes.path("bob").join(file), &mallory.join(file));
    }
    nodes.until("the end of the run in the log", |n| !n.told(SERVER, "run_done").is_empty());
    let (calls, runs) = (nodes.told(SERVER, "connection_opened").len(), nodes.runs(SERVER).len());
    for purpose in [Purpose::Client, Purpose::Parties, Purpose::Preparation, Purpose::Doctor] {
        let refused = nodes.links("mallory").0.dial(&Place::Party(0), purpose).err().unwrap().to_string();
        assert!(refused.contains("the certificate of party:1 is"), "{purpose:?}: {refused}");
    }
    let run = begin(&nodes, "mallory", &[], &inputs(3));
    nodes.finish(run).says(&["the certificate of party:1 is", "fix:"]);
    let of_bob = nodes.told(SERVER, "connection_broken");
    assert!(!of_bob.is_empty() && of_bob.iter().all(|e| e["client"] == "client:bob"), "{of_bob:?}");
    assert_eq!((nodes.told(SERVER, "connection_opened").len(), nodes.runs(SERVER).len()), (calls, runs));
    // No other place of any deployment.
    let text = fs::read_to_string(mallory.join("node.toml")).unwrap();
    for me in ["client:carol", "party:0", "party:1"] {
        fs::write(mallory.join("node.toml"), text.replace("client:alice", me)).unwrap();
        assert!(privet_party::config::Loaded::load(&mallory.join("node.toml")).is_err(), "{me}");
    }
    all_work(&nodes, &CLIENTS[..2], &["--prepare", "1"], 20);
}

#[test]
fn a_client_with_all_its_connections_keeps_no_other_one_out() {
    let nodes = started(&CLIENTS[..2]);
    let dial = |client: &str| nodes.links(client).0.dial(&Place::Party(0), Purpose::Client);
    let held: Vec<_> = (0..12).map(|_| dial("alice").unwrap()).collect();
    // It is told why where it would hear an answer.
    let refused = hear::<Reply>(&mut dial("alice").unwrap(), Talk::Reply).unwrap_err().to_string();
    assert!(refused.contains("party:1 has 12 connections"), "{refused}");
    all_work(&nodes, &CLIENTS[1..2], &["--prepare", "1"], 10);
    drop(held);
    all_work(&nodes, &CLIENTS[..1], &["--prepare", "1"], 20);
}

/// `privet` with arguments, which must end well; gives what it printed.
#[track_caller]
fn done(args: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_privet")).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

#[test]
fn a_client_is_added_by_its_card_and_removed_while_the_server_runs() {
    let mut nodes = deployed(&small(), &weights(), &["alice"], "lan");
    start(&mut nodes, SERVER, "lan");
    start(&mut nodes, "alice", "lan");
    all_work(&nodes, &["alice"], &["--prepare", "2"], 10);
    let shared = nodes.path("");
    // What the client's operator does, with the server's card.
    let (zoe, root) = (nodes.path("zoe"), shared.to_str().unwrap());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let zoe_dir = zoe.to_str().unwrap();
    let made = done(&[
        "init",
        "--name",
        "local",
        "--me",
        "client:zoe",
        "--protocol",
        "heot",
        "--each-client",
        "--address",
        &port,
        "--dir",
        zoe_dir,
        "--json",
    ]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let card = made["card"].as_str().unwrap();
    assert!(card.starts_with("client:zoe#"), "{card}");
    let server = done(&["certs", "show", "--config", nodes.path("party0/node.toml").to_str().unwrap()]);
    let server = server.lines().find_map(|line| line.strip_prefix("card")).unwrap().trim().to_owned();
    done(&["init", "--dir", zoe_dir, "--join", &server]);
    copy(&nodes.path("plan.json"), &zoe.join("plan.json"));
    let own = fs::read_to_string(zoe.join("deployment.toml")).unwrap();
    let own = own.replace("connect = 30", "connect = 4").replace("heartbeat = 5", "heartbeat = 1");
    fs::write(zoe.join("deployment.toml"), own).unwrap();
    // What the server's operator does.
    let before = fs::read_to_string(nodes.path("deployment.toml")).unwrap();
    done(&["init", "--dir", root, "--join", card]);
    nodes.until("the new client", |n| n.told(SERVER, "clients_served").iter().any(|e| e["clients"] == 2));
    start(&mut nodes, "zoe", "lan");
    all_work(&nodes, &["alice", "zoe"], &["--prepare", "1"], 20);
    assert_eq!(nodes.told(SERVER, "started").len(), 1, "nobody started the server again");
    assert_eq!(nodes.told(SERVER, "hints_made").len(), 1);

    // A file that says something else is not taken in, and removes nobody.
    fs::write(nodes.path("deployment.toml"), before.replace("step = 300", "step = 200")).unwrap();
    nodes.until("the warning", |n| !n.told(SERVER, "clients_unread").is_empty());
    all_work(&nodes, &["zoe"], &["--prepare", "1"], 30);
    fs::write(nodes.path("deployment.toml"), &before).unwrap();
    nodes.until("its end", |n| n.told(SERVER, "client_over").iter().any(|e| e["place"] == "client:zoe"));
    let run = begin(&nodes, "zoe", &["--prepare", "1"], &inputs(40));
    let ran = nodes.finish(run);
    assert!(ran.code == Some(1) && ran.err.contains("refused this party's certificate"), "{}", ran.err);
    all_work(&nodes, &["alice"], &["--prepare", "1"], 50);
    used_once(&nodes, &["alice", "zoe"]);
}

#[test]
fn files_of_a_server_are_checked_and_said_to_be_so() {
    let mut nodes = deployed(&small(), &weights(), &["alice", "bob"], "lan");
    let says = |command: &mut Command, what: &str| {
        let ran = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success() && said.contains(what) && said.contains("fix:"), "{what}: {said}");
    };
    says(&mut privet(&nodes, "party", SERVER), "`privet serve`");
    says(&mut privet(&nodes, "serve", "alice"), "not the server");
    let alone = Nodes::of(HEOT, &small(), Some(&weights()), "lan", &[]);
    says(&mut privet(&alone, "serve", SERVER), "`privet party`");
    let init = ["init", "--each-client", "--local"];
    let mut fss = Command::new(env!("CARGO_BIN_EXE_privet"));
    fss.args(init).arg(nodes.path("fss")).arg("--plan").arg(nodes.path("plan.json"));
    says(&mut fss, "no server that many clients share");
    let node = nodes.path("party0/node.toml");
    let text = fs::read_to_string(&node).unwrap();
    fs::write(&node, text.replace("# insecure = false", "insecure = true")).unwrap();
    says(&mut privet(&nodes, "serve", SERVER), "certificates");
    fs::write(&node, text).unwrap();

    start(&mut nodes, SERVER, "lan");
    start(&mut nodes, "alice", "lan");
    nodes.until("alice's call", |n| !n.told("alice", "leader_connected").is_empty());
    let doctor =
        |node: &str| done(&["doctor", "--config", nodes.path(node).join("node.toml").to_str().unwrap()]);
    let said = doctor(SERVER);
    assert!(
        said.contains("2, each with at most 20 connections") && said.contains("40 connections in all"),
        "{said}"
    );
    assert!(!said.contains("party:1"), "a server calls nobody: {said}");
    let said = doctor("alice");
    assert!(said.contains("party:0") && said.contains("answers with the pinned certificate"), "{said}");
}

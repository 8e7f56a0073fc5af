//! What real processes tell of themselves: jobs of several clients at once are told apart, metrics count what happened, and
//! whoever reads neither delays nobody.

use crate::nodes::{FSS, Nodes, PARTIES, REP3, named, numbers, small, truth};
use privet_party::session::client::Client;
use privet_party::tensors::Tensors;
use privet_plan::program::ONLY_PLAN;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs() -> Tensors {
    named("x", numbers(&[2, 3], 2))
}

/// Rows are one client's, results another's.
const TWO_CLIENTS: [&str; 4] = ["--data-owner", "client:alice", "--receiver", "client:bob"];

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event}"))
}

#[test]
fn jobs_of_two_clients_at_once_are_told_apart() {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &TWO_CLIENTS);
    nodes.start_all();
    let ask = |who: &'static str, runs: u64| {
        let mut client: Client = nodes.client(who);
        move || client.prepare(ONLY_PLAN, runs, 0).map(drop).map_err(|e| e.to_string())
    };
    let (mut alice, bob) = (ask("alice", 3), ask("bob", 2));
    std::thread::scope(|scope| {
        let other = scope.spawn(bob);
        assert_eq!((alice(), other.join().unwrap()), (Ok(()), Ok(())));
    });
    // One run takes both.
    let (mut alice, mut bob) = (nodes.client("alice"), nodes.client("bob"));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || alice.run(&inputs()).map(drop).unwrap());
        bob.run(&Tensors::new()).unwrap()
    });
    assert_eq!(outcome.outputs, truth(&small(), &inputs(), &weights()));
    let mut jobs: Vec<BTreeMap<String, String>> = Vec::new();
    for party in PARTIES {
        nodes.until("the end of the run in its log", |n| n.told(party, "job_done").len() == 3);
        let done = nodes.told(party, "preparation_done");
        let of = |who: &str| {
            let mine: Vec<&Value> = done.iter().filter(|e| e["clients"] == format!("client:{who}")).collect();
            assert_eq!(mine.len(), 1, "{done:?}");
            mine[0].clone()
        };
        let (alice, bob) = (of("alice"), of("bob"));
        assert_eq!((&alice["runs"], &bob["runs"]), (&3.into(), &2.into()));
        assert_ne!(alice["job"], bob["job"]);
        let run = &nodes.told(party, "run_done")[0];
        assert_eq!((&run["clients"], &run["kind"]), (&"client:alice, client:bob".into(), &"run".into()));
        assert!(run["online"].as_f64().unwrap() > 0.0 && run["sent"].as_u64().unwrap() > 0, "{run}");
        // Every event of a job says whose it is, and which plan's: what one job's events say of that is always the same.
        let mut all: BTreeMap<String, BTreeSet<(String, String, String)>> = BTreeMap::new();
        for e in nodes.events(party).iter().filter(|e| !e["job"].is_null()) {
            let said = (text(e, "clients").into(), text(e, "kind").into(), text(e, "plan").into());
            all.entry(text(e, "job").into()).or_default().insert(said);
        }
        assert!(all.len() >= 4 && all.values().all(|said| said.len() == 1), "{all:?}");
        let ids = [("alice", &alice), ("bob", &bob), ("run", run)];
        jobs.push(ids.into_iter().map(|(who, e)| (who.to_owned(), text(e, "job").to_owned())).collect());
        // A connection has a number and a place.
        let opened = nodes.told(party, "connection_opened");
        for who in ["alice", "bob"] {
            let place = format!("client:{who}");
            let numbers: BTreeSet<u64> = opened
                .iter()
                .filter(|e| e["place"] == *place)
                .map(|e| e["connection"].as_u64().unwrap())
                .collect();
            assert!(numbers.len() >= 2, "{place}: {opened:?}");
        }
    }
    assert_eq!(jobs[0], jobs[1], "a job has the same name at both parties");
    nodes.until("both deals in the log", |n| n.told("dealer", "deal_done").len() == 2);
    let dealt: BTreeSet<u64> =
        nodes.told("dealer", "deal_done").iter().map(|e| e["runs"].as_u64().unwrap()).collect();
    assert_eq!(dealt, [2, 3].into());
    nodes.nothing_secret_was_said(&[&weights(), &inputs()]);
}

/// What is scraped: the status line, and the value of each metric with its labels.
fn scraped(port: u16) -> (String, BTreeMap<String, f64>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: privet\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    let values = body.lines().filter(|l| !l.starts_with('#')).filter_map(value).collect();
    (head.lines().next().unwrap().to_owned(), values)
}

#[test]
fn metrics_count_what_runs_do() {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = nodes.path("party0/node.toml");
    let node = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{node}\n[metrics]\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
    nodes.start_all();
    nodes.until("the metrics", |_| TcpStream::connect(("127.0.0.1", port)).is_ok());
    let (status, before) = scraped(port);
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(!before.keys().any(|name| name.starts_with("privet_runs_total")), "{before:?}");
    nodes.run(&["--prepare", "4"], &inputs()).good();
    let done = "privet_jobs_total{kind=\"run\",plan=\"main\",outcome=\"done\"}";
    let plan = ONLY_PLAN;
    let done = done.replace("main", plan);
    nodes.until("a run in the metrics", |_| scraped(port).1.get(&done) == Some(&1.0));
    let first = scraped(port).1;
    let of = |all: &BTreeMap<String, f64>, name: &str| all[&format!("{name}{{plan=\"{plan}\"}}")];
    assert_eq!((of(&first, "privet_runs_total"), of(&first, "privet_runs_left")), (1.0, 3.0));
    let bytes: u64 = nodes.records("party0").iter().map(|p| p.metadata().unwrap().len()).sum();
    assert!(of(&first, "privet_key_bytes_total") >= bytes as f64, "{first:?}");
    nodes.run(&[], &inputs()).good();
    nodes.until("another run in the metrics", |_| scraped(port).1.get(&done) == Some(&2.0));
    let second = scraped(port).1;
    assert_eq!((of(&second, "privet_runs_total"), of(&second, "privet_runs_left")), (2.0, 2.0));
    for name in ["privet_run_sent_bytes_total", "privet_run_rounds_total"] {
        assert_eq!(of(&second, name), 2.0 * of(&first, name), "{name}: every run of a plan costs the same");
    }
    // A run that nobody has keys for fails at party 0, which plans it, and is counted as that.
    (0..3).for_each(|_| drop(nodes.run(&[], &inputs())));
    let failed = done.replace("done", "failed");
    nodes.until("a failure in the metrics", |_| scraped(port).1.get(&failed).is_some_and(|n| *n >= 1.0));
}

#[test]
fn metrics_for_everybody_take_a_word_of_the_operator() {
    let nodes = Nodes::of(REP3, &small(), Some(&weights()), "lan", &[]);
    let file = nodes.path("party0/node.toml");
    let node = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{node}\n[metrics]\nlisten = \"0.0.0.0:9000\"\n")).unwrap();
    let refused = nodes.start_refused("party0");
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(
        refused.err.contains("metrics.listen") && refused.err.contains("anywhere = true"),
        "{}",
        refused.err
    );
}

/// Shrink the pipe that a process writes its log to, so that it is full soon.
fn shrink(pipe: &impl AsRawFd) {
    // SAFETY: a call on a descriptor that is open.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    assert!(size > 0 && size <= 1 << 16, "{size}");
}

#[test]
fn a_log_that_nobody_reads_delays_no_run() {
    let mut nodes = Nodes::of(REP3, &small(), Some(&weights()), "lan", &[]);
    nodes.start("party1");
    nodes.start("party2");
    let mut party0 = nodes.service("party0");
    let mut child = party0.stderr(Stdio::piped()).spawn().unwrap();
    let mut unread = child.stderr.take().unwrap();
    shrink(&unread);
    let mut client = nodes.client("client");
    client.run(&inputs()).unwrap();
    // Far more than the pipe and the queue hold.
    let begun = Instant::now();
    (0..3000).for_each(|_| drop(client.status().unwrap()));
    let outcome = client.run(&inputs()).unwrap();
    assert_eq!(outcome.outputs, truth(&small(), &inputs(), &weights()));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // Read at last, it says how many events are missing.
    let reader = std::thread::spawn(move || {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains("events_lost") {
            match unread.read(&mut buffer) {
                Ok(n) if n > 0 => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
                _ => break,
            }
        }
        text
    });
    let text = reader.join().unwrap();
    assert!(text.contains("\"event\":\"events_lost\""), "{}", text.len());
    child.kill().unwrap();
    child.wait().unwrap();
}

//! Keys that come while runs use them up, between real processes over TLS: who waits for whom, what a death leaves, and
//! that nothing grows.

use crate::nodes::dealing::{Answer, Played, dealt};
use crate::nodes::learning::{School, batch, first_states, rate};
use crate::nodes::{FSS, Family, Nodes, PARTIES, REP3, cut, named, numbers, small, truth};
use privet_net::{Channel, TcpChannel};
use privet_party::session::client::{Client, ClientError, Publics};
use privet_party::session::control::{Id, KeyStream, Talk, hear, say};
use privet_party::session::family::dealing::messages::{DealReply, DealRequest};
use privet_party::store::hex;
use privet_party::tensors::Tensors;
use privet_plan::program::ONLY_PLAN;
use privet_prg::Seed;
use privet_ring::Ring;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

fn weights() -> Tensors {
    named("fc.weight", numbers(&[4, 3], 1))
}

fn inputs(salt: usize) -> Tensors {
    named("x", numbers(&[2, 3], salt))
}

/// A deployment whose model party 1 owns, with further settings of both parties.
fn started(settings: &str) -> Nodes {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    nodes.set(settings);
    nodes.start_all();
    nodes
}

/// A run with the interpreter's result, or why not.
fn run(client: &mut Client, salt: usize) -> Result<(), ClientError> {
    let outcome = client.run(&inputs(salt))?;
    assert_eq!(outcome.outputs, truth(&small(), &inputs(salt), &weights()), "inputs {salt}");
    Ok(())
}

fn streams(client: &mut Client) -> Vec<KeyStream> {
    client
        .status()
        .unwrap()
        .into_iter()
        .map(|s| s.plans[ONLY_PLAN].stream.clone().expect("a stream was asked for"))
        .collect()
}

/// Ask until the parties say so.
fn until(client: &mut Client, what: &str, so: impl Fn(&KeyStream) -> bool) {
    for _ in 0..3000 {
        if streams(client).iter().all(&so) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain for {what}: {:?}", streams(client));
}

fn signal(nodes: &Nodes, name: &str, signal: &str) {
    let pid = nodes.pid(name).to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |e: fs::DirEntry| match e.metadata() {
        Ok(m) if m.is_dir() => bytes_below(&e.path()),
        Ok(m) => m.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Which file it is, whatever its name: inode, and when it was made, as inodes are used again.
type Made = (u64, Option<SystemTime>);

/// Sizes of all files below a folder but journals, which may always grow: a record that cannot be marked cannot be used.
fn files_below(dir: &Path) -> BTreeMap<Made, u64> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeMap::new() };
    let mut files = BTreeMap::new();
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(m) if m.is_dir() => files.extend(files_below(&entry.path())),
            Ok(m) if entry.file_name() != "journal" => {
                files.insert((m.ino(), m.created().ok()), m.len());
            }
            Ok(_) | Err(_) => {}
        }
    }
    files
}

/// Bytes of files that were there at one moment: those that are in two lists, one after the other. A single list can hold a
/// record that was removed while it was made, beside the one that came in its place.
fn bytes_at_once(dir: &Path) -> u64 {
    let (before, after) = (files_below(dir), files_below(dir));
    before.iter().filter(|(file, _)| after.contains_key(file)).map(|(_, len)| len).sum()
}

fn rss_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn two_hundred_runs_leave_nothing_behind_on_disk_or_in_memory() {
    for settings in ["memory_budget = 0", ""] {
        let nodes = started(settings);
        let mut client = nodes.client("client");
        client.prepare_stream(ONLY_PLAN, 200).unwrap();
        let mut early = [0; 2];
        for i in 0..200 {
            run(&mut client, i).unwrap();
            if i == 20 {
                early = PARTIES.map(|p| rss_kb(nodes.pid(p)));
            }
            let kept = PARTIES.map(|p| nodes.records(p).len());
            assert!(kept.iter().all(|&n| n <= 2), "run {i}: {kept:?}");
            assert!(
                !settings.is_empty() || kept == [0, 0],
                "run {i}: records on disk, with room in memory: {kept:?}"
            );
        }
        let late = PARTIES.map(|p| rss_kb(nodes.pid(p)));
        assert!((0..2).all(|i| late[i] < early[i] + 4096), "{early:?} kB grew to {late:?} kB");
        for (party, s) in PARTIES.iter().zip(streams(&mut client)) {
            assert_eq!((s.came, s.to_come, s.unused, &s.failure), (200, 0, 0, &None), "{party}");
            assert!(nodes.records(party).is_empty());
        }
        let error = run(&mut client, 1).unwrap_err().to_string();
        assert!(error.contains("prepare more"), "{error}");
        nodes.used_once();
        nodes.nothing_secret_was_said(&[&weights(), &inputs(7)]);
    }
}

#[test]
fn no_more_is_ahead_than_was_set_and_a_run_makes_room_for_one() {
    let nodes = started("ahead = 3\nmemory_budget = 0");
    let mut client = nodes.client("client");
    client.prepare_stream(ONLY_PLAN, 7).unwrap();
    for used in 0..3 {
        until(&mut client, "three records", |s| s.unused == 3);
        // A fourth would come now if it could.
        std::thread::sleep(Duration::from_millis(100));
        for (party, s) in PARTIES.iter().zip(streams(&mut client)) {
            assert_eq!((s.came, s.to_come, s.unused), (3 + used, 4 - used, 3), "{party}");
            assert_eq!(nodes.records(party).len(), 3, "{party}");
        }
        assert_eq!(
            client.status().unwrap()[0].plans[ONLY_PLAN].runs_left,
            (used > 0).then_some(7 - used as usize)
        );
        run(&mut client, used as usize).unwrap();
    }
    for i in 3..7 {
        run(&mut client, i).unwrap();
    }
    assert_eq!(client.status().unwrap()[1].plans[ONLY_PLAN].runs_left, Some(0));
}

#[test]
fn a_run_waits_for_keys_of_a_slow_dealer() {
    let nodes = started("ahead = 1");
    let mut client = nodes.client("client");
    client.prepare_stream(ONLY_PLAN, 3).unwrap();
    // The dealer cannot send the second record while it is stopped, and is not given up for so short a time.
    signal(&nodes, "dealer", "-STOP");
    run(&mut client, 0).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(&mut client, 1).unwrap();
            done.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_secs(1));
        assert!(!done.load(Ordering::SeqCst), "a run without keys");
        signal(&nodes, "dealer", "-CONT");
    });
    run(&mut client, 2).unwrap();
    // Most of that second, or what a busy machine left of it; a run that finds its keys waits for microseconds.
    assert!(streams(&mut client)[0].waited_s > 0.01, "{:?}", streams(&mut client));
    nodes.used_once();
}

#[test]
fn a_dealer_that_dies_is_named_and_a_new_preparation_continues() {
    let mut nodes = started("ahead = 2\nmemory_budget = 0");
    let mut client = nodes.client("client");
    client.prepare_stream(ONLY_PLAN, 50).unwrap();
    run(&mut client, 0).unwrap();
    until(&mut client, "two records", |s| s.unused == 2);
    nodes.kill("dealer");
    until(&mut client, "the end", |s| s.failure.is_some());
    // What came stays usable.
    run(&mut client, 1).unwrap();
    run(&mut client, 2).unwrap();
    let error = run(&mut client, 3).unwrap_err().to_string();
    assert!(error.contains("no further keys come from the dealer (") && error.contains("dealer"), "{error}");
    assert!(error.contains("prepare more"), "{error}");
    let error = client.prepare_stream(ONLY_PLAN, 5).unwrap_err().to_string();
    assert!(error.contains("dealer"), "{error}");
    // The new dealer does not know the session: the next one is begun by the party that owns the model.
    nodes.start("dealer");
    client.prepare_stream(ONLY_PLAN, 5).unwrap();
    (0..5).for_each(|i| run(&mut client, i).unwrap());
    assert!(run(&mut client, 5).is_err());
    nodes.used_once();
    let names = |p: &str| fs::read_dir(nodes.path(p).join("store")).unwrap().count();
    assert!(PARTIES.iter().all(|p| names(p) == 2), "an ended session's files stay: {:?}", PARTIES.map(names));
}

#[test]
fn a_live_dealer_that_falls_silent_between_two_records_is_given_up_and_named() {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    let file = nodes.path("deployment.toml");
    let text = fs::read_to_string(&file).unwrap();
    // A turn is ten seconds then.
    fs::write(&file, text.replace("step = 300", "step = 2").replace("connect = 4", "connect = 3")).unwrap();
    PARTIES.iter().for_each(|party| nodes.start(party));
    let mut client = nodes.client("client");
    let (dealer, keys) = (Played::new(&nodes), dealt());
    let answer = |_: &DealRequest| Answer {
        session: Id(keys.session),
        indices: vec![0, 1, 2],
        keys: [keys.clone(), keys.clone()],
        set: None,
    };
    let held = std::thread::scope(|scope| {
        let held = scope.spawn(|| dealer.deliver(answer, 1).1);
        client.prepare_stream(ONLY_PLAN, 3).unwrap();
        held.join().unwrap()
    });
    run(&mut client, 0).unwrap();
    let begun = Instant::now();
    assert!(streams(&mut client).iter().all(|s| s.failure.is_none()), "a dealer may take its time");
    until(&mut client, "the end", |s| s.failure.is_some());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(held);
    let error = run(&mut client, 1).unwrap_err().to_string();
    assert!(
        error.contains("no further keys come from the dealer (") && error.contains("dealer is alive"),
        "{error}"
    );
    drop(dealer);
    nodes.start("dealer");
    client.prepare_stream(ONLY_PLAN, 1).unwrap();
    run(&mut client, 2).unwrap();
    nodes.used_once();
}

/// Time for parties that have said that all is stored to put their connections away.
fn put_away() {
    std::thread::sleep(Duration::from_millis(300));
}

/// A new session each time: none is open.
fn answer(request: &DealRequest) -> Answer {
    let (keys, indices) = (dealt(), (0..request.runs).collect());
    Answer { session: Id(keys.session), indices, keys: [keys.clone(), keys], set: None }
}

/// How a dealer ends its connections.
type End = fn(&mut [TcpChannel]);

#[test]
fn a_connection_that_is_gone_unheard_is_dialled_anew() {
    let answers = |both: &mut [TcpChannel]| {
        let reply = DealReply::Dealing { session: Id::fresh(), indices: vec![0] };
        both.iter_mut().for_each(|channel| say(channel, Talk::Deal, &reply).unwrap());
        // Taken in before the end is.
        std::thread::sleep(Duration::from_millis(300));
        both.iter_mut().for_each(Channel::sever);
    };
    // Once it has heard the next request on those that were kept, and what that is to the parties.
    let ends: [(End, _); 3] = [
        (|both| both.iter_mut().for_each(Channel::sever), None),
        (answers, Some("closed the connection")),
        (|both| both.iter_mut().for_each(|c| c.abort("on purpose")), Some("gave up: on purpose")),
    ];
    for stream in [false, true] {
        let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
        PARTIES.iter().for_each(|party| nodes.start(party));
        let (dealer, mut client) = (Played::new(&nodes), nodes.client("client"));
        let mut prepare = || match stream {
            true => client.prepare_stream(ONLY_PLAN, 1).map(drop),
            false => client.prepare(ONLY_PLAN, 1, 0).map(drop),
        };
        for (end, says) in ends {
            std::thread::scope(|scope| {
                let first = scope.spawn(|| dealer.deliver(answer, usize::MAX).1);
                prepare().unwrap();
                let both = first.join().unwrap();
                put_away();
                let second = scope.spawn(|| {
                    let heard = both.into_iter().map(|mut channel| {
                        channel.set_patience(Some(Duration::from_secs(30)));
                        let _: DealRequest = hear(&mut channel, Talk::Deal).unwrap();
                        channel
                    });
                    let mut heard: Vec<_> = heard.collect();
                    end(&mut heard);
                    says.is_none().then(|| dealer.deliver(answer, usize::MAX))
                });
                let result = prepare();
                second.join().unwrap();
                match says {
                    None => result.unwrap(),
                    Some(says) => {
                        let error = result.unwrap_err().to_string();
                        assert!(error.contains(says), "`{says}` is not in: {error}");
                    }
                }
            });
        }
    }
}

#[test]
fn deals_follow_each_other_on_one_connection_until_the_dealer_ends_it() {
    let mut nodes = Nodes::of(FSS, &small(), Some(&weights()), "lan", &[]);
    PARTIES.iter().for_each(|party| nodes.start(party));
    let dealer = Played::new(&nodes);
    let mut held: Option<Vec<_>> = None;
    for (life, stream) in [false, true, false, true].into_iter().enumerate() {
        if life == 3 {
            held = None;
        }
        let mut client = nodes.client("client");
        let line = held.take();
        held = std::thread::scope(|scope| {
            let deal = scope.spawn(|| match line {
                None => dealer.deliver(answer, usize::MAX).1,
                Some(both) => Played::deliver_on(both, answer, usize::MAX).1,
            });
            match stream {
                true => client.prepare_stream(ONLY_PLAN, 2).map(drop),
                false => client.prepare(ONLY_PLAN, 2, 0).map(drop),
            }
            .unwrap();
            Some(deal.join().unwrap())
        });
        put_away();
    }
}

#[test]
fn a_new_stream_continues_an_open_session() {
    let nodes = started("ahead = 2");
    let mut client = nodes.client("client");
    client.prepare_stream(ONLY_PLAN, 2).unwrap();
    (0..2).for_each(|i| run(&mut client, i).unwrap());
    for life in 0..3 {
        client.prepare_stream(ONLY_PLAN, 20).unwrap();
        (0..2 + life).for_each(|i| run(&mut client, i).unwrap());
    }
    // One that is replaced leaves what came of it; keys prepared at once go along with one.
    client.prepare(ONLY_PLAN, 2, 0).unwrap();
    let left = client.status().unwrap()[0].plans[ONLY_PLAN].runs_left.unwrap();
    // A record that only one party had when a stream was replaced is passed over.
    (0..left - 4).for_each(|i| run(&mut client, i).unwrap());
    let sessions = nodes.journal("party0").iter().filter(|l| l.starts_with("session")).count();
    assert_eq!(sessions, 1, "{:?}", nodes.journal("party0"));
    nodes.used_once();
}

/// Sets what it holds when it goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_stream_stays_within_the_disk_budget() {
    // Room for the session, the journal, and two records and a half; one of them may be in use.
    let probe = started("memory_budget = 0");
    let mut probing = probe.client("client");
    probing.prepare(ONLY_PLAN, 1, 0).unwrap();
    let sizes = PARTIES.map(|p| fs::metadata(&probe.records(p)[0]).unwrap().len());
    drop(probing);
    let budget = sizes[0].max(sizes[1]) * 5 / 2 + 4096;
    let nodes = started(&format!("ahead = 50\nmemory_budget = 0\ndisk_budget = {budget}"));
    let mut client = nodes.client("client");
    let (most, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // also where an assertion fails: nobody would end the thread then
        let _ends = Ends(&done);
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                for store in PARTIES.map(|p| nodes.path(p).join("store")) {
                    most.fetch_max(bytes_at_once(&store), Ordering::SeqCst);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        client.prepare_stream(ONLY_PLAN, 12).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        for i in 0..12 {
            assert!(streams(&mut client).iter().all(|s| s.unused <= 3), "{:?}", streams(&mut client));
            run(&mut client, i).unwrap();
        }
    });
    let most = most.into_inner();
    assert!(most <= budget, "{most} bytes on disk, of {budget} allowed");
    assert!(most > sizes[0], "nothing was seen on disk");
    assert!(streams(&mut client).iter().all(|s| s.failure.is_none()));
    // Less than one record: the preparation itself says so.
    let nodes = started(&format!("memory_budget = 0\ndisk_budget = {}", sizes[0] / 2));
    let error = nodes.client("client").prepare_stream(ONLY_PLAN, 2).unwrap_err().to_string();
    assert!(error.contains("disk_budget"), "{error}");
}

#[test]
fn damaged_records_of_a_stream_are_refused_and_passed_over() {
    let nodes = started("ahead = 3\nmemory_budget = 0");
    let mut client = nodes.client("client");
    client.prepare_stream(ONLY_PLAN, 8).unwrap();
    run(&mut client, 0).unwrap();
    until(&mut client, "three records", |s| s.unused == 3);
    // Cut off at party 0, foreign at party 1.
    cut(&nodes.records("party0")[0], 1000);
    let [_, second, third] = &nodes.records("party1")[..] else { panic!("three records") };
    crate::nodes::copy(third, second);
    for cause in ["truncated", "belongs to another run"] {
        let error = run(&mut client, 1).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
    for i in 3..8 {
        run(&mut client, i).unwrap();
    }
    assert!(run(&mut client, 8).is_err(), "more runs than records");
    assert!(PARTIES.iter().all(|p| nodes.records(p).is_empty()), "records that were passed over stay");
    nodes.used_once();
}

#[test]
fn a_checked_stream_is_refused() {
    let nodes = started("");
    let run = nodes.run(&["--prepare", "2", "--stream", "--no-run"], &inputs(1));
    run.good();
    let both = nodes.run(&["--prepare", "2", "--stream", "--checks", "1"], &inputs(1));
    assert_eq!(both.code, Some(2), "{}", both.err);
}

#[test]
fn killed_at_any_moment_of_a_stream_no_record_is_used_twice() {
    let mut nodes = started("ahead = 2\nmemory_budget = \"2 kB\"");
    let mut moments = Seed::random().stream();
    let mut client = nodes.client("client");
    let done = AtomicU64::new(0);
    for life in 0..30 {
        let word = moments.elements(Ring::R64, 1)[0];
        let victim = ["party0", "party1", "dealer"][(word % 3) as usize];
        let (killed, before) = (AtomicBool::new(false), done.load(Ordering::SeqCst));
        std::thread::scope(|scope| {
            let (nodes, client, killed) = (&mut nodes, &mut client, &killed);
            let done = &done;
            scope.spawn(move || {
                // Streams that are not used up stay: begun over and over, none is left without keys.
                let _ = client.prepare_stream(ONLY_PLAN, 1000);
                for salt in 0.. {
                    let failed = run(client, salt).is_err();
                    done.fetch_add(u64::from(!failed), Ordering::SeqCst);
                    if killed.load(Ordering::SeqCst) {
                        break;
                    }
                    if failed {
                        std::thread::sleep(Duration::from_millis(20));
                        // What the last kill left: another party may have lost the session after keys were asked for.
                        if done.load(Ordering::SeqCst) == before {
                            let _ = client.prepare_stream(ONLY_PLAN, 1000);
                        }
                    }
                }
            });
            // In every other life after a run, however busy the machine is; in the others also while all come up again.
            if life % 2 == 0 {
                nodes.until("a run", |_| done.load(Ordering::SeqCst) > before);
            }
            std::thread::sleep(Duration::from_millis(word >> 32 & 0x1FF));
            nodes.kill(victim);
            killed.store(true, Ordering::SeqCst);
            nodes.start(victim);
        });
        nodes.used_once();
        for party in PARTIES {
            let store = bytes_below(&nodes.path(party).join("store"));
            let journal: usize = nodes.journal(party).iter().map(|l| l.len() + 1).sum();
            assert!(store < journal as u64 + 200_000, "life {life}: {party} keeps {store} bytes");
        }
    }
    // Everybody is well again, and the interpreter's result comes out.
    let works = |client: &mut Client| client.prepare_stream(ONLY_PLAN, 3).and_then(|_| run(client, 1));
    let mut tries = 0;
    while let Err(e) = works(&mut client) {
        tries += 1;
        assert!(tries < 100, "{e}");
        std::thread::sleep(Duration::from_millis(100));
    }
    run(&mut client, 2).unwrap();
    run(&mut client, 3).unwrap();
    nodes.used_once();
}

#[test]
fn plans_of_a_program_share_one_budget() {
    let probe = School::open_with(FSS, "lan", "memory_budget = 0");
    let stored = |school: &School| PARTIES.map(|p| bytes_below(&school.nodes.path(p).join("store")));
    let sizes = {
        let mut school = probe;
        let empty = stored(&school);
        school.prepare("train", 3);
        let train = stored(&school);
        school.prepare("evaluate", 1);
        let both = stored(&school);
        [0, 1].map(|p| [train[p] - empty[p], both[p] - train[p]])
    };
    // One byte too few for both, at the party with the larger keys; a run of one makes room for the other.
    let budget = sizes.iter().map(|[train, evaluate]| train + evaluate).max().unwrap() - 1;
    assert!(sizes.iter().all(|[train, evaluate]| train / 3 > 1000 && *evaluate < budget), "{sizes:?}");
    let settings = format!("memory_budget = 0\ndisk_budget = {budget}");
    let mut school = School::open_with(FSS, "lan", &settings);
    school.carol.begin_training(&first_states(), 0).unwrap();
    school.prepare("train", 3);
    let error = school.alice.prepare("evaluate", 1, 0).unwrap_err().to_string();
    assert!(error.contains("disk_budget"), "{error}");
    school.step(&rate(0.5)).unwrap();
    school.prepare("evaluate", 1);
    let (x, _) = batch(7);
    school.alice.step("evaluate", &x, &Publics::new()).unwrap();
    // A stream of one waits for what another one holds, and goes on when that is used up.
    school.alice.prepare_stream("evaluate", 6).unwrap();
    let mut most = 0;
    for step in 0..6 {
        school.alice.step("evaluate", &x, &Publics::new()).unwrap();
        if step < 2 {
            school.step(&rate(0.5)).unwrap();
        }
        most = most.max(stored(&school).into_iter().max().unwrap());
    }
    let journals = PARTIES.map(|p| school.nodes.journal(p).iter().map(|l| l.len() as u64 + 1).sum::<u64>());
    assert!(most <= budget + journals[0].max(journals[1]), "{most} bytes on disk, of {budget} allowed");
    school.nodes.used_once();
}

/// What a training leaves: as much memory after many steps as after few, at every process, keys and checkpoints included.
fn grows_not(family: Family) {
    let mut school = School::open_with(family, "lan", "memory_budget = 0\nahead = 2");
    school.carol.begin_training(&first_states(), 10).unwrap();
    school.alice.prepare_stream("train", 300).unwrap();
    let rss = |school: &School| -> Vec<u64> {
        family.services().map(|name| rss_kb(school.nodes.pid(name))).collect()
    };
    let mut early = Vec::new();
    for step in 0..300 {
        school.step(&rate(0.001)).unwrap();
        if step == 50 {
            early = rss(&school);
        }
    }
    let late = rss(&school);
    eprintln!("{}: {early:?} kB after 50 steps, {late:?} kB after 300", family.protocol);
    assert!(early.iter().zip(&late).all(|(e, l)| *l < e + 2048), "{early:?} kB grew to {late:?} kB");
    for party in family.parties {
        assert!(school.nodes.records(party).is_empty(), "{party}");
        let kept = school.nodes.path(party).join("checkpoints");
        assert_eq!(
            fs::read_dir(kept.join(hex(&school.alice.training().unwrap().training.0))).unwrap().count(),
            2
        );
    }
    school.nodes.used_once();
}

#[test]
fn three_hundred_steps_of_a_training_leave_nothing_behind_in_memory() {
    grows_not(FSS);
    grows_not(REP3);
}

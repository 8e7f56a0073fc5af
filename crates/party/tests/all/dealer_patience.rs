//! A party that is alive and silent holds up the dealer for `timeouts.step`, and no longer; one that uses its keys slowly may
//! take its time between two records.

use crate::nodes::{FSS, Nodes, named, numbers, small};
use privet_net::{Channel, Liveness, NetError, TcpChannel};
use privet_party::config::Place;
use privet_party::session::control::{Id, Talk, hear, say};
use privet_party::session::family::dealing::messages::{DealReply, DealRequest};
use privet_party::session::links::Purpose;
use privet_party::store::hex;
use std::fs;
use std::time::{Duration, Instant};

/// `timeouts.step` here.
const STEP: Duration = Duration::from_secs(2);

/// `Timeouts::turn` here, with 3 s for `connect` and 1 s for `heartbeat`.
const TURNS: Duration = Duration::from_secs(10);

/// A dealer, whose parties this test plays.
fn dealer() -> Nodes {
    let mut nodes = Nodes::of(FSS, &small(), Some(&named("fc.weight", numbers(&[4, 3], 1))), "lan", &[]);
    let file = nodes.path("deployment.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("step = 300", "step = 2").replace("connect = 4", "connect = 3")).unwrap();
    nodes.start("dealer");
    nodes
}

fn dial(nodes: &Nodes, party: &str) -> TcpChannel {
    let mut channel = nodes.links(party).0.dial(&Place::Dealer, Purpose::Keys).unwrap();
    channel.set_patience(Some(Duration::from_secs(60)));
    channel
}

/// Both parties ask for so many records; gives their connections, once they have the session's keys.
fn asked(nodes: &Nodes, runs: u64) -> [TcpChannel; 2] {
    asked_on(["party0", "party1"].map(|party| dial(nodes, party)), runs)
}

/// The same on connections that are there.
fn asked_on(mut both: [TcpChannel; 2], runs: u64) -> [TcpChannel; 2] {
    let request =
        DealRequest { deal: Id::fresh(), plan: hex(&small().hash()), session: None, runs, checks: 0 };
    both.iter_mut().for_each(|c| say(c, Talk::Deal, &request).unwrap());
    for channel in &mut both {
        assert!(matches!(hear(channel, Talk::Deal).unwrap(), DealReply::Dealing { .. }));
        channel.recv_up_to(&Talk::Keys.step(), 4096).unwrap();
    }
    both
}

fn room(channel: &mut TcpChannel) {
    channel.send(&Talk::Credit.step(), Vec::new()).unwrap();
}

/// Take a record in, up to the empty message at its end.
fn record(channel: &mut TcpChannel) -> Result<(), NetError> {
    while !channel.recv_up_to(&Talk::Keys.step(), 1 << 20)?.is_empty() {}
    Ok(())
}

/// Take a record in and say so, which the dealer waits for, one party after the other.
fn stored(channel: &mut TcpChannel) {
    record(channel).unwrap();
    channel.send(&Talk::Credit.step(), Vec::new()).unwrap();
}

/// Why the dealer ended a connection, once it had the time to: a party that waited in turn would not be silent, but at odds.
#[track_caller]
fn ended(channel: &mut TcpChannel, says: &str) {
    std::thread::sleep(STEP + Duration::from_secs(1));
    let begun = Instant::now();
    let why = loop {
        if let Err(e) = channel.recv_up_to(&Talk::Keys.step(), 1 << 20) {
            break e.to_string();
        }
    };
    assert!(why.contains("gave up") && why.contains(says), "`{says}` is not in: {why}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn whoever_lets_the_dealer_wait_in_a_step_is_given_up() {
    let nodes = dealer();
    // Connected, and nothing is asked for.
    ended(&mut dial(&nodes, "party0"), "waited for it in vain for 2 s");
    // Asked, and no room for the first record.
    let [mut silent, mut other] = asked(&nodes, 1);
    room(&mut other);
    ended(&mut silent, "party:0 is alive, but this party waited for it in vain for 2 s");
    ended(&mut other, "party:0 is alive");
    // The record came, and is never stored.
    let [mut other, mut silent] = asked(&nodes, 1);
    room(&mut silent);
    room(&mut other);
    stored(&mut other);
    record(&mut silent).unwrap();
    ended(&mut silent, "party:1 is alive, but this party waited for it in vain for 2 s");
    ended(&mut other, "party:1 is alive");
    nodes.until("three ends in its log", |n| {
        n.told("dealer", "deal_failed").len() == 2 && n.told("dealer", "connection_broken").len() == 1
    });
    assert!(nodes.told("dealer", "deal_failed").iter().all(|e| e["reason"] == "net.stuck"));
}

#[test]
fn between_two_records_parties_take_their_time_and_the_end_of_one_ends_both() {
    let nodes = dealer();
    let mut both = asked(&nodes, 3);
    // As a party's stream does while no run asks for the next record.
    let works = Liveness::new();
    both.iter().for_each(|c| c.show(&works));
    for pause in [Duration::ZERO, TURNS + 2 * STEP] {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            works.turn();
            std::thread::sleep(Duration::from_millis(100));
        }
        both.iter_mut().for_each(room);
        both.iter_mut().for_each(stored);
    }
    std::thread::sleep(Duration::from_millis(300));
    let [mut silent, other] = both;
    drop(other);
    ended(&mut silent, "party:1");
}

#[test]
fn one_connection_serves_deal_after_deal_and_nobody_is_hurried_between_them() {
    let nodes = dealer();
    let mut both = asked(&nodes, 1);
    for _ in 0..2 {
        both.iter_mut().for_each(room);
        both.iter_mut().for_each(stored);
        std::thread::sleep(STEP + Duration::from_secs(1));
        both = asked_on(both, 1);
    }
    both.iter_mut().for_each(room);
    both.iter_mut().for_each(stored);
    // One party goes on where it was, the other calls anew.
    let [left, kept] = both;
    drop(left);
    let both = asked_on([dial(&nodes, "party0"), kept], 1);
    // In a deal a party that goes ends it for both, as ever.
    let [gone, mut other] = both;
    drop(gone);
    ended(&mut other, "party:0");
    nodes.until("three deals and one that failed", |n| {
        n.told("dealer", "deal_done").len() == 3 && n.told("dealer", "deal_failed").len() == 1
    });
    assert!(nodes.told("dealer", "connection_broken").is_empty(), "a party may go between two deals");
}

#[test]
fn a_party_whose_stream_hangs_between_two_records_is_given_up() {
    let nodes = dealer();
    let [mut hangs, mut works] = asked(&nodes, 2);
    for channel in [&mut hangs, &mut works] {
        room(channel);
    }
    stored(&mut hangs);
    stored(&mut works);
    room(&mut works);
    let begun = Instant::now();
    let why = works.recv_up_to(&Talk::Keys.step(), 1 << 20).unwrap_err().to_string();
    assert!(why.contains("party:0 is alive") && why.contains("in vain for 10 s"), "{why}");
    assert!(begun.elapsed() + Duration::from_millis(500) >= TURNS, "{:?}", begun.elapsed());
    ended(&mut hangs, "party:0 is alive");
}

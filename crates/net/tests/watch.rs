//! Waiting for several peers: whoever answers or goes is noticed, whichever it is.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{connect, connect_with, step};
use privet_net::{Channel, Liveness, NetError, Options, TcpChannel, wait_any, wait_patiently};

/// Far beyond any delay of a busy machine, far below any timeout of a connection that stands.
fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(10))
}

/// A client's channels to three parties, and the parties' ends.
fn three(encrypted: bool) -> (Vec<TcpChannel>, Vec<TcpChannel>) {
    (0..3).map(|_| connect(encrypted)).unzip()
}

#[test]
fn a_connection_that_ends_is_noticed_while_another_peer_takes_its_time() {
    type End = fn(TcpChannel);
    type Check = fn(&NetError) -> bool;
    let ends: [(End, Check); 3] = [
        (|mut c| c.sever(), |e| matches!(e, NetError::Closed { .. })),
        (|mut c| c.abort("the disk is full"), |e| matches!(e, NetError::Aborted { .. })),
        (drop, |e| matches!(e, NetError::Ended { .. })),
    ];
    for encrypted in [true, false] {
        for (end, check) in ends {
            let (mut client, mut parties) = three(encrypted);
            client.iter_mut().for_each(|c| c.send(&step(1), vec![1; 100]).unwrap());
            assert!(client.iter().all(TcpChannel::is_open));
            let dying = parties.remove(1);
            let dies = thread::spawn(move || {
                thread::sleep(Duration::from_millis(30));
                end(dying);
            });
            assert_eq!(wait_any(&mut client, soon()), Some(1));
            assert_eq!(client.iter().map(TcpChannel::is_open).collect::<Vec<_>>(), [true, false, true]);
            let error = client[1].recv(&step(2), 1).unwrap_err();
            assert!(check(&error), "{error}");
            dies.join().unwrap();
            // Those that stand go on.
            assert_eq!(wait_any([&mut client[0]], Some(Instant::now())), None);
            parties[1].send(&step(2), vec![9]).unwrap();
            let rest = client.iter_mut().filter(|c| c.is_open());
            assert_eq!(wait_any(rest, soon()), Some(1), "the second of the two that are left");
            assert_eq!(client[2].recv(&step(2), 1).unwrap(), [9]);
        }
    }
}

#[test]
fn the_end_of_a_connection_shows_while_nobody_receives() {
    for encrypted in [true, false] {
        let (a, mut b) = connect(encrypted);
        b.sever();
        let until = soon();
        while a.is_open() {
            assert!(until > Some(Instant::now()), "it stays open");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn what_came_before_the_end_is_there_and_an_end_comes_first() {
    let (mut client, mut parties) = three(true);
    // Party 0 answers; party 1 answers and leaves; party 2 dies.
    parties[2].sever();
    parties[0].send(&step(1), vec![0]).unwrap();
    parties[1].send(&step(1), vec![1]).unwrap();
    drop(parties.remove(1));
    while client[1].is_open() || client[2].is_open() || wait_any([&mut client[0]], soon()) != Some(0) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(wait_any(&mut client, soon()), Some(2), "the end first");
    let mut two = client.iter_mut().take(2);
    assert_eq!(wait_any(&mut two, soon()), Some(0));
    assert_eq!(client[0].recv(&step(1), 1).unwrap(), [0]);
    assert_eq!(wait_any(client.iter_mut().take(2), soon()), Some(1));
    assert_eq!(client[1].recv(&step(1), 1).unwrap(), [1]);
    assert_eq!(wait_any(client.iter_mut().take(2), soon()), Some(1), "now it has ended");
    assert!(matches!(client[1].recv(&step(2), 1).unwrap_err(), NetError::Ended { .. }));
}

#[test]
fn a_deadline_ends_the_wait_and_nobody_to_wait_for_as_well() {
    let (mut client, _parties) = three(false);
    let start = Instant::now();
    let deadline = start + Duration::from_millis(80);
    assert_eq!(wait_any(&mut client, Some(deadline)), None);
    assert!(start.elapsed() >= Duration::from_millis(80));
    assert_eq!(wait_any([], None), None);
}

/// Without a turn.
const TURNS: Duration = Duration::from_secs(2);

/// A client's channel with patience for turns, and the party's end, with heartbeats that come often.
fn with_beats() -> (TcpChannel, TcpChannel) {
    let often = || Options { heartbeat: Duration::from_millis(50), ..Options::default() };
    let (mut client, party) = connect_with(true, [often(), often()]);
    client.set_patience_for_turns(TURNS);
    (client, party)
}

#[track_caller]
fn is_stuck(error: &NetError) {
    assert!(matches!(error, NetError::Stuck { seconds: 2, .. }), "{error}");
}

#[test]
fn a_peer_that_shows_turns_is_waited_for_and_one_that_only_lives_is_given_up() {
    let (mut client, mut parties): (Vec<_>, Vec<_>) = (0..3).map(|_| with_beats()).unzip();
    let works = Liveness::new();
    parties[0].show(&works);
    // Turns of nobody, whom this one shows.
    parties[1].show(&Liveness::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 * TURNS.as_millis() / 50 {
                works.turn();
                thread::sleep(Duration::from_millis(50));
            }
            parties[0].send(&step(1), vec![7]).unwrap();
        });
        let begun = Instant::now();
        let mut waiting: Vec<&mut TcpChannel> = client.iter_mut().collect();
        // A look is not a wait that somebody's patience ends with.
        let soon = begun + Duration::from_millis(10);
        assert_eq!(wait_patiently(waiting.iter_mut().map(|c| &mut **c), begun, Some(soon)), None);
        for left in [3, 2] {
            let first = wait_patiently(waiting.iter_mut().map(|c| &mut **c), begun, None).unwrap();
            assert!(first > 0 && waiting.len() == left, "the one that works was given up");
            assert!(begun.elapsed() >= TURNS && !waiting[first].is_open());
            is_stuck(&waiting.swap_remove(first).recv(&step(1), 1).unwrap_err());
        }
        assert_eq!(wait_patiently(waiting.iter_mut().map(|c| &mut **c), begun, None), Some(0));
        assert_eq!(waiting[0].recv(&step(1), 1).unwrap(), [7]);
        assert!(begun.elapsed() > TURNS, "nothing was shown by waiting that long");
    });
    // Both were told why.
    for party in &mut parties[1..] {
        let told = party.recv(&step(2), 1).unwrap_err();
        assert!(
            matches!(&told, NetError::Aborted { reason, .. } if reason.contains("in vain for 2 s")),
            "{told}"
        );
    }
    // It works no more.
    is_stuck(&client[0].recv(&step(2), 1).unwrap_err());
}

#[test]
fn frames_count_as_turns_of_whom_they_are_for_and_patience_for_frames_is_strict() {
    let (mut client, party) = with_beats();
    let service = Liveness::new();
    party.show(&service);
    // The service works with somebody else, frame by frame.
    let (mut other, mut served) = connect(false);
    served.count_for(Some(&service));
    thread::scope(|scope| {
        let worked = scope.spawn(|| {
            for _ in 0..2 * TURNS.as_millis() / 100 {
                other.send(&step(1), vec![1]).unwrap();
                served.recv(&step(1), 1).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        });
        let begun = Instant::now();
        is_stuck(&client.recv(&step(1), 1).unwrap_err());
        assert!(begun.elapsed() > 2 * TURNS - Duration::from_millis(500), "{:?}", begun.elapsed());
        worked.join().unwrap();
    });
    let (mut client, party) = with_beats();
    party.show(&service);
    client.set_patience(Some(TURNS));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                service.turn();
                thread::sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let received = client.recv(&step(1), 1);
        over.store(true, Ordering::Relaxed);
        is_stuck(&received.unwrap_err());
        assert!(begun.elapsed() < 2 * TURNS, "turns counted where only frames do");
    });
}

//! Waiting for several peers: whoever answers or goes is noticed, whichever it is.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{connect, step};
use privet_net::{Channel, NetError, TcpChannel, wait_any};

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

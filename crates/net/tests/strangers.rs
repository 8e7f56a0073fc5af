//! Callers that never say who they are do not keep those waiting who do, and are bounded.

mod common;

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use common::{PATIENCE, hello, identities, pin, protection, step};
use privet_net::tcp::CONNECTIONS;
use privet_net::{Channel, Identity, Listener, NetError, Options, Pin, Protection, TcpChannel, dial};

/// As many callers as are taken in at once.
const CALLERS: usize = 32;

fn listener() -> (Listener, String) {
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    (listener, address)
}

fn strangers(address: &str, n: usize) -> Vec<TcpStream> {
    (0..n).map(|_| TcpStream::connect(address).unwrap()).collect()
}

fn peer(address: &str) -> thread::JoinHandle<Result<String, NetError>> {
    let address = address.to_owned();
    thread::spawn(move || {
        let hello = hello("party 1");
        let options = Options::default();
        let (channel, _) = dial(&address, &protection(1, true), &pin(0), &hello, options, PATIENCE)?;
        Ok(channel.peer().to_owned())
    })
}

/// Whether the other side has hung up, without waiting for it.
fn is_dropped(mut stranger: &TcpStream) -> bool {
    stranger.set_nonblocking(true).unwrap();
    match stranger.read(&mut [0; 1]) {
        Ok(n) => n == 0,
        Err(e) => e.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// Threads of handshakes in this process. Tests of this binary take turns, so that they are one listener's.
fn greeting_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "privet-greet").count()
}

/// Waits until so many are left: a thread that has ended stays listed for a moment.
fn settles_at(threads: usize) {
    for _ in 0..2000 {
        if greeting_threads() == threads {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("{} threads stay instead of {threads}", greeting_threads());
}

static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn silent_strangers_do_not_delay_a_pinned_peer() {
    let _alone = alone();
    let (listener, address) = listener();
    let strangers = strangers(&address, CALLERS - 1);
    let dialer = peer(&address);
    // Were they served in turn, the first answer would be about a stranger.
    let incoming = listener.accept(PATIENCE).unwrap();
    incoming.answer(&hello("party 0"), Options::default()).unwrap();
    assert_eq!(dialer.join().unwrap().unwrap(), "party 0");
    assert!(!strangers.iter().any(is_dropped), "there was room for all");
    settles_at(CALLERS - 1);
    drop(listener);
    settles_at(0);
    assert!(strangers.iter().all(is_dropped));
}

#[test]
fn beyond_the_bound_the_oldest_go_and_a_peer_still_comes_in() {
    let _alone = alone();
    let (listener, address) = listener();
    let strangers = strangers(&address, 3 * CALLERS);
    let dialer = peer(&address);
    let mut turned_away = 0;
    let incoming = loop {
        match listener.accept(PATIENCE) {
            Ok(incoming) => break incoming,
            Err(NetError::Crowded { callers, .. }) => {
                assert_eq!(callers, CALLERS as u64);
                turned_away += 1;
            }
            Err(e) => panic!("{e}"),
        }
    };
    incoming.answer(&hello("party 0"), Options::default()).unwrap();
    assert_eq!(dialer.join().unwrap().unwrap(), "party 0");
    assert_eq!(turned_away, 2 * CALLERS + 1, "the peer took a place as well");
    settles_at(CALLERS - 1);
    let dropped: Vec<bool> = strangers.iter().map(is_dropped).collect();
    let expected: Vec<bool> = (0..3 * CALLERS).map(|i| i < turned_away).collect();
    assert_eq!(dropped, expected);
}

#[test]
fn strangers_that_leave_free_their_places() {
    let _alone = alone();
    let (listener, address) = listener();
    for _ in 0..4 * CALLERS {
        drop(TcpStream::connect(&address).unwrap());
        let error = listener.accept(PATIENCE).err().unwrap();
        assert!(matches!(error, NetError::Closed { .. }), "{error}");
    }
    let error = listener.accept(Duration::ZERO).err().unwrap();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");
    drop(listener);
    settles_at(0);
}

#[test]
fn a_known_peer_has_a_bounded_number_of_connections() {
    let _alone = alone();
    let pins = vec![pin(1), Pin::new("party 2", identities()[1].fingerprint())];
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), pins).unwrap();
    let address = listener.local_address().unwrap();
    let meet = |role: &'static str| {
        let address = address.clone();
        let dialer = thread::spawn(move || {
            dial(&address, &protection(1, true), &pin(0), &hello(role), Options::default(), PATIENCE)
                .and_then(|(mut c, _)| c.recv_up_to(&step(1), 1).map(|_| c))
        });
        let accepted =
            listener.accept(PATIENCE).and_then(|i| i.answer(&hello("party 0"), Options::default()));
        let accepted = accepted.map(|mut c| {
            c.send(&step(1), Vec::new()).unwrap();
            c
        });
        (accepted, dialer.join().unwrap())
    };
    let refused = |(here, there): (Result<TcpChannel, NetError>, Result<TcpChannel, NetError>)| {
        let error = here.expect_err("one too many");
        assert_eq!(error, NetError::TooMany { peer: "party 1".into(), most: CONNECTIONS as u64 });
        let told = there.expect_err("one too many");
        assert!(matches!(&told, NetError::Aborted { reason, .. } if *reason == error.to_string()), "{told}");
    };
    let mut held: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (here, there) = meet("party 1");
            (here.unwrap(), there.unwrap())
        })
        .collect();
    refused(meet("party 1"));
    let other = meet("party 2");
    assert!(other.0.is_ok() && other.1.is_ok(), "each place has its own");

    // A connection that ended counts until what came over it is taken, whoever still holds it.
    let (mut here, mut there) = held.pop().unwrap();
    there.send(&step(2), vec![1]).unwrap();
    drop(there);
    while here.is_open() {
        thread::sleep(Duration::from_millis(5));
    }
    refused(meet("party 1"));
    assert_eq!(here.recv(&step(2), 1).unwrap(), [1]);
    let again = meet("party 1");
    assert!(again.0.is_ok() && again.1.is_ok(), "its place is free");
    refused(meet("party 1"));
    // And one that this side gives up.
    drop(held.pop());
    assert!(meet("party 1").0.is_ok());
}

/// Peers with one name: each has connections of its own, and whom the listener admits may change while it listens.
#[test]
fn peers_of_one_name_are_told_apart_by_their_certificates() {
    let _alone = alone();
    let other = Identity::generate("party 1").unwrap();
    let named = |identity: &Identity| Pin::new("party 1", identity.fingerprint());
    let both = vec![named(&identities()[1]), named(&other)];
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), both.clone()).unwrap();
    let address = listener.local_address().unwrap();
    let meet = |identity: &Identity| {
        let (address, own) = (address.clone(), Protection::Tls(identity.clone()));
        let dialer = thread::spawn(move || {
            dial(&address, &own, &pin(0), &hello("party 1"), Options::default(), PATIENCE).map(|(c, _)| c)
        });
        let accepted = listener.accept(PATIENCE).and_then(|incoming| {
            let shown = incoming.certificate().unwrap();
            Ok((incoming.answer(&hello("party 0"), Options::default())?, shown))
        });
        (accepted, dialer.join().unwrap())
    };
    let first: Vec<_> = (0..CONNECTIONS).map(|_| meet(&identities()[1])).collect();
    assert!(first.iter().all(|(here, there)| {
        there.is_ok() && here.as_ref().is_ok_and(|(_, shown)| *shown == identities()[1].fingerprint())
    }));
    assert!(matches!(meet(&identities()[1]).0, Err(NetError::TooMany { .. })), "it has all it may have");
    let (here, there) = meet(&other);
    assert!(
        here.is_ok_and(|(_, shown)| shown == other.fingerprint()) && there.is_ok(),
        "the other one has its own"
    );

    listener.admit(vec![named(&identities()[1])]);
    assert!(matches!(meet(&other).0, Err(NetError::WrongCertificate { .. })), "it is admitted no more");
    assert!(first.iter().all(|(here, _)| here.as_ref().is_ok_and(|(channel, _)| channel.is_open())));
    listener.admit(both);
    assert!(meet(&other).0.is_ok());
}

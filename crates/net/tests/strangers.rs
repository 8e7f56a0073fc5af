//! Callers that never say who they are do not keep those waiting who do, and are bounded.

mod common;

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use common::{PATIENCE, hello, pin, security};
use privet_net::{Channel, Listener, NetError, Options, dial};

/// As many callers as are taken in at once.
const CALLERS: usize = 32;

fn listener() -> (Listener, String) {
    let listener = Listener::bind("127.0.0.1:0", security(0, true), vec![pin(1)]).unwrap();
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
        let (channel, _) = dial(&address, &security(1, true), &pin(0), &hello, options, PATIENCE)?;
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

//! An I/O thread that can do nothing uses no processor time. The only test of its binary, so that all time is its own.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{connect_with, step};
use privet_net::{Channel, Options, wait_any};

/// Processor time of this process so far.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes one timespec to the given live local.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A thread that spins takes all it gets of a core; heartbeats every 20 ms take less than a thousandth.
fn assert_idle(during: &str) {
    thread::sleep(Duration::from_millis(500)); // until the queues are full and the first heartbeats are due
    let before = used();
    thread::sleep(Duration::from_secs(3));
    let spent = used() - before;
    assert!(spent < Duration::from_millis(200), "{spent:?} of processor time in 3 s {during}");
}

#[test]
fn a_peer_that_takes_nothing_in_costs_no_processor_time() {
    const MORE_THAN_QUEUES_HOLD: usize = 200 << 20;
    for encrypted in [true, false] {
        let options = || Options { heartbeat: Duration::from_millis(20), ..Options::default() };
        let (mut a, mut b) = connect_with(encrypted, [options(), options()]);
        a.send(&step(1), vec![1; MORE_THAN_QUEUES_HOLD]).unwrap();
        assert_idle("while the socket is full");
        let waiting = thread::spawn(move || {
            let for_ever = Some(Instant::now() + Duration::from_secs(4));
            assert_eq!(wait_any([&mut a], for_ever), None);
            a
        });
        assert_idle("while waiting for any of several");
        let a = waiting.join().unwrap();
        let leaving = thread::spawn(move || drop(a));
        assert_idle("while leaving");
        assert!(b.recv(&step(1), MORE_THAN_QUEUES_HOLD).is_ok());
        leaving.join().unwrap();
    }
}

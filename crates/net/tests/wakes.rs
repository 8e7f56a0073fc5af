//! Small messages leave in the thread that sends them. The only test of its binary, so that all I/O threads are its own.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use common::{connect, step};
use privet_net::Channel;

/// How often each of the two I/O threads went to sleep so far. A thread has its name a moment after it begins.
fn sleeps() -> [u64; 2] {
    for _ in 0..10_000 {
        if let Ok(both) = of_io_threads().try_into() {
            return both;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("two connected channels have not two I/O threads");
}

fn of_io_threads() -> Vec<u64> {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    // one that ended meanwhile is none
    let read = |task: &PathBuf, what| fs::read_to_string(task.join(what)).unwrap_or_default();
    let io = threads.filter(|task| read(task, "comm").trim() == "privet-net");
    let count = |task: PathBuf| {
        let status = read(&task, "status");
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().last()?.parse().ok()
    };
    io.filter_map(count).collect()
}

#[test]
fn small_messages_do_not_wake_the_sender_s_io_thread() {
    const MESSAGES: u64 = 100;
    for encrypted in [true, false] {
        // three small ones, all of which the socket takes, and one that is the I/O thread's
        for (len, small) in [(0, true), (1_000, true), (16_000, true), (200_000, false)] {
            let (mut a, mut b) = connect(encrypted);
            let receiving = thread::spawn(move || {
                (0..MESSAGES).for_each(|_| assert!(b.recv(&step(1), len).unwrap() == vec![7; len]));
                b
            });
            let before = sleeps();
            for _ in 0..MESSAGES {
                a.send(&step(1), vec![7; len]).unwrap();
                thread::sleep(Duration::from_millis(2));
            }
            let _b = receiving.join().unwrap();
            let after = sleeps();
            let least = before.iter().zip(&after).map(|(before, after)| after - before).min().unwrap();
            // for heartbeats
            assert_eq!(
                least < MESSAGES / 4,
                small,
                "{least} of the one that wakes less often, at {len} bytes"
            );
        }
    }
}

//! Latency, bandwidth and processor time of a channel on loopback, as one JSON line for TLS and one for plain TCP; and a line of
//! what single parts of it take by themselves.
//!
//! `cargo run --release -p privet-net --example net_bench`
//!
//! Both ends run in this process, each with its protocol thread and its I/O thread. Processor time is that of all of them.

mod ceilings;

use std::thread;
use std::time::{Duration, Instant};

use privet_net::{
    Channel, Hello, Identity, Listener, NetError, Options, Pin, Protection, Step, TcpChannel, Terms, dial,
};
use serde_json::json;

const ROUNDS: usize = 5000;
const BULK: usize = 16 << 20;
const BULKS: usize = 64;
/// As long as a message of keys.
const SHORT: usize = 512 << 10;
const SHORTS: usize = 2048;

fn main() -> Result<(), NetError> {
    println!("{}", ceilings::measure());
    ceilings::keep_freed_memory();
    for encrypted in [true, false] {
        let (mut a, b) = connect(encrypted)?;
        let other = thread::spawn(move || answer(b));
        let step = Step::new(1, "bench");

        let mut trips: Vec<Duration> = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            a.exchange(&step, vec![1; 1024], 1024)?;
            trips.push(start.elapsed());
        }
        trips.sort();

        let long = Rate::of(BULK * BULKS, || one_way(&mut a, BULK, BULKS))?;
        let short = Rate::of(SHORT * SHORTS, || one_way(&mut a, SHORT, SHORTS))?;
        let both_ways = Rate::of(BULK * BULKS / 2, || {
            (0..BULKS / 4).try_for_each(|_| a.exchange(&step, vec![3; BULK], BULK).map(drop))
        })?;
        drop(other.join());

        let us = |d: Duration| (d.as_secs_f64() * 1e7).round() / 10.0;
        println!(
            "{}",
            json!({
                "channel": if encrypted { "tls" } else { "plain" },
                "exchange_1kb_us_median": us(trips[ROUNDS / 2]),
                "exchange_1kb_us_p90": us(trips[ROUNDS * 9 / 10]),
                "one_way_gb_per_s": long.gb_per_s,
                "one_way_cpu_s_per_gb": long.cpu_s_per_gb,
                "one_way_512kb_gb_per_s": short.gb_per_s,
                "one_way_512kb_cpu_s_per_gb": short.cpu_s_per_gb,
                "both_ways_sum_gb_per_s": both_ways.gb_per_s,
                "both_ways_cpu_s_per_gb": both_ways.cpu_s_per_gb,
            })
        );
    }
    Ok(())
}

fn one_way(a: &mut TcpChannel, len: usize, times: usize) -> Result<(), NetError> {
    let step = Step::new(1, "bench");
    for _ in 0..times {
        a.send(&step, vec![2; len])?;
    }
    a.recv(&step, 1).map(drop)
}

struct Rate {
    gb_per_s: f64,
    cpu_s_per_gb: f64,
}

impl Rate {
    /// Of so many bytes, by time and by this process's processor time.
    fn of(bytes: usize, work: impl FnOnce() -> Result<(), NetError>) -> Result<Self, NetError> {
        let (start, cpu) = (Instant::now(), ceilings::cpu_s());
        work()?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), ceilings::cpu_s() - cpu);
        let (gb_per_s, cpu_s_per_gb) = (bytes as f64 / seconds / 1e9, cpu / (bytes as f64 / 1e9));
        Ok(Self { gb_per_s: ceilings::rounded(gb_per_s), cpu_s_per_gb: ceilings::rounded(cpu_s_per_gb) })
    }
}

/// The other end: the same steps in the same order.
fn answer(mut b: TcpChannel) -> Result<(), NetError> {
    let step = Step::new(1, "bench");
    for _ in 0..ROUNDS {
        b.exchange(&step, vec![1; 1024], 1024)?;
    }
    for (len, times) in [(BULK, BULKS), (SHORT, SHORTS)] {
        for _ in 0..times {
            b.recv(&step, len)?;
        }
        b.send(&step, vec![1])?;
    }
    for _ in 0..BULKS / 4 {
        b.exchange(&step, vec![3; BULK], BULK)?;
    }
    Ok(())
}

fn connect(encrypted: bool) -> Result<(TcpChannel, TcpChannel), NetError> {
    let names = ["party 0", "party 1"];
    let identities = [Identity::generate(names[0])?, Identity::generate(names[1])?];
    let pins = [0, 1].map(|i| Pin::new(names[i], identities[i].fingerprint()));
    let protection =
        identities.map(|id| if encrypted { Protection::Tls(id) } else { Protection::InsecurePlain });
    let [security0, security1] = protection;
    let [pin0, pin1] = pins;
    let hello = |role: &str| Hello::new(role, [0; 32], "bench", Terms::default());
    let patience = Duration::from_secs(10);
    let listener = Listener::bind("127.0.0.1:0", security0, vec![pin1])?;
    let address = listener.local_address()?;
    let dialer = thread::spawn(move || {
        dial(&address, &security1, &pin0, &hello("party 1"), Options::default(), patience)
    });
    let (a, _) = listener.accept_as(&hello("party 0"), Options::default(), patience)?;
    match dialer.join() {
        Ok(b) => Ok((a, b?.0)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

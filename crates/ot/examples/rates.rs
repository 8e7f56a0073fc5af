//! Rates of every producer of transfers beside the AES ceiling of this machine: CPU time of each party's one thread.
//!
//! `cargo run --release -p privet-ot --example rates [MILLIONS]`. Lengths are whole chunks and rounds, so that producers
//! compare; a base OT and a first reserve are paid before the clock starts, and shown apart.

use privet_net::{Step, mem};
use privet_ot::softspoken::CHUNK;
use privet_ot::{Pair, Parameters, Source, Width};
use privet_prg::{HashKeys, Seed, TreeHash};
use std::hint::black_box;

const RUN: usize = 1 << 16;

/// CPU seconds of this thread.
fn cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Million blocks a second of the hash, in pieces that stay in the first-level cache.
fn ceiling() -> f64 {
    let hash = TreeHash::new(HashKeys::from_seed(&Seed::random()));
    let mut blocks = vec![1u128; 512];
    let best = (0..20).map(|_| {
        let start = cpu();
        (0..1000).for_each(|_| hash.inner(black_box(&mut blocks)));
        cpu() - start
    });
    0.512 / best.fold(f64::MAX, f64::min)
}

/// CPU seconds of one party.
#[derive(Clone, Copy)]
struct Times {
    start: f64,
    first: f64,
    prepare: f64,
    take: f64,
    pads: f64,
    bytes: u64,
}

fn party(channel: &mut mem::MemChannel, source: Source, n: usize, sends: bool) -> Times {
    use privet_net::Channel;
    let step = Step::new(1, "rates");
    let numbers = |n| if sends { (n, 0) } else { (0, n) };
    let t0 = cpu();
    let mut pair = Pair::start(channel, &step, source, &Seed::random()).expect("start");
    let t1 = cpu();
    let (send, receive) = numbers(1);
    pair.prepare(channel, &step, send, receive).expect("first");
    let first = if sends { pair.sender.available() } else { pair.receiver.available() };
    for _ in 0..first.div_ceil(RUN) {
        let (n, m) = (pair.sender.available().min(RUN), pair.receiver.available().min(RUN));
        black_box(pair.sender.take(n).expect("first").into_pads());
        black_box(pair.receiver.take(m).expect("first").into_pads());
    }
    let before = channel.meter().total();
    let (mut prepare, mut take, mut pads) = (0.0, 0.0, 0.0);
    let t2 = cpu();
    let mut left = n;
    while left > 0 {
        let a = cpu();
        let here = left.min(RUN);
        let (send, receive) = numbers(here);
        pair.prepare(channel, &step, send, receive).expect("more");
        let b = cpu();
        let (c, d) = if sends {
            let run = pair.sender.take(here).expect("prepared");
            let c = cpu();
            black_box(run.into_pads());
            (c, cpu())
        } else {
            let run = pair.receiver.take(here).expect("prepared");
            let c = cpu();
            black_box(run.into_pads());
            (c, cpu())
        };
        (prepare, take, pads) = (prepare + b - a, take + c - b, pads + d - c);
        left -= here;
    }
    let after = channel.meter().total();
    let bytes = after.sent + after.received - before.sent - before.received;
    Times { start: t1 - t0, first: t2 - t1, prepare, take, pads, bytes }
}

fn main() {
    let millions: f64 = std::env::args().nth(1).map_or(4.0, |a| a.parse().expect("a number of millions"));
    println!("AES ceiling: {:.0} M hashed blocks/s a thread", ceiling());
    println!(
        "{:16} {:>9} {:>18} {:>18} {:>10} {:>10} {:>12}",
        "source",
        "bits/COT",
        "M COT/s send, rcv",
        "M ROT/s send, rcv",
        "start ms",
        "first ms",
        "ns prep+take+pad"
    );
    let softspoken =
        Width::ALL.map(|w| (format!("SoftSpoken k={}", w as usize), Source::SoftSpoken(w), CHUNK));
    let ferret = Parameters::ALL.map(|p| (format!("Ferret {}", p.name), Source::Ferret(p), p.usable()));
    for (name, source, whole) in softspoken.into_iter().chain(ferret) {
        let n = ((millions * 1e6) as usize).div_ceil(whole) * whole;
        let (mut a, mut b) = mem::pair();
        let times = std::thread::scope(|scope| {
            let sender = scope.spawn(|| party(&mut a, source, n, true));
            [sender, scope.spawn(|| party(&mut b, source, n, false))]
                .map(|party| party.join().expect("a party"))
        });
        let rate = |t: f64| n as f64 / t / 1e6;
        let [s, r] = times;
        println!(
            "{name:16} {:9.2} {:9.1} {:8.1} {:9.1} {:8.1} {:10.1} {:10.1}   {}",
            s.bytes as f64 * 8.0 / n as f64,
            rate(s.prepare + s.take),
            rate(r.prepare + r.take),
            rate(s.prepare + s.take + s.pads),
            rate(r.prepare + r.take + r.pads),
            1e3 * s.start.max(r.start),
            1e3 * s.first.max(r.first),
            [s, r]
                .map(|t| [t.prepare, t.take, t.pads].map(|t| format!("{:.1}", t * 1e9 / n as f64)).join("+"))
                .join("  ")
        );
    }
}

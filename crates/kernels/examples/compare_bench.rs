//! Speed of the comparison kernel against the machine's limits, one JSON line a measurement.
//!
//! `cargo run --release -p privet-kernels --example compare_bench [-- --bits 63 --mib 900 --repeats 5]`
//!
//! The limits are measured in the same run: AES (`aes_per_s / (depth + 1)` keys a second for evaluation,
//! half of it for dealing) and memory (`read_bytes_per_s / (16 * (depth + 2))`, only where keys are streamed
//! from memory). Rates are medians of the repeats; `best_*` are the fastest repeat on each side, which says
//! more on a machine that is doing something else.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use privet_kernels::CompareShape;
use privet_kernels::compare::BLOCK;
use privet_kernels::compare::cpu::{self, ComparePath};
use privet_prg::{HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;
use std::time::Instant;

/// Keys that fit a core's second-level cache with room to spare.
const CACHED_BYTES: usize = 768 << 10;

struct Options {
    bits: Vec<u32>,
    bytes: usize,
    repeats: usize,
}

/// Seconds of each repeat.
struct Times(Vec<f64>);

impl Times {
    fn median(&self) -> f64 {
        let mut t = self.0.clone();
        t.sort_by(f64::total_cmp);
        t[t.len() / 2]
    }

    fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Per-second rates of `units` of work.
#[derive(Clone, Copy)]
struct Rate {
    median: f64,
    best: f64,
}

impl Rate {
    fn of(units: f64, t: &Times) -> Rate {
        Rate { median: units / t.median(), best: units / t.best() }
    }

    fn per(self, units: usize) -> Rate {
        Rate { median: self.median / units as f64, best: self.best / units as f64 }
    }

    fn min(self, other: Rate) -> Rate {
        Rate { median: self.median.min(other.median), best: self.best.min(other.best) }
    }
}

fn main() {
    let options = parse(std::env::args().skip(1));
    let big = memory(options.bytes);
    for threads in [1, 2] {
        let aes = aes_rate(threads, options.repeats);
        let read = read_rate(threads, options.repeats, &big);
        println!(
            "{{\"limit\":true,\"threads\":{threads},\"aes_per_s\":{:.4e},\"best_aes_per_s\":{:.4e},\
             \"read_bytes_per_s\":{:.4e},\"best_read_bytes_per_s\":{:.4e}}}",
            aes.median, aes.best, read.median, read.best
        );
        for &bits in &options.bits {
            for path in ComparePath::ALL.into_iter().filter(|p| p.available()) {
                for bytes in [CACHED_BYTES, options.bytes] {
                    let streamed = bytes > CACHED_BYTES;
                    let run = Run { path, bits, bytes, threads, repeats: options.repeats };
                    run.report("eval", streamed, run.eval(), aes, read);
                    run.report("gen", streamed, run.deal(), aes, read);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Run {
    path: ComparePath,
    bits: u32,
    bytes: usize,
    threads: usize,
    repeats: usize,
}

impl Run {
    /// Keys of one thread: whole blocks that fill the thread's part of the bytes.
    fn shape(&self) -> CompareShape {
        let one = CompareShape { bits: self.bits, count: 1 };
        let streams = if self.bytes > CACHED_BYTES { self.threads } else { 1 };
        let count = (self.bytes / streams / one.key_bytes()).next_multiple_of(BLOCK);
        CompareShape { bits: self.bits, count }
    }

    /// Passes over the keys that make one timed repeat long enough.
    fn passes(&self) -> usize {
        if self.bytes > CACHED_BYTES { 1 } else { 100 }
    }

    fn eval(&self) -> Rate {
        let (shape, passes) = (self.shape(), self.passes());
        let times = self.timed(|prg| {
            let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
            let x = prg.elements(Ring::new(self.bits), shape.count);
            // Speed does not depend on the contents, so random bytes serve as a key.
            let mut key = memory(shape.key_bytes());
            prg.fill_bytes(&mut key);
            move || {
                for _ in 0..passes {
                    std::hint::black_box(cpu::eval(self.path, &hash, shape, &key, &x, false));
                }
            }
        });
        Rate::of((shape.count * passes * self.threads) as f64, &times)
    }

    fn deal(&self) -> Rate {
        // Both parties' keys together fill the bytes.
        let mut shape = self.shape();
        shape.count = (shape.count / 2).next_multiple_of(BLOCK);
        let passes = self.passes();
        let times = self.timed(|prg| {
            let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
            let alpha = prg.elements(Ring::new(self.bits), shape.count);
            let (mut roots, mut deltas) = (vec![0; shape.count], vec![0; shape.count]);
            prg.fill_blocks(&mut roots);
            prg.fill_blocks(&mut deltas);
            let (mut key0, mut key1) = (memory(shape.key_bytes()), memory(shape.key_bytes()));
            move || {
                for _ in 0..passes {
                    cpu::generate(self.path, &hash, shape, &alpha, &roots, &deltas, &mut key0, &mut key1);
                }
                std::hint::black_box((&key0, &key1));
            }
        });
        Rate::of((shape.count * passes * self.threads) as f64, &times)
    }

    /// Wall time of `threads` copies of the work, each with its own data, started together.
    fn timed<W: FnMut()>(&self, make: impl Fn(&mut Prg) -> W + Sync) -> Times {
        timed(self.threads, self.repeats, |_| make(&mut Seed::random().stream()))
    }

    fn report(&self, what: &str, streamed: bool, rate: Rate, aes: Rate, read: Rate) {
        let shape = CompareShape { bits: self.bits, count: 1 };
        let parties = if what == "gen" { 2 } else { 1 };
        let mut limit = aes.per(shape.aes_calls() * parties);
        if streamed {
            limit = limit.min(read.per(shape.key_bytes() * parties));
        }
        println!(
            "{{\"kernel\":\"compare_{what}\",\"path\":\"{}\",\"n\":{},\"threads\":{},\"keys\":\"{}\",\
             \"keys_per_s\":{:.4e},\"limit\":{:.4e},\"ratio\":{:.3},\"best_keys_per_s\":{:.4e},\"best_ratio\":{:.3}}}",
            self.path,
            self.bits,
            self.threads,
            if streamed { "memory" } else { "cache" },
            rate.median,
            limit.median,
            rate.median / limit.median,
            rate.best,
            rate.best / limit.best,
        );
    }
}

/// Wall time of `repeats` rounds in which every thread does its work once; one round before is not counted.
fn timed<W: FnMut()>(threads: usize, repeats: usize, make: impl Fn(usize) -> W + Sync) -> Times {
    let barrier = std::sync::Barrier::new(threads + 1);
    std::thread::scope(|s| {
        for t in 0..threads {
            let (make, barrier) = (&make, &barrier);
            s.spawn(move || {
                let mut work = make(t);
                for _ in 0..repeats + 1 {
                    barrier.wait();
                    work();
                    barrier.wait();
                }
            });
        }
        let round = || {
            barrier.wait();
            let start = Instant::now();
            barrier.wait();
            start.elapsed().as_secs_f64()
        };
        round();
        Times((0..repeats).map(|_| round()).collect())
    })
}

/// Touched memory, in huge pages where the system gives them.
fn memory(bytes: usize) -> Vec<u8> {
    let mut v = vec![0; bytes];
    for b in v.iter_mut().step_by(4096) {
        *b = 1;
    }
    v
}

/// AES-128 blocks a second of `threads` threads: fixed key, in place, data in the first-level cache.
fn aes_rate(threads: usize, repeats: usize) -> Rate {
    let (blocks, passes) = (512, 200_000);
    let times = timed(threads, repeats, |_| {
        let aes = Aes128::new(&Array([1; 16]));
        let mut data = vec![Array([0; 16]); blocks];
        move || {
            for _ in 0..passes {
                aes.encrypt_blocks(&mut data);
            }
            std::hint::black_box(&mut data);
        }
    });
    Rate::of((blocks * passes * threads) as f64, &times)
}

/// Bytes a second that `threads` threads together read from memory.
fn read_rate(threads: usize, repeats: usize, big: &[u8]) -> Rate {
    let words = big.as_chunks::<8>().0;
    let part = words.len() / threads;
    let times = timed(threads, repeats, |t| {
        let part = &words[t * part..(t + 1) * part];
        move || {
            let mut sums = [0u64; 64];
            for chunk in part.as_chunks::<64>().0 {
                for (s, w) in sums.iter_mut().zip(chunk) {
                    *s = s.wrapping_add(u64::from_le_bytes(*w));
                }
            }
            std::hint::black_box(sums);
        }
    });
    Rate::of((8 * part * threads) as f64, &times)
}

fn parse(mut args: impl Iterator<Item = String>) -> Options {
    let mut options = Options { bits: vec![39, 63], bytes: 900 << 20, repeats: 5 };
    while let Some(name) = args.next() {
        let value = args.next().unwrap_or_else(|| panic!("{name} wants a value"));
        let number = || value.parse().unwrap_or_else(|e| panic!("{name} {value}: {e}"));
        match name.as_str() {
            "--bits" => {
                options.bits = value.split(',').map(|b| b.parse().expect("--bits 39,63")).collect();
            }
            "--mib" => options.bytes = number() << 20,
            "--repeats" => options.repeats = number(),
            _ => panic!("unknown option {name}; there are --bits, --mib, --repeats"),
        }
    }
    options
}

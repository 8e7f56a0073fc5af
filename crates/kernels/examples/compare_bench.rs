//! Speed of the comparison kernel against the machine's limits, one JSON line a measurement.
//!
//! `cargo run --release -p privet-kernels --example compare_bench [-- --bits 39,63 --mib 900 --repeats 7 --from portable]`
//!
//! Limits: AES (`aes_per_s / (depth + 1)` keys a second for evaluation, half of it for dealing) and, where
//! keys are streamed from memory, `read_bytes_per_s / (16 * (depth + 2))`. Every repeat measures limits and
//! kernels one after the other, so that all see the same machine. `ratio` is the kernel's median over the
//! smaller limit's median; `best_ratio` compares the fastest repeats, which says more on a busy machine.

use privet_kernels::CompareShape;
use privet_kernels::compare::BLOCK;
use privet_kernels::compare::cpu::{self, ComparePath};
use privet_prg::{HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use std::sync::Barrier;
use std::time::Instant;

/// Keys of a "cache" run: they fit a core's second-level cache with room to spare.
const CACHED_BYTES: usize = 768 << 10;
/// Passes over cached data in one repeat.
const PASSES: usize = 60;
/// AES calls of one repeat of the AES limit.
const AES_CALLS: usize = 1 << 25;

struct Options {
    bits: Vec<u32>,
    bytes: usize,
    repeats: usize,
    /// The slowest path to measure.
    from: ComparePath,
}

/// One timed step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// AES calls on registers, as fast as this machine makes them.
    Aes,
    /// One pass over the large keys.
    Read,
    /// A kernel over the batch with this index.
    Eval(ComparePath, usize),
    Gen(ComparePath, usize),
}

/// Units a second of all threads together.
#[derive(Clone, Copy)]
struct Rate {
    median: f64,
    best: f64,
}

impl Rate {
    fn per(self, units: usize) -> Rate {
        Rate { median: self.median / units as f64, best: self.best / units as f64 }
    }

    fn min(self, other: Rate) -> Rate {
        Rate { median: self.median.min(other.median), best: self.best.min(other.best) }
    }
}

fn main() {
    let options = parse(std::env::args().skip(1));
    let mut steps = vec![Step::Aes, Step::Read];
    for path in ComparePath::ALL.into_iter().filter(|p| p.available() && *p >= options.from) {
        steps.extend((0..2).flat_map(|batch| [Step::Eval(path, batch), Step::Gen(path, batch)]));
    }
    for &bits in &options.bits {
        for threads in [1, 2] {
            let rates =
                measure(&steps, threads, options.repeats, || Data::new(bits, options.bytes / threads));
            report(bits, threads, &steps, &rates);
        }
    }
}

fn report(bits: u32, threads: usize, steps: &[Step], rates: &[Rate]) {
    let one = CompareShape { bits, count: 1 };
    let (aes, read) = (rates[0], rates[1]);
    println!(
        "{{\"n\":{bits},\"threads\":{threads},\"aes_per_s\":{:.4e},\"best_aes_per_s\":{:.4e},\
         \"read_bytes_per_s\":{:.4e},\"best_read_bytes_per_s\":{:.4e}}}",
        aes.median, aes.best, read.median, read.best
    );
    for (step, rate) in steps.iter().zip(rates) {
        let (kernel, path, batch, parties) = match *step {
            Step::Aes | Step::Read => continue,
            Step::Eval(path, batch) => ("eval", path, batch, 1),
            Step::Gen(path, batch) => ("gen", path, batch, 2),
        };
        let mut limit = aes.per(one.aes_calls() * parties);
        if batch == 1 {
            limit = limit.min(read.per(one.key_bytes() * parties));
        }
        println!(
            "{{\"n\":{bits},\"threads\":{threads},\"kernel\":\"{kernel}\",\"path\":\"{path}\",\"keys_in\":\"{}\",\
             \"keys_per_s\":{:.4e},\"limit\":{:.4e},\"ratio\":{:.3},\"best_keys_per_s\":{:.4e},\"best_ratio\":{:.3}}}",
            ["cache", "memory"][batch],
            rate.median,
            limit.median,
            rate.median / limit.median,
            rate.best,
            rate.best / limit.best
        );
    }
}

/// Run all steps on `threads` threads, each with its own data and in step with the others, `repeats` times
/// after one round that is not counted.
fn measure(steps: &[Step], threads: usize, repeats: usize, make: impl Fn() -> Data + Sync) -> Vec<Rate> {
    let barrier = Barrier::new(threads);
    let mut units = vec![0; steps.len()];
    // Per repeat and step: the interval from the first thread's start to the last one's end.
    let mut spans: Vec<Vec<Option<(Instant, Instant)>>> = vec![vec![None; repeats]; steps.len()];
    let work = || {
        let mut data = make();
        let mut log = Vec::new();
        for _ in 0..repeats + 1 {
            for &step in steps {
                barrier.wait();
                let start = Instant::now();
                data.run(step);
                log.push((start, Instant::now()));
            }
        }
        (steps.iter().map(|&s| data.units(s)).collect::<Vec<_>>(), log.split_off(steps.len()))
    };
    std::thread::scope(|s| {
        let handles: Vec<_> = (0..threads).map(|_| s.spawn(work)).collect();
        for handle in handles {
            let (own, log) = handle.join().expect("a bench thread panicked");
            for (i, (start, end)) in log.into_iter().enumerate() {
                let span = &mut spans[i % steps.len()][i / steps.len()];
                let (from, to) = span.unwrap_or((start, end));
                *span = Some((from.min(start), to.max(end)));
            }
            units.iter_mut().zip(own).for_each(|(u, o)| *u += o);
        }
    });
    let rate = |(spans, units): (Vec<Option<(Instant, Instant)>>, usize)| {
        let mut t: Vec<f64> = spans.into_iter().flatten().map(|(a, b)| (b - a).as_secs_f64()).collect();
        t.sort_by(f64::total_cmp);
        Rate { median: units as f64 / t[t.len() / 2], best: units as f64 / t[0] }
    };
    spans.into_iter().zip(units).map(rate).collect()
}

/// One thread's data: a small and a large batch, whose keys fill the cache or the given bytes.
struct Data {
    hash: TreeHash,
    batches: [Batch; 2],
}

struct Batch {
    passes: usize,
    shape: CompareShape,
    points: Vec<u64>,
    roots: Vec<u128>,
    deltas: Vec<u128>,
    /// Speed does not depend on the contents, so random bytes serve as a key.
    key: Vec<u8>,
}

impl Data {
    fn new(bits: u32, bytes: usize) -> Data {
        let mut prg = Seed::random().stream();
        let batches = [(PASSES, CACHED_BYTES), (1, bytes)].map(|(passes, bytes)| {
            let one = CompareShape { bits, count: 1 };
            // An even number of blocks: dealing writes the first half to one party, the second to the other.
            let count = (bytes / one.key_bytes()).next_multiple_of(2 * BLOCK);
            let shape = CompareShape { bits, count };
            let mut batch = Batch {
                passes,
                shape,
                points: prg.elements(Ring::new(bits), count),
                roots: vec![0; count / 2],
                deltas: vec![0; count / 2],
                key: vec![0; shape.key_bytes()],
            };
            prg.fill_blocks(&mut batch.roots);
            prg.fill_blocks(&mut batch.deltas);
            prg.fill_bytes(&mut batch.key);
            batch
        });
        Data { hash: TreeHash::new(HashKeys::from_seed(&prg.seed())), batches }
    }

    /// Units of work of a step: AES calls, bytes or keys.
    fn units(&self, step: Step) -> usize {
        match step {
            Step::Aes => AES_CALLS,
            Step::Read => self.batches[1].key.len(),
            Step::Eval(_, batch) => self.batches[batch].shape.count * self.batches[batch].passes,
            Step::Gen(_, batch) => self.batches[batch].roots.len() * self.batches[batch].passes,
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Aes => privet_kernels::probe::aes_calls(AES_CALLS),
            Step::Read => limits::read(&self.batches[1].key),
            Step::Eval(path, batch) => self.batches[batch].eval(path, &self.hash),
            Step::Gen(path, batch) => self.batches[batch].deal(path, &self.hash),
        }
    }
}

impl Batch {
    fn eval(&self, path: ComparePath, hash: &TreeHash) {
        for _ in 0..self.passes {
            std::hint::black_box(cpu::eval(path, hash, self.shape, &self.key, &self.points, false));
        }
    }

    fn deal(&mut self, path: ComparePath, hash: &TreeHash) {
        let shape = CompareShape { count: self.roots.len(), ..self.shape };
        let alpha = &self.points[..shape.count];
        let (key0, key1) = self.key.split_at_mut(shape.key_bytes());
        for _ in 0..self.passes {
            cpu::generate(path, hash, shape, alpha, &self.roots, &self.deltas, key0, key1);
        }
    }
}

/// What the machine can do at most.
mod limits {
    /// One pass over `bytes`.
    pub fn read(bytes: &[u8]) {
        let mut sums = [0u64; 64];
        for chunk in bytes.as_chunks::<8>().0.as_chunks::<64>().0 {
            for (s, w) in sums.iter_mut().zip(chunk) {
                *s = s.wrapping_add(u64::from_le_bytes(*w));
            }
        }
        std::hint::black_box(sums);
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Options {
    let mut options =
        Options { bits: vec![39, 63], bytes: 900 << 20, repeats: 7, from: ComparePath::Portable };
    while let Some(name) = args.next() {
        let value = args.next().unwrap_or_else(|| panic!("{name} wants a value"));
        let number = || value.parse::<usize>().unwrap_or_else(|e| panic!("{name} {value}: {e}"));
        match name.as_str() {
            "--bits" => {
                options.bits = value.split(',').map(|b| b.parse().expect("--bits 39,63")).collect();
            }
            "--mib" => options.bytes = number() << 20,
            "--repeats" => options.repeats = number().max(1),
            "--from" => options.from = ComparePath::detect(value.parse().unwrap_or_else(|e| panic!("{e}"))),
            _ => panic!("unknown option {name}; there are --bits, --mib, --repeats, --from"),
        }
    }
    options
}

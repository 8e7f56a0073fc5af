//! The machine's limits, measured the way the kernels use it.

use privet_kernels::{CompareShape, Device, LinearShape};
use privet_prg::{Domain, HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time a figure takes, about.
const LONG_ENOUGH: Duration = Duration::from_millis(600);
/// Words a thread reads for the memory rate: far beyond the second-level cache.
const WORDS: usize = 32 << 20;

/// Rates that no kernel can beat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceilings {
    /// Threads that took part.
    pub threads: usize,
    /// Fixed-key AES calls a second.
    pub aes_blocks_per_s: f64,
    /// Sequential reads from memory, bytes a second.
    pub memory_read_bytes_per_s: f64,
    /// Walks of 63-bit comparison keys a second.
    pub comparisons_per_s: f64,
    /// Multiply-adds a second of a product over Z_2^64.
    pub macs_per_s: f64,
}

/// Measure everything; takes about three seconds.
pub fn ceilings(threads: usize) -> Ceilings {
    let device = privet_kernels::cpu(threads);
    Ceilings {
        threads,
        aes_blocks_per_s: aes(threads),
        memory_read_bytes_per_s: memory(threads),
        comparisons_per_s: comparisons(&*device),
        macs_per_s: matmul(&*device),
    }
}

fn hash() -> TreeHash {
    TreeHash::new(HashKeys::from_seed(&Seed::random().derive(Domain::Hash, 0)))
}

fn aes(threads: usize) -> f64 {
    let hash = hash();
    on_all(threads, |_| {
        let mut blocks = vec![1u128; 4096];
        rate(|| {
            hash.inner(&mut blocks);
            black_box(&blocks);
            blocks.len() as f64
        })
    })
}

fn memory(threads: usize) -> f64 {
    on_all(threads, |t| {
        let words = vec![t as u64; WORDS / threads.max(1)];
        rate(|| {
            // Eight sums, so that the adder's latency is not what is measured.
            let mut sums = [0u64; 8];
            for chunk in words.chunks_exact(8) {
                sums.iter_mut().zip(chunk).for_each(|(s, w)| *s = s.wrapping_add(*w));
            }
            black_box(sums);
            (words.len() * 8) as f64
        })
    })
}

fn comparisons(device: &dyn Device) -> f64 {
    let hash = hash();
    let shape = CompareShape { bits: 63, count: 1 << 17 };
    let mut stream = Seed::random().derive(Domain::Public, 0).stream();
    // Any bytes are keys as far as the time of a walk goes.
    let mut key = vec![0; shape.key_bytes()];
    stream.fill_bytes(&mut key);
    let x = stream.elements(Ring::new(63), shape.count);
    rate(|| {
        black_box(device.compare_eval(&hash, shape, &key, &x, false));
        shape.count as f64
    })
}

fn matmul(device: &dyn Device) -> f64 {
    const N: usize = 512;
    let shape = LinearShape::MatMulT { m: N, k: N, n: N };
    let mut stream = Seed::random().derive(Domain::Public, 1).stream();
    let x = stream.elements(Ring::R64, N * N);
    let weights = device.prepare(Ring::R64, shape, &stream.elements(Ring::R64, N * N));
    let mut z = vec![0; N * N];
    rate(|| {
        device.linear_acc(Ring::R64, shape, &x, &*weights, &mut z);
        black_box(&z);
        shape.macs() as f64
    })
}

/// Units a second of `step`, which does and counts some.
fn rate(mut step: impl FnMut() -> f64) -> f64 {
    step();
    let start = Instant::now();
    let mut done = 0.0;
    while start.elapsed() < LONG_ENOUGH {
        done += step();
    }
    done / start.elapsed().as_secs_f64()
}

fn on_all(threads: usize, work: impl Fn(usize) -> f64 + Sync) -> f64 {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|t| {
                scope.spawn({
                    let work = &work;
                    move || work(t)
                })
            })
            .collect();
        running.into_iter().map(|r| r.join().unwrap_or(0.0)).sum()
    })
}

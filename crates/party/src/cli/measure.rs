//! The machine's limits, measured the way the kernels use it.

use privet_kernels::{CompareShape, Device, LinearShape, probe};
use privet_prg::{Domain, HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time a figure takes, about.
const LONG_ENOUGH: Duration = Duration::from_millis(600);

/// Three rates that no kernel can beat, and what the two hot kernels reach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceilings {
    /// Threads that took part.
    pub threads: usize,
    /// Fixed-key AES calls a second.
    pub aes_blocks_per_s: f64,
    /// Sequential reads from memory, bytes a second.
    pub memory_read_bytes_per_s: f64,
    /// Multiply-adds a second over Z_2^64 if the AMX tiles did nothing else; absent without AMX.
    pub tile_macs_per_s: Option<f64>,
    /// Walks of 63-bit comparison keys a second.
    pub comparisons_per_s: f64,
    /// Multiply-adds a second of a product over Z_2^64.
    pub macs_per_s: f64,
}

/// Measure everything; takes about three seconds.
pub fn ceilings(device: &dyn Device, threads: usize) -> Ceilings {
    let seconds = LONG_ENOUGH.as_secs_f64();
    let limbs = f64::from(probe::limb_products(64));
    Ceilings {
        threads,
        aes_blocks_per_s: on_all(threads, || probe::aes_rate(seconds)),
        memory_read_bytes_per_s: probe::memory_read_rate(seconds, threads),
        tile_macs_per_s: probe::amx_rate(0.0)
            .map(|_| on_all(threads, || probe::amx_rate(seconds).unwrap_or(0.0)) / limbs),
        comparisons_per_s: comparisons(device),
        macs_per_s: matmul(device),
    }
}

fn hash() -> TreeHash {
    TreeHash::new(HashKeys::from_seed(&Seed::random().derive(Domain::Hash, 0)))
}

/// All threads at once: cores may share what one alone has.
fn on_all(threads: usize, work: impl Fn() -> f64 + Sync) -> f64 {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        running.into_iter().map(|r| r.join().unwrap_or(0.0)).sum()
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

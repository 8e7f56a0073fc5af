//! Kernels against the machine's limits, measured in the same run.

use super::stats::median;
use privet_kernels::compare::cpu::{self, ComparePath};
use privet_kernels::{CompareShape, LinearShape, probe};
use privet_prg::{Domain, HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use serde::Serialize;
use std::sync::Barrier;
use std::time::Instant;

const REPEATS: usize = 5;
/// Keys that each thread streams from memory.
const KEY_BYTES: usize = 448 << 20;

/// A kernel's rate beside the limit it cannot beat.
#[derive(Debug, Serialize)]
pub struct Kernel {
    /// What ran.
    pub kernel: String,
    /// The path it took.
    pub path: String,
    /// Threads.
    pub threads: usize,
    /// Units a second: comparisons, or ring multiplications.
    pub rate: f64,
    /// AES calls a second on all threads (comparisons), or limb products (matrix product).
    pub compute_limit: f64,
    /// Bytes a second from memory, all threads (comparisons).
    pub memory_limit: Option<f64>,
    /// Units a second at the smaller limit.
    pub limit: f64,
    /// rate / limit.
    pub ratio: f64,
}

/// Walks of `bits`-bit keys streamed from memory, on `threads` threads.
pub fn comparisons(bits: u32, threads: usize) -> Kernel {
    let path = ComparePath::ALL.into_iter().rfind(|p| p.available()).unwrap_or(ComparePath::Portable);
    let hash = TreeHash::new(HashKeys::from_seed(&Seed::random().derive(Domain::Hash, 0)));
    let one = CompareShape { bits, count: 1 };
    let count = (KEY_BYTES / one.key_bytes()).next_multiple_of(64);
    let (mut rates, mut aes, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let barrier = Barrier::new(threads);
    for _ in 0..REPEATS {
        aes.push(probe::aes_rate(0.15) * threads as f64);
        read.push(probe::memory_read_rate(0.3, threads));
        let seconds: f64 = std::thread::scope(|scope| {
            let walk = || {
                let shape = CompareShape { bits, count };
                let mut prg = Seed::random().stream();
                let mut keys = vec![0u8; shape.key_bytes()];
                prg.fill_bytes(&mut keys);
                let points = prg.elements(Ring::new(bits), count);
                barrier.wait();
                let start = Instant::now();
                let chunk = 1024;
                for (keys, x) in keys.chunks(chunk * one.key_bytes()).zip(points.chunks(chunk)) {
                    let shape = CompareShape { bits, count: x.len() };
                    std::hint::black_box(cpu::eval(path, &hash, shape, keys, x, false));
                }
                start.elapsed().as_secs_f64()
            };
            let walks: Vec<_> = (0..threads).map(|_| scope.spawn(walk)).collect();
            walks.into_iter().map(|w| w.join().unwrap_or(f64::NAN)).fold(0.0, f64::max)
        });
        rates.push((count * threads) as f64 / seconds);
    }
    let (rate, aes, read) = (median(&rates), median(&aes), median(&read));
    let limit = (aes / one.aes_calls() as f64).min(read / one.key_bytes() as f64);
    Kernel {
        kernel: format!("comparison of {bits} bits"),
        path: path.to_string(),
        threads,
        rate,
        compute_limit: aes,
        memory_limit: Some(read),
        limit,
        ratio: rate / limit,
    }
}

/// The product of two n x n matrices over the ring of `bits` bits.
pub fn matmul(n: usize, bits: u32, threads: usize) -> Kernel {
    let (device, ring) = (privet_kernels::cpu(threads), Ring::new(bits));
    let shape = LinearShape::MatMulT { m: n, k: n, n };
    let mut prg = Seed::random().stream();
    let (x, w) = (prg.elements(ring, n * n), prg.elements(ring, n * n));
    let weights = device.prepare(ring, shape, &w);
    let mut out = vec![0; n * n];
    let (mut rates, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS + 1 {
        limits.push(probe::amx_rate(0.1).unwrap_or(f64::NAN) * threads as f64);
        let start = Instant::now();
        device.linear_acc(ring, shape, &x, weights.as_ref(), &mut out);
        rates.push(shape.macs() as f64 / start.elapsed().as_secs_f64());
    }
    let (rate, limbs) = (median(&rates[1..]), median(&limits));
    let limit = limbs / probe::limb_products(bits) as f64;
    Kernel {
        kernel: format!("{n} x {n} matrix product, {bits} bits"),
        path: device.name(),
        threads,
        rate,
        compute_limit: limbs,
        memory_limit: None,
        limit,
        ratio: rate / limit,
    }
}

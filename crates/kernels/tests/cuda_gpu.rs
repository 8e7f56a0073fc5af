//! Kernels on a GPU against the CPU. Where there is none, `cuda_shim.rs` has to do, and the reason is printed.
#![cfg(feature = "cuda")]

mod vectors;

use privet_kernels::cuda::{Gpu, GpuError, ProductPath};
use privet_kernels::{LinearShape, linear};
use privet_prg::Seed;
use privet_ring::Ring;
use vectors::{Batch, bytes};

/// The first GPU. None without a driver, its compiler or a device; any other error is one.
fn gpu() -> Option<Gpu> {
    let error = match Gpu::open(0) {
        Ok(gpu) => return Some(gpu),
        Err(error) => error,
    };
    let text = format!("{error:?}");
    let none = matches!(error, GpuError::NoLibrary(..)) || text.contains("CUDA_ERROR_NO_DEVICE");
    assert!(none, "{error}");
    println!("SKIPPED: kernels on a GPU: {error}");
    None
}

#[test]
fn walks_the_known_answers() {
    let Some(gpu) = gpu() else { return };
    for batch in Batch::all() {
        for (key, lt, eq) in [("key0", "lt0", "eq0"), ("key1", "lt1", "eq1")] {
            let (shape, x) = (batch.shape(), batch.numbers("x"));
            let out = gpu.compare_eval(&batch.hash(), shape, &bytes(batch.0[key]), &x, true).unwrap();
            let shares =
                |bits: &privet_ring::BitVec| (0..shape.count).map(|j| bits.get(j)).collect::<Vec<_>>();
            assert_eq!(shares(&out.lt), batch.shares(lt), "{lt}, n = {}", shape.bits);
            assert_eq!(shares(&out.eq), batch.shares(eq), "{eq}, n = {}", shape.bits);
        }
    }
}

#[test]
fn streams_as_prg() {
    let Some(gpu) = gpu() else { return };
    for (bits, words) in [(64, 1), (64, 100_001), (33, 4096)] {
        let (seed, ring) = (Seed::random(), Ring::new(bits));
        let mut out = vec![!0; words];
        gpu.fill(&seed, 0, ring, &mut out).unwrap();
        assert!(out == seed.stream().elements(ring, words), "{words} words of {bits} bits");
    }
}

#[test]
fn multiplies_as_the_plain_definition() {
    let Some(gpu) = gpu() else { return };
    let mut prg = Seed::random().stream();
    let [m, k, n] = [70, 130, 67];
    for (path, bits) in [(ProductPath::Words, 64), (ProductPath::Limbs, 64), (ProductPath::Limbs, 31)] {
        let ring = Ring::new(bits);
        let (x, w) = (prg.elements(ring, m * k), prg.elements(ring, k * n));
        let mut out = vec![0; m * n];
        gpu.product_acc(path, ring, [m, k, n].map(|s| s as u32), false, &x, &w, &mut out).unwrap();
        let expected = linear::reference(ring, LinearShape::MatMul { m, k, n }, &x, &w);
        assert!(out.iter().map(|&v| ring.wrap(v)).eq(expected), "{path:?}, {bits} bits");
    }
}

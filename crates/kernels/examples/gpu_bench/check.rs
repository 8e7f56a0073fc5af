//! Every kernel against the CPU, on fresh random inputs.

use crate::chunks;
use privet_kernels::compare::{CompareShape, cpu, cpu::ComparePath};
use privet_kernels::cuda::{Gpu, GpuError, ProductPath};
use privet_kernels::linear::cpu::{LinearPath, linear_acc, prepare};
use privet_kernels::{CpuCap, LinearShape};
use privet_prg::{HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;

/// `small` is for a sanitizer, which takes a hundred times as long.
pub fn all(gpu: &Gpu, small: bool) -> Result<(), GpuError> {
    let mut prg = Seed::random().stream();
    walks(gpu, &mut prg, small)?;
    streams(gpu, small)?;
    products(gpu, &mut prg, small)?;
    chunks::check(gpu, &mut prg, if small { 700 } else { 100_003 })?;
    eprintln!("walk, stream, both products, both steps by chunks: as the CPU");
    Ok(())
}

fn walks(gpu: &Gpu, prg: &mut Prg, small: bool) -> Result<(), GpuError> {
    let path = ComparePath::detect(CpuCap::Amx);
    let counts = [1, 63, 64, 65, 1000, 4096, 30_011, 300_007];
    let all = (1..=64).zip(counts.into_iter().cycle());
    for (bits, count) in all.filter(|&(bits, count)| !small || bits % 9 == 1 && count < 5000) {
        let (ring, shape) = (Ring::new(bits), CompareShape { bits, count });
        let hash = TreeHash::new(HashKeys::draw(prg));
        let alpha = prg.elements(ring, count);
        let mut x = prg.elements(ring, count);
        for (i, (x, a)) in x.iter_mut().zip(&alpha).enumerate() {
            *x = [*x, *a, ring.wrap(a.wrapping_add(1)), a ^ 1 << (i as u32 % bits)][i % 4];
        }
        let (mut roots, mut deltas) = (vec![0; count], vec![0; count]);
        prg.fill_blocks(&mut roots);
        prg.fill_blocks(&mut deltas);
        let [mut key0, mut key1] = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
        cpu::generate(path, &hash, shape, &alpha, &roots, &deltas, &mut key0, &mut key1);
        let [a, b] = [&key0, &key1].map(|key| {
            let expected = cpu::eval(path, &hash, shape, key, &x, true);
            let found = gpu.compare_eval(&hash, shape, key, &x, true)?;
            assert!(
                found.lt == expected.lt && found.eq == expected.eq,
                "walk of {count} keys of {bits} bits"
            );
            Ok::<_, GpuError>(found)
        });
        let (a, b) = (a?, b?);
        let mut both = alpha.iter().zip(&x).enumerate();
        assert!(
            both.all(|(i, (a_, x))| (a.lt.get(i) ^ b.lt.get(i) == 1) == (x < a_)),
            "comparisons, {bits} bits"
        );
    }
    Ok(())
}

fn streams(gpu: &Gpu, small: bool) -> Result<(), GpuError> {
    for (bits, words) in [(64, 1), (64, 2_000_001), (1, 4096), (40, 77_777), (33, 65)] {
        let words = if small { words.min(4097) } else { words };
        let (seed, ring) = (Seed::random(), Ring::new(bits));
        let expected = seed.stream().elements(ring, words);
        let mut found = vec![!0; words];
        gpu.fill(&seed, 0, ring, &mut found)?;
        assert!(found == expected, "stream of {words} words of {bits} bits");
        let first = words as u64 / 4;
        let mut rest = vec![!0; words - 2 * first as usize];
        gpu.fill(&seed, first, ring, &mut rest)?;
        assert!(rest == expected[2 * first as usize..], "stream from block {first}");
    }
    Ok(())
}

fn products(gpu: &Gpu, prg: &mut Prg, small: bool) -> Result<(), GpuError> {
    let sizes =
        [[1, 1, 1], [1000, 2048, 1], [65, 4609, 49], [300, 147, 1111], [515, 8200, 130], [1, 20_000, 3]];
    let sizes = sizes.into_iter().filter(|s| !small || s.iter().product::<usize>() < 1 << 22);
    for ([m, k, n], transposed) in sizes.flat_map(|s| [(s, false), (s, true)]) {
        for bits in [64, 40, 32] {
            let ring = Ring::new(bits);
            let (x, w) = (prg.elements(ring, m * k), prg.elements(ring, k * n));
            let before = prg.elements(ring, m * n);
            let shape =
                if transposed { LinearShape::MatMulT { m, k, n } } else { LinearShape::MatMul { m, k, n } };
            let mut expected = before.clone();
            let path = LinearPath::detect(CpuCap::Amx);
            let prepared = prepare(path, 8, ring, shape, &w);
            linear_acc(path, 8, ring, shape, &x, prepared.as_ref(), &mut expected);
            for path in [ProductPath::Words, ProductPath::Limbs] {
                let mut found = before.clone();
                gpu.product_acc(path, ring, [m, k, n].map(|s| s as u32), transposed, &x, &w, &mut found)?;
                let same = found.iter().zip(&expected).all(|(f, e)| ring.wrap(*f) == ring.wrap(*e));
                assert!(same, "{m} x {k} x {n} by {path:?}, {bits} bits, transposed: {transposed}");
            }
        }
    }
    Ok(())
}

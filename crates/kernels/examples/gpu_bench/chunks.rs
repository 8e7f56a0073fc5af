//! Comparison by chunks: both steps of an evaluator, on planes in the device's memory.

use crate::report::{REPEATS, Report, number, timed};
use cudarc::driver::{CudaSlice, CudaStream};
use privet_kernels::CpuCap;
use privet_kernels::bits::cpu::BitsPath;
use privet_kernels::chunks::cpu::{self, ChunksPath};
use privet_kernels::chunks::{Chunks, words};
use privet_kernels::cuda::{Gpu, GpuError};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use std::sync::Arc;

/// Both steps against the CPU.
pub fn check(gpu: &Gpu, prg: &mut Prg, n: usize) -> Result<(), GpuError> {
    let on = gpu.context().default_stream();
    let (path, bits_path) = (ChunksPath::detect(CpuCap::Amx), BitsPath::Portable);
    for (bits, width, fan) in [(63, 4, 4), (39, 5, 8), (24, 4, 6), (64, 1, 3), (63, 7, 9), (8, 8, 2)] {
        for (equal, leads) in [(false, false), (false, true), (true, false), (true, true)] {
            let chunks = Chunks::new(bits, width, fan, equal);
            let x = prg.elements(Ring::new(bits), n);
            let mut random = |planes| prg.elements(Ring::R64, words(planes, n));
            let tables = random(chunks.tables());
            let mut expected = vec![0; words(chunks.leaves(), n)];
            cpu::leaves((path, bits_path), &chunks, leads, &x, &tables, &mut expected);
            let mut out = on.clone_htod(&vec![!0; expected.len()])?;
            gpu.chunk_leaves(&on, &chunks, leads, &on.clone_htod(&x)?, &on.clone_htod(&tables)?, &mut out)?;
            assert!(on.clone_dtoh(&out)? == expected, "leaves of {chunks:?}");
            for level in &chunks.levels {
                let [opened, products, masks] =
                    [level.opened(), level.products(), level.opened()].map(&mut random);
                let mut expected = vec![0; words(level.results(), n)];
                cpu::combine(path, level, leads, [&opened, &products, &masks], &mut expected);
                let mut out = on.clone_htod(&vec![!0; expected.len()])?;
                let [opened, products, masks] = [opened, products, masks].map(|b| on.clone_htod(&b));
                gpu.chunk_combine(&on, level, leads, n, &opened?, &products?, &masks?, &mut out)?;
                assert!(on.clone_dtoh(&out)? == expected, "{level:?}");
            }
        }
    }
    Ok(())
}

pub fn measure(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let on = gpu.context().default_stream();
    let random = |len| -> Result<CudaSlice<u64>, GpuError> {
        let mut out = on.alloc_zeros(len)?;
        gpu.stream(&on, &Seed::random(), 0, Ring::R64, &mut out)?;
        Ok(out)
    };
    let mut found = Vec::new();
    for (bits, width, fan, n) in [
        (63, 4, 4, 1 << 24),
        (39, 4, 4, 1 << 24),
        (24, 4, 4, 1 << 24),
        (63, 7, 9, 1 << 22),
        (63, 4, 4, 1 << 16),
    ] {
        let chunks = Chunks::new(bits, width, fan, false);
        let planes = |planes| random(words(planes, n));
        let (x, tables) = (random(n)?, planes(chunks.tables())?);
        let mut out = planes(chunks.leaves())?;
        let leaves =
            timed(&on, REPEATS, |on| gpu.chunk_leaves(on, &chunks, true, &x, &tables, &mut out))?.median();
        let mut bytes = n as f64 * 8.0 + (chunks.tables() + chunks.leaves()) as f64 * n as f64 / 8.0;
        drop((x, tables, out));
        let mut combine = 0.0;
        for level in &chunks.levels {
            let (opened, masks) = (planes(level.opened())?, planes(level.opened())?);
            let (products, mut out) = (planes(level.products())?, planes(level.results())?);
            let work = |on: &Arc<CudaStream>| {
                gpu.chunk_combine(on, level, true, n, &opened, &products, &masks, &mut out)
            };
            combine += timed(&on, REPEATS, work)?.median();
            let all = 2 * level.opened() + level.products() + level.results();
            bytes += all as f64 * n as f64 / 8.0;
        }
        let [rate, moved] = [n as f64, bytes].map(|v| number(v / (leaves + combine)));
        found.push(format!(
            "{{\"bits\":{bits},\"width\":{width},\"fan\":{fan},\"comparisons\":{n},\"leaves_s\":{},\"levels_s\":{},\"comparisons_per_s\":{rate},\"bytes_per_s\":{moved}}}",
            number(leaves),
            number(combine),
        ));
    }
    report.add("comparisons_by_chunks", format!("[{}]", found.join(",")));
    Ok(())
}

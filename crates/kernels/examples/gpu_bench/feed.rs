//! A walk whose keys come from the host's pinned memory: three buffers, copies and walks on streams of their own. Buffers carry
//! events, so a walk waits for its copy, and the next copy for the walk.

use crate::report::{REPEATS, Report, clocked};
use cudarc::driver::PinnedHostSlice;
use privet_kernels::CpuCap;
use privet_kernels::compare::{CompareShape, cpu, cpu::ComparePath};
use privet_kernels::cuda::{Gpu, GpuError};
use privet_prg::{HashKeys, Seed, TreeHash};
use privet_ring::Ring;

/// Bytes of keys in all.
const BYTES: usize = 3 << 30;
const BUFFERS: usize = 3;

pub fn measure(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let mut found = Vec::new();
    for (bits, chunk) in [(63, 256 << 20), (63, 64 << 20), (63, 16 << 20), (24, 64 << 20), (39, 64 << 20)] {
        found.push(fed(gpu, bits, chunk)?);
    }
    report.add("walks_fed_from_the_host", format!("[{}]", found.join(",")));
    Ok(())
}

fn fed(gpu: &Gpu, bits: u32, chunk: usize) -> Result<String, GpuError> {
    let context = gpu.context();
    let one = CompareShape { bits, count: 1 }.key_bytes();
    let shape = CompareShape { bits, count: chunk / one / 64 * 64 };
    let chunks = BYTES / chunk;
    let mut prg = Seed::random().stream();
    let hash = TreeHash::new(HashKeys::draw(&mut prg));
    let pin = |bytes| -> Result<PinnedHostSlice<u8>, GpuError> {
        // SAFETY: filled, or written by the device, before it is read.
        Ok(unsafe { context.alloc_pinned_with_flags(bytes, 0)? })
    };
    let mut keys = (0..chunks).map(|_| pin(shape.key_bytes())).collect::<Result<Vec<_>, _>>()?;
    // Chunk after chunk begins a row later, so no two agree.
    let mut random = vec![0; shape.key_bytes() + 64 * chunks];
    prg.fill_bytes(&mut random);
    for (i, k) in keys.iter_mut().enumerate() {
        k.as_mut_slice()?.copy_from_slice(&random[64 * i..64 * i + shape.key_bytes()]);
    }
    let points = prg.elements(Ring::new(bits), shape.count);
    let words = shape.count / 64;
    // SAFETY: the device writes it before it is read.
    let mut results = (0..chunks)
        .map(|_| Ok(unsafe { context.alloc_pinned_with_flags::<u64>(words, 0)? }))
        .collect::<Result<Vec<_>, GpuError>>()?;
    let (up, work, down) = (context.new_stream()?, context.new_stream()?, context.new_stream()?);
    let there = work.clone_htod(&points)?;
    let mut near = Vec::new();
    for _ in 0..BUFFERS {
        near.push((up.alloc_zeros::<u8>(shape.key_bytes())?, work.alloc_zeros::<u64>(words)?));
    }
    let times = clocked(
        REPEATS.min(5),
        || {
            for (i, (k, r)) in keys.iter().zip(&mut results).enumerate() {
                let (buffer, lt) = &mut near[i % BUFFERS];
                up.memcpy_htod(k, buffer)?;
                gpu.walk(&work, &hash, shape, buffer, &there, lt, None)?;
                down.memcpy_dtoh(lt, r)?;
            }
            Ok(())
        },
        || context.synchronize(),
    )?;
    let path = ComparePath::detect(CpuCap::Amx);
    for i in [0, chunks / 2, chunks - 1] {
        let expected = cpu::eval(path, &hash, shape, keys[i].as_slice()?, &points, false).lt;
        assert!(results[i].as_slice()? == expected.words(), "chunk {i} of the fed walk is wrong");
    }
    Ok(format!(
        "{{\"bits\":{bits},\"chunk_bytes\":{},\"keys_per_s\":{},\"bytes_per_s\":{}}}",
        shape.key_bytes(),
        times.rates((chunks * shape.count) as f64),
        times.rates((chunks * shape.key_bytes()) as f64),
    ))
}

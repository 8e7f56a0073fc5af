//! What the machine can do at most: memory, and the way to the host.

use crate::report::{REPEATS, Report, clocked, timed};
use cudarc::driver::CudaContext;
use privet_kernels::cuda::{Gpu, GpuError};
use std::sync::Arc;

/// Bytes that a way is measured with.
const BYTES: usize = 1 << 30;

pub fn measure(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let context: &Arc<CudaContext> = gpu.context();
    let on = context.default_stream();
    let from = on.alloc_zeros::<u8>(4 * BYTES)?;
    let mut to = on.alloc_zeros::<u8>(4 * BYTES)?;
    let times = timed(&on, REPEATS, |on| Ok(on.memcpy_dtod(&from, &mut to)?))?;
    report.add("device_copy_bytes_read_and_written_per_s", times.rates(8.0 * BYTES as f64));
    drop((from, to));

    let mut near = [on.alloc_zeros::<u8>(BYTES)?, on.alloc_zeros::<u8>(BYTES)?];
    // SAFETY: filled before it is read.
    let mut pinned = unsafe {
        [context.alloc_pinned_with_flags::<u8>(BYTES, 0)?, context.alloc_pinned_with_flags::<u8>(BYTES, 0)?]
    };
    for p in &mut pinned {
        p.as_mut_slice()?.fill(0x5a);
    }
    let mut pageable = vec![0x5au8; BYTES];
    let (up, down) = (context.new_stream()?, context.new_stream()?);
    let wait = || context.synchronize();
    let bytes = BYTES as f64;
    let times = clocked(REPEATS, || Ok(up.memcpy_htod(&pinned[0], &mut near[0])?), wait)?;
    report.add("to_device_pinned_bytes_per_s", times.rates(bytes));
    let times = clocked(REPEATS, || Ok(down.memcpy_dtoh(&near[0], &mut pinned[0])?), wait)?;
    report.add("to_host_pinned_bytes_per_s", times.rates(bytes));
    let times = clocked(
        REPEATS,
        || {
            let [a, b] = &mut near;
            let [c, d] = &mut pinned;
            up.memcpy_htod(c, a)?;
            Ok(down.memcpy_dtoh(b, d)?)
        },
        wait,
    )?;
    report.add("both_ways_pinned_bytes_per_s", times.rates(2.0 * bytes));
    let times = clocked(REPEATS, || Ok(up.memcpy_htod(&pageable, &mut near[0])?), wait)?;
    report.add("to_device_pageable_bytes_per_s", times.rates(bytes));
    let times = clocked(REPEATS, || Ok(down.memcpy_dtoh(&near[0], &mut pageable)?), wait)?;
    report.add("to_host_pageable_bytes_per_s", times.rates(bytes));
    let copy = || {
        pinned[1].as_mut_slice()?.copy_from_slice(&pageable);
        Ok(())
    };
    let times = clocked(REPEATS, copy, wait)?;
    report.add("host_copy_to_pinned_one_core_bytes_per_s", times.rates(bytes));
    for kib in [64, 1024, 16 << 10] {
        let part = kib << 10;
        // SAFETY: its contents do not matter.
        let small = unsafe { context.alloc_pinned_with_flags::<u8>(part, 0)? };
        let mut there = on.alloc_zeros::<u8>(part)?;
        let copies = (1 << 28) / part;
        let all = || (0..copies).try_for_each(|_| Ok(up.memcpy_htod(&small, &mut there)?));
        let times = clocked(REPEATS, all, wait)?;
        report
            .add(&format!("to_device_pinned_by_{kib}_kib_bytes_per_s"), times.rates((copies * part) as f64));
    }
    Ok(())
}

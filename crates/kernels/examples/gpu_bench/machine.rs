//! What the machine is, and its clocks at rest and at work.

use crate::report::Report;
use crate::walks::Walk;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use privet_kernels::cuda::{Gpu, GpuError};
use std::process::Command;

/// Fields of the driver's tool that are worth a line.
const FIELDS: &str = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit,\
    temperature.gpu,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,mig.mode.current,ecc.mode.current";

fn state() -> String {
    let query = [&format!("--query-gpu={FIELDS}"), "--format=csv,noheader"];
    let output = Command::new("nvidia-smi").args(query).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let pair = |(name, value): (&str, &str)| format!("\"{name}\":{value:?}");
    let pairs: Vec<_> =
        FIELDS.split(',').map(str::trim).zip(text.split(',').map(str::trim)).map(pair).collect();
    format!("{{{}}}", pairs.join(","))
}

pub fn describe(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let context = gpu.context();
    // Some drivers do not say all.
    let attribute = |a| context.attribute(a).unwrap_or(0);
    report.add("gpu", format!("{:?}", context.name()?));
    report.add("multiprocessors", gpu.multiprocessors());
    report.add("compute_capability", format!("{:?}", <[i32; 2]>::from(context.compute_capability()?)));
    report.add("clock_khz", attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
    report.add("l2_bytes", attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    report.add("memory_bytes", context.total_mem()?);
    let kernel = |(name, registers, local): (&str, i32, i32)| {
        format!("{{\"kernel\":{name:?},\"registers\":{registers},\"local_bytes\":{local}}}")
    };
    let kernels: Vec<_> = gpu.resources()?.into_iter().map(kernel).collect();
    report.add("kernels", format!("[{}]", kernels.join(",")));
    report.add("at_rest", state());
    // Five seconds of walks, asked in their midst.
    let mut walk = Walk::new(gpu, 63, 1 << 20)?;
    let on = context.default_stream();
    for _ in 0..4000 {
        walk.run(gpu, &on)?;
    }
    std::thread::sleep(std::time::Duration::from_secs(2));
    report.add("walking", state());
    on.synchronize()?;
    Ok(())
}

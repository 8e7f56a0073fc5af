//! Kernels of a GPU: first bit for bit against the CPU, then their speed beside the machine's limits. JSON on standard output.
//!
//! `cargo run --release -p privet-kernels --features cuda --example gpu_bench [-- check | small | walk | product]`
//!
//! `check` compares only, `small` less of it for a sanitizer. `walk` and `product` launch one kernel a few times, for a profiler. NVRTC has to be on the loader's path.

mod check;
mod chunks;
mod feed;
mod limits;
mod machine;
mod products;
mod report;
mod walks;

use privet_kernels::cuda::{Gpu, GpuError};
use report::Report;

fn main() -> Result<(), GpuError> {
    let mode = std::env::args().nth(1).unwrap_or_else(|| "all".into());
    let gpu = Gpu::open(0)?;
    match mode.as_str() {
        "check" => check::all(&gpu, false),
        "small" => check::all(&gpu, true),
        "walk" => walks::once(&gpu),
        "product" => products::once(&gpu),
        "all" => {
            check::all(&gpu, false)?;
            let mut report = Report::default();
            machine::describe(&gpu, &mut report)?;
            walks::measure(&gpu, &mut report)?;
            limits::measure(&gpu, &mut report)?;
            chunks::measure(&gpu, &mut report)?;
            feed::measure(&gpu, &mut report)?;
            products::measure(&gpu, &mut report)?;
            report.print();
            Ok(())
        }
        other => panic!("unknown mode {other}; there are check, small, walk, product, and none for all"),
    }
}

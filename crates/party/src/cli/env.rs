use super::measure::{self, Ceilings};
use super::{CliError, Out};
use crate::report::{bytes, count};
use crate::sys;
use serde::Serialize;

/// What the kernels can use, in the order of `/proc/cpuinfo` names.
pub(super) const FEATURES: [&str; 12] = [
    "aes",
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "vaes",
    "gfni",
    "avx512_vnni",
    "avx512ifma",
    "amx_tile",
    "amx_int8",
];

/// Options of `privet env`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure the machine's limits as well (a few seconds, all cores).
    #[arg(long)]
    measure: bool,
    /// Threads to measure with; all cores when absent.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Environment {
    privet: &'static str,
    plan_format: u32,
    report_format: u32,
    system: String,
    cpu: String,
    cores: usize,
    features: Vec<&'static str>,
    vaes: bool,
    amx: bool,
    device: String,
    cuda_library: bool,
    memory_bytes: Option<u64>,
    available_bytes: Option<u64>,
    open_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Ceilings>,
}

/// Show versions, processor paths, memory and, if asked, measured limits.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    let threads = args.threads.map_or_else(sys::cores, usize::from);
    let device = privet_kernels::try_cpu(threads)
        .map_err(|e| CliError::usage(e, "unset PRIVET_CPU, or set it to a level that this machine has"))?;
    let features = sys::cpu_features(&FEATURES);
    let env = Environment {
        privet: env!("CARGO_PKG_VERSION"),
        plan_format: privet_plan::ir::PLAN_VERSION,
        report_format: crate::report::REPORT_VERSION,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu: sys::cpu_name(),
        cores: sys::cores(),
        vaes: features.contains(&"vaes") && features.contains(&"avx512f"),
        amx: features.contains(&"amx_int8"),
        features,
        device: device.name(),
        cuda_library: sys::cuda_present(),
        memory_bytes: sys::total_memory_bytes(),
        available_bytes: sys::available_memory_bytes(),
        open_files: sys::open_file_limit(),
        measured: args.measure.then(|| measure::ceilings(&*device, threads)),
    };
    if args.json { out.json(&env) } else { show(&env, out) }
}

fn show(env: &Environment, out: &mut Out) -> Result<(), CliError> {
    let size = |b: Option<u64>| b.map_or("unknown".into(), bytes);
    let yes = |b: bool| if b { "yes" } else { "no" };
    out.line(format_args!(
        "privet       {} (plan format {}, report format {})",
        env.privet, env.plan_format, env.report_format
    ))?;
    out.line(format_args!("system       {}", env.system))?;
    out.line(format_args!("processor    {}, {} cores", env.cpu, env.cores))?;
    out.line(format_args!("features     {}", env.features.join(" ")))?;
    out.line(format_args!("VAES-512     {}", yes(env.vaes)))?;
    out.line(format_args!("AMX int8     {}", yes(env.amx)))?;
    out.line(format_args!("in use       {}", env.device))?;
    out.line(format_args!("CUDA library {}", yes(env.cuda_library)))?;
    out.line(format_args!(
        "memory       {} ({} available)",
        size(env.memory_bytes),
        size(env.available_bytes)
    ))?;
    out.line(format_args!("open files   {}", env.open_files.map_or("unknown".into(), count)))?;
    let Some(m) = &env.measured else { return Ok(()) };
    out.line(format_args!("measured on {} thread(s):", m.threads))?;
    out.line(format_args!("  AES-128         {:.0} M blocks/s", m.aes_blocks_per_s / 1e6))?;
    out.line(format_args!("  memory read     {:.1} GB/s", m.memory_read_bytes_per_s / 1e9))?;
    if let Some(tiles) = m.tile_macs_per_s {
        out.line(format_args!("  AMX tiles       {:.1} G ring products/s (64 bits)", tiles / 1e9))?;
    }
    out.line(format_args!(
        "  comparisons     {:.2} M/s (63 bits, keys in memory)",
        m.comparisons_per_s / 1e6
    ))?;
    out.line(format_args!("  ring matmul     {:.1} GMAC/s (64 bits, 512 cubed)", m.macs_per_s / 1e9))
}

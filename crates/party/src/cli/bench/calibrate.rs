//! `privet bench --calibrate`: rates of everything that parties do, from short runs of every family on this machine.
//!
//! A rate is what one of a thing takes in a run, with its part of memory, encryption and scheduling: a kernel alone says less.
//! Each run does much of one thing, so that all together tell the rates apart.

use super::fit::{Sample, fit};
use super::stats::spread;
use super::{Args, measure, workload};
use crate::cli::{CliError, Family, Out};
use crate::events::bars as progress;
use crate::registry::Protocol;
use crate::{machine, sys};
use privet_family::Dealing;
use privet_plan::Rates;
use privet_plan::cost::{Aim, MACHINE_VERSION, Machine, Network, Units, estimate};
use privet_plan::lower::RoundingMode;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

/// A run, and the network that its comparisons are chosen for: far apart they are trees, in one place chunks.
struct Probe {
    name: &'static str,
    batch: u32,
    bits: u32,
    fraction: u32,
    network: Network,
    train: bool,
}

const fn probe(name: &'static str, batch: u32, bits: u32, fraction: u32, network: Network) -> Probe {
    Probe { name, batch, bits, fraction, network, train: false }
}

const fn step(name: &'static str, batch: u32) -> Probe {
    Probe { train: true, ..probe(name, batch, 64, 24, Network::LAN) }
}

impl Probe {
    /// What residuals call it.
    fn label(&self) -> String {
        let Probe { name, batch, bits, fraction, network, train } = self;
        let step = if *train { ", training" } else { "" };
        format!("{name}{step}, batch {batch}, {bits}/{fraction}, for {network}")
    }
}

const PROBES: &[Probe] = &[
    probe("relu-100", 1, 64, 24, Network::LAN),
    probe("relu-300000", 1, 64, 24, Network::LAN),
    probe("relu-1000000", 1, 64, 24, Network::LAN),
    probe("relu-300000", 1, 64, 24, Network::WAN),
    probe("relu-300000", 1, 32, 12, Network::LAN),
    probe("matmul-768", 1, 64, 24, Network::LAN),
    probe("matmul-768", 1, 32, 12, Network::LAN),
    probe("gelu-30000", 1, 64, 24, Network::LAN),
    probe("exp-30000", 1, 64, 24, Network::LAN),
    probe("reciprocal-3000", 1, 40, 16, Network::LAN),
    probe("softmax-128", 300, 64, 24, Network::LAN),
    probe("softmax-16", 3, 64, 24, Network::LAN),
    probe("mlp", 128, 64, 24, Network::LAN),
    probe("lenet", 1, 64, 24, Network::LAN),
    probe("lenet", 64, 64, 24, Network::LAN),
    probe("lenet", 64, 64, 24, Network::WAN),
    probe("lenet", 64, 32, 12, Network::LAN),
    probe("squeezenet", 1, 64, 24, Network::LAN),
    step("mlp", 128),
    step("lenet", 128),
];

/// Bytes of the file that tells the disk's rate.
const DISK_BYTES: usize = 512 << 20;

/// Measure, and keep the profile.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let disk = std::env::temp_dir();
    let disk_bytes = disk_rate(args.dir.as_deref().unwrap_or(&disk)).map_err(|e| {
        CliError::failed(format!("measuring the disk: {e}"), "give another folder with `--dir`")
    })?;
    // what an earlier call measured of other families stays, and what this one measures is kept family by family
    let known = machine::measured().map(|known| (known.families, known.residuals));
    let (families, residuals) = known.unwrap_or_default();
    let mut machine = Machine {
        version: MACHINE_VERSION,
        cpu: machine::name(),
        cores: sys::cores(),
        memory_bytes: sys::total_memory_bytes().unwrap_or(0) as f64,
        disk_bytes,
        families,
        residuals,
    };
    let mut path = None;
    for protocol in Protocol::all() {
        let facts = protocol.facts();
        // Parties that must prepare themselves would take hours for these runs; shipped rates stay, and estimates say so.
        if facts.needs_preparation() && matches!(facts.dealing, Dealing::Never) {
            continue;
        }
        for &security in facts.withstands {
            // rates are of runs: where their records come from makes no difference
            let family = Family::of(protocol, security).dealt();
            let key = Machine::key(&*family.forecast()?);
            let (seconds, ratios) = calibrated(args, &family)?;
            machine.families.insert(key.clone(), seconds);
            machine.residuals.insert(key, ratios);
            path = Some(machine::save(&machine).map_err(|e| {
                CliError::failed(
                    format!("keeping the profile: {e}"),
                    "set XDG_CACHE_HOME to a folder of yours",
                )
            })?);
        }
    }
    if args.json {
        return out.json(&machine);
    }
    out.line(format_args!("{}, {} cores, disk {:.2} GB/s", machine.cpu, machine.cores, disk_bytes / 1e9))?;
    for (family, seconds) in &machine.families {
        out.line(format_args!("  {family}: seconds of one of each"))?;
        let fields = serde_json::to_value(seconds).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            out.line(format_args!("    {name:<18} {:.3e}", value.as_f64().unwrap_or(f64::NAN)))?;
        }
        out.line("    predicted over measured, of the runs that they are from")?;
        for (run, ratio) in machine.residuals.get(family).into_iter().flatten() {
            out.line(format_args!("    {ratio:>6.2}  {run}"))?;
        }
    }
    path.map_or(Ok(()), |path| out.line(format_args!("kept as {}", path.display())))
}

/// The rates of one family, and what they say of each run over what it took.
fn calibrated(args: &Args, family: &Family) -> Result<(Units, BTreeMap<String, f64>), CliError> {
    let forecast = family.forecast()?;
    let progress = progress::for_stderr(args.json);
    progress.start(PROBES.len() as u64, &Machine::key(&*forecast));
    // parties of a probe share this machine's cores; what is kept is of one that does not
    let sharing = Rates { cores: sys::cores(), ..Rates::default() }.together(family.parties()?).sharing();
    let mut samples = Vec::new();
    for probe in PROBES {
        let aim = Aim { network: probe.network, max_key_bytes: None };
        let args = Args {
            workload: probe.name.into(),
            family: family.clone(),
            batch: probe.batch,
            bits: probe.bits,
            fraction: probe.fraction,
            rounding: if probe.train { None } else { Some(RoundingMode::Nearest) },
            train: probe.train,
            network: "lan".into(),
            json: true,
            ..args.clone()
        };
        let work = workload::make(&args.choice(&*forecast, aim))?;
        let dir = tempfile::tempdir_in(args.dir.clone().unwrap_or_else(std::env::temp_dir))
            .map_err(|e| CliError::failed(e, "give `--dir`"))?;
        let measured = measure(&args, &work, dir.path())?;
        let did = estimate(&work.plan, &*forecast, &Rates::default(), &Network::LOCAL).work;
        let alone = Units { rounds: 0.0, ..did }.to_array().map(|n| n * sharing);
        let waits = Units { rounds: did.rounds, ..Units::default() };
        // the median, as results have it: what a run takes on a machine that does its usual part beside
        let seconds = spread(&measured.online).median;
        samples.push(Sample { counts: Units::from_array(alone).and(waits).to_array(), seconds });
        progress.advance(1);
    }
    progress.finish();
    let seconds = fit(&samples, forecast.rates().seconds.to_array());
    let ratios = PROBES.iter().zip(&samples).map(|(probe, run)| (probe.label(), run.ratio(&seconds)));
    Ok((Units::from_array(seconds), ratios.collect()))
}

/// Bytes a second that a file in `dir` is read with, after the system was told to forget it.
fn disk_rate(dir: &Path) -> std::io::Result<f64> {
    let path = dir.join(format!("privet-calibrate-{}", std::process::id()));
    let measured = write_and_read(&path);
    std::fs::remove_file(&path)?;
    measured
}

fn write_and_read(path: &Path) -> std::io::Result<f64> {
    let mut block = vec![0x5a_u8; 4 << 20];
    let mut file = File::create(path)?;
    for _ in 0..DISK_BYTES / block.len() {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut file = File::open(path)?;
    #[cfg(target_os = "linux")]
    // SAFETY: it reads and writes no memory of this process, and the descriptor is open.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    }
    let start = Instant::now();
    while file.read(&mut block)? > 0 {}
    Ok(DISK_BYTES as f64 / start.elapsed().as_secs_f64())
}

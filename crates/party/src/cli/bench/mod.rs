//! `privet bench`: a workload over real processes, five times, with the figures that decide.

mod cluster;
mod figures;
mod kernel;
mod stats;
mod workload;

use super::{CliError, Family, Out, serve};
use crate::family::named;
use crate::progress;
use crate::report::{busiest, verification};
use crate::session::client::{Client, ClientError, Outcome};
use cluster::{Cluster, Setting};
use figures::{Dealing, Figures, Layer, show};
use privet_family::NodeStats;
use privet_net::NetworkProfile;
use privet_plan::lower::RoundingMode;
use privet_plan::{FloatTensor, interpret_real};
use stats::spread;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workload::{Choice, Workload};

/// Options.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = format!("One of {}", workload::names()))]
    workload: String,
    #[command(flatten)]
    family: Family,
    /// Rows of a run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Ring bits of linear layers.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=64))]
    bits: u32,
    /// Fraction bits.
    #[arg(long, default_value_t = 24)]
    fraction: u32,
    /// Fraction bits of weights; as many as of activations when absent.
    #[arg(long)]
    weight_fraction: Option<u32>,
    /// How truncation rounds: nearest, floor, stochastic, or one_ulp (within one unit of the last place).
    #[arg(long, default_value = "nearest", value_parser = named::<RoundingMode>)]
    rounding: RoundingMode,
    /// Network between the parties: lan, wan, or rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: String,
    /// Counted runs, after one that is not.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Threads of each party.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where keys and logs go; a temporary directory by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// One JSON line.
    #[arg(long)]
    json: bool,
    /// Cost of every node of the plan as well.
    #[arg(long)]
    layers: bool,
}

/// What the runs gave: seconds of each counted one, and the last one's account.
struct Measured {
    wall: Vec<f64>,
    online: Vec<f64>,
    offline: Vec<f64>,
    setup_s: f64,
    encrypted: bool,
    last: Outcome,
    dealt: Option<super::deal::Dealt>,
}

/// Run the command.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let family = args.family.forecast()?;
    let choice = Choice {
        name: &args.workload,
        batch: args.batch as usize,
        bits: args.bits,
        fraction: args.fraction,
        weight_fraction: args.weight_fraction,
        rounding: args.rounding,
        prices: family.prices(),
    };
    let work = workload::make(&choice)?;
    let kernels = kernels(args);
    let temporary;
    let dir = match &args.dir {
        Some(dir) => dir.as_path(),
        None => {
            temporary = tempfile::tempdir().map_err(|e| CliError::failed(e, "give `--dir`"))?;
            temporary.path()
        }
    };
    let measured = measure(args, &work, dir)?;
    let figures = figures(args, &work, kernels, &measured)?;
    match args.json {
        true => out.json(&figures),
        false => show(&figures, out),
    }
}

fn measure(args: &Args, work: &Workload, dir: &Path) -> Result<Measured, CliError> {
    let progress = progress::for_stderr(args.json);
    std::fs::create_dir_all(dir).map_err(|e| CliError::file("create", dir, e))?;
    let plan_file = dir.join("plan.json");
    std::fs::write(&plan_file, work.plan.to_json()).map_err(|e| CliError::file("write", &plan_file, e))?;
    let setting = Setting { family: &args.family, network: &args.network, threads: args.threads };
    let mut cluster = Cluster::start(dir, &plan_file, &setting)?;
    let (links, plan) = serve::load(&cluster.client(), "lan")?;
    let mut client = Client::new(links, plan);
    let failed = |e: ClientError, cluster: &mut Cluster| {
        let cause = cluster.last_words().unwrap_or_else(|| e.to_string());
        CliError::failed(cause, "see party0.log and the other parties' in the directory of `--dir`")
    };
    progress.start(args.runs as u64 + 1, &args.workload);
    let (mut wall, mut online, mut offline) = (Vec::new(), Vec::new(), Vec::new());

    // The first run is not counted: it warms up caches and connections.
    let mut dealt = cluster.deal()?;
    let start = Instant::now();
    client.share_weights(&work.weights).map_err(|e| failed(e, &mut cluster))?;
    let setup_s = start.elapsed().as_secs_f64();
    let mut last = client.run(&work.inputs).map_err(|e| failed(e, &mut cluster))?;
    progress.advance(1);
    for _ in 0..args.runs {
        if let Some(deal) = cluster.deal()? {
            offline.push(deal.seconds);
            dealt = Some(deal);
            // Let the disk take what it will of the keys: "online" starts with keys at rest.
            settle();
        }
        last = client.run(&work.inputs).map_err(|e| failed(e, &mut cluster))?;
        wall.push(last.wall_s);
        online.push(last.online_s());
        progress.advance(1);
    }
    progress.finish();
    Ok(Measured { wall, online, offline, setup_s, encrypted: client.encrypted(), last, dealt })
}

fn figures(
    args: &Args,
    work: &Workload,
    kernels: Vec<kernel::Kernel>,
    m: &Measured,
) -> Result<Figures, CliError> {
    let total = busiest(&m.last.accounts);
    let offline = if m.offline.is_empty() { spread(&[0.0]) } else { spread(&m.offline) };
    let transport = if m.encrypted { "TLS" } else { "INSECURE transport" };
    let peaks = m.last.accounts.iter().map(|a| a.peak_rss_bytes);
    let peaks = peaks.chain(m.dealt.as_ref().map(|d| d.peak_rss_bytes));
    Ok(Figures {
        workload: args.workload.clone(),
        protocol: args.family.protocol.to_string(),
        security: format!("{}, {transport}", args.family.security()?),
        batch: work.plan.batch,
        bits: args.bits,
        fraction: args.fraction,
        weight_fraction: args.weight_fraction,
        rounding: args.rounding,
        network: args.network.clone(),
        runs: args.runs,
        wall_s: spread(&m.wall),
        online_s: spread(&m.online),
        offline_s: offline,
        setup_s: m.setup_s,
        bytes_sent: total.sent_bytes,
        mb_per_sample: total.sent_bytes as f64 / 1e6 / work.plan.batch as f64,
        key_bytes: total.key_bytes,
        rounds: total.rounds,
        comparisons: total.comparisons,
        aes_calls: total.aes_calls,
        macs: total.macs,
        verification: verification(&m.last.accounts),
        max_abs_err: max_abs_err(work, &m.last.outputs),
        peak_rss_mb: peaks.map(|b| b as f64 / 1e6).collect(),
        dealer: m.dealt.as_ref().map(|d| Dealing {
            dealer_aes_per_s: d.aes_calls as f64 / offline.median,
            dealer_bytes_per_s: m.last.accounts.len() as f64 * d.key_bytes as f64 / offline.median,
        }),
        network_floor_s: network_floor(args, &total),
        kernels,
        layers: if args.layers { layers(work, &m.last.nodes()) } else { Vec::new() },
    })
}

/// The kernels that a workload is made of, where the family uses them alone.
fn kernels(args: &Args) -> Vec<kernel::Kernel> {
    let cores = crate::sys::cores();
    if args.workload.starts_with("relu-") && args.family.protocol.has_dealer() {
        return vec![kernel::comparisons(args.bits - 1, cores)];
    }
    match args.workload.strip_prefix("matmul-").and_then(|n| n.parse().ok()) {
        Some(n) => vec![kernel::matmul(n, args.bits, 1), kernel::matmul(n, args.bits, cores)],
        None => Vec::new(),
    }
}

/// Wait a little, longer while the system still writes keys to disk (2 s at most).
fn settle() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let writing = meminfo.lines().find_map(|l| l.strip_prefix("Writeback:")?.trim().strip_suffix(" kB"));
        if writing.and_then(|kb| kb.trim().parse::<u64>().ok()).is_none_or(|kb| kb < 1024) {
            return;
        }
    }
}

fn max_abs_err(work: &Workload, outputs: &BTreeMap<String, FloatTensor>) -> f64 {
    let Ok(truth) = interpret_real(&work.plan, &work.inputs, &work.weights) else { return f64::NAN };
    let mut worst = 0f64;
    for (o, truth) in work.plan.outputs.iter().zip(&truth) {
        let Some(found) = outputs.get(&o.name) else { return f64::NAN };
        for (a, b) in found.data.iter().zip(&truth.data) {
            worst = worst.max((a - b).abs());
        }
    }
    worst
}

fn network_floor(args: &Args, total: &NodeStats) -> Option<f64> {
    let network = NetworkProfile::parse(&args.network).ok().filter(|n| !n.is_unlimited())?;
    let transfer = network.bandwidth_bytes_per_s.map_or(0.0, |b| total.sent_bytes as f64 / b);
    Some(total.rounds as f64 * network.rtt_ms / 1000.0 + transfer)
}

fn layers(work: &Workload, nodes: &[NodeStats]) -> Vec<Layer> {
    let row = |(n, s): (&privet_plan::ir::Node, &NodeStats)| Layer {
        layer: n.layer.clone(),
        op: n.op.kind(),
        stats: *s,
    };
    work.plan.nodes.iter().zip(nodes).map(row).collect()
}

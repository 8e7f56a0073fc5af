//! `privet bench`: a workload over real processes, five times, with the figures that decide.

mod cluster;
mod kernel;
mod stats;
mod workload;

use super::{CliError, Out, serve};
use crate::progress;
use crate::session::client::{Client, ClientError};
use cluster::Cluster;
use privet_family::NodeStats;
use privet_net::NetworkProfile;
use privet_plan::{FloatTensor, interpret_real};
use serde::Serialize;
use stats::{Spread, spread};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use workload::{Choice, Workload};

/// Options.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// relu-N, matmul-N, mlp, lenet, alexnet-cifar, vgg16-cifar, resnet18, squeezenet, resnet50, vgg16.
    workload: String,
    /// Protocol family.
    #[arg(long, default_value = "fss", value_parser = ["fss"])]
    protocol: String,
    /// Rows of a run.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Ring bits of linear layers.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=64))]
    bits: u32,
    /// Fraction bits.
    #[arg(long, default_value_t = 24)]
    fraction: u32,
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

/// The figures.
#[derive(Debug, Serialize)]
struct Figures {
    workload: String,
    protocol: String,
    security: &'static str,
    batch: usize,
    bits: u32,
    fraction: u32,
    network: String,
    runs: u32,
    /// Seconds from the client's request to its outputs in hand.
    wall_s: Spread,
    /// Seconds from shared inputs to shared outputs, of the slower party.
    online_s: Spread,
    /// Seconds to deal both parties' keys and write them.
    offline_s: Spread,
    /// Of the party with more, one to the other.
    bytes_sent: u64,
    key_bytes: u64,
    rounds: u64,
    comparisons: u64,
    aes_calls: u64,
    macs: u64,
    /// Against float64.
    max_abs_err: f64,
    /// Peak resident memory: party 0, party 1, dealer.
    peak_rss_mb: [f64; 3],
    /// AES calls a second of the dealer.
    dealer_aes_per_s: f64,
    /// Key bytes a second of the dealer, both parties'.
    dealer_bytes_per_s: f64,
    /// Rounds x RTT + bytes / bandwidth, for an emulated network; computing comes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    network_floor_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<kernel::Kernel>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<Layer>,
}

#[derive(Debug, Serialize)]
struct Layer {
    layer: String,
    op: String,
    #[serde(flatten)]
    stats: NodeStats,
}

/// Run the command.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let progress = progress::for_stderr(args.json);
    let choice = Choice { name: &args.workload, batch: args.batch, bits: args.bits, fraction: args.fraction };
    let work = workload::make(&choice)?;
    let kernels = kernels(args);
    let (temporary, dir) = match &args.dir {
        Some(dir) => (None, dir.clone()),
        None => {
            let t = tempfile::tempdir().map_err(|e| CliError::failed(e, "give `--dir`"))?;
            let path = t.path().to_owned();
            (Some(t), path)
        }
    };
    std::fs::create_dir_all(&dir).map_err(|e| CliError::file("create", &dir, e))?;
    let plan_file = dir.join("plan.json");
    std::fs::write(&plan_file, work.plan.to_json()).map_err(|e| CliError::file("write", &plan_file, e))?;

    let mut cluster = Cluster::start(&dir, &plan_file, &args.network, args.threads)?;
    let (links, plan) = serve::load(&cluster.client(), "lan")?;
    let mut client = Client::new(links, plan);
    let failed = |e: ClientError, cluster: &mut Cluster| {
        let cause = cluster.last_words().unwrap_or_else(|| e.to_string());
        CliError::failed(cause, "see party0.log and party1.log in the directory of `--dir`")
    };
    progress.start(args.runs as u64 + 1, &args.workload);
    let (mut wall, mut online, mut offline) = (Vec::new(), Vec::new(), Vec::new());
    let (mut last, mut dealt) = (None, None);
    for i in 0..=args.runs {
        let deal = cluster.deal()?;
        if i == 0 {
            client.share_weights(&work.weights).map_err(|e| failed(e, &mut cluster))?;
        }
        // Let the disk take what it will of the keys: "online" starts with keys at rest.
        settle();
        let outcome = client.run(&work.inputs).map_err(|e| failed(e, &mut cluster))?;
        if i > 0 {
            offline.push(deal.seconds);
            wall.push(outcome.wall_s);
            online.push(outcome.online_s());
        }
        (last, dealt) = (Some(outcome), Some(deal));
        progress.advance(1);
    }
    progress.finish();
    let encrypted = client.encrypted();
    drop(cluster);
    let (Some(outcome), Some(dealt)) = (last, dealt) else { return Ok(()) };

    let nodes = outcome.nodes();
    let mut total = NodeStats::default();
    nodes.iter().for_each(|n| total.add(n));
    let offline = spread(&offline);
    let mb = |b: u64| b as f64 / 1e6;
    let [a0, a1] = [&outcome.accounts[0], &outcome.accounts[1]];
    let figures = Figures {
        workload: args.workload.clone(),
        protocol: args.protocol.clone(),
        security: if encrypted { "semi-honest, TLS" } else { "semi-honest, INSECURE transport" },
        batch: args.batch,
        bits: args.bits,
        fraction: args.fraction,
        network: args.network.clone(),
        runs: args.runs,
        wall_s: spread(&wall),
        online_s: spread(&online),
        offline_s: offline,
        bytes_sent: total.sent_bytes,
        key_bytes: total.key_bytes,
        rounds: total.rounds,
        comparisons: total.comparisons,
        aes_calls: total.aes_calls,
        macs: total.macs,
        max_abs_err: max_abs_err(&work, &outcome.outputs),
        peak_rss_mb: [mb(a0.peak_rss_bytes), mb(a1.peak_rss_bytes), mb(dealt.peak_rss_bytes)],
        dealer_aes_per_s: dealt.aes_calls as f64 / offline.median,
        dealer_bytes_per_s: 2.0 * dealt.key_bytes as f64 / offline.median,
        network_floor_s: network_floor(args, &total),
        kernels,
        layers: if args.layers { layers(&work, &nodes) } else { Vec::new() },
    };
    drop(temporary);
    match args.json {
        true => out.json(&figures),
        false => show(&figures, out),
    }
}

fn kernels(args: &Args) -> Vec<kernel::Kernel> {
    let cores = crate::sys::cores();
    if args.workload.starts_with("relu-") {
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
    let op = |op: &privet_plan::ir::Op| {
        let kind = serde_json::to_value(op).ok().and_then(|v| Some(v.get("kind")?.as_str()?.to_owned()));
        kind.unwrap_or_default()
    };
    let row = |(n, s): (&privet_plan::ir::Node, &NodeStats)| Layer {
        layer: n.layer.clone(),
        op: op(&n.op),
        stats: *s,
    };
    work.plan.nodes.iter().zip(nodes).map(row).collect()
}

fn show(f: &Figures, out: &mut Out) -> Result<(), CliError> {
    let s = |s: &Spread| format!("{:.4} s ({:.4} to {:.4})", s.median, s.min, s.max);
    out.line(format_args!(
        "{} batch {}, {} ({}), ring {} bits, fraction {}, network {}",
        f.workload, f.batch, f.protocol, f.security, f.bits, f.fraction, f.network
    ))?;
    out.line(format_args!("  online   {}", s(&f.online_s)))?;
    out.line(format_args!("  wall     {}", s(&f.wall_s)))?;
    out.line(format_args!("  offline  {}", s(&f.offline_s)))?;
    out.line(format_args!("  sent     {} bytes in {} rounds", f.bytes_sent, f.rounds))?;
    out.line(format_args!("  keys     {} bytes a party", f.key_bytes))?;
    out.line(format_args!("  error    {:.3e} against float64", f.max_abs_err))?;
    let [p0, p1, d] = f.peak_rss_mb;
    out.line(format_args!("  memory   {p0:.0} MB and {p1:.0} MB, dealer {d:.0} MB"))?;
    out.line(format_args!(
        "  dealer   {:.3e} AES calls/s, {:.3e} bytes/s",
        f.dealer_aes_per_s, f.dealer_bytes_per_s
    ))?;
    if let Some(floor) = f.network_floor_s {
        out.line(format_args!("  network floor {floor:.3} s (rounds x RTT + bytes / bandwidth)"))?;
    }
    for k in &f.kernels {
        out.line(format_args!(
            "  {} on {} threads ({}): {:.3e}/s, {:.0}% of the limit {:.3e}/s",
            k.kernel,
            k.threads,
            k.path,
            k.rate,
            100.0 * k.ratio,
            k.limit
        ))?;
    }
    for l in f.layers.iter().filter(|l| l.stats.seconds > 1e-5 || l.stats.key_bytes > 0) {
        out.line(format_args!(
            "    {:24} {:14} {:9.5} s {:>12} key bytes {:>10} sent {:3} rounds",
            l.layer, l.op, l.stats.seconds, l.stats.key_bytes, l.stats.sent_bytes, l.stats.rounds
        ))?;
    }
    Ok(())
}

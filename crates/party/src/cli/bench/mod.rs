//! `privet bench`: a workload over real processes, five times, with the figures that decide.

mod calibrate;
mod cluster;
mod figures;
mod fit;
mod kernel;
mod stats;
mod workload;

use super::family::no_dealer;
use super::{CliError, Family, Out, serve};
use crate::config::{Bytes, Place, named};
use crate::events::bars as progress;
use crate::machine;
use crate::report::{busiest, bytes, verification};
use crate::session::client::{Client, ClientError, Prepared};
use crate::session::control::{KeyStream, Status};
use crate::session::outcome::Outcome;
use cluster::{Cluster, Setting};
use figures::{Dealing, Figures, Layer, Preparation, Streamed, show};
use privet_family::NodeStats;
use privet_net::NetworkProfile;
use privet_plan::cost::{Aim, Estimate, Network, NodeCost, Offline, PreparationUnits, Units};
use privet_plan::form::summary;
use privet_plan::lower::RoundingMode;
use privet_plan::program::ONLY_PLAN;
use privet_plan::{FloatTensor, Target, estimate, interpret_real};
use serde::Serialize;
use stats::spread;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workload::{Choice, Workload};

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[arg(help = format!("One of {}", workload::names()), default_value = "", hide_default_value = true)]
    workload: String,
    /// Measure this machine's rates with short runs of every protocol, instead of a workload, and keep them for estimates
    /// (some minutes; nothing else should run).
    #[arg(long)]
    calibrate: bool,
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
    /// How truncation rounds: nearest, floor, stochastic, or one_ulp (within one unit of the last place). By default nearest,
    /// with `--train` stochastic.
    #[arg(long, value_parser = named::<RoundingMode>)]
    rounding: Option<RoundingMode>,
    /// A step of training instead of a prediction; every run is the next step.
    #[arg(long)]
    train: bool,
    /// Network to emulate between the parties: lan (nothing added), wan, or rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: String,
    /// Network that the plan is compiled for: lan, wan, or rtt=60ms,bandwidth=293Mbit/s; the emulated one when absent.
    #[arg(long, value_name = "NETWORK")]
    compile_for: Option<Network>,
    /// Most key bytes that a run may use up at one party, for example "4 GB".
    #[arg(long)]
    max_key_bytes: Option<Bytes>,
    /// Counted runs, after one that is not.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Threads of each party.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Who owns the model: party:0, party:1, ..., or client:client. The client where the protocol lets anybody own it.
    #[arg(long, value_name = "PLACE")]
    model_owner: Option<Place>,
    /// Runs that the parties prepare in one job, where they do so among themselves. Costs are of one of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    together: u32,
    /// Have keys come from a dealer over the network while the runs use them up, instead of dealing them to disk before
    /// each run.
    #[arg(long)]
    stream: bool,
    /// With `--stream`: most records ahead of the runs, at each party.
    #[arg(long, requires = "stream", value_parser = clap::value_parser!(u32).range(1..))]
    ahead: Option<u32>,
    /// With `--stream`: keys that a party holds in memory, for example "4 GB".
    #[arg(long, requires = "stream")]
    memory_budget: Option<Bytes>,
    /// Where keys and logs go; a temporary directory by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Say what an estimate says of a run, and run nothing.
    #[arg(long, conflicts_with_all = ["calibrate", "stream"])]
    predict: bool,
    /// One JSON line.
    #[arg(long)]
    json: bool,
    /// Cost of every node of the plan as well; with `--predict`, what the estimate says of it.
    #[arg(long)]
    layers: bool,
}

impl Args {
    fn rounding(&self) -> RoundingMode {
        let default = if self.train { RoundingMode::Stochastic } else { RoundingMode::Nearest };
        self.rounding.unwrap_or(default)
    }

    /// The protocol, with what is known here of a deployment.
    fn family(&self) -> Family {
        let owner = cluster::owner(&self.family, self.model_owner.as_ref());
        self.family.clone().with_model_at(owner.party()).with_together(self.together as usize)
    }

    /// The workload, for a family.
    fn choice<'a>(&'a self, family: &'a dyn Target, aim: Aim) -> Choice<'a> {
        Choice {
            name: &self.workload,
            batch: self.batch as usize,
            bits: self.bits,
            fraction: self.fraction,
            weight_fraction: self.weight_fraction,
            rounding: self.rounding(),
            train: self.train,
            family,
            aim,
        }
    }

    /// What the plan is compiled for.
    fn aim(&self) -> Result<Aim, CliError> {
        let network = match self.compile_for {
            Some(network) => network,
            None => emulated(&self.network)?,
        };
        Ok(Aim { network, max_key_bytes: self.max_key_bytes.map(|b| b.0) })
    }
}

/// The network that is emulated; what is not limited is as in one place.
fn emulated(text: &str) -> Result<Network, CliError> {
    let profile = NetworkProfile::parse(text).map_err(|e| CliError::usage(e, "give another `--network`"))?;
    if profile.is_unlimited() {
        return Ok(Network::LAN);
    }
    let bandwidth = profile.bandwidth_bytes_per_s.unwrap_or(Network::LAN.bandwidth);
    Ok(Network { rtt: profile.rtt_ms / 1e3, bandwidth })
}

/// What the runs gave: seconds of each counted one, and the last one's account.
struct Measured {
    wall: Vec<f64>,
    online: Vec<f64>,
    offline: Vec<f64>,
    /// Processor seconds of a counted run, mean, of each process.
    run_cpu: Vec<f64>,
    setup_s: f64,
    encrypted: bool,
    /// Of the first run: that one starts from what is known.
    error: Error,
    last: Outcome,
    dealt: Option<super::deal::Dealt>,
    preparation: Option<Preparation>,
    stream: Option<Streamed>,
    dealer_peak_rss: Option<u64>,
}

/// Run the command.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    if args.calibrate {
        return calibrate::run(args, out);
    }
    let family = args.family().forecast()?;
    if args.stream && !args.family.has_dealer()? {
        return Err(no_dealer(args.family.protocol));
    }
    let work = workload::make(&args.choice(&*family, args.aim()?))?;
    if args.predict {
        return predict(args, &work, out);
    }
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
    let figures = figures(args, &work, kernels, measured)?;
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
    let settings = args.ahead.map(|n| format!("ahead = {n}\n")).into_iter();
    let settings = settings.chain(args.memory_budget.map(|b| format!("memory_budget = {}\n", b.0))).collect();
    let setting = Setting {
        family: &args.family,
        model_owner: args.model_owner.as_ref(),
        network: &args.network,
        threads: args.threads,
        stream: args.stream,
        settings,
    };
    let mut cluster = Cluster::start(dir, &plan_file, &setting)?;
    let (links, program) = serve::load(&cluster.client(), "lan")?;
    let mut client = Client::new(links, program);
    let failed = |e: ClientError, cluster: &mut Cluster| {
        let cause = cluster.last_words().unwrap_or_else(|| e.to_string());
        CliError::failed(cause, "see party0.log and the other parties' in the directory of `--dir`")
    };
    progress.start(args.runs as u64 + 1, &args.workload);
    let (mut wall, mut online, mut offline) = (Vec::new(), Vec::new(), Vec::new());
    let mut run_cpu = vec![0.0; cluster.cpu_seconds().len()];

    // The first run is not counted: it warms up caches and connections.
    let mut dealt = cluster.deal()?;
    // Parties that prepare without a dealer are asked to, a few runs at a time.
    let among_parties = args.family.protocol.facts().needs_preparation() && dealt.is_none() && !args.stream;
    let (together, mut ready) = (u64::from(args.together), 0);
    let mut prepare = |client: &mut Client, cluster: &mut Cluster| -> Result<_, CliError> {
        if !among_parties {
            return Ok(None);
        }
        if ready > 0 {
            ready -= 1;
            return Ok(None);
        }
        ready = together - 1;
        let before = cluster.cpu_seconds();
        let prepared = client.prepare(ONLY_PLAN, together, 0).map_err(|e| failed(e, cluster))?;
        let each = |seconds: f64| seconds / together as f64;
        let cpu_s = cluster.cpu_seconds().iter().zip(before).map(|(now, then)| each(now - then)).collect();
        let Prepared { seconds, sent_bytes, received_bytes, rounds, .. } = prepared;
        let [sent_bytes, received_bytes, rounds] =
            [sent_bytes, received_bytes, rounds].map(|n| n.div_ceil(together));
        Ok(Some((each(seconds), Preparation { runs: together, sent_bytes, received_bytes, rounds, cpu_s })))
    };
    let (first, mut preparation) = prepare(&mut client, &mut cluster)?.unzip();
    let stream = |client: &mut Client, cluster: &mut Cluster, runs: u32| {
        client.prepare_stream(ONLY_PLAN, u64::from(runs)).map_err(|e| failed(e, cluster))
    };
    if args.stream {
        stream(&mut client, &mut cluster, 1)?;
    }
    let start = Instant::now();
    let begun = match args.train {
        true => client.begin_training(&work.states, 0).map(drop),
        // A session without weights begins by itself, in the run that is not counted.
        false if work.weights.is_empty() => Ok(()),
        false => {
            let (links, program) =
                serve::load(&cluster.owner(&args.family, args.model_owner.as_ref()), "lan")?;
            Client::new(links, program).share_weights(ONLY_PLAN, &work.weights)
        }
    };
    begun.map_err(|e| failed(e, &mut cluster))?;
    let setup_s = start.elapsed().as_secs_f64();
    let run = |client: &mut Client, cluster: &mut Cluster| {
        client.step(ONLY_PLAN, &work.inputs, &work.publics).map_err(|e| failed(e, cluster))
    };
    let mut last = run(&mut client, &mut cluster)?;
    let error = Error::of(work, &last.outputs);
    progress.advance(1);
    let mut idle_cpu = Vec::new();
    if args.stream {
        // A record at a time, as it is dealt into files, and then a stream of them beside the runs.
        for _ in 0..args.runs {
            offline.push(stream(&mut client, &mut cluster, 1)?.seconds);
            run(&mut client, &mut cluster)?;
        }
        idle_cpu = cluster.cpu_seconds();
        stream(&mut client, &mut cluster, args.runs)?;
    }
    let streaming = args.stream.then(|| (Instant::now(), client.status()));
    for _ in 0..args.runs {
        if let Some(deal) = cluster.deal()? {
            offline.push(deal.seconds);
            dealt = Some(deal);
            // Let the disk take what it will of the keys: "online" starts with keys at rest.
            settle();
        }
        if let Some((seconds, last)) = prepare(&mut client, &mut cluster)? {
            offline.push(seconds);
            preparation = Some(last);
        }
        let before = cluster.cpu_seconds();
        last = run(&mut client, &mut cluster)?;
        let used = cluster.cpu_seconds().into_iter().zip(before).map(|(now, then)| now - then);
        run_cpu.iter_mut().zip(used).for_each(|(sum, used)| *sum += used / f64::from(args.runs));
        wall.push(last.wall_s);
        online.push(last.online_s());
        progress.advance(1);
    }
    progress.finish();
    if offline.is_empty() {
        offline.extend(first); // all runs were prepared together
    }
    let stream = match streaming {
        None => None,
        Some((start, before)) => {
            let runs_s = start.elapsed().as_secs_f64();
            let cpu = cluster.cpu_seconds().iter().zip(idle_cpu).map(|(now, then)| now - then).collect();
            let before = before.map_err(|e| failed(e, &mut cluster))?;
            let after = client.status().map_err(|e| failed(e, &mut cluster))?;
            streamed(args.runs, runs_s, cpu, &before, &after)
        }
    };
    let (encrypted, dealer_peak_rss) = (client.encrypted(), cluster.dealer_peak_rss_bytes());
    Ok(Measured {
        wall,
        online,
        offline,
        run_cpu,
        setup_s,
        encrypted,
        error,
        last,
        dealt,
        preparation,
        stream,
        dealer_peak_rss,
    })
}

/// What a stream gave between two moments with `runs` runs between them.
fn streamed(runs: u32, runs_s: f64, cpu: Vec<f64>, before: &[Status], after: &[Status]) -> Option<Streamed> {
    let streams = |all: &[Status]| -> Vec<KeyStream> {
        all.iter().filter_map(|s| s.plans.get(ONLY_PLAN)?.stream.clone()).collect()
    };
    let waited = |all: &[Status]| streams(all).iter().map(|s| s.waited_s).fold(0.0, f64::max);
    let last = streams(after).into_iter().max_by_key(|s| s.bytes)?;
    let record_mb = last.bytes as f64 / last.came as f64 / 1e6;
    Some(Streamed {
        dealer_mb_s: last.bytes as f64 / 1e6 / last.receiving_s,
        consumed_mb_s: record_mb * f64::from(runs) / runs_s,
        waited_s: waited(after) - waited(before),
        cpu_s_per_gb: cpu.into_iter().map(|s| s / (last.bytes as f64 / 1e9)).collect(),
    })
}

fn figures(
    args: &Args,
    work: &Workload,
    kernels: Vec<kernel::Kernel>,
    m: Measured,
) -> Result<Figures, CliError> {
    let total = busiest(&m.last.accounts);
    let offline = if m.offline.is_empty() { spread(&[0.0]) } else { spread(&m.offline) };
    let transport = if m.encrypted { "TLS" } else { "INSECURE transport" };
    let peaks = m.last.accounts.iter().map(|a| a.peak_rss_bytes);
    let estimated = predicted(args, work)?;
    let peaks = peaks.chain(m.dealt.as_ref().map(|d| d.peak_rss_bytes)).chain(m.dealer_peak_rss);
    Ok(Figures {
        workload: args.workload.clone(),
        protocol: args.family.protocol.to_string(),
        parties: m.last.accounts.len(),
        security: format!("{}, {transport}", args.family.security()?),
        batch: work.plan.batch,
        bits: args.bits,
        fraction: args.fraction,
        weight_fraction: args.weight_fraction,
        rounding: args.rounding(),
        train: args.train,
        model_owner: args.model_owner.as_ref().map(Place::to_string),
        settings: args.family.settings().to_vec(),
        network: args.network.clone(),
        compiled_for: args.aim()?.network.to_string(),
        max_key_bytes: args.aim()?.max_key_bytes,
        comparisons_by: summary(&work.plan),
        runs: args.runs,
        predicted_s: estimated.seconds,
        predicted_offline_s: offline_of(&estimated),
        wall_s: spread(&m.wall),
        online_s: spread(&m.online),
        offline_s: offline,
        run_cpu_s: m.run_cpu,
        setup_s: m.setup_s,
        bytes_sent: total.sent_bytes,
        mb_per_sample: total.sent_bytes as f64 / 1e6 / work.plan.batch as f64,
        key_bytes: total.key_bytes,
        rounds: total.rounds,
        comparisons: total.comparisons,
        aes_calls: total.aes_calls,
        macs: total.macs,
        verification: verification(&m.last.accounts),
        max_abs_err: m.error.largest,
        mean_square_err: m.error.mean_square,
        peak_rss_mb: peaks.map(|b| b as f64 / 1e6).collect(),
        preparation: m.preparation,
        dealer: m.dealt.as_ref().map(|d| Dealing {
            dealer_aes_per_s: d.aes_calls as f64 / offline.median,
            dealer_bytes_per_s: m.last.accounts.len() as f64 * d.key_bytes as f64 / offline.median,
        }),
        stream: m.stream,
        network_floor_s: network_floor(args, &total),
        kernels,
        layers: if args.layers { layers(work, &m.last.nodes()) } else { Vec::new() },
    })
}

/// What an estimate says of a run: all parties on this machine, over the emulated network.
fn predicted(args: &Args, work: &Workload) -> Result<Estimate, CliError> {
    let family = args.family().forecast()?;
    let network = match emulated(&args.network)? {
        Network::LAN => Network::LOCAL,
        network => network,
    };
    let (rates, rates_from) = machine::rates(&*family);
    let together = rates.together(args.family.parties()?);
    Ok(estimate(&work.plan, &*family, &together, &network).by(rates_from))
}

/// Seconds in which the parties prepare a run, where they do so among themselves.
fn offline_of(estimate: &Estimate) -> Option<f64> {
    (!estimate.total.offline.is_nothing()).then_some(estimate.offline_seconds)
}

/// An estimate beside no run.
#[derive(Serialize)]
struct Predicted<'a> {
    workload: &'a str,
    protocol: String,
    security: String,
    batch: usize,
    network: &'a str,
    compiled_for: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparisons_by: Option<String>,
    predicted_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_offline_s: Option<f64>,
    bytes_sent: u64,
    rounds: u64,
    key_bytes: u64,
    /// What a party does, in the units of rates.
    work: Units,
    /// The same before a run, where parties prepare among themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    work_before: Option<PreparationUnits>,
    rates_from: &'static str,
    /// Every node that is not free, where `--layers` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<&'a [NodeCost]>,
}

fn predict(args: &Args, work: &Workload, out: &mut Out) -> Result<(), CliError> {
    let estimate = predicted(args, work)?;
    let predicted_offline_s = offline_of(&estimate);
    let found = Predicted {
        workload: &args.workload,
        protocol: estimate.protocol.clone(),
        security: estimate.security.to_string(),
        batch: estimate.batch,
        network: &args.network,
        compiled_for: args.aim()?.network.to_string(),
        comparisons_by: summary(&work.plan),
        predicted_s: estimate.seconds,
        predicted_offline_s,
        bytes_sent: estimate.total.wire_bytes.most(),
        rounds: estimate.total.rounds,
        key_bytes: estimate.total.key_bytes.most(),
        work: estimate.work,
        work_before: predicted_offline_s.map(|_| PreparationUnits::of(&estimate.total.offline)),
        rates_from: estimate.rates_from,
        nodes: args.layers.then_some(&estimate.nodes),
    };
    if args.json {
        return out.json(&found);
    }
    let (sent, keys) = (bytes(found.bytes_sent), bytes(found.key_bytes));
    out.line(format_args!(
        "{} batch {}, {}, {}, network {}: {:.4} s online, {sent} sent in {} rounds, {keys} of keys; {}",
        found.workload,
        found.batch,
        found.protocol,
        found.security,
        found.network,
        found.predicted_s,
        found.rounds,
        found.rates_from
    ))?;
    if let Some(predicted) = found.predicted_offline_s {
        let Offline { wire_bytes, rounds, .. } = estimate.total.offline;
        let sent = bytes(wire_bytes);
        out.line(format_args!("  prepared in {predicted:.4} s, {sent} sent in {rounds} rounds"))?;
    }
    for node in found.nodes.into_iter().flatten() {
        let (sent, rounds) = (bytes(node.cost.wire_bytes.most()), node.cost.rounds);
        out.line(format_args!(
            "  {:<40} {:<16} {:>9.4} s  {sent:>10}  {rounds:>3} rounds",
            node.layer, node.op, node.seconds
        ))?;
    }
    Ok(())
}

/// The kernels that a workload is made of, where the family uses them alone.
fn kernels(args: &Args) -> Vec<kernel::Kernel> {
    let cores = crate::sys::cores();
    if args.workload.starts_with("relu-") && args.family.protocol.registered().compares_by_kernel {
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

/// Differences of a run's outputs to float64; not a number where an output is missing.
struct Error {
    largest: f64,
    mean_square: f64,
}

impl Error {
    const UNKNOWN: Error = Error { largest: f64::NAN, mean_square: f64::NAN };

    fn of(work: &Workload, outputs: &BTreeMap<String, FloatTensor>) -> Error {
        let (mut inputs, mut weights) = (work.inputs.clone(), work.weights.clone());
        let number = |(name, &value): (&String, &f64)| {
            (name.clone(), FloatTensor { shape: vec![], data: vec![value] })
        };
        inputs.extend(work.publics.iter().map(number));
        weights.extend(work.states.clone());
        let Ok(truth) = interpret_real(&work.plan, &inputs, &weights) else { return Error::UNKNOWN };
        let (mut largest, mut squares, mut count) = (0f64, 0.0, 0usize);
        for (o, truth) in work.plan.outputs.iter().zip(&truth) {
            let Some(found) = outputs.get(&o.name) else { return Error::UNKNOWN };
            for (a, b) in found.data.iter().zip(&truth.data) {
                largest = largest.max((a - b).abs());
                squares += (a - b).powi(2);
                count += 1;
            }
        }
        Error { largest, mean_square: squares / count.max(1) as f64 }
    }
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

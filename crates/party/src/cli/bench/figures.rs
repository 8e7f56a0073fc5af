//! What a benchmark found, as JSON and for people.

use super::kernel::Kernel;
use super::stats::Spread;
use crate::cli::{CliError, Out};
use crate::report::Verification;
use privet_family::NodeStats;
use privet_plan::lower::RoundingMode;
use serde::Serialize;

/// The figures of one workload.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub workload: String,
    pub protocol: String,
    /// How many parties computed.
    pub parties: usize,
    /// What the protocol withstands, and how messages were protected.
    pub security: String,
    pub batch: usize,
    pub bits: u32,
    pub fraction: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_fraction: Option<u32>,
    /// How truncation rounds.
    pub rounding: RoundingMode,
    /// Whether a run was a step of training.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub train: bool,
    /// The party that owns the model, where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_owner: Option<String>,
    /// Parameters of the protocol that were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The emulated network.
    pub network: String,
    /// The network that the plan was compiled for.
    pub compiled_for: String,
    /// Most key bytes that the plan was allowed, where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_key_bytes: Option<u64>,
    /// How many comparisons have which form, where the plan states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparisons_by: Option<String>,
    pub runs: u32,
    /// What an estimate says of `online_s`.
    pub predicted_s: f64,
    /// What an estimate says of `offline_s`, where the parties prepare among themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_offline_s: Option<f64>,
    /// Seconds from the client's request to its outputs in hand.
    pub wall_s: Spread,
    /// Seconds from shared inputs to shared outputs, of the slowest party, with all verification.
    pub online_s: Spread,
    /// Seconds to deal all keys and write them, of a stream until the first run's are there, or until the parties have prepared;
    /// 0 where runs use up nothing.
    pub offline_s: Spread,
    /// Processor seconds of a run, mean: the parties in order, then a dealer that they call.
    pub run_cpu_s: Vec<f64>,
    /// Seconds to begin a session, once: keys agreed on, weights shared and prepared.
    pub setup_s: f64,
    /// Of the party that sends most, to all others, with all verification.
    pub bytes_sent: u64,
    /// The same by row, megabytes (10^6).
    pub mb_per_sample: f64,
    pub key_bytes: u64,
    /// With those of verification.
    pub rounds: u64,
    pub comparisons: u64,
    pub aes_calls: u64,
    pub macs: u64,
    /// Verification's part of these; absent where nothing is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Against float64.
    pub max_abs_err: f64,
    /// Mean of squares of the same differences.
    pub mean_square_err: f64,
    /// Peak resident memory: the parties in order, then the dealer if there is one.
    pub peak_rss_mb: Vec<f64>,
    /// What the parties did to prepare a run among themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// The dealer's rates.
    #[serde(flatten)]
    pub dealer: Option<Dealing>,
    /// Keys that came while the runs used them up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Streamed>,
    /// Rounds x RTT + bytes / bandwidth, for an emulated network; computing comes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_floor_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Kernel>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
}

/// The preparation of one run by the parties, of the last ones. Bytes and rounds of the party with the most.
#[derive(Debug, Serialize)]
pub struct Preparation {
    /// Runs that were prepared together.
    pub runs: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub rounds: u64,
    /// Processor seconds, the parties in order.
    pub cpu_s: Vec<f64>,
}

/// How fast keys are dealt.
#[derive(Debug, Serialize)]
pub struct Dealing {
    /// AES calls a second.
    pub dealer_aes_per_s: f64,
    /// Key bytes a second, all parties'.
    pub dealer_bytes_per_s: f64,
}

/// How keys came while runs used them up, dealer and parties side by side on this machine. Megabytes (10^6) and gigabytes (10^9)
/// are of one party's keys, of the party with the most.
#[derive(Debug, Serialize)]
pub struct Streamed {
    /// Keys that a party gets in a second while it has room for them.
    pub dealer_mb_s: f64,
    /// Keys that the counted runs used up in a second.
    pub consumed_mb_s: f64,
    /// Seconds that the runs waited for keys, all together.
    pub waited_s: f64,
    /// Processor seconds of each process for 10^9 bytes of one party's keys, from the first of them to the last run: the
    /// parties in order, which also receive, store and use them, then the dealer.
    pub cpu_s_per_gb: Vec<f64>,
}

/// The cost of one node.
#[derive(Debug, Serialize)]
pub struct Layer {
    pub layer: String,
    pub op: String,
    #[serde(flatten)]
    pub stats: NodeStats,
}

/// Print the figures for people.
pub fn show(f: &Figures, out: &mut Out) -> Result<(), CliError> {
    let s = |s: &Spread| format!("{:.4} s ({:.4} to {:.4})", s.median, s.min, s.max);
    out.line(format_args!(
        "{}{} batch {}, {} among {} ({}), ring {} bits, fraction {}, network {}",
        f.workload,
        if f.train { " (training)" } else { "" },
        f.batch,
        f.protocol,
        f.parties,
        f.security,
        f.bits,
        f.fraction,
        f.network
    ))?;
    if let Some(forms) = &f.comparisons_by {
        out.line(format_args!("  compares {forms}; for network {}", f.compiled_for))?;
    }
    out.line(format_args!("  online   {}", s(&f.online_s)))?;
    out.line(format_args!("  predicted {:.4} s", f.predicted_s))?;
    out.line(format_args!("  wall     {}", s(&f.wall_s)))?;
    if f.dealer.is_some() || f.stream.is_some() || f.preparation.is_some() {
        out.line(format_args!("  offline  {}", s(&f.offline_s)))?;
    }
    if let Some(p) = &f.preparation {
        let cpu: Vec<String> = p.cpu_s.iter().map(|s| format!("{s:.2}")).collect();
        out.line(format_args!(
            "  prepared {} bytes sent, {} received, {} rounds, {} s of processors, for {} bytes of records a party",
            p.sent_bytes,
            p.received_bytes,
            p.rounds,
            cpu.join(" + "),
            f.key_bytes
        ))?;
    }
    if let Some(predicted) = f.predicted_offline_s {
        out.line(format_args!("  predicted {predicted:.4} s offline"))?;
    }
    out.line(format_args!("  setup    {:.4} s, once a session", f.setup_s))?;
    out.line(format_args!(
        "  sent     {} bytes in {} rounds, {:.4} MB a sample",
        f.bytes_sent, f.rounds, f.mb_per_sample
    ))?;
    if let Some(v) = &f.verification {
        out.line(format_args!(
            "  checks   {:.4} s, {} bytes, {} rounds of these",
            v.seconds, v.bytes_sent, v.rounds
        ))?;
    }
    out.line(format_args!(
        "  error    {:.3e} against float64, {:.3e} mean square",
        f.max_abs_err, f.mean_square_err
    ))?;
    let memory: Vec<String> = f.peak_rss_mb.iter().map(|mb| format!("{mb:.0} MB")).collect();
    out.line(format_args!("  memory   {}", memory.join(", ")))?;
    if let Some(d) = &f.dealer {
        out.line(format_args!("  keys     {} bytes a party", f.key_bytes))?;
        out.line(format_args!(
            "  dealer   {:.3e} AES calls/s, {:.3e} bytes/s",
            d.dealer_aes_per_s, d.dealer_bytes_per_s
        ))?;
    }
    if let Some(k) = &f.stream {
        let cpu: Vec<String> = k.cpu_s_per_gb.iter().map(|s| format!("{s:.2}")).collect();
        out.line(format_args!(
            "  stream   {:.0} MB/s dealt, {:.0} MB/s used, {:.2} s waited for keys",
            k.dealer_mb_s, k.consumed_mb_s, k.waited_s
        ))?;
        out.line(format_args!("  cpu      {} s a GB of a party's keys", cpu.join(", ")))?;
    }
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

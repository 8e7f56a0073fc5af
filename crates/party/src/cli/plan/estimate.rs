use super::{hash_text, read};
use crate::cli::{CliError, Family, Out};
use crate::report::{bytes, count, seconds};
use privet_plan::cost::{Cost, Estimate, Network, Rates, estimate};
use std::path::PathBuf;

/// Options of `privet plan estimate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan, JSON.
    plan: PathBuf,
    #[command(flatten)]
    family: Family,
    /// The network between the parties: lan, wan, or for example rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: Network,
    /// JSON for machines.
    #[arg(long)]
    json: bool,
}

/// Estimate a plan's cost.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let plan = read(&args.plan)?;
    let family = args.family.forecast()?;
    let e = estimate(&plan, family.prices(), &Rates::default(), &args.network);
    if args.json {
        return out.json(&e);
    }
    out.line(format_args!(
        "plan     {}, batch {}, protocol {}, {} ({})",
        plan.name,
        e.batch,
        e.protocol,
        family.security(),
        hash_text(&plan)
    ))?;
    let (rtt, rate) = (seconds(args.network.rtt), bytes(args.network.bandwidth as u64));
    out.line(format_args!("network  {rtt} round trip, {rate}/s each way\n"))?;
    let width = e.layers.iter().map(|l| l.layer.chars().count()).max().unwrap_or(0).clamp(9, 40);
    out.line(format_args!(
        "{:<width$}  {:>10} {:>7} {:>10} {:>12} {:>10}",
        "layer", "sent", "rounds", "keys", "comparisons", "time"
    ))?;
    for l in &e.layers {
        out.line(line(&l.layer, width, &l.cost, l.seconds))?;
    }
    out.line(line("whole run", width, &e.total, e.seconds))?;
    show_rest(&e, out)
}

fn line(name: &str, width: usize, c: &Cost, s: f64) -> String {
    let (sent, keys, comparisons) = (bytes(c.wire_bytes), bytes(c.key_bytes), count(c.comparisons));
    format!(
        "{name:<width$}  {sent:>10} {:>7} {keys:>10} {comparisons:>12} {:>10}",
        count(c.rounds),
        seconds(s)
    )
}

fn show_rest(e: &Estimate, out: &mut Out) -> Result<(), CliError> {
    let (keys, other) = (bytes(e.total.key_bytes), bytes(e.total.key_bytes_other));
    out.line(format_args!("\nkeys a run    {keys} at one party, {other} at the other"))?;
    out.line(format_args!("clients       {} a run", bytes(e.total.client_bytes)))?;
    out.line(format_args!("weights       {} once a session", bytes(e.session.client_bytes)))?;
    out.line(format_args!("memory        about {} a party", bytes(e.memory_bytes)))?;
    out.line("Bytes, rounds and keys are exact for the plan; memory and time are predictions.")
}

use super::{Choice, admitted, each, hash_text};
use crate::cli::{CliError, Family, Out};
use crate::machine;
use crate::report::{bytes, count, seconds};
use privet_plan::Plan;
use privet_plan::cost::{Alternative, Cost, Estimate, Network, Preparation, estimate};
use serde::Serialize;

/// Options of `privet plan estimate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    family: Family,
    /// The network of the layers' times: lan, wan, or for example rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: Network,
    /// All parties on one machine like this one, as in a benchmark: they share its cores. Else each has its own.
    #[arg(long)]
    local: bool,
    /// JSON for machines.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    hash: String,
    #[serde(flatten)]
    estimate: Estimate,
    /// Predicted seconds of one run between machines in one place.
    lan_s: f64,
    /// The same between distant ones.
    wan_s: f64,
}

/// Estimate what the plans cost.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let family = args.family.forecast()?;
    let of = |plan: &Plan| {
        admitted(plan, &*family)?;
        let (alone, rates_from) = machine::rates(&*family);
        let rates = if args.local { alone.together(args.family.parties()?) } else { alone };
        let on = |network| estimate(plan, &*family, &rates, network);
        let (lan_s, wan_s) = (on(&Network::LAN).seconds, on(&Network::WAN).seconds);
        let (name, hash) = (plan.name.clone(), hash_text(plan));
        Ok(Listed {
            name,
            hash,
            estimate: on(&args.network).by(rates_from).with_alternatives(plan, &*family, &rates),
            lan_s,
            wan_s,
        })
    };
    each(&args.choice, args.json, out, of, |listed, out| show(args, listed, out))
}

fn show(args: &Args, listed: &Listed, out: &mut Out) -> Result<(), CliError> {
    let e = &listed.estimate;
    out.line(format_args!(
        "plan     {}, batch {}, protocol {}, {} ({})",
        listed.name, e.batch, e.protocol, e.security, listed.hash
    ))?;
    let (rtt, rate) = (seconds(args.network.rtt), bytes(args.network.bandwidth as u64));
    out.line(format_args!("network  {rtt} round trip, {rate}/s each way\n"))?;
    let width = e.layers.iter().map(|l| l.layer.chars().count()).max().unwrap_or(0).clamp(12, 40);
    out.line(format_args!(
        "{:<width$}  {:>10} {:>7} {:>10} {:>12} {:>10}",
        "layer", "sent", "rounds", "keys", "comparisons", "time"
    ))?;
    for l in &e.layers {
        out.line(line(&l.layer, width, &l.cost, l.seconds))?;
    }
    if e.whole_run != Cost::default() {
        let beside = e.seconds - e.layers.iter().map(|l| l.seconds).sum::<f64>();
        out.line(line("verification", width, &e.whole_run, beside))?;
    }
    out.line(line("whole run", width, &e.total, e.seconds))?;
    show_rest(listed, out)?;
    out.line(args.family.collusion())
}

fn line(name: &str, width: usize, c: &Cost, s: f64) -> String {
    let (sent, keys, comparisons) =
        (bytes(c.wire_bytes.most()), bytes(c.key_bytes.most()), count(c.comparisons));
    format!(
        "{name:<width$}  {sent:>10} {:>7} {keys:>10} {comparisons:>12} {:>10}",
        count(c.rounds),
        seconds(s)
    )
}

fn show_rest(Listed { estimate: e, lan_s, wan_s, .. }: &Listed, out: &mut Out) -> Result<(), CliError> {
    let (keys, other) = (bytes(e.total.key_bytes.most()), bytes(e.total.key_bytes.least()));
    out.line(format_args!(
        "\ntime          {} on a LAN, {} on a WAN (70 ms round trip, 40 MB/s)",
        seconds(*lan_s),
        seconds(*wan_s)
    ))?;
    if !e.total.offline.is_nothing() {
        let (sent, rounds) = (bytes(e.total.offline.wire_bytes), count(e.total.offline.rounds));
        let time = seconds(e.offline_seconds);
        out.line(format_args!(
            "preparation   {sent} a party, {rounds} rounds, {time} for each run, before it"
        ))?;
    }
    if e.total.key_bytes.most() > 0 {
        out.line(format_args!("keys a run    {keys} at one party, {other} at each other one"))?;
    }
    out.line(format_args!("clients       {} a run", bytes(e.total.client_bytes)))?;
    out.line(format_args!("weights       {} once a session", bytes(e.session.client_bytes)))?;
    if e.session.wire_bytes.most() > 0 {
        let sent = bytes(e.session.wire_bytes.most());
        out.line(format_args!("session       {sent} between the parties, once, before its first run"))?;
    }
    out.line(format_args!("memory        about {} a party", bytes(e.memory_bytes)))?;
    show_alternatives(&e.alternatives, out)?;
    show_preparations(&e.preparations, out)?;
    out.line(format_args!("Times go by {}.", e.rates_from))?;
    out.line("Bytes, rounds and keys are exact for the plan; memory and time are predictions.")?;
    Ok(())
}

/// What other networks would choose; nothing where there is nothing to choose.
fn show_alternatives(all: &[Alternative], out: &mut Out) -> Result<(), CliError> {
    if all.is_empty() {
        return Ok(());
    }
    out.line(format_args!(
        "\n{:<12}  {:>10} {:>7} {:>10} {:>10}  comparisons",
        "compiled for", "keys", "rounds", "on lan", "on wan"
    ))?;
    for a in all {
        let (keys, rounds, lan, wan) =
            (bytes(a.key_bytes), count(a.rounds), seconds(a.lan_s), seconds(a.wan_s));
        out.line(format_args!(
            "{:<12}  {keys:>10} {rounds:>7} {lan:>10} {wan:>10}  {}",
            a.compiled_for, a.comparisons
        ))?;
    }
    out.line("")
}

/// Other ways of preparing; nothing where there is one.
fn show_preparations(all: &[Preparation], out: &mut Out) -> Result<(), CliError> {
    if all.is_empty() {
        return Ok(());
    }
    out.line(format_args!(
        "\n{:<26}  {:>10} {:>10} {:>10}",
        "a run prepared with", "sent", "on lan", "on wan"
    ))?;
    for way in all {
        let (sent, lan, wan) = (bytes(way.wire_bytes), seconds(way.lan_s), seconds(way.wan_s));
        out.line(format_args!("{:<26}  {sent:>10} {lan:>10} {wan:>10}", way.set))?;
    }
    out.line("")
}

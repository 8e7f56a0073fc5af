//! `privet deal`: the dealer without a network: what runs use up, for every party as files, to be carried to them.

use super::family::no_dealer;
use super::{CliError, Family, Out};
use crate::registry::DealToFiles;
use crate::store::in_full;
use crate::sys;
use privet_family::NodeStats;
use privet_kernels::try_cpu;
use privet_plan::program::ONLY_PLAN;
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Options.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan, or the program.
    #[arg(long)]
    plan: PathBuf,
    /// Which plan of a program.
    #[arg(long, value_name = "NAME", default_value = ONLY_PLAN)]
    of: String,
    #[command(flatten)]
    family: Family,
    /// The parties' stores, in order (directories; created when missing).
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    stores: Vec<PathBuf>,
    /// Runs to deal keys for.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Worker threads; every core by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Deal one run for every line on standard input, in one session, until it ends.
    #[arg(long, conflicts_with = "runs")]
    on_demand: bool,
    /// One JSON line a deal.
    #[arg(long)]
    json: bool,
}

/// What a deal cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dealt {
    /// Seconds, all parties' keys written.
    pub seconds: f64,
    /// Bytes of the larger stream.
    pub key_bytes: u64,
    /// AES calls.
    pub aes_calls: u64,
    /// Peak resident memory of the dealer so far, bytes.
    pub peak_rss_bytes: u64,
}

/// Run the command.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let protocol = args.family.protocol;
    let dealer = protocol.registered().dealer.as_ref().ok_or_else(|| no_dealer(protocol))?;
    let parties = args.family.parties()?;
    if !args.family.has_dealer()? {
        return Err(no_dealer(protocol));
    }
    if args.stores.len() != parties {
        let cause = format!("{} stores for {parties} parties", args.stores.len());
        return Err(CliError::usage(cause, "give every party's store, in order"));
    }
    let program = super::plan::read(&args.plan)?;
    let plan = super::plan::pick(&program, &args.of)?.clone();
    let device = try_cpu(args.threads.unwrap_or_else(sys::cores))
        .map_err(|e| CliError::usage(e, "correct or unset it"))?;
    let mut session = (dealer.session)(parties, Arc::new(plan), device);
    if args.on_demand {
        for line in std::io::stdin().lock().lines() {
            line.map_err(|e| CliError::failed(e, "standard input must stay open"))?;
            deal(&mut *session, 1, args, out)?;
        }
        return Ok(());
    }
    deal(&mut *session, args.runs, args, out)
}

fn deal(session: &mut dyn DealToFiles, runs: u64, args: &Args, out: &mut Out) -> Result<(), CliError> {
    let start = Instant::now();
    let stats = session.deal(&args.stores, runs).map_err(|e| {
        CliError::failed(in_full(&e), "nothing that was dealt completely is lost; deal the rest again")
    })?;
    let mut total = NodeStats::default();
    stats.iter().for_each(|s| total.add(s));
    let dealt = Dealt {
        seconds: start.elapsed().as_secs_f64(),
        key_bytes: total.key_bytes,
        aes_calls: total.aes_calls,
        peak_rss_bytes: sys::peak_rss_bytes().unwrap_or(0),
    };
    match args.json {
        true => out.json(&dealt)?,
        false => out.line(format_args!(
            "keys for {runs} runs: {} bytes a party in {:.2} s",
            dealt.key_bytes, dealt.seconds
        ))?,
    }
    out.flush()
}

//! `privet run`: a client without Python: shares tensors from files and writes what it learns to a file.

use super::{CliError, Out, serve};
use crate::events::bars::{Bars, for_stderr};
use crate::events::{Events, Subscriber};
use crate::session::client::{Client, ClientError};
use crate::tensors::{self, Tensors};
use privet_plan::program::ONLY_PLAN;
use std::path::PathBuf;
use std::time::Duration;

/// Options.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The client's node file.
    #[arg(long, short)]
    config: PathBuf,
    /// Which plan of a program to run; one that reads states runs at the step that the parties are at.
    #[arg(long, value_name = "NAME", default_value = ONLY_PLAN)]
    plan: String,
    /// A public number of the plan, for example `--public rate=0.05`.
    #[arg(long, value_name = "NAME=NUMBER", value_parser = public)]
    public: Vec<(String, f64)>,
    /// Inputs that this client owns, safetensors, one row batch of the plan.
    #[arg(long, short)]
    input: Option<PathBuf>,
    /// Weights, where this client owns the model: shared when no session is open.
    #[arg(long, short)]
    weights: Option<PathBuf>,
    /// Where the outputs go, safetensors of float64, where this client is the receiver.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Have keys dealt for this many runs first.
    #[arg(long)]
    prepare: Option<u64>,
    /// Check the dealer: have this many sessions dealt beside the one to use, and open them.
    #[arg(long, requires = "prepare", default_value_t = 0, value_name = "N")]
    checks: u64,
    /// Go on when the first of the runs has its keys; the others' come while runs use them up.
    #[arg(long, requires = "prepare", conflicts_with = "checks")]
    stream: bool,
    /// Only prepare and share; do not run.
    #[arg(long)]
    no_run: bool,
    /// The run's costs as one JSON line.
    #[arg(long)]
    json: bool,
}

fn failed(e: ClientError) -> CliError {
    CliError::failed(
        e,
        "check the nodes with `privet doctor`; a failed run reveals nothing and can be repeated",
    )
}

fn public(text: &str) -> Result<(String, f64), String> {
    let number = |(name, value): (&str, &str)| Some((name.to_owned(), value.parse().ok()?));
    text.split_once('=').and_then(number).ok_or_else(|| "write NAME=NUMBER".into())
}

fn load(path: &Option<PathBuf>) -> Result<Tensors, CliError> {
    match path {
        Some(path) => tensors::load(path).map_err(|e| CliError::failed(e, "give a safetensors file")),
        None => Ok(Tensors::new()),
    }
}

/// Run the command.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let (links, program) = serve::load(&args.config, "lan")?;
    super::plan::pick(&program, &args.plan)?;
    let bars: Vec<Box<dyn Subscriber>> =
        if args.json { vec![] } else { vec![Box::new(Bars::new(for_stderr(false)))] };
    let events = Events::to(bars, vec![]);
    let mut client = Client::new(links, program).telling(events.clone());
    if args.weights.is_some() {
        // Before keys are dealt or used up for nothing.
        client.may_share_weights(&args.plan).map_err(failed)?;
    }
    if let Some(runs) = args.prepare {
        let dealt = match args.stream {
            true => client.prepare_stream(&args.plan, runs),
            false => client.prepare(&args.plan, runs, args.checks),
        };
        // The bar stands above what comes next.
        events.drain(Duration::from_secs(1));
        let dealt = dealt.map_err(failed)?;
        if !args.json {
            out.line(format_args!("keys: {} bytes a party in {:.2} s", dealt.key_bytes, dealt.seconds))?;
        }
    }
    if args.weights.is_some() {
        let open = client.status().map_err(failed)?.iter().all(|s| s.can_run(&args.plan));
        if !open {
            client.share_weights(&args.plan, &load(&args.weights)?).map_err(failed)?;
        }
    }
    if args.no_run {
        return Ok(());
    }
    let publics = args.public.iter().cloned().collect();
    let outcome = client.step(&args.plan, &load(&args.input)?, &publics).map_err(failed)?;
    if let Some(path) = &args.output {
        tensors::save(path, &outcome.outputs)
            .map_err(|e| CliError::failed(e, "choose another place for the outputs"))?;
    }
    let mut total = privet_family::NodeStats::default();
    outcome.nodes().iter().for_each(|n| total.add(n));
    if args.json {
        return out.json(&serde_json::json!({
            "wall_s": outcome.wall_s,
            "online_s": outcome.online_s(),
            "bytes_sent": total.sent_bytes,
            "rounds": total.rounds,
            "key_bytes": total.key_bytes,
        }));
    }
    out.line(format_args!(
        "done in {:.3} s: {} bytes in {} rounds between the parties, {} bytes of keys",
        outcome.wall_s, total.sent_bytes, total.rounds, total.key_bytes
    ))?;
    for (name, t) in &outcome.outputs {
        out.line(format_args!("output {name}: shape {:?}", t.shape))?;
    }
    Ok(())
}

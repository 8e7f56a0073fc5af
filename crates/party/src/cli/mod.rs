//! The `privet` command: one file a subcommand.

mod bench;
mod certs;
mod checkpoint;
mod deal;
mod doctor;
mod env;
mod error;
mod family;
mod init;
mod measure;
mod out;
mod plan;
mod report;
mod run;
mod serve;

pub use error::{CliError, Exit};
pub(crate) use family::Family;
pub use out::Out;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the command failed: a file, a peer, the network; the message says which
  2  wrong usage
  3  the configuration was refused
  4  `doctor`, `certs check` or `checkpoint show` found a failure

Standard output carries results, standard error messages and progress.";

/// Private machine learning by multi-party computation.
#[derive(Debug, Parser)]
#[command(name = "privet", version, about, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a deployment: configuration, keys and certificates.
    Init(init::Args),
    /// Make, show, renew and check certificates.
    Certs(certs::Args),
    /// Check a node's set-up, and say how to repair what is wrong.
    Doctor(doctor::Args),
    /// Show the machine: versions, processor paths, memory, measured limits.
    Env(env::Args),
    /// Show a plan, estimate its cost, list what it opens.
    Plan(plan::Args),
    /// Serve as one of the parties; the client of a server is one too.
    Party(serve::Args),
    /// Serve many clients as party 0, each in a deployment of its own.
    Serve(serve::Args),
    /// Serve keys to the parties.
    Dealer(serve::Args),
    /// Deal keys into files instead.
    Deal(deal::Args),
    /// Run a plan on tensors from files, as the client of a node file.
    Run(run::Args),
    /// Measure a workload over real processes.
    Bench(bench::Args),
    /// List a party's checkpoints of trainings, show one, or remove them.
    Checkpoint(checkpoint::Args),
    /// Turn the JSON report of a run into one HTML page.
    Report(report::Args),
}

impl Command {
    fn run(self, out: &mut Out) -> Result<(), CliError> {
        match self {
            Command::Init(args) => init::run(args, out),
            Command::Certs(args) => certs::run(args, out),
            Command::Doctor(args) => doctor::run(args, out),
            Command::Env(args) => env::run(args, out),
            Command::Plan(args) => plan::run(args, out),
            Command::Party(args) => serve::party(&args),
            Command::Serve(args) => serve::server(&args),
            Command::Dealer(args) => serve::dealer(&args),
            Command::Deal(args) => deal::run(&args, out),
            Command::Run(args) => run::run(&args, out),
            Command::Bench(args) => bench::run(&args, out),
            Command::Checkpoint(args) => checkpoint::run(&args, out),
            Command::Report(args) => report::run(args, out),
        }
    }
}

/// Parse the command line, run it, and turn errors into one message and an exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are "errors" that go to standard output; a closed pipe there is no failure.
            let _ = e.print();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    let mut out = Out::stdout();
    match cli.command.run(&mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => e.report(),
    }
}

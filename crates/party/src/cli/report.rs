use super::{CliError, Out};
use crate::report;
use std::path::PathBuf;

/// Options of `privet report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Report of a run, JSON.
    run: PathBuf,
    /// Write the page here; next to the JSON when absent.
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// Write the HTML page of a report.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    let report = report::load(&args.run)?;
    let to = args.output.unwrap_or_else(|| args.run.with_extension("html"));
    std::fs::write(&to, report::html(&report)).map_err(|e| CliError::file("write", &to, e))?;
    out.line(format_args!("wrote {}", to.display()))
}

mod audit;
mod estimate;
mod show;

use super::{CliError, Family, Out};
use privet_plan::Plan;
use std::path::{Path, PathBuf};

/// Options of `privet plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Name, hash, inputs, outputs and operations.
    Show(File),
    /// Bytes, rounds, keys, memory and predicted time, layer by layer.
    Estimate(estimate::Args),
    /// Every opening: what, how many bits, and who learns what.
    Audit(Audit),
}

/// A plan to look at.
#[derive(Debug, clap::Args)]
struct File {
    /// The plan, JSON.
    plan: PathBuf,
    /// JSON for machines.
    #[arg(long)]
    json: bool,
}

/// A plan whose openings are listed.
#[derive(Debug, clap::Args)]
struct Audit {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    family: Family,
}

/// Look at a plan.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    match args.what {
        What::Show(file) => show::run(&read(&file.plan)?, file.json, out),
        What::Estimate(args) => estimate::run(&args, out),
        What::Audit(Audit { file, family }) => {
            audit::run(&read(&file.plan)?, &*family.forecast()?, file.json, out)
        }
    }
}

/// Read and check a plan.
pub(super) fn read(path: &Path) -> Result<Plan, CliError> {
    let bytes = std::fs::read(path).map_err(|e| CliError::file("read", path, e))?;
    Plan::from_json(&bytes).map_err(|e| {
        CliError::failed(
            format!("{}: {e}", path.display()),
            "give the plan that `privet.compile(...)` saved, or compile the model again",
        )
    })
}

/// A plan's hash as people compare it.
pub(super) fn hash_text(plan: &Plan) -> String {
    plan.hash().iter().map(|b| format!("{b:02x}")).collect()
}

/// The name of an operation, as in the plan file.
pub(super) fn op_name(op: &privet_plan::ir::Op) -> String {
    // The tag of the serialised operation, so that the file and the listing cannot disagree.
    let value = serde_json::to_value(op).unwrap_or_default();
    value.get("kind").and_then(|k| k.as_str()).unwrap_or("?").to_string()
}

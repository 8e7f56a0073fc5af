mod audit;
mod estimate;
mod show;

use super::{CliError, Family, Out};
use crate::store::hex;
use privet_family::Forecast;
use privet_plan::{Plan, Program};
use serde::Serialize;
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
    #[command(flatten)]
    choice: Choice,
    /// JSON for machines.
    #[arg(long)]
    json: bool,
}

/// Which plans.
#[derive(Debug, clap::Args)]
struct Choice {
    /// The plan or program, JSON.
    plan: PathBuf,
    /// One plan of a program; all when absent.
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
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
        What::Show(file) => each(&file.choice, file.json, out, None, show::of, show::show),
        What::Estimate(args) => estimate::run(&args, out),
        What::Audit(Audit { file, family }) => {
            let family = family.forecast()?;
            let of = |plan: &Plan| audit::of(plan, &*family);
            let show = |listed: &_, out: &mut Out| audit::show(listed, family.remark(), out);
            each(&file.choice, file.json, out, Some(&*family), of, show)
        }
    }
}

/// Every plan of a program with what there is to say about it, for machines.
#[derive(Serialize)]
struct Listed<T> {
    program: String,
    hash: String,
    plans: Vec<Entry<T>>,
}

#[derive(Serialize)]
struct Entry<T> {
    plan: String,
    #[serde(flatten)]
    of: T,
}

/// Say something about the plans that were chosen, which a family must be able to run if one is named: for machines one JSON value, of the plan itself where the file is one.
fn each<T: Serialize>(
    choice: &Choice,
    json: bool,
    out: &mut Out,
    family: Option<&dyn Forecast>,
    of: impl Fn(&Plan) -> T,
    show: impl Fn(&T, &mut Out) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let program = read(&choice.plan)?;
    let one = match &choice.of {
        Some(name) => Some(pick(&program, name)?),
        None => program.bare(),
    };
    let chosen: Vec<&Plan> = one.map_or_else(|| program.plans.iter().map(|p| &p.plan).collect(), |p| vec![p]);
    if let Some(family) = family {
        let runs = chosen.into_iter().try_for_each(|plan| family.check(plan));
        runs.map_err(|e| CliError::failed(e, "see `rounding` in docs/plan.md"))?;
    }
    if let Some(plan) = one {
        let of = of(plan);
        return if json { out.json(&of) } else { show(&of, out) };
    }
    let hash = hex(&program.hash());
    let plans = program.plans.iter().map(|p| Entry { plan: p.name.clone(), of: of(&p.plan) });
    let listed = Listed { program: program.name.clone(), hash, plans: plans.collect() };
    if json {
        return out.json(&listed);
    }
    out.line(format_args!("program  {}, {} plans", listed.program, listed.plans.len()))?;
    out.line(format_args!("hash     {}", listed.hash))?;
    for Entry { plan, of } in &listed.plans {
        out.line(format_args!("\n--- {plan} ---"))?;
        show(of, out)?;
    }
    Ok(())
}

/// A plan of a program.
pub(super) fn pick<'a>(program: &'a Program, name: &str) -> Result<&'a Plan, CliError> {
    program.plan(name).ok_or_else(|| {
        let names: Vec<&str> = program.plans.iter().map(|p| p.name.as_str()).collect();
        let cause = format!("the program has no plan `{}`", name.escape_debug());
        CliError::usage(cause, format!("choose one of: {}", names.join(", ")))
    })
}

/// Read and check a program, or a plan.
pub(super) fn read(path: &Path) -> Result<Program, CliError> {
    let bytes = std::fs::read(path).map_err(|e| CliError::file("read", path, e))?;
    Program::from_json(&bytes).map_err(|e| {
        CliError::failed(
            format!("{}: {e}", path.display()),
            "give the plan that `privet.compile(...)` saved, or compile the model again",
        )
    })
}

/// A plan's hash as people compare it.
pub(super) fn hash_text(plan: &Plan) -> String {
    hex(&plan.hash())
}

/// The name of an operation, as in the plan file.
pub(super) fn op_name(op: &privet_plan::ir::Op) -> String {
    // The tag of the serialised operation, so that the file and the listing cannot disagree.
    let value = serde_json::to_value(op).unwrap_or_default();
    value.get("kind").and_then(|k| k.as_str()).unwrap_or("?").to_string()
}

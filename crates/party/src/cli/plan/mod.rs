mod audit;
mod estimate;
#[deny(clippy::wildcard_enum_match_arm)]
mod show;

use super::{CliError, Family, Out};
use crate::store::hex;
use privet_family::Forecast;
use privet_plan::{Plan, Program, admit};
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
        What::Show(file) => each(&file.choice, file.json, out, |plan| Ok(show::of(plan)), show::show),
        What::Estimate(args) => estimate::run(&args, out),
        What::Audit(Audit { file, family }) => {
            let forecast = family.forecast()?;
            let of = |plan: &Plan| admitted(plan, &*forecast).map(|()| audit::of(plan, &*forecast));
            each(&file.choice, file.json, out, of, |listed, out| {
                audit::show(listed, forecast.remark(), out)?;
                out.line(family.collusion())
            })
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

/// Say something about the plans that were chosen, for machines one JSON value, of the plan itself where the file is one.
fn each<T: Serialize>(
    choice: &Choice,
    json: bool,
    out: &mut Out,
    of: impl Fn(&Plan) -> Result<T, CliError>,
    show: impl Fn(&T, &mut Out) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let program = read(&choice.plan)?;
    let one = match &choice.of {
        Some(name) => Some(pick(&program, name)?),
        None => program.bare(),
    };
    if let Some(plan) = one {
        let of = of(plan)?;
        return if json { out.json(&of) } else { show(&of, out) };
    }
    let hash = hex(&program.hash());
    let plans = program.plans.iter().map(|p| Ok(Entry { plan: p.name.clone(), of: of(&p.plan)? }));
    let plans = plans.collect::<Result<_, CliError>>()?;
    let listed = Listed { program: program.name.clone(), hash, plans };
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

/// Refuse a plan that the family must not run.
fn admitted(plan: &Plan, family: &dyn Forecast) -> Result<(), CliError> {
    admit(plan, &plan.name, family)
        .map_err(|e| CliError::failed(e, "choose another `--protocol`, or do what is said of each node"))
}

/// A plan's hash as people compare it.
pub(super) fn hash_text(plan: &Plan) -> String {
    hex(&plan.hash())
}

//! `privet checkpoint`: what a party has saved of its trainings. Shares are never shown.

use super::{CliError, Out};
use crate::config::load_node;
use crate::report::bytes;
use crate::session::checkpoint::{Header, parse, trainings};
use crate::session::control::Id;
use crate::session::kept;
use crate::store::hex;
use serde::Serialize;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Options of `privet checkpoint`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Every training of this party with its checkpoints, and what is wrong with those that cannot be used.
    List {
        /// The party's node file.
        #[arg(long, short, default_value = "node.toml")]
        config: PathBuf,
        /// JSON for machines.
        #[arg(long)]
        json: bool,
    },
    /// Remove all checkpoints of trainings, which then cannot be resumed by a party that is restarted.
    Remove {
        /// The party's node file.
        #[arg(long, short, default_value = "node.toml")]
        config: PathBuf,
        /// The trainings' names, as `list` shows them; the beginning of one is enough where no other begins alike.
        #[arg(required = true, value_name = "TRAINING")]
        trainings: Vec<String>,
    },
    /// One checkpoint: whose, of what, and whether it is whole.
    Show {
        /// The file.
        file: PathBuf,
        /// JSON for machines.
        #[arg(long)]
        json: bool,
    },
}

/// A file, with its header or what is wrong with it.
#[derive(Serialize)]
struct Shown {
    file: PathBuf,
    bytes: u64,
    #[serde(flatten)]
    header: Option<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct Training {
    training: String,
    checkpoints: Vec<Shown>,
}

/// List or show checkpoints.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    match &args.what {
        What::List { config, json } => list(config, *json, out),
        What::Remove { config, trainings } => remove(config, trainings, out),
        What::Show { file, json } => {
            let shown = look(file)?;
            let problem = shown.problem.clone();
            if *json {
                out.json(&shown)?
            } else {
                show(&shown, out)?
            }
            match problem {
                None => Ok(()),
                Some(_) => out.flush().and(Err(CliError::unsound())),
            }
        }
    }
}

fn list(config: &Path, json: bool, out: &mut Out) -> Result<(), CliError> {
    let dir = load_node(config)?.checkpoints;
    let found = found(&dir)?;
    let mut all = Vec::new();
    for (id, files) in found {
        let mut checkpoints = files.iter().map(|f| look(f)).collect::<Result<Vec<_>, _>>()?;
        checkpoints.sort_by_key(|c| c.header.as_ref().map(|h| h.version.step));
        all.push(Training { training: hex(&id.0), checkpoints });
    }
    if json {
        return out.json(&all);
    }
    if all.is_empty() {
        return out.line(format_args!("no checkpoints in {}", dir.display()));
    }
    for training in &all {
        out.line(format_args!("training {}", training.training))?;
        for c in &training.checkpoints {
            let what = match (&c.header, &c.problem) {
                (Some(h), _) => format!("step {}, program {}", h.version.step, short(&h.program)),
                (None, problem) => format!("REFUSED: {}", problem.as_deref().unwrap_or_default()),
            };
            out.line(format_args!("  {}  {}  {what}", c.file.display(), bytes(c.bytes)))?;
        }
    }
    Ok(())
}

/// Every training with its files.
fn found(dir: &Path) -> Result<Vec<(Id, Vec<PathBuf>)>, CliError> {
    match trainings(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(|e| CliError::file("read", dir, e)),
    }
}

fn remove(config: &Path, names: &[String], out: &mut Out) -> Result<(), CliError> {
    let dir = load_node(config)?.checkpoints;
    let all: Vec<Id> = found(&dir)?.into_iter().map(|(id, _)| id).collect();
    // All names are understood before the first training is removed.
    let one = |name: &String| {
        let name = name.to_lowercase();
        let fits: Vec<Id> = all.iter().copied().filter(|id| hex(&id.0).starts_with(&name)).collect();
        match fits[..] {
            [id] => Ok(id),
            _ => {
                let cause = format!(
                    "{} trainings in {} have a name that begins with `{}`",
                    fits.len(),
                    dir.display(),
                    name.escape_debug()
                );
                Err(CliError::usage(
                    cause,
                    "give one that `privet checkpoint list` shows, or more of its name",
                ))
            }
        }
    };
    let mut chosen = names.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    chosen.sort();
    chosen.dedup();
    for id in chosen {
        kept::remove(&dir, id).map_err(|e| CliError::file("remove", &dir.join(hex(&id.0)), e))?;
        out.line(format_args!("removed the checkpoints of training {}", hex(&id.0)))?;
    }
    Ok(())
}

fn look(file: &Path) -> Result<Shown, CliError> {
    let text = std::fs::read(file).map(Zeroizing::new).map_err(|e| CliError::file("read", file, e))?;
    let (header, problem) = match parse(&text) {
        Ok((header, _)) => (Some(header), None),
        Err(problem) => (None, Some(problem.to_string())),
    };
    Ok(Shown { file: file.to_owned(), bytes: text.len() as u64, header, problem })
}

fn show(shown: &Shown, out: &mut Out) -> Result<(), CliError> {
    out.line(format_args!("file      {}, {}", shown.file.display(), bytes(shown.bytes)))?;
    let Some(h) = &shown.header else {
        return out.line(format_args!("REFUSED   {}", shown.problem.as_deref().unwrap_or_default()));
    };
    out.line(format_args!("training  {}", hex(&h.training.0)))?;
    out.line(format_args!("step      {} (trail {})", h.version.step, h.version.trail.short()))?;
    out.line(format_args!("party     {}, protocol {}", h.party, h.protocol))?;
    out.line(format_args!("program   {}", h.program))?;
    out.line(format_args!("written   every {} steps", h.checkpoint_every))
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

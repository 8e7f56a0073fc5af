//! `privet-fuzz [TARGET...] [--seconds N] [--seed HEX]` fuzzes; `privet-fuzz TARGET --input FILE` runs one input;
//! `privet-fuzz --list` names the targets. Run in the repository's root.

use privet_fuzz::watch::watch;
use privet_fuzz::worker::{Slot, work};
use privet_fuzz::{TARGETS, Target, target};
use privet_party::store::{hex, unhex};
use privet_prg::Seed;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const FOLDER: &str = "fuzz";

struct Args {
    targets: Vec<&'static Target>,
    seconds: u64,
    seed: Option<[u8; 16]>,
    input: Option<PathBuf>,
    /// Given by this program to the processes it starts: the slot's path.
    worker: Option<PathBuf>,
}

fn parse() -> Result<Args, String> {
    let mut args = Args { targets: Vec::new(), seconds: 10, seed: None, input: None, worker: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => args.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?,
            "--seed" => args.seed = Some(unhex(&value()?).ok_or("--seed: 32 hexadecimal digits")?),
            "--input" => args.input = Some(value()?.into()),
            "--worker" => args.worker = Some(value()?.into()),
            "--list" => {
                TARGETS.iter().for_each(|t| println!("{}", t.name));
                std::process::exit(0);
            }
            name => args.targets.push(target(name).ok_or(format!("no target {name}; --list names them"))?),
        }
    }
    if args.targets.is_empty() {
        args.targets = TARGETS.iter().collect();
    }
    Ok(args)
}

fn main() -> ExitCode {
    match parse().and_then(|args| run(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("privet-fuzz: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool, String> {
    let folder = Path::new(FOLDER);
    let seed = args.seed.map_or_else(Seed::random, Seed::from_bytes);
    if let Some(path) = &args.input {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        args.targets.iter().for_each(|t| (t.run)(&bytes));
        return Ok(true);
    }
    if let Some(path) = &args.worker {
        let slot = Slot::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let time = Duration::from_secs(args.seconds);
        return args
            .targets
            .iter()
            .try_for_each(|t| work(t, folder, &slot, seed.clone(), time))
            .map(|()| true)
            .map_err(|e| e.to_string());
    }
    println!("seed {}", hex(seed.expose()));
    let mut found = 0;
    for target in &args.targets {
        let finding =
            fuzz(target, folder, &seed, args.seconds).map_err(|e| format!("{}: {e}", target.name))?;
        if let Some((how, input)) = finding {
            found += 1;
            eprintln!(
                "FAILED {}: {how}\n  input saved: {}\n  again: privet-fuzz {} --input {0}",
                target.name,
                input.display(),
                target.name
            );
        }
    }
    if found > 0 {
        eprintln!("{found} of {} targets failed", args.targets.len());
    }
    Ok(found == 0)
}

fn fuzz(
    target: &Target,
    folder: &Path,
    seed: &Seed,
    seconds: u64,
) -> std::io::Result<Option<(String, PathBuf)>> {
    let path = std::env::temp_dir().join(format!("privet-fuzz-{}-{}", std::process::id(), target.name));
    let slot = Slot::open(&path)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([target.name, "--seconds", &seconds.to_string(), "--seed", &hex(seed.expose()), "--worker"])
        .arg(&path);
    let finding = watch(&mut command, &slot, folder, target.name);
    std::fs::remove_file(&path)?;
    Ok(finding?.map(|f| (f.how, f.input)))
}

//! `privet bench --calibrate`: rates of everything that parties do, from short runs of every family on this machine.
//!
//! A rate is what one of a thing takes in a run, with its part of memory, encryption and scheduling: a kernel alone says less.
//! Each run does much of one thing, so that all together tell the rates apart.

mod disk;
mod probes;

use super::fit::{Sample, fit};
use super::stats::spread;
use super::{Args, measure, predicted, workload};
use crate::cli::{CliError, Family, Out};
use crate::events::bars as progress;
use crate::registry::Protocol;
use crate::{machine, sys};
use privet_family::Dealing;
use privet_plan::Rates;
use privet_plan::cost::{Aim, Estimate, MACHINE_VERSION, Machine, PreparationUnits, Units};
use probes::{PREPARED, Probe, RUNS};
use serde::Serialize;
use std::collections::BTreeMap;

/// Measure, and keep the profile.
pub fn run(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let dir = std::env::temp_dir();
    let disk_bytes = disk::rate(args.dir.as_deref().unwrap_or(&dir)).map_err(|e| {
        CliError::failed(format!("measuring the disk: {e}"), "give another folder with `--dir`")
    })?;
    // what an earlier call measured of other families stays, and what this one measures is kept family by family
    let known = machine::measured().map(|known| (known.families, known.preparations, known.residuals));
    let (families, preparations, residuals) = known.unwrap_or_default();
    let mut machine = Machine {
        version: MACHINE_VERSION,
        cpu: machine::name(),
        cores: sys::cores(),
        memory_bytes: sys::total_memory_bytes().unwrap_or(0) as f64,
        disk_bytes,
        families,
        preparations,
        residuals,
    };
    let mut path = None;
    for protocol in Protocol::all() {
        for &security in protocol.facts().withstands {
            calibrate(args, &Family::of(protocol, security), &mut machine)?;
            path = Some(machine::save(&machine).map_err(|e| {
                CliError::failed(
                    format!("keeping the profile: {e}"),
                    "set XDG_CACHE_HOME to a folder of yours",
                )
            })?);
        }
    }
    if args.json {
        return out.json(&machine);
    }
    out.line(format_args!("{}, {} cores, disk {:.2} GB/s", machine.cpu, machine.cores, disk_bytes / 1e9))?;
    for (family, seconds) in &machine.families {
        show(family, seconds, &machine, out)?;
    }
    for (family, seconds) in &machine.preparations {
        show(&before_a_run(family), seconds, &machine, out)?;
    }
    path.map_or(Ok(()), |path| out.line(format_args!("kept as {}", path.display())))
}

/// What residuals call what is done before a run.
fn before_a_run(family: &str) -> String {
    format!("{family}, before a run")
}

fn show(what: &str, seconds: &impl Serialize, machine: &Machine, out: &mut Out) -> Result<(), CliError> {
    out.line(format_args!("  {what}: seconds of one of each"))?;
    let fields = serde_json::to_value(seconds).unwrap_or_default();
    for (name, value) in fields.as_object().into_iter().flatten() {
        out.line(format_args!("    {name:<18} {:.3e}", value.as_f64().unwrap_or(f64::NAN)))?;
    }
    out.line("    predicted over measured, of the runs that they are from")?;
    for (run, ratio) in machine.residuals.get(what).into_iter().flatten() {
        out.line(format_args!("    {ratio:>6.2}  {run}"))?;
    }
    Ok(())
}

/// A run, with what an estimate counts of it.
struct Taken {
    label: String,
    did: Estimate,
    /// How much longer computing takes, as parties share this machine's cores; what is kept is of one that does not.
    sharing: f64,
    online_s: f64,
    offline_s: f64,
}

impl Taken {
    fn run(&self) -> Sample<{ Units::COUNT }> {
        Sample { counts: self.did.work.shared(self.sharing).to_array(), seconds: self.online_s }
    }

    fn preparation(&self) -> Sample<{ PreparationUnits::COUNT }> {
        let did = PreparationUnits::of(&self.did.total.offline);
        Sample { counts: did.shared(self.sharing).to_array(), seconds: self.offline_s }
    }
}

/// The rates of one family, and what they say of each run over what it took.
fn calibrate(args: &Args, family: &Family, machine: &mut Machine) -> Result<(), CliError> {
    let facts = family.protocol.facts();
    let forecast = family.forecast()?;
    let (key, shipped) = (Machine::key(&*forecast), forecast.rates());
    let among_themselves = facts.needs_preparation() && facts.dealing != Dealing::Always;
    let prepared = match among_themselves {
        true => taken(args, family, PREPARED, &before_a_run(&key))?,
        false => Vec::new(),
    };
    // where a dealer can be had, records of more runs are
    let dealt = match among_themselves && facts.dealing == Dealing::Never {
        true => Vec::new(),
        false => taken(args, &family.clone().dealt(), RUNS, &key)?,
    };
    let runs = if dealt.is_empty() { &prepared } else { &dealt };
    let (seconds, ratios) = fitted(runs, Taken::run, shipped.seconds.to_array());
    machine.families.insert(key.clone(), Units::from_array(seconds));
    machine.residuals.insert(key.clone(), ratios);
    if among_themselves {
        let (seconds, ratios) = fitted(&prepared, Taken::preparation, shipped.before.to_array());
        machine.residuals.insert(before_a_run(&key), ratios);
        machine.preparations.insert(key, PreparationUnits::from_array(seconds));
    }
    Ok(())
}

/// Seconds of one of each, and what they say of each run.
fn fitted<const N: usize>(
    runs: &[Taken],
    sample: impl Fn(&Taken) -> Sample<N>,
    shipped: [f64; N],
) -> ([f64; N], BTreeMap<String, f64>) {
    let samples: Vec<Sample<N>> = runs.iter().map(sample).collect();
    let seconds = fit(&samples, shipped);
    let ratios = runs.iter().zip(&samples).map(|(run, sample)| (run.label.clone(), sample.ratio(&seconds)));
    (seconds, ratios.collect())
}

/// Run what suits the family.
fn taken(args: &Args, family: &Family, probes: &[Probe], what: &str) -> Result<Vec<Taken>, CliError> {
    let probes: Vec<&Probe> = probes.iter().filter(|probe| probe.suits(family)).collect();
    let progress = progress::for_stderr(args.json);
    progress.start(probes.len() as u64, what);
    let mut all = Vec::new();
    for probe in probes {
        let args = probe.args(family, args);
        let aim = Aim { network: probe.network, max_key_bytes: None };
        let work = workload::make(&args.choice(&*args.family().forecast()?, aim))?;
        let dir = tempfile::tempdir_in(args.dir.clone().unwrap_or_else(std::env::temp_dir))
            .map_err(|e| CliError::failed(e, "give `--dir`"))?;
        let measured = measure(&args, &work, dir.path())?;
        let cores = Rates { cores: sys::cores(), ..Rates::default() };
        // the median, as results have it: what a run takes on a machine that does its usual part beside
        let median = |seconds: &[f64]| spread(seconds).median;
        all.push(Taken {
            label: probe.to_string(),
            did: predicted(&args, &work)?,
            sharing: cores.together(args.family.parties()?).sharing(),
            online_s: median(&measured.online),
            offline_s: median(&measured.offline),
        });
        progress.advance(1);
    }
    progress.finish();
    Ok(all)
}

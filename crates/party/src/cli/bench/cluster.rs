//! The processes of a benchmark: the parties over loopback TLS and, where the family has one, a dealer that writes
//! keys to their stores.

use crate::cli::deal::Dealt;
use crate::cli::{CliError, Family};
use crate::config::Place;
use privet_plan::lower::MODEL_OWNER;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Child processes of one benchmark; they end with it.
pub struct Cluster {
    dir: PathBuf,
    parties: Vec<Child>,
    dealer: Option<Dealer>,
    /// A dealer that the parties call.
    streaming: Option<Child>,
}

struct Dealer {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How a benchmark is run.
pub struct Setting<'a> {
    /// The protocol.
    pub family: &'a Family,
    /// Who is to own the model, where somebody is named.
    pub model_owner: Option<&'a Place>,
    /// The network to emulate between the parties.
    pub network: &'a str,
    /// Threads of each party.
    pub threads: usize,
    /// Keys come over the network while runs use them up.
    pub stream: bool,
    /// Further lines of the parties' node files.
    pub settings: String,
}

/// Who shares the weights: where the protocol leaves it open, who is wanted, or the client.
pub fn owner(family: &Family, wanted: Option<&Place>) -> Place {
    let holder = family.protocol.facts().holder(MODEL_OWNER).map(Place::Party);
    holder.or_else(|| wanted.cloned()).unwrap_or_else(|| Place::Client("client".into()))
}

fn failed(doing: &str, e: impl std::fmt::Display) -> CliError {
    CliError::failed(format!("{doing}: {e}"), "see the logs in the benchmark's directory (`--dir`)")
}

impl Cluster {
    /// Write a deployment for `plan` into `dir` and start everybody.
    pub fn start(dir: &Path, plan: &Path, setting: &Setting) -> Result<Cluster, CliError> {
        let exe = std::env::current_exe().map_err(|e| failed("finding this program", e))?;
        let nodes = dir.join("nodes");
        let init = Command::new(&exe)
            .args([
                "init",
                "--model-owner",
                &owner(setting.family, setting.model_owner).to_string(),
                "--local",
            ])
            .arg(&nodes)
            .arg("--plan")
            .arg(plan)
            .args(setting.family.arguments()?)
            .output()
            .map_err(|e| failed("starting `privet init`", e))?;
        if !init.status.success() {
            return Err(failed("`privet init`", String::from_utf8_lossy(&init.stderr)));
        }
        let mut cluster = Cluster { dir: nodes, parties: Vec::new(), dealer: None, streaming: None };
        for party in 0..setting.family.parties()? {
            let child = cluster.start_service(&exe, &format!("party{party}"), setting)?;
            cluster.parties.push(child);
        }
        if setting.stream {
            cluster.streaming = Some(cluster.start_service(&exe, "dealer", setting)?);
        } else if setting.family.has_dealer()? {
            cluster.dealer = Some(cluster.start_dealer(&exe, plan, setting)?);
        }
        Ok(cluster)
    }

    fn start_service(&self, exe: &Path, name: &str, setting: &Setting) -> Result<Child, CliError> {
        let config = self.dir.join(name).join("node.toml");
        let service = if name == "dealer" { "dealer" } else { "party" };
        match service {
            "party" => set(&config, setting.threads, &setting.settings)?,
            _ => set(&config, setting.threads, "")?,
        }
        let log = self.log(name);
        let log = File::create(&log).map_err(|e| CliError::file("write", &log, e))?;
        Command::new(exe)
            .args([service, "--network", setting.network, "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| failed("starting a party", e))
    }

    fn start_dealer(&self, exe: &Path, plan: &Path, setting: &Setting) -> Result<Dealer, CliError> {
        let stores = (0..self.parties.len()).map(|party| self.dir.join(format!("party{party}/store")));
        let mut process = Command::new(exe)
            .args(["deal", "--on-demand", "--json", "--plan"])
            .arg(plan)
            .args(setting.family.arguments()?)
            .arg("--stores")
            .args(stores)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed("starting the dealer", e))?;
        let (Some(ask), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("starting the dealer", "no pipes"));
        };
        Ok(Dealer { process, ask, answers: BufReader::new(answers) })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.parent().unwrap_or(&self.dir).join(format!("{name}.log"))
    }

    /// The end of the log of a party that is not running any more.
    pub fn last_words(&mut self) -> Option<String> {
        let ended = self.parties.iter_mut().position(|p| matches!(p.try_wait(), Ok(Some(_))))?;
        let text = std::fs::read_to_string(self.log(&format!("party{ended}"))).ok()?;
        let lines: Vec<&str> = text.lines().rev().take(6).collect();
        Some(format!("party {ended} ended: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" ")))
    }

    /// The client's node file.
    pub fn client(&self) -> PathBuf {
        self.dir.join("client/node.toml")
    }

    /// The node file of who shares the weights: the client, or the party that the protocol gives them to.
    pub fn owner(&self, family: &Family, wanted: Option<&Place>) -> PathBuf {
        let folder = match owner(family, wanted) {
            Place::Party(number) => format!("party{number}"),
            Place::Client(_) | Place::Dealer => "client".into(),
        };
        self.dir.join(folder).join("node.toml")
    }

    /// Processor seconds that each process has used so far: the parties in order, then the dealer that they call.
    pub fn cpu_seconds(&self) -> Vec<f64> {
        let all = self.parties.iter().chain(&self.streaming);
        all.map(|child| crate::sys::cpu_seconds(child.id()).unwrap_or(f64::NAN)).collect()
    }

    /// Peak resident memory of the dealer that the parties call, bytes.
    pub fn dealer_peak_rss_bytes(&self) -> Option<u64> {
        crate::sys::peak_rss_bytes_of(self.streaming.as_ref()?.id())
    }

    /// Deal keys for one more run; `None` where the family needs none.
    pub fn deal(&mut self) -> Result<Option<Dealt>, CliError> {
        let Some(dealer) = &mut self.dealer else { return Ok(None) };
        writeln!(dealer.ask, "deal").map_err(|e| failed("asking the dealer", e))?;
        let mut line = String::new();
        dealer.answers.read_line(&mut line).map_err(|e| failed("hearing the dealer", e))?;
        serde_json::from_str(&line).map(Some).map_err(|_| failed("the dealer", "it ended early; see above"))
    }
}

/// Replace the number of threads in a node file, and add settings.
fn set(config: &Path, threads: usize, settings: &str) -> Result<(), CliError> {
    let text = std::fs::read_to_string(config).map_err(|e| CliError::file("read", config, e))?;
    let kept: String = text.lines().filter(|l| !l.starts_with("threads")).map(|l| format!("{l}\n")).collect();
    std::fs::write(config, format!("{kept}threads = {threads}\n{settings}\n"))
        .map_err(|e| CliError::file("write", config, e))
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let dealers = self.dealer.as_mut().map(|d| &mut d.process).into_iter().chain(&mut self.streaming);
        for child in self.parties.iter_mut().chain(dealers) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

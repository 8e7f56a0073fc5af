//! The processes of a benchmark: two parties over loopback TLS and a dealer that writes keys to their stores.

use crate::cli::CliError;
use crate::cli::deal::Dealt;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Child processes of one benchmark; they end with it.
pub struct Cluster {
    dir: PathBuf,
    parties: Vec<Child>,
    dealer: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

fn failed(doing: &str, e: impl std::fmt::Display) -> CliError {
    CliError::failed(format!("{doing}: {e}"), "see the logs in the benchmark's directory (`--keep`)")
}

impl Cluster {
    /// Write a deployment for `plan` into `dir` and start everybody with `threads` threads each.
    pub fn start(dir: &Path, plan: &Path, network: &str, threads: usize) -> Result<Cluster, CliError> {
        let exe = std::env::current_exe().map_err(|e| failed("finding this program", e))?;
        let nodes = dir.join("nodes");
        let init = Command::new(&exe)
            .args(["init", "--model-owner", "client:client", "--local"])
            .arg(&nodes)
            .arg("--plan")
            .arg(plan)
            .output()
            .map_err(|e| failed("starting `privet init`", e))?;
        if !init.status.success() {
            return Err(failed("`privet init`", String::from_utf8_lossy(&init.stderr)));
        }
        let mut parties = Vec::new();
        for party in ["party0", "party1"] {
            let config = nodes.join(party).join("node.toml");
            set_threads(&config, threads)?;
            let log = dir.join(format!("{party}.log"));
            let log = File::create(&log).map_err(|e| CliError::file("write", &log, e))?;
            let child = Command::new(&exe)
                .args(["party", "--network", network, "--config"])
                .arg(&config)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .map_err(|e| failed("starting a party", e))?;
            parties.push(child);
        }
        let mut dealer = Command::new(&exe)
            .args(["deal", "--on-demand", "--json", "--plan"])
            .arg(plan)
            .args(["--store0".as_ref(), nodes.join("party0/store").as_os_str()])
            .args(["--store1".as_ref(), nodes.join("party1/store").as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed("starting the dealer", e))?;
        let (Some(ask), Some(answers)) = (dealer.stdin.take(), dealer.stdout.take()) else {
            return Err(failed("starting the dealer", "no pipes"));
        };
        let answers = BufReader::new(answers);
        Ok(Cluster { dir: nodes, parties, dealer, ask, answers })
    }

    /// The end of the log of a party that is not running any more.
    pub fn last_words(&mut self) -> Option<String> {
        let ended = self.parties.iter_mut().position(|p| matches!(p.try_wait(), Ok(Some(_))))?;
        let log = self.dir.parent()?.join(format!("party{ended}.log"));
        let text = std::fs::read_to_string(log).ok()?;
        let lines: Vec<&str> = text.lines().rev().take(6).collect();
        Some(format!("party {ended} ended: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" ")))
    }

    /// The client's node file.
    pub fn client(&self) -> PathBuf {
        self.dir.join("client/node.toml")
    }

    /// Deal keys for one more run.
    pub fn deal(&mut self) -> Result<Dealt, CliError> {
        writeln!(self.ask, "deal").map_err(|e| failed("asking the dealer", e))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| failed("hearing the dealer", e))?;
        serde_json::from_str(&line).map_err(|_| failed("the dealer", "it ended early; see above"))
    }
}

/// Replace the number of threads in a node file.
fn set_threads(config: &Path, threads: usize) -> Result<(), CliError> {
    let text = std::fs::read_to_string(config).map_err(|e| CliError::file("read", config, e))?;
    let kept: String = text.lines().filter(|l| !l.starts_with("threads")).map(|l| format!("{l}\n")).collect();
    std::fs::write(config, format!("{kept}threads = {threads}\n"))
        .map_err(|e| CliError::file("write", config, e))
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.parties.iter_mut().chain([&mut self.dealer]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

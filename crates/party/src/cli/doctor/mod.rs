//! `privet doctor`: what is wrong with a node's set-up, and how to repair it.

mod clients;
mod machine;
mod node;
mod peers;

use super::{CliError, Out};
use crate::config::{Deployment, DeploymentFile, Loaded, Node, Place, load_file, load_node};
use privet_net::Identity;
use privet_plan::{Estimate, Program};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `privet doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node.
    #[arg(long, default_value = "node.toml")]
    config: PathBuf,
    /// Do not call the other nodes.
    #[arg(long)]
    offline: bool,
    /// Seconds to wait for each of them.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Warnings count as failures.
    #[arg(long)]
    strict: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One line of the diagnosis.
#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    status: Status,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// All findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: impl Into<String>, found: impl Into<String>) {
        self.add(check.into(), Status::Ok, found.into(), None);
    }

    fn warn(&mut self, check: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(check.into(), Status::Warn, found.into(), Some(remedy.into()));
    }

    fn fail(&mut self, check: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(check.into(), Status::Fail, found.into(), Some(remedy.into()));
    }

    fn add(&mut self, check: String, status: Status, found: String, remedy: Option<String>) {
        self.0.push(Finding { check, status, found, remedy });
    }

    fn has(&self, status: Status) -> bool {
        self.0.iter().any(|f| f.status == status)
    }
}

/// What later checks need of earlier ones; absent where those failed.
struct Patient {
    node: Node,
    /// Of a server of many clients, the first client's.
    deployment: Option<Deployment>,
    /// The clients of a server of many.
    clients: Option<usize>,
    identity: Option<Identity>,
    program: Option<Program>,
    estimate: Option<Estimate>,
}

/// Examine a node, print the findings, and fail if there is a failure.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    let mut findings = Findings::default();
    examine(&args, &mut findings);
    let unsound = findings.has(Status::Fail) || args.strict && findings.has(Status::Warn);
    if args.json {
        out.json(&serde_json::json!({ "ok": !unsound, "findings": findings.0 }))?;
    } else {
        show(&findings.0, out)?;
    }
    if unsound { out.flush().and(Err(CliError::unsound())) } else { Ok(()) }
}

fn examine(args: &Args, findings: &mut Findings) {
    let node = match load_node(&args.config) {
        Ok(node) => node,
        Err(e) => return findings.fail("configuration", e.to_string(), e.remedy()),
    };
    findings.ok("configuration", format!("{} is {}", args.config.display(), node.me));
    let (node, deployment, clients) = match load_file(&node.deployment) {
        Ok(DeploymentFile::One(deployment)) => (node, Some(*deployment), None),
        Ok(DeploymentFile::EachClient(server)) if node.me == Place::Party(0) => {
            let clients = server.clients().count();
            let first = server.clients().next().map(|(_, deployment)| deployment.clone());
            (node, first, Some(clients))
        }
        Ok(file) => match Loaded::within(node.clone(), file) {
            Ok(Loaded { node, deployment }) => (node, Some(deployment), None),
            Err(e) => {
                findings.fail("deployment", e.to_string(), e.remedy());
                (node, None, None)
            }
        },
        Err(e) => {
            findings.fail("deployment", e.to_string(), e.remedy());
            (node, None, None)
        }
    };
    let mut patient = Patient { node, deployment, clients, identity: None, program: None, estimate: None };
    clients::examine(&patient, findings);
    node::examine(&mut patient, findings);
    if !args.offline {
        peers::examine(&patient, std::time::Duration::from_secs(args.timeout), findings);
    }
    machine::examine(&patient, findings);
}

fn show(findings: &[Finding], out: &mut Out) -> Result<(), CliError> {
    let width = findings.iter().map(|f| f.check.chars().count()).max().unwrap_or(0);
    for f in findings {
        let status = match f.status {
            Status::Ok => "ok  ",
            Status::Warn => "WARN",
            Status::Fail => "FAIL",
        };
        out.line(format_args!(
            "{status}  {:<width$}  {}",
            f.check,
            f.found.trim_end().replace('\n', "\n        ")
        ))?;
        if let Some(remedy) = &f.remedy {
            out.line(format_args!("      {:<width$}  fix: {remedy}", ""))?;
        }
    }
    let count = |status| findings.iter().filter(|f| f.status == status).count();
    let (warnings, failures) = (count(Status::Warn), count(Status::Fail));
    out.line(format_args!("\n{} checks, {warnings} warnings, {failures} failures", findings.len()))
}

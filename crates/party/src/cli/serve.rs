//! `privet party` and `privet dealer`: the services that run until they are stopped.

use super::CliError;
use super::family::no_dealer;
use crate::config::{Loaded, Place, load_deployment, load_node};
use crate::session::links::Links;
use crate::session::owner::roles;
use crate::session::party;
use privet_kernels::{Device, open};
use privet_net::NetworkProfile;
use privet_plan::{Program, Refused, admit_all};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of both services.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// This node's file, `node.toml`.
    #[arg(long, short)]
    config: PathBuf,
    /// Emulate a network between the parties: lan, wan, or rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: String,
}

/// Configuration and program of a node.
pub(super) fn load(config: &Path, network: &str) -> Result<(Links, Arc<Program>), CliError> {
    let loaded = Loaded::load(config)?;
    let path = loaded.deployment.plan.clone();
    let bytes = std::fs::read(&path).map_err(|e| CliError::file("read", &path, e))?;
    let refused =
        |e| CliError::failed(format!("{}: {e}", path.display()), "compile the model again with this version");
    let program = Arc::new(Program::from_json(&bytes).map_err(refused)?);
    let family = loaded.deployment.protocol.forecast(&loaded.deployment.chosen());
    admit_all(&program, &*family).map_err(refused_by_family)?;
    if let Some(role) = roles(&program).iter().find(|role| loaded.deployment.roles.get(role).is_none()) {
        let cause = format!("{}: the plan names a role `{}`", path.display(), role.escape_debug());
        let remedy = "give it a place in [roles] of the deployment, or compile the model for the roles there";
        return Err(CliError::failed(cause, remedy));
    }
    let network = NetworkProfile::parse(network)
        .map_err(|e| CliError::usage(e, "write lan, wan or rtt=60ms,bandwidth=293Mbit/s"))?;
    if loaded.node.insecure {
        eprintln!("warning: insecure = true: connections are neither encrypted nor authenticated");
    }
    let links = Links::new(loaded, &program, network)
        .map_err(|e| CliError::failed(e, "see `privet doctor --config` with this file"))?;
    Ok((links, program))
}

fn refused_by_family(refused: Refused) -> CliError {
    CliError::failed(refused, "do what is said of each node, or give the deployment another protocol")
}

/// The device that a node is told to use.
fn device(links: &Links) -> Result<Arc<dyn Device>, CliError> {
    let node = &links.config.node;
    open(node.device, node.thread_count()).map_err(|e| CliError::failed(e, "see docs/operators.md"))
}

fn log(line: &str) {
    eprintln!("{line}");
}

/// Run a party.
pub fn party(args: &Args) -> Result<(), CliError> {
    let (links, program) = load(&args.config, &args.network)?;
    let device = device(&links)?;
    party::serve(links, program, device, Arc::new(log))
        .map_err(|e| CliError::failed(e, "see `privet doctor`"))
}

/// Run the dealer.
pub fn dealer(args: &Args) -> Result<(), CliError> {
    // Before anything else: a dealer's node file does not fit a deployment that has none.
    let protocol = load_deployment(&load_node(&args.config)?.deployment)?.protocol;
    let dealer = protocol.registered().dealer.as_ref().ok_or_else(|| no_dealer(protocol))?;
    let (links, program) = load(&args.config, &args.network)?;
    if links.config.node.me != Place::Dealer {
        let cause = format!("this node is {}, not the dealer", links.config.node.me);
        return Err(CliError::usage(cause, "give the dealer's node file"));
    }
    let device = device(&links)?;
    (dealer.serve)(links, &program, device, Arc::new(log))
        .map_err(|e| CliError::failed(e, "see `privet doctor`"))
}

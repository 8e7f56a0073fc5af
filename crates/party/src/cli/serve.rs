//! `privet party`, `privet serve` and `privet dealer`: the services that run until they are stopped.

use super::CliError;
use super::family::no_dealer;
use crate::config::{
    Address, Host as HostConfig, Loaded, LogSettings, MetricsSettings, Node, Place, load_deployment,
    load_node,
};
use crate::events::log::{Log, LogFormat};
use crate::events::metrics::Metrics;
use crate::events::{Event, Events, Inline, Level, http};
use crate::session::clients::{self, Host};
use crate::session::links::Links;
use crate::session::owner::roles;
use crate::session::party;
use privet_family::Forecast;
use privet_kernels::{Device, open};
use privet_net::NetworkProfile;
use privet_plan::{Program, Refused, admit_all};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Options of all services.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// This node's file, `node.toml`.
    #[arg(long, short)]
    config: PathBuf,
    /// Emulate a network between the parties: lan, wan, or rtt=60ms,bandwidth=293Mbit/s.
    #[arg(long, default_value = "lan")]
    network: String,
    /// Least grave events in the log; info where neither this, PRIVET_LOG_LEVEL nor the node file says.
    #[arg(long, value_enum)]
    log_level: Option<Level>,
    /// How the lines of the log look; text where neither this, PRIVET_LOG_FORMAT nor the node file says.
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
    /// Serve metrics for Prometheus here, for example 127.0.0.1:9000.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,
    /// Also where others can reach them, in the clear and without authentication.
    #[arg(long, requires = "metrics")]
    metrics_anywhere: bool,
}

/// Before the process ends, for the last lines of the log.
const LAST_LINES: Duration = Duration::from_secs(2);

impl Args {
    /// What the log says: the option counts first, then the environment, then the node file.
    fn log(&self, node: &LogSettings) -> Result<Log, CliError> {
        let level = self.log_level.or(from_env("PRIVET_LOG_LEVEL")?).or(node.level).unwrap_or(Level::Info);
        let form = self.log_format.or(from_env("PRIVET_LOG_FORMAT")?).or(node.format).unwrap_or_default();
        Ok(Log::new(form, level, std::io::stderr))
    }

    /// Where this node's events go: the log, and metrics where they are wanted.
    fn events(&self, node: &Node) -> Result<Events, CliError> {
        let log = self.log(&node.log)?;
        let asked =
            self.metrics.clone().map(|listen| MetricsSettings { listen, anywhere: self.metrics_anywhere });
        let Some(MetricsSettings { listen, anywhere }) = asked.or_else(|| node.metrics.clone()) else {
            return Ok(Events::to(vec![Box::new(log)], vec![]));
        };
        let metrics = Arc::new(Metrics::default());
        let address = http::serve(&listen, anywhere, metrics.clone()).map_err(|e| {
            CliError::failed(format!("metrics cannot be served on {listen}: {e}"), "choose another address")
        })?;
        let events = Events::to(vec![Box::new(log)], vec![metrics as Arc<dyn Inline>]);
        events.emit(Event::MetricsServed { address });
        Ok(events)
    }
}

fn from_env<T: clap::ValueEnum>(name: &str) -> Result<Option<T>, CliError> {
    let Some(word) = std::env::var_os(name).filter(|w| !w.is_empty()) else { return Ok(None) };
    let word = word.to_string_lossy();
    let found = T::from_str(&word, false);
    found.map(Some).map_err(|_| {
        CliError::usage(format!("{name}: `{}` is not known", word.escape_debug()), "correct or unset it")
    })
}

/// Configuration and program of a node.
pub(super) fn load(config: &Path, network: &str) -> Result<(Links, Arc<Program>), CliError> {
    let loaded = Loaded::load(config)?;
    let Loaded { node, deployment } = &loaded;
    let family = deployment.protocol.forecast(&deployment.chosen());
    let program = program(&deployment.plan, &*family, |role| deployment.roles.get(role).is_some())?;
    if node.insecure {
        eprintln!("warning: insecure = true: connections are neither encrypted nor authenticated");
    }
    let links = Links::new(loaded, &program, emulated(network)?)
        .map_err(|e| CliError::failed(e, "see `privet doctor --config` with this file"))?;
    Ok((links, program))
}

/// The program of a deployment, which its family runs, and whose roles it has.
fn program(
    path: &Path,
    family: &dyn Forecast,
    has_role: impl Fn(&str) -> bool,
) -> Result<Arc<Program>, CliError> {
    let bytes = std::fs::read(path).map_err(|e| CliError::file("read", path, e))?;
    let refused =
        |e| CliError::failed(format!("{}: {e}", path.display()), "compile the model again with this version");
    let program = Arc::new(Program::from_json(&bytes).map_err(refused)?);
    admit_all(&program, family).map_err(refused_by_family)?;
    if let Some(role) = roles(&program).iter().find(|role| !has_role(role)) {
        let cause = format!("{}: the plan names a role `{}`", path.display(), role.escape_debug());
        let remedy = "give it a place in [roles] of the deployment, or compile the model for the roles there";
        return Err(CliError::failed(cause, remedy));
    }
    Ok(program)
}

fn emulated(network: &str) -> Result<NetworkProfile, CliError> {
    NetworkProfile::parse(network)
        .map_err(|e| CliError::usage(e, "write lan, wan or rtt=60ms,bandwidth=293Mbit/s"))
}

fn refused_by_family(refused: Refused) -> CliError {
    CliError::failed(refused, "do what is said of each node, or give the deployment another protocol")
}

/// The device that a node is told to use.
fn device(node: &Node) -> Result<Arc<dyn Device>, CliError> {
    open(node.device, node.thread_count()).map_err(|e| CliError::failed(e, "see docs/operators.md"))
}

/// Run a party.
pub fn party(args: &Args) -> Result<(), CliError> {
    let (links, program) = load(&args.config, &args.network)?;
    let device = device(&links.config.node)?;
    let events = args.events(&links.config.node)?;
    let ended = party::serve(links, program, device, events.clone());
    events.drain(LAST_LINES);
    ended.map_err(|e| CliError::failed(e, "see `privet doctor`"))
}

/// Run the server of many clients.
pub fn server(args: &Args) -> Result<(), CliError> {
    let config = HostConfig::load(&args.config)?;
    let common = config.server.common();
    let program = program(common.plan(), &*common.forecast(), |role| common.has_role(role))?;
    let device = device(&config.node)?;
    let events = args.events(&config.node)?;
    let host = Host::new(config, &program, emulated(&args.network)?)
        .map_err(|e| CliError::failed(e, "see `privet doctor --config` with this file"))?;
    let ended = clients::serve(host, program, &*device, events.clone());
    events.drain(LAST_LINES);
    ended.map_err(|e| CliError::failed(e, "see `privet doctor`"))
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
    let device = device(&links.config.node)?;
    let events = args.events(&links.config.node)?;
    let ended = (dealer.serve)(links, &program, device, events.clone());
    events.drain(LAST_LINES);
    ended.map_err(|e| CliError::failed(e, "see `privet doctor`"))
}

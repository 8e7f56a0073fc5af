use super::{Args, Draft, Setting, copy_plan, node_text, private_dir, refuse_existing, write_new};
use crate::cli::{CliError, Out, certs};
use crate::config::{Address, Card, Place};
use crate::sys;
use privet_prg::Seed;
use privet_ring::Ring;
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};

const HOST: &str = "127.0.0.1";

#[derive(Serialize)]
struct Written {
    deployment: PathBuf,
    nodes: Vec<WrittenNode>,
}

#[derive(Serialize)]
struct WrittenNode {
    place: Place,
    config: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    fingerprint: String,
}

/// Every node of a deployment on this machine: `DIR/{party0,party1,...,dealer,CLIENT}/`.
pub(super) fn run(dir: &Path, args: &Args, out: &mut Out) -> Result<(), CliError> {
    let Some(plan) = &args.plan else {
        return Err(CliError::usage("`--local` needs the plan", "add `--plan plan.json`"));
    };
    let setting = args.setting()?;
    let places = places(args, &setting)?;
    let weights = weights(args, &setting)?;
    refuse_existing(dir)?;
    private_dir(dir)?;
    copy_plan(plan, dir)?;

    let deployment = dir.join("deployment.toml");
    let mut draft = Draft::new(&deployment, args.name.as_deref().unwrap_or("local"), &setting)?;
    // All ports are held until the last one is chosen, so that they differ.
    let listens = |p: &Place| p.listens() || setting.each_client;
    let ports = places.iter().map(|p| listens(p).then(free_port).transpose());
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    let mut written = Vec::new();
    for (place, port) in places.into_iter().zip(&ports) {
        let sub = dir.join(folder(&place));
        private_dir(&sub)?;
        let identity = certs::generate(&place.to_string(), args.days)?;
        identity.write(&sub.join("cert.pem"), &sub.join("key.pem"), false)?;
        let config = sub.join("node.toml");
        let weights = weights.as_deref().filter(|_| place == *setting.roles.model_owner());
        // The parties compute at the same time, a dealer before them.
        let threads = matches!(place, Place::Party(_)) || setting.each_client;
        let threads = threads.then(|| (sys::cores() / setting.parties).max(1));
        write_new(&config, node_text(&place, "../deployment.toml", weights, threads).as_bytes())?;
        let address = port.as_ref().map(|(_, port)| Address { host: HOST.into(), port: *port });
        let fingerprint = identity.fingerprint();
        let reached = address.clone().filter(|_| place.listens());
        draft.add(&Card { place: place.clone(), address: reached, fingerprint }, false)?;
        if let (Place::Client(_), Some(address)) = (&place, &address) {
            draft.set_own_address(&place, address)?;
        }
        written.push(WrittenNode { place, config, address, fingerprint: fingerprint.to_string() });
    }
    draft.save()?;

    let written = Written { deployment, nodes: written };
    if args.json {
        return out.json(&written);
    }
    out.line(format_args!("wrote {}", written.deployment.display()))?;
    out.line(setting.collusion())?;
    for node in &written.nodes {
        let at = node.address.as_ref().map(|a| format!(" at {a}")).unwrap_or_default();
        out.line(format_args!("  {}{at}: {}", node.place, node.config.display()))?;
    }
    out.line("check a node with `privet doctor --config NODE.toml`")
}

/// The weights file, by a path that holds in every directory.
fn weights(args: &Args, setting: &Setting) -> Result<Option<PathBuf>, CliError> {
    let Some(path) = &args.weights else { return Ok(None) };
    let owner = setting.roles.model_owner();
    if !matches!(owner, Place::Party(_)) {
        let cause = format!("`--weights` is for a model that a party owns, but {owner} owns it");
        return Err(CliError::usage(cause, "leave it out: the client gives the weights itself"));
    }
    std::path::absolute(path).map(Some).map_err(|e| CliError::file("find", path, e))
}

fn places(args: &Args, setting: &Setting) -> Result<Vec<Place>, CliError> {
    let named = args.client.iter().cloned().map(Place::Client);
    let playing = setting.roles.all().map(|(_, place)| place.clone());
    let clients: BTreeSet<Place> = named.chain(playing).filter(|p| matches!(p, Place::Client(_))).collect();
    let nodes = setting.nodes();
    for place in &clients {
        let Place::Client(name) = place else { continue };
        if !Place::valid_name(name) || nodes.iter().any(|p| folder(p) == *name) {
            let cause = format!("`{}` cannot name a client here", name.escape_debug());
            return Err(CliError::usage(
                cause,
                "use letters, digits, `-`, `_` and `.`, and not a node's own name",
            ));
        }
    }
    Ok(nodes.into_iter().chain(clients).collect())
}

fn folder(place: &Place) -> String {
    match place {
        Place::Party(i) => format!("party{i}"),
        Place::Dealer => "dealer".into(),
        Place::Client(name) => name.clone(),
    }
}

/// Ports of nodes: below those that systems give to connections, as a node's port must be free when it comes back after its process
/// has ended.
const PORTS: Range<u16> = 20_500..32_000;

/// A free port at random, so that deployments which do not run yet have others. The system's choice where many are taken.
fn free_port() -> Result<(TcpListener, u16), CliError> {
    let drawn = Seed::random().stream().elements(Ring::new(16), 100);
    let mut ports = drawn.iter().map(|x| PORTS.start + *x as u16 % (PORTS.end - PORTS.start));
    let found = ports.find_map(|port| TcpListener::bind((HOST, port)).ok());
    let listener = found.map_or_else(|| TcpListener::bind((HOST, 0)), Ok);
    listener.and_then(|l| l.local_addr().map(|a| (l, a.port()))).map_err(|e| {
        CliError::failed(format!("no free port on {HOST}: {e}"), "check that the loopback interface is up")
    })
}

//! `privet init`: a deployment on this machine, one node of a real one, or another operator's card.

mod draft;
mod local;
mod node;

pub(super) use draft::Draft;

use super::family::collusion;
use super::{CliError, Family, Out};
use crate::config::{Address, CLIENT_PARTY, Card, Place, Protocol, Roles, Security, against_rules};
use privet_family::{Chosen, Parameters};
use privet_plan::lower::MODEL_OWNER;
use std::fs;
use std::path::{Path, PathBuf};

/// The party that owns the model where nobody else is named.
const OWNER: u8 = 1;

/// Days a certificate lasts unless asked otherwise.
pub(super) const DAYS: u32 = privet_net::certs::DEFAULT_DAYS;

/// Options of `privet init`.
///
/// Three uses: `--local DIR` for all nodes on this machine; `--me PLACE --name NAME` for this machine's node of
/// a real deployment; `--join CARD` to add what another operator sent.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write every node of a deployment on this machine under DIR, with free ports.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["me", "join"])]
    local: Option<PathBuf>,
    /// Write this machine's node: party:0 (or another number), dealer or client:NAME.
    #[arg(long, value_name = "PLACE", requires = "name", conflicts_with = "join")]
    me: Option<Place>,
    /// Add cards that other operators sent (they print theirs with `privet certs show`).
    #[arg(long, value_name = "CARD", num_args = 1..)]
    join: Vec<Card>,
    /// With --join: replace a fingerprint that was pinned before (its owner renewed the certificate).
    #[arg(long, requires = "join")]
    replace: bool,
    #[command(flatten)]
    family: Family,
    /// The deployment's name.
    #[arg(long)]
    name: Option<String>,
    /// Where others reach this node, host:port; clients have none.
    #[arg(long, requires = "me")]
    address: Option<Address>,
    /// Directory of this node's files.
    #[arg(long, default_value = ".", conflicts_with = "local")]
    dir: PathBuf,
    /// The compiled plan; copied next to the deployment.
    #[arg(long)]
    plan: Option<PathBuf>,
    /// With --local: the weights file of the party that owns the model.
    #[arg(long, value_name = "FILE", requires = "local")]
    weights: Option<PathBuf>,
    /// With --local: names of clients beside those that play a role.
    #[arg(long, value_name = "NAME", requires = "local")]
    client: Vec<String>,
    /// One server for many clients: each client is party 1 of a deployment of its own, and needs no address.
    #[arg(long)]
    each_client: bool,
    /// Who shares the inputs; client:client when absent, or party:1 where that is each client.
    #[arg(long, value_name = "PLACE")]
    data_owner: Option<Place>,
    /// Who shares the weights; party:1 when absent, or the party that the protocol gives them to.
    #[arg(long, value_name = "PLACE")]
    model_owner: Option<Place>,
    /// Who learns the outputs; the data owner when absent.
    #[arg(long, value_name = "PLACE")]
    receiver: Option<Place>,
    /// A further role: label_owner, or one more of a kind, such as data_owner.2.
    #[arg(long, value_name = "ROLE=PLACE")]
    role: Vec<String>,
    /// Days the new certificates last.
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// One JSON object that names what was written.
    #[arg(long)]
    json: bool,
}

/// The protocol of a new deployment, and who plays which role in it.
pub(super) struct Setting {
    pub protocol: Protocol,
    pub security: Security,
    /// How many parties compute.
    pub parties: usize,
    /// The family's parameters.
    pub parameters: Parameters,
    pub roles: Roles,
    /// Party 1 is each client.
    pub each_client: bool,
}

impl Setting {
    /// What collusion means in it, in a line.
    fn collusion(&self) -> String {
        collusion(self.protocol)
    }

    /// The places that it has beside clients.
    fn nodes(&self) -> Vec<Place> {
        let mut nodes = nodes(self.parties, self.protocol.facts().has_dealer(&self.parameters));
        nodes.retain(|place| !self.each_client || *place != Place::Party(CLIENT_PARTY));
        nodes
    }

    /// Whether a place may have a role: it is there, or is each client.
    fn has(&self, place: &Place) -> Result<(), CliError> {
        match place {
            Place::Party(CLIENT_PARTY) if self.each_client => Ok(()),
            Place::Client(_) if self.each_client => {
                let cause =
                    format!("{place} cannot have a role: each client is party 1 of its own deployment");
                Err(CliError::usage(cause, "give the role to party:1"))
            }
            place => refuse_unknown(self.protocol, &self.nodes(), place),
        }
    }
}

impl Args {
    fn setting(&self) -> Result<Setting, CliError> {
        let each_client = self.each_client;
        if each_client && !self.family.protocol.serves_clients() {
            let cause = format!("protocol {} has no server that many clients share", self.family.protocol);
            let remedy = format!("choose {}, or leave `--each-client` out", Protocol::choose_for_clients());
            return Err(CliError::usage(cause, remedy));
        }
        let owner = if each_client { Place::Party(CLIENT_PARTY) } else { Place::Client("client".into()) };
        let data_owner = self.data_owner.clone().unwrap_or(owner);
        let receiver = self.receiver.clone().unwrap_or_else(|| data_owner.clone());
        let owner = self.family.protocol.facts().holder(MODEL_OWNER).unwrap_or(OWNER);
        let model_owner = self.model_owner.clone().unwrap_or(Place::Party(owner));
        let mut roles = Roles::new(data_owner, model_owner, receiver);
        for text in &self.role {
            let (role, place) = text.split_once('=').ok_or("write ROLE=PLACE".to_owned()).map_err(unclear)?;
            roles = roles.with(role, place.parse().map_err(unclear)?).map_err(unclear)?;
        }
        let Chosen { security, parties, parameters, .. } = self.family.chosen()?;
        let protocol = self.family.protocol;
        let setting = Setting { protocol, security, parties, parameters, roles, each_client };
        for (role, place) in setting.roles.all() {
            if *place == Place::Dealer {
                let cause = "the dealer knows every mask, so it must not own data or see results";
                return Err(CliError::usage(cause, "give the role to a party or to a client"));
            }
            setting.has(place)?;
            if let Some((problem, remedy)) = against_rules(setting.protocol.facts().rules, role, place) {
                return Err(CliError::usage(format!("{role}: {problem}"), remedy));
            }
        }
        Ok(setting)
    }
}

fn unclear(cause: String) -> CliError {
    CliError::usage(cause, "for example `--role label_owner=client:clinic`")
}

/// So many parties, and a dealer where there is one.
fn nodes(parties: usize, dealer: bool) -> Vec<Place> {
    (0..parties).map(|i| Place::Party(i as u8)).chain(dealer.then_some(Place::Dealer)).collect()
}

/// Refuse a party or dealer that is none of a deployment's `nodes`.
fn refuse_unknown(protocol: Protocol, nodes: &[Place], place: &Place) -> Result<(), CliError> {
    if matches!(place, Place::Client(_)) || nodes.contains(place) {
        return Ok(());
    }
    let names: Vec<String> = nodes.iter().map(Place::to_string).collect();
    let (facts, cause) = (protocol.facts(), format!("protocol {protocol} has no {place}"));
    let parties = nodes.iter().filter(|place| **place != Place::Dealer).count();
    let mut more = match facts.parties.end() {
        &most if most > parties => format!("`--parties` makes it up to {most} parties, "),
        _ => String::new(),
    };
    if let Some(said) = facts.dealer_text().filter(|_| *place == Place::Dealer) {
        more += &format!("`--set {}` adds a dealer, ", said.replace(['"', ' '], ""));
    }
    let remedy =
        format!("it has {} and clients; {more}`--protocol` chooses another protocol", names.join(", "));
    Err(CliError::usage(cause, remedy))
}

/// Write what the options ask for.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    if let Some(dir) = &args.local {
        local::run(dir, &args, out)
    } else if let Some(me) = &args.me {
        node::run(me, &args, out)
    } else if !args.join.is_empty() {
        join(&args, out)
    } else {
        let remedy = "use `--local DIR --plan plan.json`, `--name NAME --me PLACE --address HOST:PORT`, or `--join CARD`";
        Err(CliError::usage("there is nothing to do", remedy))
    }
}

fn join(args: &Args, out: &mut Out) -> Result<(), CliError> {
    let mut draft = Draft::open(&args.dir.join("deployment.toml"))?;
    for card in &args.join {
        draft.add(card, args.replace)?;
    }
    draft.save()?;
    for card in &args.join {
        out.line(format_args!("added {} with fingerprint {}", card.place, card.fingerprint))?;
    }
    match draft.missing() {
        None => out.line("the deployment is complete; check it with `privet doctor`"),
        Some(missing) => out.line(format_args!("still missing: {missing}")),
    }
}

/// A new directory that only its owner may enter, or one that is there already.
fn private_dir(path: &Path) -> Result<(), CliError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).map_err(|e| CliError::file("create", path, e))
}

/// Write a file that must not be there yet.
fn write_new(path: &Path, text: &[u8]) -> Result<(), CliError> {
    use std::io::Write;
    let mut file = fs::File::create_new(path).map_err(|e| CliError::file("create", path, e))?;
    file.write_all(text).map_err(|e| CliError::file("write", path, e))
}

/// Refuse a directory that holds a deployment or node already: keys must not be lost by a second `init`.
fn refuse_existing(dir: &Path) -> Result<(), CliError> {
    for name in ["deployment.toml", "node.toml", "key.pem"] {
        let path = dir.join(name);
        if path.exists() {
            let cause = format!("{} is there already", path.display());
            return Err(CliError::failed(cause, "choose another directory, or remove the old one yourself"));
        }
    }
    Ok(())
}

/// Check the plan and copy it to `dir/plan.json`.
fn copy_plan(plan: &Path, dir: &Path) -> Result<(), CliError> {
    super::plan::read(plan)?;
    let bytes = fs::read(plan).map_err(|e| CliError::file("read", plan, e))?;
    write_new(&dir.join("plan.json"), &bytes)
}

/// The text of a new node file; `deployment` is relative to it. What is not given stands there as a comment.
fn node_text(me: &Place, deployment: &str, weights: Option<&Path>, threads: Option<usize>) -> String {
    let weights = weights.map_or_else(
        || "# weights = \"model.safetensors\"  # only where this node is the model owner".into(),
        |path| format!("weights = {}", toml_edit::value(path.display().to_string())),
    );
    let threads = threads.map_or_else(
        || "# threads = 2                # all cores when absent".into(),
        |n| format!("threads = {n}"),
    );
    let listen = match me.listens() {
        true => {
            "# listen = \"0.0.0.0:7701\"    # bind here instead of the deployment's address (NAT, proxy)\n"
        }
        false => "",
    };
    format!(
        "# This process. Private to its operator; the key never leaves this machine.\n\
         me = \"{me}\"\n\
         deployment = \"{deployment}\"\n\
         certificate = \"cert.pem\"\n\
         key = \"key.pem\"\n\
         store = \"store\"               # preprocessing: needs room for the keys of the runs\n\
         {listen}\
         {weights}\n\
         {threads}\n\
         # disk_budget = \"50 GB\"      # refuse to store more than this\n\
         # insecure = false           # true: plain TCP, between nodes of one machine; stamped on every report\n"
    )
}

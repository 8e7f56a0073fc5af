use super::server::{CLIENT_PARTY, Server};
use super::tables::Sifted;
use super::{Address, ConfigError, Place, Protocol, Roles, Security};
use privet_family::{Chosen, Facts, Holder, Parameters, RoleRule};
use privet_net::Fingerprint;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Largest configuration file that is read, bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// Most clients of one deployment.
const MAX_CLIENTS: usize = 4096;

/// Who takes part, where they listen, how they prove who they are, and which role each plays.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// The deployment's name, for logs and certificates.
    pub name: String,
    /// The protocol family.
    pub protocol: Protocol,
    /// What the protocol has to withstand.
    pub security: Security,
    /// The plan; absolute or relative to the working directory once loaded from a file.
    pub plan: PathBuf,
    /// The computing parties; a party's number is its index.
    pub parties: Vec<Endpoint>,
    /// The dealer; there exactly where the protocol has one.
    pub dealer: Option<Endpoint>,
    /// Who else may connect.
    pub clients: BTreeMap<String, Client>,
    /// Who plays which role.
    pub roles: Roles,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// The table that has the protocol's name.
    pub parameters: Parameters,
}

/// A process that others dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where the others reach it.
    pub address: Address,
    /// Its certificate.
    pub fingerprint: Fingerprint,
}

/// A process that only dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its certificate.
    pub fingerprint: Fingerprint,
}

/// How long to wait before a silent peer counts as gone. Whole seconds in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a peer to come up and shake hands.
    pub connect: Duration,
    /// For one step of the plan.
    pub step: Duration,
    /// Between two signs of life on an idle connection.
    pub heartbeat: Duration,
}

impl Timeouts {
    /// Without a turn of whoever does this side's work, as its heartbeats show them. A party that waits has turns, whatever it
    /// waits for; one that waits for another in a step names that one before it is given up itself.
    pub fn turn(&self) -> Duration {
        self.step + 2 * self.connect + 2 * self.heartbeat
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let s = Duration::from_secs;
        Timeouts { connect: s(30), step: s(300), heartbeat: s(5) }
    }
}

impl Deployment {
    /// What it chooses of what its protocol leaves open.
    pub fn chosen(&self) -> Chosen {
        let Deployment { security, parties, parameters, roles, .. } = self;
        let (security, parties, parameters) = (*security, parties.len(), parameters.clone());
        Chosen { security, parties, parameters, model_at: roles.model_owner().party(), together: None }
    }

    /// Where a place is dialled; clients are not.
    pub fn address(&self, place: &Place) -> Option<&Address> {
        self.endpoint(place).map(|e| &e.address)
    }

    /// The certificate a place must show; `None` when the deployment has no such place.
    pub fn fingerprint(&self, place: &Place) -> Option<&Fingerprint> {
        match place {
            Place::Client(name) => self.clients.get(name).map(|c| &c.fingerprint),
            _ => self.endpoint(place).map(|e| &e.fingerprint),
        }
    }

    /// Who shows this certificate.
    pub fn place_of(&self, fingerprint: &Fingerprint) -> Option<Place> {
        self.places().into_iter().find(|p| self.fingerprint(p) == Some(fingerprint))
    }

    /// Every place: parties, the dealer if there is one, clients.
    pub fn places(&self) -> Vec<Place> {
        let parties = (0..self.parties.len()).map(|i| Place::Party(i as u8));
        let dealer = self.dealer.iter().map(|_| Place::Dealer);
        let clients = self.clients.keys().cloned().map(Place::Client);
        parties.chain(dealer).chain(clients).collect()
    }

    fn endpoint(&self, place: &Place) -> Option<&Endpoint> {
        match place {
            Place::Party(i) => self.parties.get(usize::from(*i)),
            Place::Dealer => self.dealer.as_ref(),
            Place::Client(_) => None,
        }
    }
}

/// Parse and check the `deployment.toml` of one deployment; see [`parse_deployment_file`].
pub fn parse_deployment(text: &str) -> Result<Deployment, ConfigError> {
    match parse_deployment_file(text)? {
        DeploymentFile::One(deployment) => Ok(*deployment),
        DeploymentFile::EachClient(_) => Err(ConfigError::invalid(
            "parties.1.each_client",
            "there is a deployment for each client here, and none for this",
            "start the server with `privet serve`, and a client's party with the client's node file",
        )),
    }
}

/// Parse and check `deployment.toml`. `plan` stays as written.
///
/// Takes untrusted text: bounded, never panics.
pub fn parse_deployment_file(text: &str) -> Result<DeploymentFile, ConfigError> {
    if text.len() > MAX_TEXT {
        return Err(ConfigError::invalid(
            "deployment",
            "the file is larger than 1 MiB",
            "give the right file",
        ));
    }
    let Sifted { tables, rest } = toml::from_str::<Sifted<Raw>>(text).map_err(ConfigError::syntax)?;
    rest.file(tables)
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    name: String,
    pub protocol: Protocol,
    security: Option<Security>,
    plan: PathBuf,
    #[serde(default)]
    pub parties: BTreeMap<String, RawNode>,
    dealer: Option<RawNode>,
    #[serde(default)]
    pub clients: BTreeMap<String, RawNode>,
    roles: Roles,
    #[serde(default)]
    timeouts: RawTimeouts,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNode {
    pub address: Option<Address>,
    pub fingerprint: Option<String>,
    /// The party is each client in turn.
    #[serde(default)]
    each_client: bool,
}

impl RawNode {
    /// The certificate of a client that is a party of its own deployment, and where its own programs reach it.
    pub fn of_client(&self, name: &str) -> Result<(Fingerprint, Option<Address>), ConfigError> {
        let without = RawNode { address: None, ..self.clone() };
        let (_, Client { fingerprint }) = client((&name.to_owned(), &without))?;
        match &self.address {
            Some(address) if !address.is_loopback() => Err(ConfigError::invalid(
                format!("clients.{name}.address"),
                "a client of a server listens for its own programs alone, and others could reach this address",
                "write an address of that machine, such as 127.0.0.1:7702, or remove the key",
            )),
            address => Ok((fingerprint, address.clone())),
        }
    }
}

#[derive(Clone, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawTimeouts {
    connect: Option<u64>,
    step: Option<u64>,
    heartbeat: Option<u64>,
}

/// What a deployment file describes.
#[derive(Clone, Debug, PartialEq)]
pub enum DeploymentFile {
    /// One deployment.
    One(Box<Deployment>),
    /// A server with a deployment for each of its clients.
    EachClient(Box<Server>),
}

impl Raw {
    /// Whether party 1 is each client.
    fn each_client(&self) -> Result<bool, ConfigError> {
        let clients = self.clients.iter().map(|(name, raw)| (format!("clients.{name}"), raw));
        let parties = self.parties.iter().filter(|(i, _)| **i != CLIENT_PARTY.to_string());
        let parties = parties.map(|(i, raw)| (format!("parties.{i}"), raw));
        let others = self.dealer.iter().map(|raw| ("dealer".to_owned(), raw)).chain(parties).chain(clients);
        match others.into_iter().find(|(_, raw)| raw.each_client) {
            Some((table, _)) => Err(ConfigError::invalid(
                format!("{table}.each_client"),
                "only party 1 can be each client",
                "remove the key, or write it to [parties.1]",
            )),
            None => Ok(self.parties.get("1").is_some_and(|party| party.each_client)),
        }
    }

    fn file(self, tables: Vec<(Protocol, Parameters)>) -> Result<DeploymentFile, ConfigError> {
        Ok(match self.each_client()? {
            true => DeploymentFile::EachClient(Box::new(Server::check(self, &tables)?)),
            false => DeploymentFile::One(Box::new(self.check(tables)?)),
        })
    }

    /// Put somebody in the place of a party.
    pub fn set_party(&mut self, party: u8, fingerprint: &Fingerprint, address: &Address) {
        let (address, fingerprint) = (Some(address.clone()), Some(fingerprint.to_string()));
        self.parties.insert(party.to_string(), RawNode { address, fingerprint, each_client: false });
    }

    pub(super) fn check(self, tables: Vec<(Protocol, Parameters)>) -> Result<Deployment, ConfigError> {
        if !Place::valid_name(&self.name) {
            return Err(ConfigError::invalid("name", "not a name", "use letters, digits, `-`, `_` and `.`"));
        }
        let facts = self.protocol.facts();
        let parties = count_parties(facts, &self.parties)?;
        few_enough(&self.clients)?;
        let security = self.protocol.choose(self.security).map_err(|e| {
            let mut remedy = format!("write \"{}\"", facts.default_security());
            e.others().for_each(|other| remedy += &format!(", or choose protocol = \"{other}\""));
            ConfigError::invalid("security", e.to_string(), remedy)
        })?;
        let parameters = own_table(self.protocol, tables)?;
        let dealer = match (facts.has_dealer(&parameters), &self.dealer) {
            (true, raw) => Some(endpoint(Place::Dealer, raw.as_ref())?),
            (false, None) => None,
            (false, Some(_)) => return Err(no_dealer(self.protocol)),
        };
        let party = |i: usize| endpoint(Place::Party(i as u8), self.parties.get(&i.to_string()));
        let deployment = Deployment {
            parties: (0..parties).map(party).collect::<Result<_, _>>()?,
            dealer,
            clients: self.clients.iter().map(client).collect::<Result<_, _>>()?,
            name: self.name,
            protocol: self.protocol,
            security,
            plan: self.plan,
            roles: self.roles,
            timeouts: self.timeouts.check()?,
            parameters,
        };
        deployment.check_roles()?;
        deployment.check_fingerprints()?;
        deployment.check_addresses()?;
        Ok(deployment)
    }
}

/// How many parties there are: as many as have a table, within what the protocol computes with. Whoever is missing among them is
/// named when its table is read.
pub(super) fn count_parties<T>(facts: &Facts, tables: &BTreeMap<String, T>) -> Result<usize, ConfigError> {
    let most = *facts.parties.end();
    match tables.keys().find(|key| !(0..most).any(|i| i.to_string() == **key)) {
        Some(extra) => Err(ConfigError::invalid(
            format!("parties.{extra}"),
            format!("protocol {} has parties 0 to {}", facts.name, most - 1),
            "remove that table",
        )),
        None => Ok(tables.len().max(facts.fewest_parties())),
    }
}

/// Not more clients than a file may have.
pub(super) fn few_enough<T>(clients: &BTreeMap<String, T>) -> Result<(), ConfigError> {
    match clients.len() > MAX_CLIENTS {
        true => {
            let problem = format!("more than {MAX_CLIENTS} clients");
            Err(ConfigError::invalid("clients", problem, "split the deployment"))
        }
        false => Ok(()),
    }
}

/// The refusal of a dealer that the deployment does not have.
fn no_dealer(protocol: Protocol) -> ConfigError {
    let problem = match protocol.facts().dealer_text() {
        None => format!("protocol {protocol} has no dealer"),
        Some(said) => format!("protocol {protocol} has a dealer only with `{said}` in [{protocol}]"),
    };
    ConfigError::invalid("dealer", problem, "remove that table")
}

/// The table that has the protocol's name; no other family's may be there.
fn own_table(protocol: Protocol, tables: Vec<(Protocol, Parameters)>) -> Result<Parameters, ConfigError> {
    let mut own = Parameters::default();
    for (family, parameters) in tables {
        if family != protocol {
            let problem = format!("the protocol is {protocol}, which does not read this table");
            let remedy = format!("remove that table, or choose protocol = \"{family}\"");
            return Err(ConfigError::invalid(family.to_string(), problem, remedy));
        }
        own = parameters;
    }
    Ok(own)
}

fn endpoint(place: Place, raw: Option<&RawNode>) -> Result<Endpoint, ConfigError> {
    let table = place.table();
    let join = format!(
        "ask the operator of {place} for its card (`privet certs show`), then `privet init --join CARD`"
    );
    let raw = raw.ok_or_else(|| ConfigError::invalid(&table, "the table is missing", &join))?;
    let missing = |key: &str| ConfigError::invalid(format!("{table}.{key}"), "the key is missing", &join);
    Ok(Endpoint {
        address: raw.address.clone().ok_or_else(|| missing("address"))?,
        fingerprint: fingerprint(&table, raw)?.ok_or_else(|| missing("fingerprint"))?,
    })
}

fn client((name, raw): (&String, &RawNode)) -> Result<(String, Client), ConfigError> {
    let table = format!("clients.{name}");
    if !Place::valid_name(name) {
        return Err(ConfigError::invalid(table, "not a name", "use letters, digits, `-`, `_` and `.`"));
    }
    if raw.address.is_some() {
        let problem = "clients are never dialled";
        return Err(ConfigError::invalid(format!("{table}.address"), problem, "remove the key"));
    }
    let remedy = format!("ask {name} for its card (`privet certs show`), then `privet init --join CARD`");
    let missing = || ConfigError::invalid(format!("{table}.fingerprint"), "the key is missing", remedy);
    Ok((name.clone(), Client { fingerprint: fingerprint(&table, raw)?.ok_or_else(missing)? }))
}

fn fingerprint(table: &str, raw: &RawNode) -> Result<Option<Fingerprint>, ConfigError> {
    let Some(text) = &raw.fingerprint else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        ConfigError::invalid(
            format!("{table}.fingerprint"),
            "not a certificate fingerprint",
            "paste what `privet certs fingerprint` prints on that machine",
        )
    })
}

impl RawTimeouts {
    fn check(self) -> Result<Timeouts, ConfigError> {
        let default = Timeouts::default();
        let seconds = |key: &str, value: Option<u64>, default: Duration| match value {
            None => Ok(default),
            Some(s @ 1..=86_400) => Ok(Duration::from_secs(s)),
            Some(_) => Err(ConfigError::invalid(
                format!("timeouts.{key}"),
                "out of range",
                "give whole seconds from 1 to 86400",
            )),
        };
        Ok(Timeouts {
            connect: seconds("connect", self.connect, default.connect)?,
            step: seconds("step", self.step, default.step)?,
            heartbeat: seconds("heartbeat", self.heartbeat, default.heartbeat)?,
        })
    }
}

/// Why a place may not have a role, and who may.
pub(crate) fn against_rules(rules: &[RoleRule], role: &str, place: &Place) -> Option<(String, String)> {
    let party = if let Place::Party(number) = place { Some(*number) } else { None };
    let broken = rules.iter().find(|rule| rule.is_about(role) && !rule.allows(party))?;
    let holder = match broken.holder {
        Holder::AnyParty => "a party".to_owned(),
        Holder::Party(number) => Place::Party(number).to_string(),
    };
    let problem = format!("{place} must not have this role: {}", broken.because);
    Some((problem, format!("give the role to {holder}, or choose another protocol")))
}

impl Deployment {
    fn check_roles(&self) -> Result<(), ConfigError> {
        for (role, place) in self.roles.all() {
            let key = format!("roles.{role}");
            if *place == Place::Dealer {
                // The dealer knows every mask; with anybody's data as well it would know that data.
                let remedy = "give the role to a party or to a client";
                return Err(ConfigError::invalid(key, "the dealer must not own data or see results", remedy));
            }
            if self.fingerprint(place).is_none() {
                let remedy = format!("add [{}] or give the role to somebody who is there", place.table());
                return Err(ConfigError::invalid(key, format!("{place} is not in this deployment"), remedy));
            }
            if let Some((problem, remedy)) = against_rules(self.protocol.facts().rules, role, place) {
                return Err(ConfigError::invalid(key, problem, remedy));
            }
        }
        Ok(())
    }

    fn check_fingerprints(&self) -> Result<(), ConfigError> {
        let mut seen: BTreeMap<String, Place> = BTreeMap::new();
        for place in self.places() {
            let Some(fingerprint) = self.fingerprint(&place) else { continue };
            if let Some(first) = seen.insert(fingerprint.to_string(), place.clone()) {
                return Err(ConfigError::invalid(
                    format!("{}.fingerprint", place.table()),
                    format!("{first} has the same certificate, so the two could not be told apart"),
                    "give each place a certificate of its own (`privet certs new`)",
                ));
            }
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        let mut seen: BTreeMap<String, Place> = BTreeMap::new();
        for place in self.places() {
            let Some(address) = self.address(&place) else { continue };
            if let Some(first) = seen.insert(address.to_string(), place.clone()) {
                return Err(ConfigError::invalid(
                    format!("{}.address", place.table()),
                    format!("{first} listens on {address} too"),
                    "give each place a host or a port of its own",
                ));
            }
        }
        Ok(())
    }
}

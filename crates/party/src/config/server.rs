//! One server with many clients: a deployment for each of them, in which that client is party 1 and nobody else is a client.

use super::deployment::Raw;
use super::{Address, ConfigError, Deployment, Place, Protocol};
use privet_family::Parameters;
use privet_net::Fingerprint;
use std::collections::BTreeMap;
use std::path::Path;

/// The party that each client is.
pub const CLIENT_PARTY: u8 = 1;

/// Where a client's own programs reach it, unless its table says otherwise: nobody else does.
const OWN_PROGRAMS: &str = "127.0.0.1:7702";

/// What a file says in which party 1 is each client.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Everything but the clients. Its party 1 has a certificate that nobody can show, so it is never handed out as a deployment.
    nobody: Deployment,
    clients: BTreeMap<String, Deployment>,
}

impl Server {
    /// A deployment a client, each checked as if it stood in a file by itself.
    pub(super) fn check(mut raw: Raw, tables: &[(Protocol, Parameters)]) -> Result<Server, ConfigError> {
        if !raw.protocol.serves_clients() {
            return Err(ConfigError::invalid(
                "parties.1.each_client",
                format!("protocol {} has no server that many clients share", raw.protocol),
                format!("remove the key, or choose {}", Protocol::choose_for_clients()),
            ));
        }
        if raw.parties.get("1").is_some_and(|party| party.address.is_some() || party.fingerprint.is_some()) {
            let problem = "each client has a certificate of its own, in its own table";
            return Err(ConfigError::invalid("parties.1", problem, "remove the other keys of that table"));
        }
        super::deployment::few_enough(&raw.clients)?;
        let clients = std::mem::take(&mut raw.clients);
        let own: Address =
            OWN_PROGRAMS.parse().map_err(|e: String| ConfigError::invalid("clients", e, ""))?;
        let mut of = |fingerprint: &Fingerprint, address: &Address| {
            raw.set_party(CLIENT_PARTY, fingerprint, address);
            raw.clone().check(tables.to_vec())
        };
        let nobody = of(&Fingerprint::of(b""), &own)?;
        let mut deployments = BTreeMap::new();
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (name, table) in &clients {
            let (fingerprint, address) = table.of_client(name)?;
            if let Some(first) = seen.insert(fingerprint.to_string(), name.clone()) {
                return Err(ConfigError::invalid(
                    format!("clients.{name}.fingerprint"),
                    format!("client:{first} has the same certificate, so the two could not be told apart"),
                    "give each client a certificate of its own (`privet init --me client:NAME`)",
                ));
            }
            let deployment = of(&fingerprint, address.as_ref().unwrap_or(&own));
            let place = Place::Client(name.clone()).table();
            deployments.insert(name.clone(), deployment.map_err(|e| e.about("parties.1", &place))?);
        }
        Ok(Server { nobody, clients: deployments })
    }

    /// Every client with its deployment.
    pub fn clients(&self) -> impl Iterator<Item = (&str, &Deployment)> {
        self.clients.iter().map(|(name, deployment)| (name.as_str(), deployment))
    }

    /// A client's deployment.
    pub fn of(&self, client: &str) -> Option<&Deployment> {
        self.clients.get(client)
    }

    /// What all clients' deployments say alike; it serves nobody. Two servers that differ in clients alone have the same.
    pub fn common(&self) -> Common<'_> {
        Common(&self.nobody)
    }

    /// The plan's path, relative to `dir`.
    pub(super) fn relative_to(mut self, dir: &Path) -> Server {
        for deployment in self.clients.values_mut().chain([&mut self.nobody]) {
            deployment.plan = dir.join(&deployment.plan);
        }
        self
    }
}

/// What all deployments of a server say alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common<'a>(&'a Deployment);

impl<'a> Common<'a> {
    /// Where the server is reached.
    pub fn address(self) -> Option<&'a Address> {
        self.0.address(&Place::Party(0))
    }

    /// The plan.
    pub fn plan(self) -> &'a Path {
        &self.0.plan
    }

    /// The protocol family.
    pub fn protocol(self) -> Protocol {
        self.0.protocol
    }

    /// The family as plans see it.
    pub fn forecast(self) -> Box<dyn privet_family::Forecast> {
        self.0.protocol.forecast(&self.0.chosen())
    }

    /// Whether some place has a role.
    pub fn has_role(self, role: &str) -> bool {
        self.0.roles.get(role).is_some()
    }
}

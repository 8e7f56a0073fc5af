//! The one place where the name of a protocol family becomes code. A family is one line of [`FAMILIES`]; what the line
//! names, [`Registered`], is the family's own, in its room `session/family/NAME`.

use crate::events::Events;
use crate::session::clients::Host;
#[cfg(feature = "clear")]
use crate::session::family::clear;
use crate::session::family::{Outside, fss, heot, rep3, semi2k};
use crate::session::links::Links;
use crate::session::party::ServeError;
use crate::store::StoreError;
use privet_family::{Chosen, Facts, Forecast, NodeStats};
use privet_kernels::Device;
use privet_net::NetError;
use privet_plan::cost::Security;
use privet_plan::ir::Op;
use privet_plan::{Plan, Program};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// Every family of this version; the first where nobody chooses.
pub const FAMILIES: &[&Registered] = &[
    &fss::REGISTERED,
    &rep3::REGISTERED,
    &semi2k::REGISTERED,
    &heot::REGISTERED,
    #[cfg(feature = "clear")]
    &clear::REGISTERED,
];

#[cfg(all(feature = "clear", not(debug_assertions)))]
compile_error!("the feature `clear` is for tests: whoever runs under that family shows everybody everything");

/// What a family gives to those who do not know it.
pub struct Registered {
    /// What holds for all plans.
    pub(crate) facts: &'static Facts,
    /// What it says of plans.
    pub(crate) forecast: fn(&Chosen) -> Box<dyn Forecast>,
    /// Serve as the party with this number, until the process ends.
    pub(crate) serve: ServeParty,
    /// Serve many clients as party 0, each as party 1 of a deployment of its own; there where the family has such a server.
    pub(crate) serve_clients: Option<ServeClients>,
    /// The side of those who own tensors or receive results.
    pub(crate) outside: &'static dyn Outside,
    /// The dealer's side; there exactly where a deployment may have a dealer.
    pub(crate) dealer: Option<DealerService>,
    /// Whether a comparison is evaluations of the kernel `compare`, which a benchmark then measures alone, too.
    pub(crate) compares_by_kernel: bool,
}

/// A party's service: its number, its connections, what it serves, on what device, and where its events go.
pub(crate) type ServeParty =
    fn(u8, Arc<Links>, Arc<Program>, Arc<dyn Device>, Events) -> Result<(), ServeError>;

/// A server's service for many clients: its connections, what it serves, and where its events go.
pub(crate) type ServeClients = fn(Host, Arc<Program>, Events) -> Result<(), ServeError>;

/// The dealer's service, likewise.
pub(crate) type ServeDealer = fn(Links, &Program, Arc<dyn Device>, Events) -> Result<(), NetError>;

/// A dealer's session for a plan among so many parties, on a device.
pub(crate) type NewDeal = fn(usize, Arc<Plan>, Arc<dyn Device>) -> Box<dyn DealToFiles>;

/// What a family's dealer does.
pub(crate) struct DealerService {
    /// Serve parties until the process ends.
    pub serve: ServeDealer,
    /// A new session whose records go to files.
    pub session: NewDeal,
}

/// A dealer without a network, in one session.
pub(crate) trait DealToFiles {
    /// Deal so many runs into the parties' stores, one each in order; gives the costs of the plan's nodes.
    fn deal(&mut self, stores: &[PathBuf], runs: u64) -> Result<Vec<NodeStats>, StoreError>;
}

/// A protocol family that this version runs.
#[derive(Clone, Copy)]
pub struct Protocol(&'static Registered);

/// A name that no family has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no protocol `{}`; this version has {}", name.escape_debug(), listed())]
pub struct UnknownProtocol {
    /// The name.
    pub name: String,
}

/// A family was to withstand what it does not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("protocol {protocol} is not secure against {security} parties")]
pub struct NotWithstood {
    /// The family.
    pub protocol: Protocol,
    /// What it does not withstand.
    pub security: Security,
}

impl NotWithstood {
    /// The families that do.
    pub fn others(&self) -> impl Iterator<Item = Protocol> {
        let security = self.security;
        Protocol::all().filter(move |p| p.facts().withstands.contains(&security))
    }
}

impl Protocol {
    /// Every family, in order.
    pub fn all() -> impl Iterator<Item = Protocol> {
        FAMILIES.iter().map(|family| Protocol(family))
    }

    /// What holds for all plans.
    pub fn facts(self) -> &'static Facts {
        self.0.facts
    }

    /// What the family gives to those who do not know it.
    pub(crate) fn registered(self) -> &'static Registered {
        self.0
    }

    /// Whether one server of it can serve many clients, each in a deployment of its own.
    pub fn serves_clients(self) -> bool {
        self.0.serve_clients.is_some()
    }

    /// What to do where it does not: the families that can.
    pub(crate) fn choose_for_clients() -> String {
        let can = Protocol::all().filter(|p| p.serves_clients()).map(|p| format!("protocol = \"{p}\""));
        can.collect::<Vec<_>>().join(" or ")
    }

    /// What the family says of plans.
    pub fn forecast(self, chosen: &Chosen) -> Box<dyn Forecast> {
        (self.0.forecast)(chosen)
    }

    /// Whether it runs plans with states, and so trains.
    pub fn trains(self) -> bool {
        let chosen = Chosen::by_default(self.facts(), self.facts().default_security());
        self.forecast(&chosen).has(&Op::State { name: "state".into(), owner: "owner".into() })
    }

    /// What it has to withstand, its default where nothing is chosen.
    pub fn choose(self, security: Option<Security>) -> Result<Security, NotWithstood> {
        let security = security.unwrap_or(self.facts().default_security());
        match self.facts().withstands.contains(&security) {
            true => Ok(security),
            false => Err(NotWithstood { protocol: self, security }),
        }
    }
}

/// Every family, against each kind of parties that it withstands, with its defaults.
pub fn forecasts() -> impl Iterator<Item = Box<dyn Forecast>> {
    let each = |p: Protocol| p.facts().withstands.iter().map(move |&security| (p, security));
    Protocol::all().flat_map(each).map(|(p, security)| p.forecast(&Chosen::by_default(p.facts(), security)))
}

/// Every family with who computes in it, for people: `fss (two parties and a dealer), ...`.
pub fn listed() -> String {
    let one = |p: Protocol| format!("{p} ({})", p.facts().about);
    Protocol::all().map(one).collect::<Vec<_>>().join(", ")
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol(FAMILIES[0])
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Protocol) -> bool {
        self.facts().name == other.facts().name
    }
}

impl Eq for Protocol {}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol({self})")
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Protocol, UnknownProtocol> {
        let mut all = Protocol::all();
        all.find(|p| p.facts().name == name).ok_or_else(|| UnknownProtocol { name: name.to_owned() })
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.facts().name)
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Place;
    use privet_family::Dealing;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_registered_is_what_the_family_says() {
        let names: BTreeSet<&str> = FAMILIES.iter().map(|f| f.facts.name).collect();
        assert_eq!(names.len(), FAMILIES.len(), "each name once");
        for protocol in Protocol::all() {
            let (registered, facts) = (protocol.registered(), protocol.facts());
            assert_eq!(facts.may_have_dealer(), registered.dealer.is_some(), "{protocol}");
            assert!(
                facts.needs_preparation() || !facts.may_have_dealer(),
                "{protocol}: what would be dealt?"
            );
            if registered.serve_clients.is_some() {
                assert_eq!(
                    (facts.parties.clone(), facts.holder("model_owner")),
                    (2..=2, Some(0)),
                    "{protocol}"
                );
            }
            if let Dealing::Chosen(parameter, word) = facts.dealing {
                assert!(facts.parameters.contains(parameter), "{protocol}.{}", parameter.name);
                assert!(parameter.word(word).is_some_and(|n| n != parameter.default()), "{protocol}: {word}");
            }
            assert!(facts.parties.end() >= facts.parties.start() && facts.fewest_parties() >= 2);
            let last = Place::Party((facts.parties.end() - 1) as u8).to_string();
            assert!(last.parse::<Place>().is_ok(), "{last} can be written");
            assert!(!facts.withstands.is_empty());
            for &security in facts.withstands {
                let family = protocol.forecast(&Chosen::by_default(facts, security));
                assert_eq!(
                    (family.facts(), family.protocol(), family.security()),
                    (facts, facts.name, security)
                );
            }
            for p in facts.parameters {
                assert!(p.allows(p.default()), "{protocol}.{}", p.name);
            }
        }
        let forecasts: usize = FAMILIES.iter().map(|f| f.facts.withstands.len()).sum();
        assert_eq!(self::forecasts().count(), forecasts);
    }

    #[test]
    fn families_are_found_by_their_names_alone() {
        for protocol in Protocol::all() {
            let name = protocol.to_string();
            assert_eq!(name.parse(), Ok(protocol));
            assert_eq!(serde_json::to_string(&protocol).unwrap(), format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Protocol>(&format!("\"{name}\"")).unwrap(), protocol);
            assert!(name.to_uppercase().parse::<Protocol>().is_err());
        }
        let error = serde_json::from_str::<Protocol>("\"bg\\nw\"").unwrap_err().to_string();
        assert!(
            error.contains("no protocol `bg\\nw`; this version has fss (two parties and a dealer), rep3 (")
        );
    }

    #[test]
    fn who_does_not_withstand_names_those_who_do() {
        for protocol in Protocol::all() {
            let facts = protocol.facts();
            assert_eq!(protocol.choose(None), Ok(facts.withstands[0]));
            for security in [Security::Malicious, Security::SemiHonest] {
                match protocol.choose(Some(security)) {
                    Ok(chosen) => assert!(chosen == security && facts.withstands.contains(&security)),
                    Err(e) => {
                        assert!(!facts.withstands.contains(&security) && e.others().all(|p| p != protocol))
                    }
                }
            }
        }
    }
}

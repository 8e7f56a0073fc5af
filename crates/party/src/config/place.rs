use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Most characters of a client's name.
const MAX_NAME: usize = 64;

/// One process of a deployment: `party:0`, `party:1`, ..., `dealer` or `client:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Place {
    /// A computing party.
    Party(u8),
    /// The dealer of correlated randomness.
    Dealer,
    /// Somebody outside who shares inputs or receives outputs.
    Client(String),
}

impl Place {
    /// A name that may stand in file names, certificates and reports: letters, digits, `-`, `_`, `.`.
    pub fn valid_name(name: &str) -> bool {
        (1..=MAX_NAME).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    }

    /// The key of this place's table in `deployment.toml`: `parties.0`, `dealer`, `clients.alice`.
    pub fn table(&self) -> String {
        match self {
            Place::Party(i) => format!("parties.{i}"),
            Place::Dealer => "dealer".into(),
            Place::Client(name) => format!("clients.{name}"),
        }
    }

    /// The party's number, where it is one.
    pub fn party(&self) -> Option<u8> {
        match self {
            Place::Party(number) => Some(*number),
            Place::Dealer | Place::Client(_) => None,
        }
    }

    /// True for the places that other processes dial.
    pub fn listens(&self) -> bool {
        !matches!(self, Place::Client(_))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Party(i) => write!(f, "party:{i}"),
            Place::Dealer => f.write_str("dealer"),
            Place::Client(name) => write!(f, "client:{name}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(s: &str) -> Result<Place, String> {
        let place = match s.split_once(':') {
            None if s == "dealer" => Some(Place::Dealer),
            Some(("party", i)) if i.len() == 1 => i.parse().ok().map(Place::Party),
            Some(("client", name)) if Place::valid_name(name) => Some(Place::Client(name.into())),
            _ => None,
        };
        place.ok_or_else(|| {
            format!(
                "`{}` is not a place; write \"party:0\" (or another number), \"dealer\" or \"client:NAME\" \
                 (letters, digits, `-`, `_`, `.`; at most {MAX_NAME})",
                s.escape_debug()
            )
        })
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(s: String) -> Result<Place, String> {
        s.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        place.to_string()
    }
}

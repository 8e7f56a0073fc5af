//! The two TOML files of an installation, with unknown keys refused.
//!
//! `deployment.toml` says who takes part and is the same for everybody; `node.toml` is private to one process and
//! says which place it takes, where its key lies and what it may use. Paths are relative to the file they stand in.

mod address;
mod card;
mod deployment;
mod error;
mod load;
mod node;
mod place;
mod roles;
mod server;
mod tables;
mod terms;

pub use address::Address;
pub use card::Card;
pub(crate) use deployment::against_rules;
pub use deployment::{
    Client, Deployment, DeploymentFile, Endpoint, Timeouts, parse_deployment, parse_deployment_file,
};
pub use error::ConfigError;
pub use load::{Host, Loaded, check_insecure, load_deployment, load_file, load_node};
pub use node::{Bytes, LogSettings, MetricsSettings, Node, parse_node};
pub use place::Place;
pub use roles::{LABEL_OWNER, Roles};
pub use server::{CLIENT_PARTY, Common, Server};

pub use crate::registry::Protocol;
pub use privet_plan::cost::Security;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// A value by its name in configuration files.
pub fn named<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let name: StrDeserializer<Error> = text.into_deserializer();
    T::deserialize(name)
}

#[cfg(test)]
mod tests;

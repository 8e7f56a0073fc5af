//! Where the name of a protocol family becomes what its crate says of plans; nothing else above the protocols asks
//! which family it is.

use crate::config::{Protocol, Security};
use privet_family::Forecast;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// Prices, openings and remarks of a family.
pub fn forecast(protocol: Protocol, security: Security) -> Box<dyn Forecast> {
    match protocol {
        Protocol::Fss => Box::new(privet_fss::Fss),
        Protocol::Rep3 => Box::new(privet_rep3::Rep3::new(security)),
    }
}

/// What the protocol has to withstand, its default where nothing is chosen; the error says what it does not.
pub fn choose(protocol: Protocol, security: Option<Security>) -> Result<Security, String> {
    let security = security.unwrap_or(protocol.default_security());
    match protocol.withstands().contains(&security) {
        true => Ok(security),
        false => Err(format!("protocol {protocol} is not secure against {security} parties")),
    }
}

/// A protocol or a security by its name in configuration files.
pub fn named<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let name: StrDeserializer<Error> = text.into_deserializer();
    T::deserialize(name)
}

//! Where the name of a protocol family becomes what its crate says of plans ([`Forecast`]): prices, refusals, openings.

use crate::config::{Protocol, Security};
use privet_family::Forecast;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// What a family says of plans.
pub fn forecast(protocol: Protocol, security: Security) -> Box<dyn Forecast> {
    match protocol {
        Protocol::Fss => Box::new(privet_fss::Fss),
        Protocol::Rep3 => Box::new(privet_rep3::Rep3 { security }),
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

/// Every family of this version, against each kind of parties that it withstands.
pub fn all() -> Vec<Box<dyn Forecast>> {
    let each = |p: Protocol| p.withstands().iter().map(move |&security| forecast(p, security));
    Protocol::ALL.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_says_of_a_family_is_what_the_family_says() {
        for protocol in Protocol::ALL {
            for &security in protocol.withstands() {
                let family = forecast(protocol, security);
                let facts = family.facts();
                assert_eq!((family.protocol(), family.security()), (facts.name, security));
                assert_eq!(facts.name, protocol.to_string());
                assert!(facts.parties.contains(&protocol.parties()));
                assert_eq!(facts.has_dealer, protocol.has_dealer());
                assert_eq!(facts.withstands, protocol.withstands());
            }
        }
    }
}

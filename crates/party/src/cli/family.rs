use super::CliError;
use crate::config::{Protocol, Security};
use crate::family::forecast;
use privet_family::Forecast;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// Which protocol a command is about, and what it has to withstand.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Family {
    /// Protocol family: fss (two parties and a dealer) or rep3 (three parties).
    #[arg(long, default_value = "fss", value_parser = named::<Protocol>)]
    pub protocol: Protocol,
    /// What it has to withstand: malicious (rep3 alone, its default) or semi-honest.
    #[arg(long, value_parser = named::<Security>)]
    security: Option<Security>,
}

impl Family {
    /// What the protocol has to withstand. Refuses what it does not.
    pub fn security(&self) -> Result<Security, CliError> {
        let security = self.security.unwrap_or(self.protocol.default_security());
        if self.protocol.withstands().contains(&security) {
            return Ok(security);
        }
        let cause = format!("protocol {} is not secure against {security} parties", self.protocol);
        Err(CliError::usage(cause, "add `--protocol rep3`, or leave `--security` out"))
    }

    /// What the family says of plans.
    pub fn forecast(&self) -> Result<Box<dyn Forecast>, CliError> {
        forecast(self.protocol, self.security()?).ok_or_else(|| {
            CliError::usage(format!("no prices are known for {}", self.protocol), "give --protocol fss")
        })
    }

    /// The same choice as arguments of another `privet` command.
    pub fn arguments(&self) -> Result<[String; 4], CliError> {
        let (protocol, security) = (self.protocol.to_string(), self.security()?.to_string());
        Ok(["--protocol".into(), protocol, "--security".into(), security])
    }
}

/// A value by its name in configuration files.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let name: StrDeserializer<Error> = text.into_deserializer();
    T::deserialize(name)
}

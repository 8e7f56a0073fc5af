use super::CliError;
use crate::config::Protocol;
use crate::family::forecast;
use privet_family::Forecast;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// Which protocol a command is about.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Family {
    /// Protocol family: fss.
    #[arg(long, default_value = "fss", value_parser = named::<Protocol>)]
    pub protocol: Protocol,
}

impl Family {
    /// What the family says of plans.
    pub fn forecast(&self) -> Result<Box<dyn Forecast>, CliError> {
        forecast(self.protocol).ok_or_else(|| {
            CliError::usage(format!("no prices are known for {}", self.protocol), "give --protocol fss")
        })
    }
}

/// A value by its name in configuration files.
fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    let name: StrDeserializer<Error> = text.into_deserializer();
    T::deserialize(name)
}

use super::CliError;
use crate::config::{Protocol, Security};
use crate::family::{choose, forecast, named};
use privet_family::Forecast;

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
        let remedy = "add `--protocol rep3`, or leave `--security` out";
        choose(self.protocol, self.security).map_err(|cause| CliError::usage(cause, remedy))
    }

    /// What the family says of plans.
    pub fn forecast(&self) -> Result<Box<dyn Forecast>, CliError> {
        Ok(forecast(self.protocol, self.security()?))
    }

    /// Refuse a protocol that has no dealer.
    pub fn needs_dealer(&self) -> Result<(), CliError> {
        dealer_of(self.protocol)
    }

    /// The same choice as arguments of another `privet` command.
    pub fn arguments(&self) -> Result<[String; 4], CliError> {
        let (protocol, security) = (self.protocol.to_string(), self.security()?.to_string());
        Ok(["--protocol".into(), protocol, "--security".into(), security])
    }
}

/// Refuse a protocol that has no dealer.
pub(crate) fn dealer_of(protocol: Protocol) -> Result<(), CliError> {
    if protocol.has_dealer() {
        return Ok(());
    }
    let cause =
        format!("there is nothing to deal: protocol {protocol} has no dealer, and its runs use no keys");
    Err(CliError::usage(cause, "start the parties, and run"))
}

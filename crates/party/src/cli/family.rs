use super::CliError;
use crate::config::{Protocol, Security, named};
use crate::registry::{NotWithstood, listed};
use privet_family::{Chosen, Forecast};

/// Which protocol a command is about, among how many parties, and what it has to withstand.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Family {
    #[arg(long, default_value_t, help = format!("Protocol family: {}", listed()))]
    pub protocol: Protocol,
    #[arg(long, value_parser = named::<Security>, help = security_help())]
    security: Option<Security>,
    /// How many parties compute, where the protocol leaves that open; as few as it can when absent.
    #[arg(long, value_name = "N")]
    parties: Option<usize>,
}

fn security_help() -> String {
    let one = |p: Protocol| {
        let all: Vec<String> = p.facts().withstands.iter().map(Security::to_string).collect();
        format!("{p} {}", all.join(" or "))
    };
    let each: Vec<String> = Protocol::all().map(one).collect();
    format!("What it has to withstand, each protocol's default first: {}", each.join("; "))
}

impl Family {
    /// A protocol against parties of that kind, as many as it needs.
    pub fn of(protocol: Protocol, security: Security) -> Family {
        Family { protocol, security: Some(security), parties: None }
    }

    /// What the protocol has to withstand. Refuses what it does not.
    pub fn security(&self) -> Result<Security, CliError> {
        let remedy = |e: &NotWithstood| {
            let others = e.others().map(|p| format!("add `--protocol {p}`, or "));
            others.collect::<String>() + "leave `--security` out"
        };
        self.protocol.choose(self.security).map_err(|e| CliError::usage(&e, remedy(&e)))
    }

    /// How many parties compute. Refuses a number with which the protocol does not work.
    pub fn parties(&self) -> Result<usize, CliError> {
        let facts = self.protocol.facts();
        let n = self.parties.unwrap_or(facts.fewest_parties());
        if facts.parties.contains(&n) {
            return Ok(n);
        }
        let cause =
            format!("protocol {} computes with {} parties, not {n}", self.protocol, facts.parties_text());
        Err(CliError::usage(cause, "give another number, or leave `--parties` out"))
    }

    /// All of that, with the family's own parameters as they are where no deployment says otherwise.
    pub fn chosen(&self) -> Result<Chosen, CliError> {
        let by_default = Chosen::by_default(self.protocol.facts(), self.security()?);
        Ok(Chosen { parties: self.parties()?, ..by_default })
    }

    /// What the family says of plans.
    pub fn forecast(&self) -> Result<Box<dyn Forecast>, CliError> {
        Ok(self.protocol.forecast(&self.chosen()?))
    }

    /// The same choice as arguments of another `privet` command.
    pub fn arguments(&self) -> Result<[String; 6], CliError> {
        let (protocol, Chosen { security, parties, .. }) = (self.protocol, self.chosen()?);
        let said = [("--protocol", protocol.to_string()), ("--security", security.to_string())];
        let [[a, b], [c, d]] = said.map(|(option, value)| [option.to_owned(), value]);
        Ok([a, b, c, d, "--parties".into(), parties.to_string()])
    }
}

/// The refusal of a protocol that has no dealer.
pub(crate) fn no_dealer(protocol: Protocol) -> CliError {
    let facts = protocol.facts();
    let (cause, remedy) = match facts.uses_up {
        None => ("and its runs use up nothing".to_owned(), "start the parties, and run"),
        Some(what) => {
            (format!("its parties prepare {what} among themselves"), "start the parties, and prepare")
        }
    };
    CliError::usage(format!("there is nothing to deal: protocol {protocol} has no dealer, {cause}"), remedy)
}

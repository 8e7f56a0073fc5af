use super::CliError;
use crate::config::{Protocol, Security, named};
use crate::registry::{NotWithstood, listed};
use privet_family::{Chosen, Dealing, Forecast, Parameter, Parameters};

/// Which protocol a command is about, among how many parties, and what it has to withstand.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Family {
    #[arg(long, default_value_t, help = protocol_help())]
    pub protocol: Protocol,
    #[arg(long, value_parser = named::<Security>, help = security_help())]
    security: Option<Security>,
    /// How many parties compute, where the protocol leaves that open; as few as it can when absent.
    #[arg(long, value_name = "N")]
    parties: Option<usize>,
    #[arg(long = "set", value_name = "NAME=VALUE", help = parameters_help())]
    set: Vec<String>,
    /// The party that owns the model, where the command knows of one.
    #[arg(skip)]
    model_at: Option<u8>,
    /// Runs that are prepared together, where it knows how many.
    #[arg(skip)]
    together: Option<usize>,
}

fn protocol_help() -> String {
    let each: Vec<String> = Protocol::all().map(|p| format!("{p}: {}", p.facts().collusion)).collect();
    format!("Protocol family: {}. Who can collude: {}", listed(), each.join(". "))
}

fn parameters_help() -> String {
    let one = |p: Protocol| {
        let all = p.facts().parameters.iter().map(move |parameter| {
            let Parameter { name, about, .. } = parameter;
            format!("{p} has {name} ({}): {about}", parameter.range_text())
        });
        all.collect::<Vec<_>>()
    };
    let each: Vec<String> = Protocol::all().flat_map(one).collect();
    format!("A parameter of the protocol, as in its table of deployment.toml. {}", each.join("; "))
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
        Family {
            protocol,
            security: Some(security),
            parties: None,
            set: Vec::new(),
            model_at: None,
            together: None,
        }
    }

    /// The same with a dealer, where a deployment chooses whether it has one.
    pub fn dealt(mut self) -> Family {
        if let Dealing::Chosen(parameter, word) = self.protocol.facts().dealing {
            self.set.push(format!("{}={word}", parameter.name));
        }
        self
    }

    /// The same among so many parties, or as few as it can.
    pub fn with_parties(self, parties: Option<usize>) -> Family {
        Family { parties, ..self }
    }

    /// The same where a party owns the model, if one does.
    pub fn with_model_at(self, model_at: Option<u8>) -> Family {
        Family { model_at, ..self }
    }

    /// The same where so many runs are prepared together.
    pub fn with_together(self, runs: usize) -> Family {
        Family { together: Some(runs), ..self }
    }

    /// What was set of the protocol's parameters.
    pub fn settings(&self) -> &[String] {
        &self.set
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

    /// The family's own parameters. Refuses those that it does not have.
    fn parameters(&self) -> Result<Parameters, CliError> {
        let (protocol, all) = (self.protocol, self.protocol.facts().parameters);
        let mut parameters = Parameters::default();
        for text in &self.set {
            let named = text.split_once('=').and_then(|(name, value)| {
                Some((all.iter().find(|parameter| parameter.name == name)?, value))
            });
            let Some((parameter, value)) = named else {
                let names: Vec<&str> = all.iter().map(|parameter| parameter.name).collect();
                let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let cause =
                    format!("`--set {}` names no parameter of protocol {protocol}", text.escape_debug());
                return Err(CliError::usage(cause, format!("write NAME=VALUE; it has {has}")));
            };
            if !parameter.parse(value).is_some_and(|value| parameters.set(parameter, value)) {
                let cause = format!("`{protocol}.{}` cannot be `{}`", parameter.name, value.escape_debug());
                let remedy = format!("give {}; {}", parameter.range_text(), parameter.advice);
                return Err(CliError::usage(cause, remedy));
            }
        }
        Ok(parameters)
    }

    /// All of that, with the family's own parameters.
    pub fn chosen(&self) -> Result<Chosen, CliError> {
        let (security, parties, parameters) = (self.security()?, self.parties()?, self.parameters()?);
        Ok(Chosen { security, parties, parameters, model_at: self.model_at, together: self.together })
    }

    /// Whether a dealer takes part.
    pub fn has_dealer(&self) -> Result<bool, CliError> {
        Ok(self.protocol.facts().has_dealer(&self.parameters()?))
    }

    /// What the family says of plans.
    pub fn forecast(&self) -> Result<Box<dyn Forecast>, CliError> {
        Ok(self.protocol.forecast(&self.chosen()?))
    }

    /// What collusion means in it, in a line.
    pub fn collusion(&self) -> String {
        collusion(self.protocol)
    }

    /// The same choice as arguments of another `privet` command.
    pub fn arguments(&self) -> Result<Vec<String>, CliError> {
        let (protocol, Chosen { security, parties, .. }) = (self.protocol, self.chosen()?);
        let said = [
            ("--protocol", protocol.to_string()),
            ("--security", security.to_string()),
            ("--parties", parties.to_string()),
        ];
        let set = self.set.iter().map(|text| ("--set", text.clone()));
        Ok(said.into_iter().chain(set).flat_map(|(option, value)| [option.to_owned(), value]).collect())
    }
}

/// What collusion means in a protocol, in a line.
pub(crate) fn collusion(protocol: Protocol) -> String {
    format!("Under {protocol} {}.", protocol.facts().collusion)
}

/// The refusal of a protocol that has no dealer here.
pub(crate) fn no_dealer(protocol: Protocol) -> CliError {
    let facts = protocol.facts();
    let (cause, mut remedy) = match facts.uses_up {
        None => ("and its runs use up nothing".to_owned(), "start the parties, and run".to_owned()),
        Some(what) => (
            format!("its parties prepare {what} among themselves"),
            "start the parties, and prepare".to_owned(),
        ),
    };
    if let Some(said) = facts.dealer_text() {
        remedy += &format!(
            "; a dealer, who knows all masks, is there only with `--set {}`",
            said.replace(['"', ' '], "")
        );
    }
    CliError::usage(format!("there is nothing to deal: protocol {protocol} has no dealer, {cause}"), remedy)
}

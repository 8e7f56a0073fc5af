use crate::{Parameter, Parameters};
use privet_plan::cost::Security;
use std::ops::RangeInclusive;

/// What holds for a protocol family, whatever the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its user-facing name.
    pub name: &'static str,
    /// Who computes, in a few words for people who choose.
    pub about: &'static str,
    /// How many parties compute. Which number it is, a deployment says.
    pub parties: RangeInclusive<usize>,
    /// Who, taken together, learns everything, and who does not: a sentence for people who choose.
    pub collusion: &'static str,
    /// Whether a dealer, who is no party, makes what runs use up. One who prepares need not be a dealer: parties can
    /// prepare among themselves (see [`Facts::needs_preparation`]).
    pub dealing: Dealing,
    /// What a run uses up and somebody prepares before it, in a word for people; none where runs use up nothing.
    pub uses_up: Option<&'static str>,
    /// Whether that can come as a stream while runs use it up; otherwise all of it is there before a run that was asked for.
    pub streams: bool,
    /// What it can be told to withstand, the default first.
    pub withstands: &'static [Security],
    /// Who alone may have a role; roles without a rule may be any party's or client's.
    pub rules: &'static [RoleRule],
    /// What a deployment sets in the family's own table.
    pub parameters: &'static [Parameter],
}

/// When a family has a dealer, who is no party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// Never.
    Never,
    /// In every deployment.
    Always,
    /// Where a deployment gives this parameter this word, which is not its default.
    Chosen(&'static Parameter, &'static str),
}

impl Facts {
    /// Whether a deployment that sets these parameters has a dealer.
    pub fn has_dealer(&self, set: &Parameters) -> bool {
        match self.dealing {
            Dealing::Never => false,
            Dealing::Always => true,
            Dealing::Chosen(parameter, word) => parameter.text(set.get(parameter)) == word,
        }
    }

    /// Whether any deployment has a dealer.
    pub fn may_have_dealer(&self) -> bool {
        self.dealing != Dealing::Never
    }

    /// What a deployment says that wants a dealer, where it may say so: `helper = "dealer"`.
    pub fn dealer_text(&self) -> Option<String> {
        match self.dealing {
            Dealing::Never | Dealing::Always => None,
            Dealing::Chosen(parameter, word) => Some(format!("{} = \"{word}\"", parameter.name)),
        }
    }

    /// Whether a run uses up something that is prepared before it, by whomever.
    pub fn needs_preparation(&self) -> bool {
        self.uses_up.is_some()
    }

    /// The only party that may have a role, where a rule says so.
    pub fn holder(&self, role: &str) -> Option<u8> {
        self.rules.iter().filter(|rule| rule.is_about(role)).find_map(|rule| match rule.holder {
            Holder::AnyParty => None,
            Holder::Party(number) => Some(number),
        })
    }

    /// What it withstands where nobody chooses.
    pub fn default_security(&self) -> Security {
        self.withstands.first().copied().unwrap_or(Security::SemiHonest)
    }

    /// Its parties where nobody chooses: as few as it computes with.
    pub fn fewest_parties(&self) -> usize {
        *self.parties.start()
    }

    /// Its parties in words: `2`, or `2 to 5`.
    pub fn parties_text(&self) -> String {
        match (self.parties.start(), self.parties.end()) {
            (few, many) if few == many => few.to_string(),
            (few, many) => format!("{few} to {many}"),
        }
    }
}

/// Who alone may have a role under a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRule {
    /// The role, as plans name it; a further one of its kind (`model_owner.2`) is meant too.
    pub role: &'static str,
    /// Who may have it.
    pub holder: Holder,
    /// Why, for people: a whole clause.
    pub because: &'static str,
}

/// Who may have a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Any party, but no client.
    AnyParty,
    /// This party.
    Party(u8),
}

impl RoleRule {
    /// Whether the rule is about this role.
    pub fn is_about(&self, role: &str) -> bool {
        role.strip_prefix(self.role).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Whether a party may have the role; `None` for who is no party.
    pub fn allows(&self, party: Option<u8>) -> bool {
        match self.holder {
            Holder::AnyParty => party.is_some(),
            Holder::Party(number) => party == Some(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_all_roles_of_its_kind_and_no_other() {
        let rule = RoleRule { role: "model_owner", holder: Holder::Party(0), because: "it computes on them" };
        let about = ["model_owner", "model_owner.2", "model_owners", "data_owner"].map(|r| rule.is_about(r));
        assert_eq!(about, [true, true, false, false]);
        assert_eq!([Some(0), Some(1), None].map(|p| rule.allows(p)), [true, false, false]);
        let any = RoleRule { holder: Holder::AnyParty, ..rule };
        assert_eq!([Some(0), Some(1), None].map(|p| any.allows(p)), [true, true, false]);
    }
}

use crate::Facts;
use privet_plan::cost::Security;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A number that a deployment sets for a family: a key of the table in `deployment.toml` that has the family's name. All nodes
/// have to agree on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key.
    pub name: &'static str,
    /// What it is, with its unit, for people who read the file.
    pub about: &'static str,
    /// Where the file does not say.
    pub default: u64,
    /// What it may be.
    pub range: RangeInclusive<u64>,
    /// How to choose it, for people who gave a number outside the range.
    pub advice: &'static str,
}

/// What a deployment says of its family's parameters. Whatever it leaves out has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    set: BTreeMap<&'static str, u64>,
}

impl Parameters {
    /// Set a parameter; gives `false` for a number that it must not be.
    #[must_use]
    pub fn set(&mut self, parameter: &Parameter, value: u64) -> bool {
        let good = parameter.range.contains(&value);
        if good {
            self.set.insert(parameter.name, value);
        }
        good
    }

    /// What a parameter is.
    pub fn get(&self, parameter: &Parameter) -> u64 {
        self.set.get(parameter.name).copied().unwrap_or(parameter.default)
    }

    /// Every parameter of a family with its value, in the family's order: what nodes compare.
    pub fn all(&self, facts: &Facts) -> impl Iterator<Item = (&'static str, u64)> {
        facts.parameters.iter().map(|p| (p.name, self.get(p)))
    }
}

/// What a deployment chooses of what its family leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// What the protocol has to withstand.
    pub security: Security,
    /// Parties that compute.
    pub parties: usize,
    /// The family's own parameters.
    pub parameters: Parameters,
}

impl Chosen {
    /// As few parties as the family computes with, and every parameter at its default.
    pub fn by_default(facts: &Facts, security: Security) -> Chosen {
        Chosen { security, parties: facts.fewest_parties(), parameters: Parameters::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_in_its_range_or_its_default() {
        let few = Parameter { name: "few", about: "", default: 2, range: 1..=3, advice: "" };
        let mut set = Parameters::default();
        assert_eq!(set.get(&few), 2);
        assert!(!set.set(&few, 0) && !set.set(&few, 4));
        assert_eq!(set.get(&few), 2, "a refused number changes nothing");
        assert!(set.set(&few, 3));
        assert_eq!(set.get(&few), 3);
    }
}

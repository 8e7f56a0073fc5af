use crate::Facts;
use privet_plan::cost::Security;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a deployment sets for a family: a key of the table in `deployment.toml` that has the family's name. All nodes have to
/// agree on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key.
    pub name: &'static str,
    /// What it is, with its unit, for people who read the file.
    pub about: &'static str,
    /// What it may be.
    pub values: Values,
    /// How to choose it, for people who gave something else.
    pub advice: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// A number.
    Number {
        /// Where the file does not say.
        default: u64,
        /// What it may be.
        range: RangeInclusive<u64>,
    },
    /// One of these words, the first where the file does not say. Its place is the parameter's number.
    Words(&'static [&'static str]),
}

impl Parameter {
    /// Its number where nobody sets it.
    pub fn default(&self) -> u64 {
        match self.values {
            Values::Number { default, .. } => default,
            Values::Words(_) => 0,
        }
    }

    /// Whether it may have this number.
    pub fn allows(&self, value: u64) -> bool {
        match &self.values {
            Values::Number { range, .. } => range.contains(&value),
            Values::Words(words) => value < words.len() as u64,
        }
    }

    /// The number of a word, where it may be that word.
    pub fn word(&self, word: &str) -> Option<u64> {
        match self.values {
            Values::Number { .. } => None,
            Values::Words(words) => words.iter().position(|w| *w == word).map(|place| place as u64),
        }
    }

    /// What a person writes, a number or a word; `None` for what it may not be.
    pub fn parse(&self, text: &str) -> Option<u64> {
        self.word(text).or_else(|| match self.values {
            Values::Number { .. } => text.parse().ok().filter(|value| self.allows(*value)),
            Values::Words(_) => None,
        })
    }

    /// A value as people write it.
    pub fn text(&self, value: u64) -> String {
        match self.values {
            Values::Number { .. } => value.to_string(),
            Values::Words(words) => words.get(value as usize).copied().unwrap_or_default().to_owned(),
        }
    }

    /// What it may be, in words: `0 to 255`, or `none or dealer`.
    pub fn range_text(&self) -> String {
        match &self.values {
            Values::Number { range, .. } => format!("{} to {}", range.start(), range.end()),
            Values::Words(words) => words.join(" or "),
        }
    }
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
        let good = parameter.allows(value);
        if good {
            self.set.insert(parameter.name, value);
        }
        good
    }

    /// What a parameter is.
    pub fn get(&self, parameter: &Parameter) -> u64 {
        self.set.get(parameter.name).copied().unwrap_or(parameter.default())
    }

    /// Whether a parameter was set.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.set.contains_key(parameter.name)
    }

    /// Every parameter of a family with its value as people write it, in the family's order: what nodes compare.
    pub fn all(&self, facts: &Facts) -> impl Iterator<Item = (&'static str, String)> {
        facts.parameters.iter().map(|p| (p.name, p.text(self.get(p))))
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
    /// The party that owns the model, where one does.
    pub model_at: Option<u8>,
    /// Runs that are prepared together, where it is known how many.
    pub together: Option<usize>,
}

impl Chosen {
    /// As few parties as the family computes with, and every parameter at its default; no party owns the model.
    pub fn by_default(facts: &Facts, security: Security) -> Chosen {
        let (parties, parameters) = (facts.fewest_parties(), Parameters::default());
        Chosen { security, parties, parameters, model_at: None, together: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dealing;

    const FEW: Parameter =
        Parameter { name: "few", about: "", values: Values::Number { default: 2, range: 1..=3 }, advice: "" };
    const WHO: Parameter =
        Parameter { name: "who", about: "", values: Values::Words(&["none", "dealer"]), advice: "" };

    #[test]
    fn a_parameter_is_in_its_range_or_its_default() {
        let mut set = Parameters::default();
        assert_eq!(set.get(&FEW), 2);
        assert!(!set.set(&FEW, 0) && !set.set(&FEW, 4));
        assert_eq!(set.get(&FEW), 2, "a refused number changes nothing");
        assert!(set.set(&FEW, 3) && set.has(&FEW) && !set.has(&WHO));
        assert_eq!(set.get(&FEW), 3);
        assert_eq!(["3", "4", "-1", "x"].map(|text| FEW.parse(text)), [Some(3), None, None, None]);
    }

    #[test]
    fn words_are_the_ones_there_are_and_choose_a_dealer() {
        let facts = |dealing| Facts {
            name: "some",
            about: "",
            collusion: "",
            parties: 2..=3,
            dealing,
            uses_up: None,
            streams: false,
            withstands: &[],
            rules: &[],
            parameters: &[WHO],
        };
        let mut set = Parameters::default();
        let has = |set: &Parameters| {
            [Dealing::Never, Dealing::Chosen(&WHO, "dealer"), Dealing::Always]
                .map(|d| facts(d).has_dealer(set))
        };
        assert_eq!(has(&set), [false, false, true]);
        assert!(!set.set(&WHO, 2) && set.set(&WHO, WHO.parse("dealer").unwrap()));
        assert_eq!(has(&set), [false, true, true]);
        assert_eq!(set.all(&facts(Dealing::Never)).collect::<Vec<_>>(), [("who", "dealer".to_owned())]);
        assert_eq!(
            ["none", "dealer", "Dealer", "1", ""].map(|t| WHO.parse(t)),
            [Some(0), Some(1), None, None, None]
        );
        assert_eq!((WHO.range_text(), FEW.range_text()), ("none or dealer".into(), "1 to 3".into()));
        assert_eq!(facts(Dealing::Chosen(&WHO, "dealer")).dealer_text().unwrap(), "who = \"dealer\"");
    }
}

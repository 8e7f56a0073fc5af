use serde::{Deserialize, Serialize};

pub use privet_rep3::Security;

/// Protocol families that this version runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Two parties and a dealer, function secret sharing.
    Fss,
    /// Three parties, replicated secret sharing.
    Rep3,
}

impl Protocol {
    /// Every family.
    pub const ALL: [Protocol; 2] = [Protocol::Fss, Protocol::Rep3];

    /// Computing parties.
    pub const fn parties(self) -> usize {
        match self {
            Protocol::Fss => 2,
            Protocol::Rep3 => 3,
        }
    }

    /// Whether a dealer prepares what a run uses up.
    pub const fn has_dealer(self) -> bool {
        matches!(self, Protocol::Fss)
    }

    /// What it can be told to withstand, the default first.
    pub const fn withstands(self) -> &'static [Security] {
        match self {
            Protocol::Fss => &[Security::SemiHonest],
            Protocol::Rep3 => &[Security::Malicious, Security::SemiHonest],
        }
    }

    /// What it withstands where the deployment does not say.
    pub const fn default_security(self) -> Security {
        self.withstands()[0]
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Protocol::Fss => "fss",
            Protocol::Rep3 => "rep3",
        })
    }
}

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a protocol withstands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    /// One party may do anything: the honest ones then get the right result or abort before anything is
    /// revealed, but for an error of at most 2^-40.
    #[default]
    Malicious,
    /// Every party follows the protocol, and no two pool what they saw.
    SemiHonest,
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Malicious => "malicious",
            Security::SemiHonest => "semi-honest",
        })
    }
}

//! A machine's profile: rates of every family, measured once.

use super::{PreparationUnits, Prices, Rates, Units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format of [`Machine`]; another one is measured again.
pub const MACHINE_VERSION: u32 = 3;

/// What `privet bench --calibrate` measured on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// [`MACHINE_VERSION`].
    pub version: u32,
    /// Its processor.
    pub cpu: String,
    /// Its cores.
    pub cores: usize,
    /// Its memory, bytes.
    pub memory_bytes: f64,
    /// What its disk reads in a second, bytes.
    pub disk_bytes: f64,
    /// Seconds of one of each, by family and what it withstands.
    pub families: BTreeMap<String, Units>,
    /// The same of what parties do before a run, of families that have any.
    #[serde(default)]
    pub preparations: BTreeMap<String, PreparationUnits>,
    /// Of all these, for every run that the rates are from: the seconds that they say over those that it took.
    pub residuals: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Machine {
    /// What a family is called in [`Machine::families`].
    pub fn key(prices: &dyn Prices) -> String {
        format!("{}, {}", prices.protocol(), prices.security())
    }

    /// Of a family, each party on such a machine of its own; the shipped ones where it was not measured.
    pub fn rates(&self, prices: &dyn Prices) -> Rates {
        let (key, shipped) = (Machine::key(prices), prices.rates());
        Rates {
            seconds: self.families.get(&key).copied().unwrap_or(shipped.seconds),
            before: self.preparations.get(&key).copied().unwrap_or(shipped.before),
            cores: self.cores.max(1),
            parties: 1,
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk_bytes,
        }
    }

    /// Whether a family was measured.
    pub fn knows(&self, prices: &dyn Prices) -> bool {
        self.families.contains_key(&Machine::key(prices))
    }
}

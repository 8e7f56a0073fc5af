//! The runs that rates are from. Each does much of one thing, so that all together tell the rates apart.

use super::super::Args;
use crate::cli::Family;
use crate::config::Place;
use privet_plan::cost::Network;
use privet_plan::lower::RoundingMode;
use std::fmt;

/// A run, and the network that its comparisons are chosen for: far apart they are trees, in one place chunks.
pub(super) struct Probe {
    name: &'static str,
    batch: u32,
    bits: u32,
    fraction: u32,
    pub(super) network: Network,
    train: bool,
    /// As many as the family needs at least, where nothing else is said.
    pub(super) parties: Option<usize>,
    /// One party owns all weights.
    owned: bool,
}

const fn probe(name: &'static str, batch: u32, bits: u32, fraction: u32, network: Network) -> Probe {
    Probe { name, batch, bits, fraction, network, train: false, parties: None, owned: false }
}

/// In the default ring, for one place.
const fn near(name: &'static str, batch: u32) -> Probe {
    probe(name, batch, 64, 24, Network::LAN)
}

const fn step(name: &'static str, batch: u32) -> Probe {
    Probe { train: true, ..near(name, batch) }
}

const fn among(parties: usize, of: Probe) -> Probe {
    Probe { parties: Some(parties), ..of }
}

const fn owned(of: Probe) -> Probe {
    Probe { owned: true, ..of }
}

/// Of runs alone: where their keys come from makes no difference.
pub(super) const RUNS: &[Probe] = &[
    near("relu-100", 1),
    near("relu-300000", 1),
    near("relu-1000000", 1),
    among(5, near("relu-300000", 1)),
    probe("relu-300000", 1, 64, 24, Network::WAN),
    probe("relu-300000", 1, 32, 12, Network::LAN),
    near("matmul-768", 1),
    probe("matmul-768", 1, 32, 12, Network::LAN),
    near("gelu-30000", 1),
    near("exp-30000", 1),
    probe("reciprocal-3000", 1, 40, 16, Network::LAN),
    near("softmax-128", 300),
    near("softmax-16", 3),
    near("mlp", 128),
    near("lenet", 1),
    near("lenet", 64),
    probe("lenet", 64, 64, 24, Network::WAN),
    probe("lenet", 64, 32, 12, Network::LAN),
    near("squeezenet", 1),
    step("mlp", 128),
    step("lenet", 128),
];

/// Of runs that parties prepare among themselves: they take longer to prepare than to run.
pub(super) const PREPARED: &[Probe] = &[
    near("relu-100", 1),
    near("relu-100000", 1),
    among(3, near("relu-100000", 1)),
    probe("relu-300000", 1, 37, 12, Network::LAN),
    near("matmul-256", 1),
    near("matmul-768", 1),
    owned(near("matmul-768", 1)),
    near("gelu-1000", 1),
    probe("gelu-5000", 1, 37, 12, Network::LAN),
    probe("softmax-128", 100, 37, 12, Network::LAN),
    probe("softmax-128", 400, 37, 12, Network::LAN),
    probe("bert-small", 1, 37, 12, Network::LAN),
    near("mlp", 128),
    near("lenet", 1),
    near("lenet", 32),
    step("mlp", 128),
];

impl Probe {
    /// Whether the family can run it at all.
    pub(super) fn suits(&self, family: &Family) -> bool {
        let facts = family.protocol.facts();
        let trains = !self.train || family.protocol.trains();
        // where a rule says who owns them, they are that party's anyway
        let owned = !self.owned || facts.rules.is_empty();
        trains && owned && self.parties.is_none_or(|n| facts.parties.contains(&n))
    }

    /// `privet bench` of it.
    pub(super) fn args(&self, family: &Family, args: &Args) -> Args {
        Args {
            workload: self.name.into(),
            family: family.clone().with_parties(self.parties),
            batch: self.batch,
            bits: self.bits,
            fraction: self.fraction,
            rounding: if self.train { None } else { Some(RoundingMode::Nearest) },
            train: self.train,
            network: "lan".into(),
            model_owner: self.owned.then_some(Place::Party(1)),
            json: true,
            ..args.clone()
        }
    }
}

/// What residuals call it.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Probe { name, batch, bits, fraction, network, train, parties, owned } = self;
        let step = if *train { ", training" } else { "" };
        let owned = if *owned { ", weights of one party" } else { "" };
        write!(f, "{name}{step}, batch {batch}, {bits}/{fraction}, for {network}{owned}")?;
        parties.map_or(Ok(()), |n| write!(f, ", {n} parties"))
    }
}

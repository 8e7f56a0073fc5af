//! What a plan will cost before anything is run: bytes, rounds, key bytes, AES calls, memory, seconds.
//!
//! A protocol family states the price of one operation through [`Prices`], in its own crate beside the gate that it
//! prices; everything else here is addition.

mod choice;
mod estimate;
mod machine;
mod network;
mod operation;
mod overlap;
mod per_party;
mod rates;
mod security;

pub use choice::{Aim, Alternative, Preparation, TooManyKeys, alternatives, choose_forms, preparations};
pub use estimate::{Estimate, LayerCost, NodeCost, estimate};
pub use machine::{MACHINE_VERSION, Machine};
pub use network::{Network, NetworkError};
pub use operation::{Known, Operand, Operation, known};
pub use overlap::{OnTheWay, rounds_of};
pub use per_party::PerParty;
pub use rates::{PreparationUnits, Rates, Units};
pub use security::Security;

use crate::form::Form;
use crate::ir::{Op, Plan, Type};
use serde::Serialize;
use std::ops::AddAssign;

/// The price of something. Calls are those of one party; where parties differ, of the one with more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Multiplications of the cleartext linear algebra (a party does a small multiple of them).
    pub macs: u64,
    /// Comparisons.
    pub comparisons: u64,
    /// AES calls of the online phase, one party.
    pub aes: u64,
    /// Bytes of what is stored before a run and used up by it (keys, correlations).
    pub key_bytes: PerParty,
    /// Bytes that a party sends to the others, all of them together, in the run itself.
    pub wire_bytes: PerParty,
    /// Bytes that an owner sends to share, or that one party sends a receiver.
    pub client_bytes: u64,
    /// Message rounds of the run itself.
    pub rounds: u64,
    /// Bytes of what a run's messages state, where it is proved and checked. Nothing where parties are trusted to follow the protocol.
    pub proved_bytes: u64,
    /// Of these, what is stated about sums of products of ring elements, which takes longest to prove.
    pub proved_ring_bytes: u64,
    /// What the parties did before to have what the run uses up. Nothing where they need nothing, or a dealer makes it.
    #[serde(skip_serializing_if = "Offline::is_nothing")]
    pub offline: Offline,
}

/// What parties do among themselves before a run, so that it can take place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offline {
    /// Oblivious transfers that one party takes part in, either way.
    pub transfers: u64,
    /// Of these, what a code makes of few (Ferret): they take longer, and hardly any bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub silent: u64,
    /// Base transfers, by public keys, that one party takes part in, either way.
    #[serde(skip_serializing_if = "is_zero")]
    pub base: u64,
    /// Values of encrypted polynomials that one party transforms.
    pub values: u64,
    /// Bytes that one party sends to the others, all of them together.
    pub wire_bytes: u64,
    /// Message rounds.
    pub rounds: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Offline {
    /// Whether nothing is done before a run.
    pub fn is_nothing(&self) -> bool {
        *self == Offline::default()
    }
}

impl AddAssign for Offline {
    fn add_assign(&mut self, other: Offline) {
        self.transfers += other.transfers;
        self.silent += other.silent;
        self.base += other.base;
        self.values += other.values;
        self.wire_bytes += other.wire_bytes;
        self.rounds += other.rounds;
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.macs += other.macs;
        self.comparisons += other.comparisons;
        self.aes += other.aes;
        self.key_bytes += other.key_bytes;
        self.wire_bytes += other.wire_bytes;
        self.client_bytes += other.client_bytes;
        self.rounds += other.rounds;
        self.proved_bytes += other.proved_bytes;
        self.proved_ring_bytes += other.proved_ring_bytes;
        self.offline += other.offline;
    }
}

/// The prices of a protocol family.
pub trait Prices {
    /// Its user-facing name.
    fn protocol(&self) -> &'static str;
    /// What it withstands.
    fn security(&self) -> Security;
    /// One operation. Local operations are free in every family and not asked for.
    fn operation(&self, operation: &Operation<'_>) -> Cost;
    /// Whether it has this operation. Where it has not, a function is made of others.
    fn has(&self, _op: &Op) -> bool {
        true
    }
    /// By how many units a truncation within one unit ([`crate::ir::Rounding::OneUlp`]) may be off. Functions have none of them on
    /// the way where that is more than one.
    fn units(&self) -> u64 {
        1
    }
    /// Whether parties go on while the last opening of a gate is on its way, until a node needs it ([`OnTheWay`]).
    fn overlaps(&self) -> bool {
        false
    }
    /// Where a layer of weights sends the value that it reads, so that convolutions of one value had better be one: how many times the
    /// multiplications of all of them that one may take on this network.
    fn joined_macs(&self, _network: &Network) -> Option<u64> {
        None
    }
    /// Whether a ReLU of a truncation takes less where the plan promises a value away from the ring's ends ([`crate::Cut::promised`]).
    fn cuts_promised(&self) -> bool {
        false
    }
    /// Revealing a value to a receiver outside the parties.
    fn output(&self, ty: &Type) -> Cost;
    /// The forms that an operation may sensibly have: none is worse than another one in key bytes, rounds and work at once.
    /// None at all where the family knows one way only, or where the operation compares nothing.
    fn forms(&self, _operation: &Operation<'_>) -> Vec<Form> {
        Vec::new()
    }
    /// Seconds of what a party does, of the shipped profile: as `privet bench --calibrate` found them on the machine of
    /// docs/bench.md. Compiling goes by them, and estimates where nobody has measured.
    fn rates(&self) -> Rates {
        Rates::default()
    }
    /// Sharing the first value of a state, once a training. As a weight, unless a family says otherwise.
    fn state(&self, ty: &Type) -> Cost {
        let weight = Op::Weight { name: String::new(), owner: String::new() };
        self.operation(&Operation::of_types(&weight, &[], ty))
    }
    /// What a run costs beside its nodes and outputs, for example for verifying all of it at once.
    fn run(&self, _plan: &Plan) -> Cost {
        Cost::default()
    }
    /// What parties send each other once a session, beside weights that owners share: for example what encrypts them.
    fn session(&self, _plan: &Plan) -> Cost {
        Cost::default()
    }
    /// Message rounds of what parties do before a run, where nodes share them: else they are those of all nodes together.
    fn rounds_before(&self, _plan: &Plan) -> Option<u64> {
        None
    }
    /// How parties do what comes before a run on this network, where nothing else is set: by what a deployment would set for it, with the
    /// prices that it gives. None where nothing is left open.
    fn on(&self, _network: &Network) -> Option<(&'static str, Box<dyn Prices>)> {
        None
    }
    /// Every way in which parties may do among themselves what comes before a run, by what a deployment sets for it, with the prices
    /// that it gives. None at all where there is one way only, or nothing to do.
    fn preparations(&self) -> Vec<(&'static str, Box<dyn Prices>)> {
        Vec::new()
    }
    /// Bytes of memory in which one party holds a value during a run. Two words an element, unless a family says
    /// otherwise: a masked value and a share of its mask, or two components of a share.
    fn held_bytes(&self, ty: &Type) -> u64 {
        2 * 8 * ty.len() as u64
    }
}

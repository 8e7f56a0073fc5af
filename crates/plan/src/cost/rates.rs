//! Seconds of computing: what a party does for a node, in counts, and what one of each takes.

use super::{Cost, Operation};
use crate::form::Form;
use crate::ir::Op;
use crate::ops;
use serde::{Deserialize, Serialize};

/// One number for each thing that takes a party time: how many of it ([`Units::of`]), or the seconds of one ([`Rates`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// Multiplications of linear layers in rings of more than 32 bits.
    pub wide_macs: f64,
    /// The same in rings of at most 32 bits.
    pub narrow_macs: f64,
    /// Multiplications of look-ups.
    pub table_macs: f64,
    /// AES calls.
    pub aes: f64,
    /// Bits compared by chunks: comparisons times ring bits.
    pub chunked_bits: f64,
    /// Key bytes, read from memory.
    pub key_bytes: f64,
    /// Bytes sent: made, encrypted, decrypted, and what is computed for each of them.
    pub wire_bytes: f64,
    /// Bytes of statements that are proved and checked.
    pub proved_bytes: f64,
    /// Elements that gates give: masks, packing.
    pub elements: f64,
    /// Elements that local operations give.
    pub local_elements: f64,
    /// Rounds: a message each way over loopback, and waking up for it.
    pub rounds: f64,
}

impl Units {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// What an operation takes, of which the price is `cost`.
    pub(super) fn of(operation: &Operation<'_>, cost: &Cost) -> Units {
        let counted = Units::of_cost(cost);
        let macs = cost.macs as f64;
        let elements = operation.elements() as f64;
        let chunked_bits = match operation.form {
            Some(Form::Chunks { .. }) => cost.comparisons as f64 * f64::from(operation.operand_bits()),
            Some(Form::Tree) | None => 0.0,
        };
        match operation.op {
            // sharing is the client's, and other views of the same memory take nothing
            ops!(source) => Units::default(),
            ops!(local) if matches!(operation.op, Op::Reshape | Op::Rescale) => Units::default(),
            ops!(local) => Units { local_elements: elements, ..Units::default() },
            ops!(table) => Units { table_macs: macs, elements, ..counted },
            ops!(bilinear) | ops!(comparison) | ops!(rounding) | ops!(public)
                if operation.result_bits() > 32 =>
            {
                Units { wide_macs: macs, elements, chunked_bits, ..counted }
            }
            ops!(bilinear) | ops!(comparison) | ops!(rounding) | ops!(public) => {
                Units { narrow_macs: macs, elements, chunked_bits, ..counted }
            }
        }
    }

    /// What does not depend on the node; multiplications are left out.
    pub(super) fn of_cost(cost: &Cost) -> Units {
        Units {
            aes: cost.aes as f64,
            key_bytes: cost.key_bytes as f64,
            wire_bytes: cost.wire_bytes as f64,
            proved_bytes: cost.proved_bytes as f64,
            rounds: cost.rounds as f64,
            ..Units::default()
        }
    }

    /// In the order of the fields.
    pub fn to_array(self) -> [f64; Units::COUNT] {
        let Units { wide_macs, narrow_macs, table_macs, aes, chunked_bits, key_bytes, .. } = self;
        let Units { wire_bytes, proved_bytes, elements, local_elements, rounds, .. } = self;
        let first = [wide_macs, narrow_macs, table_macs, aes, chunked_bits, key_bytes];
        let last = [wire_bytes, proved_bytes, elements, local_elements, rounds];
        std::array::from_fn(|i| if i < first.len() { first[i] } else { last[i - first.len()] })
    }

    /// From the order of the fields.
    pub fn from_array(all: [f64; Units::COUNT]) -> Units {
        let [wide_macs, narrow_macs, table_macs, aes, chunked_bits, key_bytes, rest @ ..] = all;
        let [wire_bytes, proved_bytes, elements, local_elements, rounds] = rest;
        Units {
            wide_macs,
            narrow_macs,
            table_macs,
            aes,
            chunked_bits,
            key_bytes,
            wire_bytes,
            proved_bytes,
            elements,
            local_elements,
            rounds,
        }
    }

    /// Both, one after the other.
    pub fn and(self, other: Units) -> Units {
        let (a, b) = (self.to_array(), other.to_array());
        Units::from_array(std::array::from_fn(|i| a[i] + b[i]))
    }
}

/// What a party computes in a second, for [`super::estimate`]'s prediction. A family states those of the shipped profile
/// ([`super::Prices::rates`]), `privet bench --calibrate` measures them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds of one of each, of a party that has a core of its own.
    pub seconds: Units,
    /// Cores of the machine.
    pub cores: usize,
    /// Parties that compute on it at once.
    pub parties: usize,
    /// Memory of the machine, bytes: where the parties' keys are more, they are read from the disk.
    pub memory_bytes: f64,
    /// Bytes of the disk in a second.
    pub disk_bytes: f64,
}

impl Default for Rates {
    /// Of a family that nobody has measured, on a two-core server with AMX and VAES, one for each party.
    fn default() -> Self {
        let seconds = Units {
            wide_macs: 1e-10,
            narrow_macs: 5e-11,
            table_macs: 5e-10,
            aes: 1.0 / 0.9e9,
            chunked_bits: 2e-10,
            key_bytes: 2e-10,
            wire_bytes: 2e-9,
            proved_bytes: 1e-9,
            elements: 5e-9,
            local_elements: 1e-9,
            rounds: 5e-5,
        };
        Rates { seconds, cores: 2, parties: 1, memory_bytes: 24e9, disk_bytes: 1e9 }
    }
}

/// Of the memory, what keys may take of it until they are read from the disk.
const CACHED: f64 = 0.7;

impl Rates {
    /// With so many parties on one machine: they share its cores, and its memory for keys.
    pub fn together(self, parties: usize) -> Rates {
        Rates { parties, ..self }
    }

    /// With keys of so many bytes a party and run, which memory may not hold.
    pub(super) fn for_keys(mut self, bytes: u64) -> Rates {
        let parties = self.parties as f64;
        if bytes as f64 * parties > CACHED * self.memory_bytes {
            // the disk's rate is for all parties on it, and is not shared a second time below
            self.seconds.key_bytes += parties / self.disk_bytes / self.sharing();
        }
        self
    }

    /// How much longer computing takes because parties share cores.
    pub fn sharing(&self) -> f64 {
        (self.parties as f64 / self.cores as f64).max(1.0)
    }

    /// Seconds of computing, and of what a round takes beside the network's delay.
    pub fn seconds(&self, work: &Units) -> f64 {
        let rounds = work.rounds * self.seconds.rounds;
        let rest = work.to_array().iter().zip(self.seconds.to_array()).map(|(n, each)| n * each).sum::<f64>();
        (rest - rounds) * self.sharing() + rounds
    }
}

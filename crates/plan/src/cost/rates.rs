//! Seconds of computing: what a party does for a node, in counts, and what one of each takes.

use super::{Cost, Offline, Operation};
use crate::form::Form;
use crate::ir::Op;
use crate::ops;
use serde::{Deserialize, Serialize};

/// Declares counts of what takes time, with their number and both ways to an array, in one list.
macro_rules! units {
    ($(#[$about:meta])* $units:ident { $($(#[$doc:meta])* $name:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $units {
            $($(#[$doc])* pub $name: f64),*
        }

        impl $units {
            /// Names of the fields, in order.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];
            /// How many there are.
            pub const COUNT: usize = $units::NAMES.len();

            /// In the order of the fields.
            pub fn to_array(self) -> [f64; $units::COUNT] {
                [$(self.$name),*]
            }

            /// From the order of the fields.
            pub fn from_array([$($name),*]: [f64; $units::COUNT]) -> $units {
                $units { $($name),* }
            }

            /// As often where parties share cores: each takes so much longer, but waiting for rounds.
            pub fn shared(self, sharing: f64) -> $units {
                let rounds = self.rounds;
                $units { rounds, ..$units::from_array(self.to_array().map(|n| n * sharing)) }
            }

            /// The seconds of all of them, at so many seconds for one of each.
            fn at(self, seconds: $units) -> f64 {
                self.to_array().iter().zip(seconds.to_array()).map(|(n, each)| n * each).sum()
            }
        }
    };
}

units! {
    /// One number for each thing that takes a party time: how many of it ([`Units::of`]), or the seconds of one ([`Rates`]).
    Units {
        /// Multiplications of linear layers in rings of more than 32 bits. Of a convolution that is scattered, as many as it makes
        /// and could make in the time of its additions ([`privet_ring::Conv2d::work_scattered`]).
        wide_macs,
        /// The same of convolutions that are made in patches, with as many more as their additions take the time of
        /// ([`privet_ring::Conv2d::work_in_patches`]).
        window_macs,
        /// Multiplications in rings of at most 32 bits.
        narrow_macs,
        /// Numbers that look-ups of all kinds read or make: of an element, all entries of its tables, and both factors of each wave.
        table_entries,
        /// AES calls.
        aes,
        /// Bits compared by chunks: comparisons times ring bits.
        chunked_bits,
        /// Key bytes, read from memory.
        key_bytes,
        /// Bytes sent: made, encrypted, decrypted, and what is computed for each of them.
        wire_bytes,
        /// Bytes of statements that are proved and checked.
        proved_bytes,
        /// The part of these that is about ring elements.
        proved_ring_bytes,
        /// Elements that gates give which send something: masks, packing.
        elements,
        /// Elements that other operations read and give, and that convolutions copy for their products.
        local_elements,
        /// Gates: what does not depend on their elements.
        gates,
        /// Rounds: a message each way over loopback, and waking up for it.
        rounds,
    }
}

units! {
    /// The same of what parties do among themselves before a run ([`Offline`]).
    PreparationUnits {
        /// Correlated transfers, with what is computed from each of them.
        transfers,
        /// What a code makes of few takes more than another transfer (Ferret).
        silent,
        /// Base transfers, by public keys.
        base,
        /// Values of encrypted polynomials, with what is drawn and encoded for each of them.
        values,
        /// Bytes sent: made, encrypted, decrypted.
        wire_bytes,
        /// Rounds.
        rounds,
    }
}

impl PreparationUnits {
    /// What is done before a run.
    pub fn of(offline: &Offline) -> PreparationUnits {
        let Offline { transfers, silent, base, values, wire_bytes, rounds } = *offline;
        PreparationUnits::from_array([transfers, silent, base, values, wire_bytes, rounds].map(|n| n as f64))
    }
}

/// Multiplications of 64 bits in a cycle, on machines with AVX-512.
const WIDE_MACS_PER_CYCLE: usize = 8;

/// What a bit takes of an element.
const BIT: f64 = 1.0 / 8.0;

impl Units {
    /// What an operation takes, of which the price is `cost`.
    pub(super) fn of(operation: &Operation<'_>, cost: &Cost) -> Units {
        let counted = Units { gates: 1.0, ..Units::of_cost(cost) };
        let macs = cost.macs as f64;
        // bits stay many to a word
        let weight = if operation.result_bits() == 1 { BIT } else { 1.0 };
        let elements = weight * operation.elements() as f64;
        let read: f64 = operation.operands.iter().map(|x| x.ty.len() as f64).sum();
        let chunked_bits = match operation.form {
            Some(Form::Chunks { .. }) => cost.comparisons as f64 * f64::from(operation.operand_bits()),
            Some(Form::Tree | Form::WithTruncation | Form::AfterTruncation) | None => 0.0,
        };
        // a rounding that sends nothing is little more than a local operation
        let is_silent = cost.wire_bytes.most() == 0 && matches!(operation.op, ops!(rounding));
        match operation.op {
            _ if is_silent => Units { local_elements: elements + read, ..counted },
            // sharing is the client's, and other views of the same memory take nothing
            ops!(source) => Units::default(),
            ops!(local) if matches!(operation.op, Op::Reshape | Op::Rescale | Op::Approximates { .. }) => {
                Units::default()
            }
            ops!(local) => Units { local_elements: elements + read, ..Units::default() },
            ops!(table) => Units { table_entries: read * entries(operation), elements, ..counted },
            ops!(bilinear) | ops!(comparison) | ops!(rounding) | ops!(public) => {
                let counted = Units { elements, chunked_bits, ..counted };
                let wide = operation.result_bits() > 32;
                let Op::Conv2d { geometry } = operation.op else {
                    return match wide {
                        true => Units { wide_macs: macs, ..counted },
                        false => Units { narrow_macs: macs, ..counted },
                    };
                };
                let passes = macs / geometry.macs().max(1) as f64;
                let (macs, local_elements) = match geometry.work_scattered() {
                    Some(work) => (passes * work as f64, passes * geometry.input_len() as f64),
                    None => (macs, macs / (geometry.out_channels / geometry.groups).max(1) as f64),
                };
                match geometry.work_in_patches(WIDE_MACS_PER_CYCLE) {
                    Some(work) if wide => Units { window_macs: passes * work as f64, ..counted },
                    _ if wide => Units { wide_macs: macs, local_elements, ..counted },
                    _ => Units { narrow_macs: macs, local_elements, ..counted },
                }
            }
        }
    }

    /// What does not depend on the node; multiplications are left out.
    pub(super) fn of_cost(cost: &Cost) -> Units {
        Units {
            aes: cost.aes as f64,
            // what one party reads the other one expands from a seed meanwhile
            key_bytes: cost.key_bytes.most() as f64,
            wire_bytes: cost.wire_bytes.most() as f64,
            proved_bytes: cost.proved_bytes as f64,
            proved_ring_bytes: cost.proved_ring_bytes as f64,
            rounds: cost.rounds as f64,
            ..Units::default()
        }
    }

    /// Both, one after the other.
    pub fn and(self, other: Units) -> Units {
        let (a, b) = (self.to_array(), other.to_array());
        Units::from_array(std::array::from_fn(|i| a[i] + b[i]))
    }
}

/// What a look-up reads or makes for one element.
fn entries(operation: &Operation<'_>) -> f64 {
    let entries = match operation.op {
        Op::Lookup { tables } => tables.iter().map(Vec::len).sum(),
        // three coefficients
        Op::Piecewise { pieces, .. } => 3 * pieces.len(),
        Op::Exponential { rows, .. } => {
            let whole = operation.operand_bits() - operation.operands.first().map_or(0, |x| x.ty.frac);
            rows.len() << whole
        }
        Op::Waves { waves, .. } => 2 * waves.len(),
        ops!(source) | ops!(local) | ops!(bilinear) | ops!(public) | ops!(comparison) | ops!(rounding) => 0,
    };
    entries as f64
}

/// What a party computes in a second, for [`super::estimate`]'s prediction. A family states those of the shipped profile
/// ([`super::Prices::rates`]), `privet bench --calibrate` measures them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds of one of each, of a party that has a core of its own.
    pub seconds: Units,
    /// The same of what is done before a run.
    pub before: PreparationUnits,
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
    /// Of a family that nobody has measured: what those that were have in common, on the server of docs/bench.md, one for each party.
    fn default() -> Self {
        let seconds = Units {
            wide_macs: 7e-11,
            window_macs: 7e-11,
            narrow_macs: 3.6e-11,
            table_entries: 1e-9,
            aes: 1.1e-9,
            chunked_bits: 1.5e-10,
            key_bytes: 1.5e-10,
            wire_bytes: 9e-10,
            proved_bytes: 4.6e-10,
            proved_ring_bytes: 1.2e-9,
            elements: 4e-9,
            local_elements: 7e-10,
            gates: 1e-5,
            rounds: 1.2e-4,
        };
        let before = PreparationUnits {
            transfers: 2.2e-8,
            silent: 1e-8,
            base: 9e-5,
            values: 3e-9,
            wire_bytes: 0.0,
            rounds: 1.2e-4,
        };
        Rates { seconds, before, cores: 2, parties: 1, memory_bytes: 24e9, disk_bytes: 2.9e9 }
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
        work.shared(self.sharing()).at(self.seconds)
    }

    /// The same before a run, where nothing else is done meanwhile.
    pub fn seconds_before(&self, work: &PreparationUnits) -> f64 {
        work.shared(self.sharing()).at(self.before)
    }
}

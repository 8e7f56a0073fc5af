//! Prices of `fss`: masked values, one comparison key from one DPF, tables for one party.
//!
//! A gate on a comparison bit takes two rounds: open the masked bit, then open the masked result. Table shares cost
//! bytes for one party; the other's come from a seed. All counts are for a whole tensor, bits packed.

use super::{Cost, GateCost};
use crate::ir::{Op, Rounding, Type};
use crate::tournament::{self, Level};

/// The family's prices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fss;

/// Levels of the DPF tree for an n-bit domain: leaves of 128 bits end it early.
fn depth(n: u32) -> u64 {
    (n.max(7) - 7) as u64
}

/// Key bytes of one n-bit comparison, one party: root seed, one word a level, leaf word.
pub fn comparison_key_bytes(n: u32) -> u64 {
    16 * (depth(n) + 2)
}

/// AES calls of one n-bit comparison, one party.
pub fn comparison_aes(n: u32) -> u64 {
    depth(n) + 1
}

fn packed(elements: u64, bits: u32) -> u64 {
    (elements * bits as u64).div_ceil(8)
}

/// `elements` gates on an n-bit comparison: `words` table words of `bits` bits, then results of `opened` bits each.
fn gate(elements: u64, n: u32, words: u64, bits: u32, opened: &[u32]) -> Cost {
    if elements == 0 {
        return Cost::default();
    }
    let keys = elements * comparison_key_bytes(n);
    Cost {
        comparisons: elements,
        aes: elements * comparison_aes(n),
        key_bytes: keys + packed(elements * words, bits),
        key_bytes_other: keys,
        wire_bytes: packed(elements, 1) + opened.iter().map(|&b| packed(elements, b)).sum::<u64>(),
        rounds: 2,
        ..Cost::default()
    }
}

/// max(x, y) = y + relu(x - y) in k bits.
fn max(elements: u64, k: u32) -> Cost {
    gate(elements, k - 1, 3, k, &[k])
}

/// ReLU and extension to a wider ring.
fn widen(elements: u64, from: u32, to: u32) -> Cost {
    gate(elements, from - 1, 5, to, &[to])
}

/// A bilinear operation on masked values: one correction word an output element, one opening.
fn bilinear(macs: u64, result: &Type) -> Cost {
    let bytes = packed(result.len() as u64, result.bits);
    Cost { macs, key_bytes: bytes, wire_bytes: bytes, rounds: 1, ..Cost::default() }
}

fn levels(levels: &[Level], price: impl Fn(u64) -> Cost) -> Cost {
    let mut total = Cost::default();
    for level in levels {
        total += price(level.pair_len() as u64);
    }
    total
}

impl GateCost for Fss {
    fn protocol(&self) -> &'static str {
        "fss"
    }

    fn operation(&self, op: &Op, operands: &[&Type], result: &Type) -> Cost {
        let (n, to) = (result.len() as u64, result.bits);
        let from = operands.first().map_or(to, |x| x.bits);
        match op {
            // the masked value goes to both evaluators; the dealer tells the owner the mask by a seed
            Op::Input { .. } | Op::Weight { .. } => {
                Cost { client_bytes: 2 * packed(n, to), rounds: 1, ..Cost::default() }
            }
            Op::Linear => bilinear(n * operands[0].shape[1] as u64, result),
            Op::MatMul => bilinear(n * operands[0].shape[operands[0].shape.len() - 1] as u64, result),
            Op::Conv2d { geometry } => bilinear(geometry.macs(), result),
            Op::Mul | Op::Select => bilinear(n, result),
            Op::Truncate { shift, rounding: Rounding::Floor } => gate(n, *shift, 2, to, &[to]),
            Op::Truncate { shift, rounding: Rounding::Stochastic } => gate(n, *shift + 1, 2, to, &[to]),
            Op::Relu if from == to => max(n, to),
            Op::Relu | Op::Extend => widen(n, from, to),
            Op::Max => max(n, to),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, &operands[0].shape);
                let mut total = levels(&rows.levels, |pairs| max(pairs, to));
                total += levels(&columns.levels, |pairs| max(pairs, to));
                total
            }
            Op::IsNegative => gate(n, from - 1, 1, to, &[to]),
            Op::Equal => gate(n, from, 1, to, &[to]),
            // the value and its index are selected by the same bit
            Op::Argmax { dim } => {
                let tournament = tournament::argmax(&operands[0].shape, *dim);
                levels(&tournament.levels, |pairs| gate(pairs, from - 1, 3, from + to, &[from, to]))
            }
            _ => Cost::default(),
        }
    }

    /// Each evaluator sends the receiver its share of the mask, one of them the masked value besides.
    fn output(&self, ty: &Type) -> Cost {
        let bytes = packed(ty.len() as u64, ty.bits);
        Cost { key_bytes: bytes, client_bytes: 2 * bytes, rounds: 1, ..Cost::default() }
    }
}

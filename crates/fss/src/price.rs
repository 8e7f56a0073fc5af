//! Prices of `fss`: masked values, one comparison key from one DPF, tables of dealt words.
//!
//! A gate on a comparison bit takes two rounds: open the masked bit, then open the masked result. Masks come from seeds
//! and cost nothing. Of a table word one evaluator's share comes from a seed too; which one's alternates from key frame
//! to key frame, beginning with evaluator 0, so evaluator 1 never has fewer key bytes. All counts are for a whole
//! tensor, elements packed bit by bit.

use crate::Fss;
use privet_plan::Plan;
use privet_plan::cost::{Cost, Operation, Prices, Security};
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::ops;
use privet_plan::tournament::{self, Level};

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

/// Target bytes of a key frame.
const FRAME_BYTES: u64 = 512 << 10;

/// Key bytes of `words` dealt words of `bits` bits for each of `elements`: of evaluator 1 and of evaluator 0.
fn table(elements: u64, words: u64, bits: u32) -> (u64, u64) {
    let chunk = (FRAME_BYTES / (words * bits as u64 / 8).max(1)).next_multiple_of(64);
    let frame = packed(chunk * words, bits);
    let (full, rest) = (elements / chunk, packed(elements % chunk * words, bits));
    let last = if full.is_multiple_of(2) { (rest, 0) } else { (0, rest) };
    (full.div_ceil(2) * frame + last.0, full / 2 * frame + last.1)
}

/// `elements` comparisons over n bits, their masked results opened.
fn comparison(elements: u64, n: u32) -> Cost {
    let keys = elements * comparison_key_bytes(n);
    Cost {
        comparisons: elements,
        aes: elements * comparison_aes(n),
        key_bytes: keys,
        key_bytes_other: keys,
        wire_bytes: packed(elements, 1),
        rounds: 1,
        ..Cost::default()
    }
}

/// A result of `elements` elements of `bits` bits computed from `words` dealt words each and opened under its mask.
fn opened(elements: u64, words: u64, bits: u32) -> Cost {
    let (key_bytes, key_bytes_other) = table(elements, words, bits);
    Cost { key_bytes, key_bytes_other, wire_bytes: packed(elements, bits), rounds: 1, ..Cost::default() }
}

/// `elements` gates on an n-bit comparison with `words` table words of `bits` bits.
fn gate(elements: u64, n: u32, words: u64, bits: u32) -> Cost {
    sum([comparison(elements, n), opened(elements, words, bits)])
}

/// max(x, y) = y + relu(x - y) in k bits.
fn max(elements: u64, k: u32) -> Cost {
    gate(elements, k - 1, 3, k)
}

/// A bilinear operation on masked values: one correction word an output element, one opening.
fn bilinear(macs: u64, result: &Type) -> Cost {
    Cost { macs, ..opened(result.len() as u64, 1, result.bits) }
}

/// A look-up key for each of `elements` over n bits, with so many words at its point; `results` are opened.
fn looked_up(elements: u64, n: u32, words: u64, results: u64, bits: u32) -> Cost {
    let (leaf_words, leaves) = (2 * words, 1 << (n - 1));
    let keys = elements * (16 * n as u64 + 8 * leaf_words);
    Cost {
        aes: elements * (leaves - 1 + leaves * leaf_words.div_ceil(2)),
        macs: 2 * leaves * if words == 1 { results } else { 6 * elements },
        key_bytes: keys,
        key_bytes_other: keys,
        wire_bytes: packed(results, bits),
        rounds: 1,
        ..Cost::default()
    }
}

fn sum(costs: impl IntoIterator<Item = Cost>) -> Cost {
    let mut total = Cost::default();
    costs.into_iter().for_each(|cost| total += cost);
    total
}

/// Games of every level that has any.
fn games(levels: &[Level]) -> impl Iterator<Item = u64> {
    levels.iter().map(|level| level.pair_len() as u64).filter(|&pairs| pairs > 0)
}

impl Prices for Fss {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let (op, operands, result) = (operation.op, operation.types(), operation.result);
        let (n, to) = (result.len() as u64, result.bits);
        let from = operands.first().map_or(to, |x| x.bits);
        match op {
            // the masked value goes to both evaluators; its mask comes from a seed
            Op::Input { .. } | Op::Weight { .. } => {
                Cost { client_bytes: 2 * packed(n, to), rounds: 1, ..Cost::default() }
            }
            // shares of the masked value to each other; the round is the run's, for all states together
            Op::State { .. } => Cost { wire_bytes: packed(n, to), ..Cost::default() },
            // on shares of the operand; nothing is dealt
            Op::Scale => Cost { wire_bytes: packed(n, to), rounds: 1, ..Cost::default() },
            Op::Linear => bilinear(n * operands[0].shape[1] as u64, result),
            Op::MatMul => bilinear(n * operands[0].shape[operands[0].shape.len() - 1] as u64, result),
            Op::Conv2d { geometry } => bilinear(geometry.macs(), result),
            Op::Mul | Op::Select => bilinear(n, result),
            Op::Dither { shift } | Op::Truncate { shift, rounding: Rounding::Stochastic } => {
                opened(n, if to > from - shift { 2 } else { 1 }, to)
            }
            Op::Truncate { shift, .. } => gate(n, *shift, if to > from - shift { 3 } else { 2 }, to),
            Op::Lookup { tables } => looked_up(n / tables.len() as u64, from, 1, n, to),
            Op::Piecewise { shift, .. } => looked_up(n, from - shift, 3, n, to),
            Op::Exponential { rows, .. } => {
                let (rows, entries) = (rows.len() as u64, 1 << (from - operands[0].frac));
                Cost { wire_bytes: packed(n, to), ..opened(n / rows, rows * entries, to) }
            }
            Op::Relu if from == to => max(n, to),
            Op::Relu => gate(n, from - 1, 5, to),
            Op::Extend => gate(n, from, 2, to),
            Op::Max => max(n, to),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, &operands[0].shape);
                sum(games(&rows.levels).chain(games(&columns.levels)).map(|pairs| max(pairs, to)))
            }
            Op::Choose => opened(n, 3, to),
            // the opening of the comparison is that of the result; one dealt bit
            Op::IsNegative if to == 1 => {
                let (key_bytes, key_bytes_other) = table(n, 1, 1);
                let dealt = Cost { key_bytes, key_bytes_other, ..Cost::default() };
                sum([comparison(n, from - 1), dealt])
            }
            Op::IsNegative => gate(n, from - 1, 2, to),
            Op::Equal => gate(n, from, 2, to),
            // one bit selects the value, then the index
            Op::Argmax { dim } => {
                let tournament = tournament::argmax(&operands[0].shape, *dim);
                sum(games(&tournament.levels).map(|n| sum([max(n, from), opened(n, 3, to)])))
            }
            // known to both evaluators, or chosen by coins that both have
            Op::Public { .. } | Op::Dropout { .. } | ops!(local) => Cost::default(),
        }
    }

    /// One evaluator's share is a seed of 16 bytes.
    fn state(&self, ty: &Type) -> Cost {
        Cost { client_bytes: 16 + packed(ty.len() as u64, ty.bits), rounds: 1, ..Cost::default() }
    }

    /// The round in which all states are opened.
    fn run(&self, plan: &Plan) -> Cost {
        let states = plan.nodes.iter().any(|node| matches!(node.op, Op::State { .. }));
        Cost { rounds: states as u64, ..Cost::default() }
    }

    /// Each evaluator sends the receiver its share.
    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: packed(ty.len() as u64, ty.bits), rounds: 1, ..Cost::default() }
    }
}

//! Prices of `fss`: masked values, one comparison key from one DPF, tables of dealt words.
//!
//! A gate on a comparison bit takes two rounds: open the masked bit, then open the masked result. Masks come from seeds
//! and cost nothing. Of a table word one evaluator's share comes from a seed too; which one's alternates from key frame
//! to key frame, beginning with evaluator 0, so evaluator 1 never has fewer key bytes. All counts are for a whole
//! tensor, elements packed bit by bit.
//!
//! What a gate costs, it says itself ([`crate::gate::Gate::price`]), in the terms of this file.

use crate::Fss;
use crate::gate::{Kind, Source, kind};
use privet_plan::Plan;
use privet_plan::cost::{Cost, Operation, Prices, Security};
use privet_plan::ir::{Op, Type};
use privet_plan::tournament::Tournament;

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

pub(crate) fn packed(elements: u64, bits: u32) -> u64 {
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
pub(crate) fn comparison(elements: u64, n: u32) -> Cost {
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
pub(crate) fn opened(elements: u64, words: u64, bits: u32) -> Cost {
    Cost { wire_bytes: packed(elements, bits), rounds: 1, ..dealt(elements, words, bits) }
}

/// Key bytes of `words` dealt words of `bits` bits for each of `elements`.
pub(crate) fn dealt(elements: u64, words: u64, bits: u32) -> Cost {
    let (key_bytes, key_bytes_other) = table(elements, words, bits);
    Cost { key_bytes, key_bytes_other, ..Cost::default() }
}

/// `elements` gates on an n-bit comparison with `words` table words of `bits` bits.
pub(crate) fn gate(elements: u64, n: u32, words: u64, bits: u32) -> Cost {
    sum([comparison(elements, n), opened(elements, words, bits)])
}

/// max(x, y) = y + relu(x - y) in k bits.
pub(crate) fn max(elements: u64, k: u32) -> Cost {
    gate(elements, k - 1, 3, k)
}

/// A bilinear operation on masked values: one correction word an output element, one opening.
pub(crate) fn bilinear(macs: u64, result: &Type) -> Cost {
    Cost { macs, ..opened(result.len() as u64, 1, result.bits) }
}

/// A look-up key for each of `elements` over n bits, with so many words at its point; `results` are opened.
pub(crate) fn looked_up(elements: u64, n: u32, words: u64, results: u64, bits: u32) -> Cost {
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

pub(crate) fn sum(costs: impl IntoIterator<Item = Cost>) -> Cost {
    let mut total = Cost::default();
    costs.into_iter().for_each(|cost| total += cost);
    total
}

/// Games of every level that has any, `game(pairs)` each.
pub(crate) fn games(tournament: &Tournament, game: impl Fn(u64) -> Cost) -> Cost {
    let pairs = tournament.levels.iter().map(|level| level.pair_len() as u64);
    sum(pairs.filter(|&pairs| pairs > 0).map(game))
}

impl Prices for Fss {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let masked = packed(operation.elements(), operation.result_bits());
        match kind(operation.op) {
            // the masked value goes to both evaluators; its mask comes from a seed
            Kind::Shared(Source::Input | Source::Weight) => {
                Cost { client_bytes: 2 * masked, rounds: 1, ..Cost::default() }
            }
            // shares of the masked value to each other; the round is the run's, for all states together
            Kind::Shared(Source::State) => Cost { wire_bytes: masked, ..Cost::default() },
            Kind::Public => Cost::default(),
            Kind::Gate(gate) => gate.price(operation),
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

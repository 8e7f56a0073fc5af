//! Prices of `fss`: masked values, comparisons by trees and by chunks, tables of dealt words.
//!
//! A gate on a comparison bit takes two rounds: open the masked bit, then open the masked result. Masks come from seeds
//! and cost nothing. Of a dealt word or plane one evaluator's share comes from a seed too; which one's alternates from key
//! frame to key frame, from part to part and from node to node ([`crate::wire::Turns`]). Terms count for an
//! even node, which begins with evaluator 0. All counts are for a whole tensor, elements packed bit by bit.
//!
//! What a gate costs, it says itself ([`crate::gate::Gate::price`]), in the terms of this file.

use crate::Fss;
use crate::compare::{Comparison, frame_comparisons};
use crate::forms;
use crate::gate::{Kind, Source, kind};
use crate::gates::relu::sign_of;
use crate::keys::frame_elements;
use privet_kernels::Chunks;
use privet_kernels::chunks::{Level, words};
use privet_plan::cost::{Cost, Operation, PerParty, Prices, Rates, Security, Units};
use privet_plan::ir::{Op, Type};
use privet_plan::tournament::Tournament;
use privet_plan::{Form, Plan};

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

/// Elements of which each evaluator sends its share to the other one.
pub(crate) fn sent(elements: u64, bits: u32) -> Cost {
    Cost { wire_bytes: PerParty::alike(packed(elements, bits)), rounds: 1, ..Cost::default() }
}

/// Key bytes of `words` dealt words of `bits` bits for each of `elements`.
pub(crate) fn dealt(elements: u64, words: u64, bits: u32) -> Cost {
    let chunk = frame_elements((words * bits as u64 / 8) as usize) as u64;
    let (even, odd) =
        in_turn(elements / chunk, packed(chunk * words, bits), packed(elements % chunk * words, bits));
    Cost { key_bytes: [odd, even].into(), ..Cost::default() }
}

/// Bytes of the even ones and of the odd ones of `full` frames and a rest.
fn in_turn(full: u64, frame: u64, rest: u64) -> (u64, u64) {
    let last = if full.is_multiple_of(2) { (rest, 0) } else { (0, rest) };
    (full.div_ceil(2) * frame + last.0, full / 2 * frame + last.1)
}

/// Key bytes of part `part` of a comparison by chunks: so many planes for `elements` comparisons.
fn planes(elements: u64, planes: usize, part: usize) -> Cost {
    let (n, chunk) = (elements as usize, frame_comparisons(planes));
    let bytes = |n: usize| 8 * words(planes, n) as u64;
    let (even, odd) = in_turn((n / chunk) as u64, bytes(chunk), bytes(n % chunk));
    // part 0 of a node is its table words, which begin with evaluator 0
    let keys = if part.is_multiple_of(2) { [even, odd] } else { [odd, even] };
    Cost { key_bytes: keys.into(), ..Cost::default() }
}

/// `elements` comparisons by chunks, their masked results opened.
fn chunked(elements: u64, chunks: &Chunks) -> Cost {
    let level = |(l, level): (usize, &Level)| Cost {
        wire_bytes: PerParty::alike(8 * words(level.opened(), elements as usize) as u64),
        rounds: 1,
        ..planes(elements, level.products(), 1 + l)
    };
    let levels = sum(chunks.levels.iter().enumerate().map(level));
    let result = Cost { comparisons: elements, ..sent(elements, 1) };
    sum([planes(elements, chunks.tables(), 0), levels, result])
}

/// `elements` comparisons in this form (the tree where the plan states none), their masked results opened.
pub(crate) fn comparison(form: Option<Form>, what: Comparison, elements: u64) -> Cost {
    match form.and_then(|form| what.chunks(form)) {
        None => trees(elements, what.bits),
        Some(chunks) => chunked(elements, &chunks),
    }
}

/// `elements` comparisons over n bits, each by a tree.
fn trees(elements: u64, n: u32) -> Cost {
    let keys = elements * comparison_key_bytes(n);
    Cost {
        comparisons: elements,
        aes: elements * comparison_aes(n),
        key_bytes: PerParty::alike(keys),
        ..sent(elements, 1)
    }
}

/// A result of `elements` elements of `bits` bits computed from `words` dealt words each and opened under its mask.
pub(crate) fn opened(elements: u64, words: u64, bits: u32) -> Cost {
    sum([dealt(elements, words, bits), sent(elements, bits)])
}

/// A comparison for each element of a result, then `words` table words of its bits.
pub(crate) fn gate(of: &Operation<'_>, what: Comparison, words: u64) -> Cost {
    let n = of.elements();
    sum([comparison(of.form, what, n), opened(n, words, of.result_bits())])
}

/// `elements` times max(x, y) = y + relu(x - y) in k bits.
pub(crate) fn max(form: Option<Form>, elements: u64, k: u32) -> Cost {
    sum([comparison(form, sign_of(k), elements), opened(elements, 2, k)])
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
        key_bytes: PerParty::alike(keys),
        ..sent(results, bits)
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

    fn overlaps(&self) -> bool {
        true
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let masked = packed(operation.elements(), operation.result_bits());
        match kind(operation.op) {
            // the masked value goes to both evaluators; its mask comes from a seed
            Kind::Shared(Source::Input | Source::Weight) => {
                Cost { client_bytes: 2 * masked, rounds: 1, ..Cost::default() }
            }
            // shares of the masked value to each other; the round is the run's, for all states together
            Kind::Shared(Source::State) => Cost { wire_bytes: PerParty::alike(masked), ..Cost::default() },
            Kind::Public => Cost::default(),
            Kind::Gate(gate) => {
                let cost = gate.price(operation);
                match operation.node.is_multiple_of(2) {
                    true => cost,
                    false => Cost { key_bytes: cost.key_bytes.exchanged(), ..cost },
                }
            }
        }
    }

    fn forms(&self, operation: &Operation<'_>) -> Vec<Form> {
        match kind(operation.op) {
            Kind::Gate(gate) => {
                gate.compares(operation.operand_bits()).map_or_else(Vec::new, forms::sensible)
            }
            Kind::Shared(_) | Kind::Public => Vec::new(),
        }
    }

    /// Measured but for products, which were lowered by count: docs/bench.md, "Predictions".
    fn rates(&self) -> Rates {
        let common = Rates::default();
        let seconds = Units {
            wide_macs: 5.5e-11,
            window_macs: 5.5e-11,
            narrow_macs: 2e-11,
            table_entries: 8.4e-10,
            aes: 1.1e-9,
            chunked_bits: 1.56e-10,
            key_bytes: 1.57e-10,
            wire_bytes: 8.5e-10,
            elements: 4.9e-9,
            local_elements: 7.6e-10,
            rounds: 1.33e-4,
            ..common.seconds
        };
        Rates { seconds, ..common }
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

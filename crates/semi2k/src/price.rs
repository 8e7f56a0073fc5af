//! Prices of `semi2k`. What a gate costs, it says itself ([`crate::gate::Gate::price`]), in the terms of this file.
//!
//! Terms count for one peer: what a party sends goes to every other party, so [`Prices::operation`] multiplies bytes by their number.
//! The record is equally long at all parties. All counts are for a whole tensor, elements packed bit by bit, planes in whole
//! words.
//!
//! What is counted exactly is the run and the record; tests hold both to what is counted. What is done before a run is an
//! estimate, of oblivious transfers by the deployment's source and of products on encrypted masks (`joint/cost.rs`).

use crate::compare::{Comparison, Linked, PIECE};
use crate::forecast::{Semi2k, TRANSFER_SOURCES};
use crate::forms;
use crate::gate::{Kind, Source, kind};
use crate::gates::relu;
use crate::joint::cost::{self, Transferred};
use crate::joint::distance::suiting;
use crate::joint::walk;
use crate::preprocess::static_operand;
use privet_family::Products;
use privet_kernels::chunks::words as planes;
use privet_ot::Source as Transfers;
use privet_plan::cost::{
    Cost, Known, Network, Offline, Operation, PerParty, PreparationUnits, Prices, Rates, Security, Units,
    known,
};
use privet_plan::ir::{Op, Type, ValueId};
use privet_plan::tournament::Tournament;
use privet_plan::{Form, Plan};
use privet_ring::Ring;

pub(crate) fn packed(elements: u64, bits: u32) -> u64 {
    (elements * bits as u64).div_ceil(8)
}

pub(crate) fn sum(costs: impl IntoIterator<Item = Cost>) -> Cost {
    let mut total = Cost::default();
    costs.into_iter().for_each(|cost| total += cost);
    total
}

/// Of the record.
fn stored(bytes: u64) -> Cost {
    Cost { key_bytes: PerParty::alike(bytes), ..Cost::default() }
}

/// Done before a run, of so many oblivious transfers between a party and a peer, either way, that carry so many bits
/// together, choices included. All transfers of some elements take so many steps, and more where there is no room ([`Semi2k::offline`]).
fn transferred(elements: u64, transfers: u64, bits: u64, steps: u64) -> Cost {
    let steps = steps * elements.div_ceil(PIECE as u64);
    offline(cost::before(Transferred { transfers, bytes: bits.div_ceil(8), steps }))
}

fn offline(offline: Offline) -> Cost {
    Cost { offline, ..Cost::default() }
}

/// `words` words of `bits` bits for each of `elements`.
pub(crate) fn words(elements: u64, words: u64, bits: u32) -> Cost {
    stored(words * packed(elements, bits))
}

/// Sent in one round to each other party.
fn sent(bytes: u64) -> Cost {
    Cost { wire_bytes: PerParty::alike(bytes), rounds: 1, ..Cost::default() }
}

/// A result of so many elements opened under its mask.
pub(crate) fn opened(elements: u64, bits: u32) -> Cost {
    sent(packed(elements, bits))
}

/// Making kappa a word, and times a word.
pub(crate) fn selected(elements: u64, bits: u32) -> Cost {
    transferred(elements, 3 * elements, 3 * elements * (1 + u64::from(bits)), 2)
}

/// The mask of bits of `elements` elements, its offset opened.
fn masked(link: &Linked, elements: u64) -> Cost {
    let (m, wide) = (u64::from(link.bits), u64::from(link.ring.bits().max(link.bits)));
    // a choice, a product of a pair, and what is left of the word
    let correlations: u64 = (0..m).map(|l| wide - l + 2).sum();
    let delta = packed(elements, link.ring.bits());
    let told = Offline { wire_bytes: delta, rounds: 1, ..Offline::default() };
    let opened = Cost { offline: told, ..stored(delta) };
    sum([transferred(elements, elements * m, elements * correlations, 1), opened])
}

/// ANDs for each of some elements, two of which share a factor: a transfer either way for both, each with a choice and two bits.
fn ands(elements: u64, each: u64, rounds: u64) -> Cost {
    transferred(elements, elements * each, 3 * elements * each, rounds)
}

/// What a link's record has, and what its comparison opens, the last bit included.
pub(crate) fn linked(form: Option<Form>, link: &Linked, elements: u64) -> Cost {
    let n = elements as usize;
    let mut cost = masked(link, elements);
    for ring in &link.words {
        cost += words(elements, 1, ring.bits());
        cost += transferred(elements, elements, elements * u64::from(ring.bits()), 0);
    }
    let Some(what) = link.what else { return cost };
    let chunks = what.chunks(form);
    let tables: u64 = chunks.sizes.iter().filter(|w| **w > 2).map(|w| (1 << w) - 1 - u64::from(*w)).sum();
    cost += stored(8 * planes(chunks.tables(), n) as u64);
    let (mut products, mut groups) =
        (tables, chunks.sizes.iter().map(|w| *w as usize - 1).max().unwrap_or(0));
    for level in &chunks.levels {
        cost += stored(8 * planes(level.products(), n) as u64);
        // of an item's masks with products of those before it
        products += level.products() as u64;
        groups = groups.max(level.groups.iter().map(|size| size - 1).max().unwrap_or(0));
        cost += sent(8 * planes(level.opened(), n) as u64);
    }
    // all levels together
    cost += ands(elements, products, groups as u64);
    if link.plane {
        cost += stored(8 * planes(1, n) as u64);
    }
    sum([cost, opened(elements, 1), Cost { comparisons: elements, ..Cost::default() }])
}

/// A link for each element of a result, which is opened.
pub(crate) fn gate(of: &Operation<'_>, link: &Linked) -> Cost {
    sum([linked(of.form, link, of.elements()), opened(of.elements(), of.result_bits())])
}

/// `elements` times max(x, y) = y + relu(x - y) in k bits.
pub(crate) fn max(form: Option<Form>, elements: u64, k: u32) -> Cost {
    sum([linked(form, &relu::within(k), elements), opened(elements, k)])
}

/// Games of every level that has any, `game(pairs)` each.
pub(crate) fn games(tournament: &Tournament, game: impl Fn(u64) -> Cost) -> Cost {
    let pairs = tournament.levels.iter().map(|level| level.pair_len() as u64);
    sum(pairs.filter(|&pairs| pairs > 0).map(game))
}

/// Products of tensors: one word an output element, one opening. What they take before a run depends on more than the operation
/// ([`Semi2k::products`]).
pub(crate) fn linear(of: &Operation<'_>, macs: u64) -> Cost {
    let (n, bits) = (of.elements(), of.result_bits());
    sum([Cost { macs, ..Cost::default() }, words(n, 1, bits), opened(n, bits)])
}

impl Semi2k {
    /// What products of tensors take before a run between two parties, if the operation is one: masks of weights serve all records that
    /// are prepared together, and may be one party's.
    fn products(&self, of: &Operation<'_>) -> Option<Offline> {
        let what = Products::of_shapes(of.op, |i| &of.operands[i].ty.shape)?;
        let (records, owned) = match of.operands[1].known {
            Known::Nobody => (1, false),
            Known::Role(_) | Known::Everybody => (self.records, self.owned),
        };
        Some(cost::linear(what, Ring::new(of.result_bits()), records, owned))
    }
}

impl Semi2k {
    /// What is done before a run with one peer, with all of them by this source of transfers; by the one that takes the least work, where
    /// none is chosen and nobody said for which network.
    fn offline(&self, one: Offline) -> Offline {
        let (peers, source) = (self.parties as u64 - 1, self.source.unwrap_or(cost::LEAST_WORK));
        Offline {
            wire_bytes: peers * (one.wire_bytes + cost::extension(source, one.transfers) / 2),
            transfers: peers * one.transfers,
            silent: match source {
                Transfers::Ferret(_) => peers * one.transfers,
                Transfers::SoftSpoken(_) => 0,
            },
            // an exchange more, whenever one is full
            rounds: one.rounds
                + 2 * (one.transfers / cost::in_a_step(source))
                + cost::batches(source, one.transfers),
            ..one
        }
    }
}

/// Products element by element.
pub(crate) fn product(of: &Operation<'_>) -> Cost {
    let (n, bits, pairs) = (of.elements(), of.result_bits(), (of.operands.len() / 2).max(1));
    let before = cost::elements(n as usize, Ring::new(bits));
    let products = (0..pairs).map(|_| Cost { macs: n, ..offline(before) });
    sum(products.chain([words(n, 1, bits), opened(n, bits)]))
}

/// A table of 2^bits places for each of `elements`, of so many words a place; the first words of all places add up to one.
pub(crate) fn table(of: &Operation<'_>, link: &Linked, elements: u64, bits: u32, each: u64) -> Cost {
    let (places, to, n) = (1u64 << bits, of.result_bits(), of.elements());
    let record = words(elements, each * places - 1, to);
    // the bit of a place as a word, and times those that are not 1: two on a transfer, one each way
    let (as_word, others) = (places * elements, each - 1);
    let carried = as_word * (1 + u64::from(to) + others.div_ceil(2) * 2 + 2 * others * u64::from(to));
    let made = sum([
        ands(elements, places - 1, u64::from(bits)),
        transferred(elements, as_word * (1 + 2 * others.div_ceil(2)), carried, 1 + others.min(1)),
    ]);
    let read = Cost { macs: 2 * places * n.max(each * elements), ..opened(n, to) };
    sum([masked(link, elements), record, made, read])
}

impl Prices for Semi2k {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn units(&self) -> u64 {
        self.parties.div_ceil(2) as u64
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let (masked, peers) =
            (packed(operation.elements(), operation.result_bits()), self.parties as u64 - 1);
        match kind(operation.op) {
            // the masked value goes to every party; its mask comes from their seeds
            Kind::Shared(Source::Input | Source::Weight) => {
                Cost { client_bytes: (peers + 1) * masked, rounds: 1, ..Cost::default() }
            }
            // shares of the masked value to all others; the round is the run's, for all states together
            Kind::Shared(Source::State) => {
                Cost { wire_bytes: PerParty::alike(peers * masked), ..Cost::default() }
            }
            Kind::Public => Cost::default(),
            Kind::Gate(gate) => {
                let cost = gate.price(operation);
                let cost = Cost { offline: self.products(operation).unwrap_or(cost.offline), ..cost };
                let offline = if self.helper { Offline::default() } else { self.offline(cost.offline) };
                let wire_bytes = PerParty::alike(peers * cost.wire_bytes.most());
                Cost { wire_bytes, offline, ..cost }
            }
        }
    }

    fn has(&self, op: &Op) -> bool {
        self.missing(op).is_none()
    }

    /// Fitted to quiet runs of two, three and five parties on two cores (docs/semi2k.md, 8). What they say is 0.8 to 1.2 of what these
    /// runs took, and 0.7 to 1.2 of preparing.
    fn rates(&self) -> Rates {
        let common = Rates::default();
        let seconds = Units {
            wide_macs: 4.1e-11,
            window_macs: 4.1e-11,
            table_entries: 2.2e-9,
            chunked_bits: 1.3e-10,
            key_bytes: 1.9e-10,
            wire_bytes: 4.9e-10,
            elements: 6.6e-9,
            local_elements: 1.3e-9,
            rounds: 6.2e-5,
            ..common.seconds
        };
        let before = PreparationUnits {
            transfers: 2.6e-9,
            silent: 1.7e-8,
            base: 1.06e-4,
            values: 1.8e-9,
            wire_bytes: 2.7e-9,
            rounds: 2e-4,
        };
        Rates { seconds, before, ..common }
    }

    fn forms(&self, operation: &Operation<'_>) -> Vec<Form> {
        let compared: Option<Comparison> = match kind(operation.op) {
            Kind::Gate(gate) => gate.compares(operation.operand_bits()),
            Kind::Shared(_) | Kind::Public => None,
        };
        compared.map_or_else(Vec::new, forms::sensible)
    }

    fn preparations(&self) -> Vec<(&'static str, Box<dyn Prices>)> {
        let by = |(set, source)| (set, Box::new(Semi2k { source: Some(source), ..*self }) as Box<dyn Prices>);
        match self.helper {
            true => Vec::new(),
            false => TRANSFER_SOURCES.map(by).into(),
        }
    }

    /// Products with weights go before all else; small nodes share messages.
    fn rounds_before(&self, plan: &Plan) -> Option<u64> {
        if self.helper {
            return None;
        }
        let known = known(plan);
        let operation = |v| Operation::of(plan, v, &known);
        let rounds = |v: ValueId| match plan.nodes[v].op.is_local() {
            true => 0,
            false => self.operation(&operation(v)).offline.rounds,
        };
        let is_ready = |v: ValueId| {
            static_operand(plan, v).is_some() && self.products(&operation(v)).is_some_and(|by| by.values > 0)
        };
        let source = self.source.unwrap_or(cost::LEAST_WORK);
        let ahead: u64 = (0..plan.nodes.len()).filter(|v| is_ready(*v)).map(rounds).sum();
        let others = walk::rounds(plan, source, &is_ready, |v| if is_ready(v) { 0 } else { rounds(v) });
        Some(ahead + others + self.run(plan).offline.rounds)
    }

    fn on(&self, network: &Network) -> Option<(&'static str, Box<dyn Prices>)> {
        if self.helper || self.source.is_some() {
            return None;
        }
        let source = suiting(network.rtt);
        let (set, _) = TRANSFER_SOURCES.into_iter().find(|(_, other)| *other == source)?;
        Some((set, Box::new(Semi2k { source: Some(source), ..*self })))
    }

    /// All shares but the last party's are seeds of 16 bytes.
    fn state(&self, ty: &Type) -> Cost {
        let client_bytes = 16 * (self.parties as u64 - 1) + packed(ty.len() as u64, ty.bits);
        Cost { client_bytes, rounds: 1, ..Cost::default() }
    }

    /// The round in which all states are opened, and what a job takes once, divided by its records.
    fn run(&self, plan: &Plan) -> Cost {
        let states = plan.nodes.iter().any(|node| matches!(node.op, Op::State { .. }));
        let offline = match self.helper {
            true => Offline::default(),
            false => cost::job(self.parties, self.records, self.source.unwrap_or(cost::LEAST_WORK)),
        };
        Cost { rounds: states as u64, offline, ..Cost::default() }
    }

    /// Each party sends the receiver its share.
    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: packed(ty.len() as u64, ty.bits), rounds: 1, ..Cost::default() }
    }
}

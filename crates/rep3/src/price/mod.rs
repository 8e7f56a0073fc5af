//! Prices of `rep3`: three parties, replicated shares.
//!
//! Everything is made of messages between neighbours: a reshare (every party sends the one before it one element a
//! result), a deal (the party that has the role for a part of a vector sends the one after it what it deals) and a split
//! (the two others send each other one message each). No keys are dealt; what is masked is expanded from pairwise
//! seeds. Which party sends how much follows from how vectors are cut, so it is declared for each of the three.
//!
//! What a gate costs, it says itself ([`crate::gate::Gate::price`]), in the terms of this module.

mod claims;
mod gates;
pub(crate) mod lookup;
pub mod proofs;
#[cfg(test)]
mod tests;
mod verifying;

use crate::gate::{Kind, kind};
use crate::limits::Limits;
use crate::{Rep3, Security};
pub use claims::Claims;
pub(crate) use claims::Moves;
use privet_family::Products;
use privet_plan::cost::{Cost, Operation, Prices, Rates, Units, known};
use privet_plan::ir::{Node, Op, Plan, Type};
use privet_plan::{Form, is_static};
#[cfg(test)]
pub(crate) use proofs::Stated;
use verifying::Verifying;

/// What the messages of an operation depend on, beside the operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Whether statements are proved: some bits are dealt only for that.
    pub security: Security,
    /// Where operations are cut.
    pub limits: Limits,
}

impl Setting {
    fn moves(&self, operation: &Operation<'_>) -> Moves {
        match kind(operation.op) {
            Kind::Gate(gate) => gate.price(self, operation),
            // of owners, who share them before the run; the parties keep states, and public numbers are known to all
            Kind::Weight { .. } | Kind::Input { .. } | Kind::State { .. } | Kind::Public => Moves::default(),
        }
    }

    /// [`Rep3::verification`], piece by piece as the evaluator verifies.
    pub fn verification(&self, plan: &Plan) -> Talk {
        if self.security == Security::SemiHonest {
            return Talk::default();
        }
        let (mut verifying, known) = (Verifying::default(), known(plan));
        for id in 0..plan.nodes.len() {
            let pieces = self.moves(&Operation::of(plan, id, &known)).pieces;
            pieces.into_iter().for_each(|piece| verifying.after(&self.limits, piece));
        }
        verifying.talk()
    }
}

impl Setting {
    /// What the parties send when weights are shared: tags of every layer whose weights are of the session, and proofs of them.
    pub fn preparation(&self, plan: &Plan) -> Talk {
        if self.security == Security::SemiHonest {
            return Talk::default();
        }
        let (mut verifying, mut tags, limits) =
            (Verifying::default(), Talk::default(), self.limits.preparing());
        for (products, bits) in plan.nodes.iter().filter_map(|node| Some((tagged(plan, node)?, node.ty.bits)))
        {
            let making = proofs::making_tags(&products);
            let [x, w, y] = [making.input_len(), making.weight_len(), making.output_len()];
            let moves = Moves::reshare(y as u64, bits)
                .stating_products(making.count * proofs::depth(making.shape), [x, w, y]);
            tags = tags.then(moves.talk);
            moves.pieces.into_iter().for_each(|piece| verifying.after(&limits, piece));
        }
        tags.then(verifying.talk())
    }
}

/// The products of a node that get tags where messages are proved: with weights of the session, of which there are some.
pub(crate) fn tagged(plan: &Plan, node: &Node) -> Option<Products> {
    let products = Products::of(plan, node)?;
    (products.weight_len() > 0 && is_static(plan, node.inputs[1])).then_some(products)
}

/// What the three parties send each other at one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Talk {
    /// Bytes that each party sends, to both of its neighbours together.
    pub sent: [u64; 3],
    /// Rounds.
    pub rounds: u64,
}

impl Talk {
    /// A reshare of `elements` elements of `bits` bits.
    pub(super) fn reshare(elements: u64, bits: u32) -> Talk {
        Talk { sent: [packed(elements, bits); 3], rounds: 1 }
    }

    /// One after the other.
    pub(super) fn then(self, other: Talk) -> Talk {
        let sent = std::array::from_fn(|i| self.sent[i] + other.sent[i]);
        Talk { sent, rounds: self.rounds + other.rounds }
    }

    /// In the same rounds.
    pub(super) fn and_also(self, other: Talk) -> Talk {
        let sent = std::array::from_fn(|i| self.sent[i] + other.sent[i]);
        Talk { sent, rounds: self.rounds.max(other.rounds) }
    }
}

impl From<Talk> for Cost {
    fn from(Talk { sent, rounds }: Talk) -> Cost {
        Cost { wire_bytes: sent.into(), rounds, ..Cost::default() }
    }
}

pub(super) fn packed(elements: u64, bits: u32) -> u64 {
    (elements * bits as u64).div_ceil(8)
}

impl Rep3 {
    /// Elements that a gate takes at a time; longer vectors go through it in blocks, so that memory stays bounded.
    pub const BLOCK: usize = 1 << 21;

    /// What a node's protocol sends. Local operations, inputs and weights send nothing between the parties.
    pub fn talk(&self, of: &Operation<'_>) -> Talk {
        self.setting().moves(of).talk
    }

    /// What a node's protocol remembers to be proved, where not every party is trusted.
    pub fn claims(&self, of: &Operation<'_>) -> Claims {
        let pieces = self.setting().moves(of).pieces;
        let mut all = Claims::default();
        pieces.into_iter().for_each(|piece| all.add(piece.claims));
        all
    }

    /// What a run sends to prove all its messages, whenever its statements have grown large and before its outputs are given
    /// out; nothing where every party is trusted.
    pub fn verification(&self, plan: &Plan) -> Talk {
        self.setting().verification(plan)
    }

    /// What the parties send to each other once a session, when weights are shared, beside comparing them; nothing where every party is trusted.
    pub fn preparation(&self, plan: &Plan) -> Talk {
        self.setting().preparation(plan)
    }

    fn setting(&self) -> Setting {
        Setting { security: self.security, limits: Limits::default() }
    }
}

impl Prices for Rep3 {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        self.security
    }

    /// Sums of waves are dealt by a party that does not prove them.
    fn has(&self, op: &Op) -> bool {
        self.security == Security::SemiHonest || !op.is_waves()
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        match kind(operation.op) {
            // six components, four of them seeds, each with a byte that says which
            Kind::Weight { .. } | Kind::Input { .. } => {
                let components = 2 * packed(operation.elements(), operation.result_bits());
                Cost { client_bytes: components + 4 * SEED + 6, rounds: 1, ..Cost::default() }
            }
            Kind::State { .. } | Kind::Public => Cost::default(),
            Kind::Gate(gate) => {
                let Moves { talk, macs, pieces } = gate.price(&self.setting(), operation);
                let cost = Cost { macs, ..Cost::from(talk) };
                if self.security == Security::SemiHonest {
                    return cost;
                }
                let sum = |bytes: fn(&Claims) -> u64| pieces.iter().map(|piece| bytes(&piece.claims)).sum();
                let (proved_bytes, proved_ring_bytes) = (sum(|c| c.bytes), sum(|c| c.ring_bytes));
                Cost { proved_bytes, proved_ring_bytes, ..cost }
            }
        }
    }

    /// With the truncation that a ReLU alone reads it takes fewer rounds, and after it short numbers.
    fn forms(&self, operation: &Operation<'_>) -> Vec<Form> {
        match operation.cut.is_some() && *operation.op == Op::Relu {
            true => vec![Form::WithTruncation, Form::AfterTruncation],
            false => Vec::new(),
        }
    }

    /// Each party sends the receiver one component and a digest of another.
    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: packed(ty.len() as u64, ty.bits) + DIGEST, rounds: 1, ..Cost::default() }
    }

    /// Measured: docs/bench.md, "Predictions".
    fn rates(&self) -> Rates {
        let common = Rates::default();
        let seconds = match self.security {
            Security::SemiHonest => Units {
                wide_macs: 6.2e-11,
                window_macs: 6.2e-11,
                table_entries: 3.3e-9,
                wire_bytes: 1.75e-9,
                elements: 2.5e-9,
                local_elements: 3.2e-10,
                rounds: 8.3e-5,
                ..common.seconds
            },
            Security::Malicious => Units {
                wide_macs: 7.1e-11,
                window_macs: 7.1e-11,
                wire_bytes: 9e-10,
                elements: 3.8e-9,
                local_elements: 9e-10,
                rounds: 1.32e-4,
                ..common.seconds
            },
        };
        Rates { seconds, ..common }
    }

    /// [`Rep3::verification`].
    fn run(&self, plan: &Plan) -> Cost {
        self.verification(plan).into()
    }
}

const SEED: u64 = 16;
const DIGEST: u64 = 32;

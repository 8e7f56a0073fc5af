//! Prices of `rep3`: three parties, replicated shares.
//!
//! Everything is made of messages between neighbours: a reshare (every party sends the one before it one element a
//! result), a deal (the party that has the role for a part of a vector sends the one after it what it deals) and a split
//! (the two others send each other one message each). No keys are dealt; what is masked is expanded from pairwise
//! seeds. Which party sends how much follows from how vectors are cut, so it is declared for each of the three.

mod claims;
mod gates;
mod lookup;
pub mod proofs;

use crate::{Rep3, Security};
pub use claims::Claims;
use claims::Moves;
use privet_plan::Plan;
use privet_plan::cost::{Cost, Operation, Prices};
use privet_plan::ir::{Op, Rounding, Type};
use privet_plan::ops;
use privet_plan::tournament;
use proofs::Extension;

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
    fn and_also(self, other: Talk) -> Talk {
        let sent = std::array::from_fn(|i| self.sent[i] + other.sent[i]);
        Talk { sent, rounds: self.rounds.max(other.rounds) }
    }

    /// The bytes of the party that sends most.
    fn most(&self) -> u64 {
        self.sent.into_iter().max().unwrap_or(0)
    }
}

pub(super) fn packed(elements: u64, bits: u32) -> u64 {
    (elements * bits as u64).div_ceil(8)
}

impl Rep3 {
    /// Elements that a gate takes at a time; longer vectors go through it in blocks, so that memory stays bounded.
    pub const BLOCK: usize = 1 << 21;

    /// What a node's protocol sends. Local operations, inputs and weights send nothing between the parties.
    pub fn talk(&self, op: &Op, operands: &[&Type], result: &Type) -> Talk {
        self.moves(op, operands, result).talk
    }

    /// What a node's protocol remembers to be proved, where not every party is trusted.
    pub fn claims(&self, op: &Op, operands: &[&Type], result: &Type) -> Claims {
        self.moves(op, operands, result).claims
    }

    /// What a run sends to prove all its messages, whenever its statements have grown large and before its outputs are given
    /// out; nothing where every party is trusted.
    pub fn verification(&self, plan: &Plan) -> Talk {
        let mut talk = Talk::default();
        if self.security == Security::SemiHonest {
            return talk;
        }
        let mut claims = Claims::default();
        for node in plan.nodes.iter().filter(|node| !node.op.is_local()) {
            let operands: Vec<&Type> = node.inputs.iter().map(|&i| &plan.nodes[i].ty).collect();
            claims.add(self.claims(&node.op, &operands, &node.ty));
            if claims.are_many() {
                talk = talk.then(std::mem::take(&mut claims).verification());
            }
        }
        talk.then(claims.verification())
    }

    fn moves(&self, op: &Op, operands: &[&Type], result: &Type) -> Moves {
        let (security, n, to) = (self.security, result.len() as u64, result.bits);
        let from = operands.first().map_or(to, |x| x.bits);
        match op {
            // an inner product costs one element, however long it is
            Op::Linear | Op::MatMul | Op::Conv2d { .. } => products(op, operands, result),
            Op::Mul | Op::Select => gates::sums_of_products(n, to, 1),
            Op::Truncate { shift, rounding } => match (to > from - shift, rounding) {
                (true, Rounding::OneUlp) => gates::wraps(security, n, from, to - (from - shift)),
                (true, _) => gates::truncate_keeping(security, n, from, *shift, to),
                (false, Rounding::OneUlp) => Moves::default(),
                (false, _) => gates::truncate(security, n, from, *shift),
            },
            Op::Dither { shift } if to > from - shift => {
                gates::truncate_keeping(security, n, from, *shift, to)
            }
            Op::Dither { shift } => gates::truncate(security, n, from, *shift),
            Op::Lookup { tables } => {
                let count = tables.len() as u64;
                lookup::read(security, n / count, from, count, to)
            }
            Op::Piecewise { shift, .. } => lookup::piecewise(security, n, from - shift, *shift, to),
            Op::Exponential { first, rows } => {
                let (rows, frac) = (rows.len() as u64, operands[0].frac);
                lookup::exponential(security, n / rows, [from - frac, frac], *first, rows)
            }
            Op::Choose => gates::choose(n, to),
            Op::Extend => gates::extend(security, n, from, to),
            Op::Relu => gates::relu(security, n, from, to),
            Op::Max => gates::relu(security, n, to, to),
            Op::MaxPool2d { window } => {
                let [rows, columns] = tournament::max_pool(window, &operands[0].shape);
                let of = |levels| gates::tournament(security, levels, to);
                of(&rows.levels).then(of(&columns.levels))
            }
            Op::IsNegative => gates::is_negative(n, from, to),
            Op::Equal => gates::equal(n, from, to),
            Op::Argmax { dim } => {
                gates::argmax(&tournament::argmax(&operands[0].shape, *dim).levels, from, to)
            }
            // known to all, chosen by coins that all have, or a multiple of what each holds
            Op::Public { .. } | Op::Dropout { .. } | Op::Scale | ops!(local) => Moves::default(),
            // of owners, who share them before the run; the parties keep states
            Op::Input { .. } | Op::Weight { .. } | Op::State { .. } => Moves::default(),
        }
    }
}

/// A matrix product, a batch of them, or a convolution: a reshare of its result, proved as inner products as long as the inner
/// dimension, or element by element.
fn products(op: &Op, operands: &[&Type], result: &Type) -> Moves {
    let (x, w) = (operands[0], operands[1]);
    let mut moves = Moves::from(Talk::reshare(result.len() as u64, result.bits));
    let lens = [x.len(), w.len(), result.len()];
    match (op, &x.shape[..], &result.shape[..]) {
        (Op::Conv2d { geometry }, ..) => {
            let depth = geometry.in_channels * geometry.kernel[0] * geometry.kernel[1];
            moves.claims.products(depth, lens);
        }
        (_, [.., depth], [.., rows, columns]) if proofs::by_element(*rows, *depth, *columns) => {
            return moves.stating(Extension::Ring, [result.len() as u64; 3], *depth);
        }
        // the last dimension, once for every product of a batch
        (_, [batch @ .., _, depth], _) => {
            moves.claims.products(batch.iter().product::<usize>() * depth, lens);
        }
        _ => {}
    }
    moves
}

impl Prices for Rep3 {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        self.security
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let (op, operands, result) = (operation.op, &operation.types()[..], operation.result);
        let (n, to) = (result.len() as u64, result.bits);
        // six components, four of them seeds, each with a byte that says which
        if let Op::Input { .. } | Op::Weight { .. } = op {
            return Cost { client_bytes: 2 * packed(n, to) + 4 * SEED + 6, rounds: 1, ..Cost::default() };
        }
        let inner = || operands[0].shape.last().map_or(0, |&k| k as u64);
        let macs = match op {
            Op::Linear | Op::MatMul => n * inner(),
            Op::Conv2d { geometry } => geometry.macs(),
            Op::Mul | Op::Select => n,
            ops!(source) | ops!(local) | ops!(table) => 0,
            Op::Scale | Op::Dropout { .. } | Op::Truncate { .. } | Op::Dither { .. } | Op::Relu => 0,
            Op::Extend | Op::Max | Op::MaxPool2d { .. } | Op::Argmax { .. } => 0,
            Op::IsNegative | Op::Equal | Op::Choose => 0,
        };
        let talk = self.talk(op, operands, result);
        Cost { macs, wire_bytes: talk.most(), rounds: talk.rounds, ..Cost::default() }
    }

    /// Each party sends the receiver one component and a digest of another.
    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: packed(ty.len() as u64, ty.bits) + DIGEST, rounds: 1, ..Cost::default() }
    }

    /// [`Rep3::verification`].
    fn run(&self, plan: &Plan) -> Cost {
        let talk = self.verification(plan);
        Cost { wire_bytes: talk.most(), rounds: talk.rounds, ..Cost::default() }
    }
}

const SEED: u64 = 16;
const DIGEST: u64 = 32;

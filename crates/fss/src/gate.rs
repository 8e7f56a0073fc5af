//! What a gate is, and the one table that says which gate an operation is.
//!
//! The dealer, the evaluators, the masks and the list of openings walk a plan and ask each node's gate; none of them knows
//! an operation. A new gate is one file in [`crate::gates`] and its line in [`kind`], which does not compile without it.

use crate::compare::{Comparison, level_name};
use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gates::argmax::Argmax;
use crate::gates::choose::Choose;
use crate::gates::choose_every::ChooseEvery;
use crate::gates::dither::Dither;
use crate::gates::dropout::Dropout;
use crate::gates::equal::Equal;
use crate::gates::exponential::Exponentials;
use crate::gates::extend::Extend;
use crate::gates::linear::Linear;
use crate::gates::local::Local;
use crate::gates::lookup::{Quadratics, Tables};
use crate::gates::max::{Max, Pool};
use crate::gates::mul::Product;
use crate::gates::relu::{Relu, sign_of};
use crate::gates::scale::Scale;
use crate::gates::select::Select;
use crate::gates::sign::Sign;
use crate::gates::truncate::Truncate;
use crate::gates::waves::Sum;
use crate::keys::KeyError;
use crate::masks::{Mask, Masks};
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Opened, Wire};
use privet_family::Secret;
use privet_family::{OpeningList, When};
use privet_kernels::chunks::words;
use privet_plan::cost::{Cost, Operation};
use privet_plan::ir::{Node, Op, Plan, Rounding, Type, ValueId};
use privet_plan::ops;
use privet_plan::tournament::Tournament;
use privet_ring::Ring;

/// One operation under `fss`.
pub(crate) trait Gate {
    /// The mask of the result, or one evaluator's share of it. `operand(i)` is that of operand i.
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Secret {
        let _ = operand;
        masks.fresh(at.wire(), at.to(), at.len())
    }

    /// Whether [`Gate::mask`] reads operands' or inner wires' masks: not just the fresh one of the node's wire.
    fn derives_mask(&self, _: &At) -> bool {
        false
    }

    /// The operand whose mask is the result's, element by element.
    fn mask_of(&self) -> Option<usize> {
        None
    }

    /// The operand whose masked value is the result's, element by element.
    fn value_of(&self) -> Option<usize> {
        None
    }

    /// The dealer's side: from the operands' masks to key frames.
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError>;

    /// An evaluator's side: from the operands' masked values to the result's, with the same frames in the same order.
    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError>;

    /// What it compares, if it does; operand 0 has `from` bits.
    fn compares(&self, from: u32) -> Option<Comparison> {
        let _ = from;
        None
    }

    /// What is opened, in order.
    fn openings(&self, at: &At, list: &mut OpeningList);

    /// What it costs: declared here, counted by the tests.
    fn price(&self, of: &Operation<'_>) -> Cost;

    /// The coins of the plan's definition of the operation, for the interpreter. `mask` makes the operand's mask.
    fn coins(&self, at: &At, public: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        let (_, _, _) = (at, public, mask);
        None
    }
}

/// Who shares a value that nothing in the plan computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Its owner, once a run.
    Input,
    /// Its owner, once a session, under the session's mask.
    Weight,
    /// The run before, or for the first run its owner.
    State,
}

/// Where a value comes from.
pub(crate) enum Kind<'a> {
    /// From outside the run: masked.
    Shared(Source),
    /// From whoever asks for the run; no secret.
    Public,
    /// From its operands.
    Gate(Box<dyn Gate + 'a>),
}

/// The table. No arm is a wildcard: an operation without a gate does not compile.
pub(crate) fn kind(op: &Op) -> Kind<'_> {
    Kind::Gate(match op {
        Op::Input { .. } => return Kind::Shared(Source::Input),
        Op::State { .. } => return Kind::Shared(Source::State),
        Op::Weight { .. } => return Kind::Shared(Source::Weight),
        Op::Public { .. } => return Kind::Public,
        ops!(local) => Box::new(Local(op)),
        Op::Dropout { stream, keep } => Box::new(Dropout { stream: *stream, keep: *keep }),
        Op::Linear | Op::MatMul => Box::new(Linear { geometry: None }),
        Op::Conv2d { geometry } => Box::new(Linear { geometry: Some(geometry) }),
        Op::Mul => Box::new(Product),
        Op::Scale => Box::new(Scale),
        Op::Choose => Box::new(Choose),
        Op::ChooseEvery => Box::new(ChooseEvery),
        Op::Select => Box::new(Select),
        Op::Truncate { shift, rounding: Rounding::Floor } => Box::new(Truncate { shift: *shift }),
        Op::Truncate { shift, rounding: Rounding::OneUlp } => Box::new(Dither::within_one(*shift)),
        Op::Dither { shift } | Op::Truncate { shift, rounding: Rounding::Stochastic } => {
            Box::new(Dither::of(*shift))
        }
        Op::Extend => Box::new(Extend),
        Op::Relu => Box::new(Relu),
        Op::IsNegative => Box::new(Sign),
        Op::Equal => Box::new(Equal),
        Op::Max => Box::new(Max),
        Op::MaxPool2d { window } => Box::new(Pool(window)),
        Op::Argmax { dim } => Box::new(Argmax { dim: *dim }),
        Op::Lookup { tables } => Box::new(Tables(tables)),
        Op::Piecewise { shift, pieces } => Box::new(Quadratics { shift: *shift, pieces }),
        Op::Exponential { first, rows, scale } => {
            Box::new(Exponentials { first: *first, rows, scale: *scale })
        }
        Op::Waves { step, digits, waves } => Box::new(Sum { step: *step, digits: *digits, waves }),
    })
}

/// A node of a checked plan.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub plan: &'a Plan,
    pub id: ValueId,
}

impl<'a> At<'a> {
    /// The node.
    pub fn node(&self) -> &'a Node {
        &self.plan.nodes[self.id]
    }

    /// The type of operand i.
    pub fn operand(&self, i: usize) -> &'a Type {
        &self.plan.nodes[self.node().inputs[i]].ty
    }

    /// The wire of its value.
    pub fn wire(&self) -> Wire {
        Wire::node(self.id)
    }

    /// The ring of operand 0.
    pub fn from(&self) -> Ring {
        Ring::new(self.operand(0).bits)
    }

    /// The ring of its value.
    pub fn to(&self) -> Ring {
        Ring::new(self.node().ty.bits)
    }

    /// Elements of its value.
    pub fn len(&self) -> usize {
        self.node().ty.len()
    }

    /// It opens its masked value.
    pub fn opens(&self, list: &mut OpeningList, value: &str) {
        list.value(self.id, self.node(), value, When::Run);
    }

    /// For `n` comparisons it opens what neighbouring chunks say, level by level, if its form has any: whole planes.
    pub fn opens_levels(&self, list: &mut OpeningList, what: Comparison, bit: &str, n: usize) {
        let chunks = self.node().form.and_then(|form| what.chunks(form));
        for (l, level) in chunks.iter().flat_map(|chunks| chunks.levels.iter().enumerate()) {
            let bits = 64 * words(level.opened(), n) as u64;
            list.masked(self.id, self.node(), level_name(bit, l), bits, 1, When::Run);
        }
    }

    /// It opens a masked comparison bit an element, then its masked value.
    pub fn opens_bits_and(&self, list: &mut OpeningList, what: Comparison, bit: &str, value: &str) {
        self.opens_levels(list, what, bit, self.len());
        list.masked(self.id, self.node(), bit, self.len() as u64, 1, When::Run);
        self.opens(list, value);
    }

    /// Level by level it opens a masked sign bit a pair, then the masked values that the winner brings, of so many bits.
    pub fn opens_games(&self, list: &mut OpeningList, tournament: &Tournament, values: &[(&str, u32)]) {
        for pairs in tournament.levels.iter().map(|level| level.pair_len() as u64).filter(|&pairs| pairs > 0)
        {
            self.opens_levels(list, sign_of(self.from().bits()), "sign bit", pairs as usize);
            list.masked(self.id, self.node(), "sign bit", pairs, 1, When::Run);
            for (what, bits) in values {
                list.masked(self.id, self.node(), *what, pairs, *bits, When::Run);
            }
        }
    }
}

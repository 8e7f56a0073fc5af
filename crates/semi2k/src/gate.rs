//! What a gate is, and the one table that says which gate an operation is.
//!
//! The preprocessing, the parties, the masks and the list of openings walk a plan and ask each node's gate; none of them knows
//! an operation. A new gate is one file in [`crate::gates`] and its line in [`kind`], which does not compile without it.

use crate::Opened;
use crate::compare::Comparison;
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gates::argmax::Argmax;
use crate::gates::choose::{Choose, ChooseEvery};
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
use crate::gates::truncate::{Truncate, Within};
use crate::gates::waves::Sum;
use crate::masks::{Mask, Masks};
use crate::prepare::Given;
use crate::preprocess::{PrepareError, Preprocess};
use crate::seeds::PartySeed;
use crate::shares::Words;
use privet_family::{MaskFrom, OpeningList, When, Wire};
use privet_kernels::chunks::words;
use privet_plan::cost::{Cost, Operation};
use privet_plan::ir::{Node, Op, Plan, Rounding, Type, ValueId};
use privet_plan::ops;
use privet_plan::tournament::Tournament;
use privet_ring::Ring;

/// One operation under `semi2k`.
pub(crate) trait Gate {
    /// Shares of the mask of the result. `operand(i)` gives those of operand i.
    fn mask(&self, at: &At, masks: &dyn Masks, operand: &dyn Fn(usize) -> Mask) -> Words {
        let _ = operand;
        masks.fresh(at.wire(), at.to(), at.len())
    }

    /// Where [`Gate::mask`] comes from.
    fn mask_from(&self, at: &At) -> MaskFrom {
        let _ = at;
        MaskFrom::Fresh
    }

    /// The operand whose masked value is the result's, element by element.
    fn value_of(&self, at: &At) -> Option<usize> {
        let _ = at;
        None
    }

    /// What is prepared: from shares of the operands' masks to the record.
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError>;

    /// A party's side of the run: from the operands' masked values to the result's, with the record's frames in their order.
    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError>;

    /// What it compares, if it does; operand 0 has `from` bits.
    fn compares(&self, from: u32) -> Option<Comparison> {
        let _ = from;
        None
    }

    /// What is opened, in order.
    fn openings(&self, at: &At, list: &mut OpeningList);

    /// What it costs, with one peer: declared here, counted by the tests.
    fn price(&self, of: &Operation<'_>) -> Cost;

    /// The coins of the plan's definition of the operation, from all parties' seeds and the mask of operand 0, for the interpreter.
    fn coins(&self, at: &At, seeds: &[PartySeed], mask: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        let (_, _, _) = (at, seeds, mask);
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
        Op::Truncate { shift, rounding: Rounding::OneUlp } => Box::new(Within { shift: *shift }),
        Op::Dither { shift } | Op::Truncate { shift, rounding: Rounding::Stochastic } => {
            Box::new(Dither { shift: *shift })
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

    /// For `n` values of its operand's ring it opens the offsets of masks of bits, while the record is prepared.
    pub fn opens_offsets(&self, list: &mut OpeningList, n: usize) {
        list.masked(self.id, self.node(), "offset", n as u64, self.from().bits(), When::Preparation);
    }

    /// It opens its masked value.
    pub fn opens(&self, list: &mut OpeningList, value: &str) {
        list.value(self.id, self.node(), value, When::Run);
    }

    /// For `n` comparisons it opens what neighbouring chunks say, level by level, if its form has any: whole planes.
    pub fn opens_levels(&self, list: &mut OpeningList, what: Comparison, bit: &str, n: usize) {
        for (l, level) in what.chunks(self.node().form).levels.iter().enumerate() {
            let bits = 64 * words(level.opened(), n) as u64;
            list.masked(self.id, self.node(), crate::compare::level_name(bit, l), bits, 1, When::Run);
        }
    }

    /// It opens a masked comparison bit an element, then its masked value.
    pub fn opens_bits_and(&self, list: &mut OpeningList, what: Comparison, bit: &str, value: &str) {
        self.opens_offsets(list, self.len());
        self.opens_levels(list, what, bit, self.len());
        list.masked(self.id, self.node(), bit, self.len() as u64, 1, When::Run);
        self.opens(list, value);
    }

    /// Level by level it opens a masked sign bit a pair, then the masked values that the winner brings, of so many bits.
    pub fn opens_games(&self, list: &mut OpeningList, tournament: &Tournament, values: &[(&str, u32)]) {
        for pairs in tournament.levels.iter().map(|level| level.pair_len() as u64).filter(|&pairs| pairs > 0)
        {
            self.opens_offsets(list, pairs as usize);
            self.opens_levels(list, sign_of(self.from().bits()), "sign bit", pairs as usize);
            list.masked(self.id, self.node(), "sign bit", pairs, 1, When::Run);
            for (what, bits) in values {
                list.masked(self.id, self.node(), *what, pairs, *bits, When::Run);
            }
        }
    }
}

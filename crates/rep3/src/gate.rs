//! What a gate is, and the one table that says which gate an operation is.
//!
//! The evaluator, the prices and the list of openings walk a plan and ask each node's gate; none of them knows an operation. A
//! new gate is one file in [`crate::gates`] and its line in [`kind`], which does not compile without it. No gate opens anything
//! to anybody (docs/rep3.md, section 2), so a gate has no openings to declare.

use crate::gates::argmax::Argmax;
use crate::gates::choose::{Choose, ChooseEvery};
use crate::gates::equal::Equal;
use crate::gates::extend::Extend;
use crate::gates::lookup::Tables;
use crate::gates::max::{Max, Pool};
use crate::gates::pieces::{Exponentials, Quadratics};
use crate::gates::relu::Relu;
use crate::gates::sign::Sign;
use crate::gates::truncate::Truncate;
use crate::gates::waves::Sum;
use crate::linear::{Linear, Operand, Product, Select};
use crate::local::{Dropout, Local, Scale};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{Party, Planes, RunError, Share, SharedWeights};
use privet_plan::cost::Operation;
use privet_plan::ir::{Node, Op, Plan, Rounding, Type, ValueId};
use privet_plan::{Cut, ops};
use privet_ring::Ring;
use std::collections::BTreeMap;

/// One operation under `rep3`.
pub(crate) trait Gate {
    /// A party's side: from its shares of the operands to its share of the result, an element a word or bits packed.
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError>;

    /// What the parties send and what is stated about it, in the order of [`Gate::eval`], and the products of elements.
    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves;

    /// Whether it draws coins that are public between the parties. A gate that says no and draws some ends its first run.
    fn draws_coins(&self) -> bool {
        false
    }
}

/// Where a value comes from.
pub(crate) enum Kind<'a> {
    /// Shared by its owner once a session.
    Weight { name: &'a str, owner: &'a str },
    /// Shared by its owner once a run.
    Input { name: &'a str, owner: &'a str },
    /// Kept by the parties from run to run; its owner shares the first value.
    State { name: &'a str, owner: &'a str },
    /// From whoever asks for the run; no secret.
    Public,
    /// From its operands.
    Gate(Box<dyn Gate + 'a>),
}

/// The table. No arm is a wildcard: an operation without a gate does not compile.
pub(crate) fn kind(op: &Op) -> Kind<'_> {
    Kind::Gate(match op {
        Op::Weight { name, owner } => return Kind::Weight { name, owner },
        Op::Input { name, owner, .. } => return Kind::Input { name, owner },
        Op::State { name, owner } => return Kind::State { name, owner },
        Op::Public { .. } => return Kind::Public,
        ops!(local) => Box::new(Local(op)),
        Op::Scale => Box::new(Scale),
        Op::Dropout { stream, keep } => Box::new(Dropout { stream: *stream, keep: *keep }),
        Op::Linear | Op::MatMul | Op::Conv2d { .. } => Box::new(Linear),
        Op::Mul => Box::new(Product),
        Op::Select => Box::new(Select),
        Op::Choose => Box::new(Choose),
        Op::ChooseEvery => Box::new(ChooseEvery),
        Op::Truncate { shift, rounding } => Box::new(Truncate { shift: *shift, rounding: *rounding }),
        Op::Dither { shift } => Box::new(Truncate { shift: *shift, rounding: Rounding::Stochastic }),
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

/// What a party holds at a node of a checked plan.
pub(crate) struct Held<'a> {
    pub plan: &'a Plan,
    pub id: ValueId,
    /// By node; what is no longer read is gone.
    pub values: &'a [Option<Value>],
    /// The public numbers of the run.
    pub publics: &'a BTreeMap<String, u64>,
    pub weights: &'a SharedWeights,
}

impl<'a> Held<'a> {
    /// The node.
    pub fn node(&self) -> &'a Node {
        &self.plan.nodes[self.id]
    }

    /// The type of operand i.
    pub fn ty(&self, i: usize) -> &'a Type {
        &self.plan.nodes[self.node().inputs[i]].ty
    }

    /// The ring of operand 0.
    pub fn from(&self) -> Ring {
        Ring::new(self.ty(0).bits)
    }

    /// The ring of its value.
    pub fn to(&self) -> Ring {
        Ring::new(self.node().ty.bits)
    }

    /// The truncation and the ReLU that it is part of: the ReLU's gate takes both.
    pub fn cut(&self) -> Option<Cut> {
        Cut::of(self.plan, self.id)
    }

    /// Operand i, an element a word.
    pub fn share(&self, i: usize) -> Share {
        self.share_of(self.node().inputs[i])
    }

    /// The value of a node that is an operand, an element a word.
    pub fn share_of(&self, v: ValueId) -> Share {
        self.values[v].as_ref().map(Value::elements).unwrap_or_default()
    }

    /// The packed bits of operand i; none of a value of more bits.
    pub fn bits(&self, i: usize) -> Option<&'a Planes> {
        self.values[self.node().inputs[i]].as_ref().and_then(Value::bits)
    }

    /// The public number that is operand i.
    pub fn public(&self, i: usize) -> Result<u64, RunError> {
        let Op::Public { name, .. } = &self.plan.nodes[self.node().inputs[i]].op else {
            return Err(self.missing("public number"));
        };
        let number = self.publics.get(name).copied();
        number.ok_or_else(|| RunError::Missing(format!("public number `{name}` was not given")))
    }

    /// Operand 1 where it is of weights alone, prepared once a session.
    pub fn prepared(&self) -> Option<&'a Operand> {
        self.weights.operands.get(&self.id)
    }

    /// What a plan that was not checked lacks.
    pub fn missing(&self, what: &str) -> RunError {
        RunError::Missing(format!("node {} has no {what}; check the plan before it is run", self.id))
    }
}

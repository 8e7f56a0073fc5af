//! What a gate is, and the one table that says which gate an operation is.

use crate::context::{Cx, RunError};
use crate::gates::{argmax, choose, compare, exponential, linear, local, max, mul, relu, table, truncate};
use crate::leaf::Digits;
use crate::uses::Uses;
use privet_family::Secret;
use privet_plan::ir::{Node, Op, Plan, Type, ValueId};
use privet_plan::{Cut, ops};
use privet_ring::Ring;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One operation under `heot`.
pub(crate) trait Gate {
    /// From shares of the operands to shares of the result.
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError>;

    /// What it uses: declared here, counted by the tests.
    fn uses(&self, at: &At) -> Uses;

    /// The coins of the plan's definition of it, for tests with the interpreter, from both sides' shares of operand 0 and the public coins.
    #[cfg(test)]
    fn coins(
        &self,
        at: &At,
        shares: [&[u64]; 2],
        public: &dyn Fn(Ring, usize) -> Vec<u64>,
    ) -> Option<Vec<u64>> {
        let (_, _, _) = (at, shares, public);
        None
    }
}

/// A node in its plan.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub plan: &'a Plan,
    pub id: ValueId,
}

impl<'a> At<'a> {
    pub fn node(&self) -> &'a Node {
        &self.plan.nodes[self.id]
    }

    pub fn operand(&self, i: usize) -> &'a Type {
        &self.plan.nodes[self.node().inputs[i]].ty
    }

    /// The ring of operand 0.
    pub fn from(&self) -> Ring {
        Ring::new(self.operand(0).bits)
    }

    /// The ring of the result.
    pub fn to(&self) -> Ring {
        Ring::new(self.node().ty.bits)
    }

    /// Elements of the result.
    pub fn len(&self) -> usize {
        self.node().ty.len()
    }

    /// How it cuts what it compares.
    pub fn digits(&self) -> Digits {
        Digits::of(self.node().form)
    }

    /// The truncation and the ReLU that it is part of: one gate takes both.
    pub fn cut(&self) -> Option<Cut> {
        Cut::of(self.plan, self.id)
    }

    /// Whether the server knows an operand in clear.
    pub fn is_static(&self, i: usize) -> bool {
        privet_family::is_static(self.plan, self.node().inputs[i])
    }
}

/// The operands of a node as a party has them.
pub(crate) struct Held<'a> {
    pub at: At<'a>,
    pub values: &'a [Option<Arc<Secret>>],
    pub publics: &'a BTreeMap<String, u64>,
    /// What was prepared for the node's layer.
    pub layer: RefCell<Option<linear::Prepared<'a>>>,
}

impl Held<'_> {
    /// This party's share of operand i.
    pub fn share(&self, i: usize) -> Arc<Secret> {
        self.values[self.at.node().inputs[i]].clone().unwrap_or_default()
    }

    /// A public number.
    pub fn public(&self, i: usize) -> Result<u64, RunError> {
        let missing = |name: &str| RunError::Missing(format!("public number `{name}` was not given"));
        let Op::Public { name, .. } = &self.at.plan.nodes[self.at.node().inputs[i]].op else {
            return Err(missing(&self.at.node().layer));
        };
        self.publics.get(name).copied().ok_or_else(|| missing(name))
    }
}

/// What a node is to a party.
pub(crate) enum Kind<'a> {
    Input {
        name: &'a str,
        owner: &'a str,
    },
    Weight {
        name: &'a str,
        owner: &'a str,
    },
    Public,
    Gate(Box<dyn Gate + 'a>),
    /// What this family has no gate for: a clause.
    Lacks(&'static str),
}

/// The one table from operation to gate.
pub(crate) fn kind(op: &Op) -> Kind<'_> {
    let gate: Box<dyn Gate + '_> = match op {
        Op::Input { name, owner, .. } => return Kind::Input { name, owner },
        Op::Weight { name, owner } => return Kind::Weight { name, owner },
        Op::Public { .. } => return Kind::Public,
        Op::State { .. } => return Kind::Lacks("a state, which training updates"),
        Op::Dropout { .. } => return Kind::Lacks("dropout, which only training has"),
        Op::Waves { .. } => return Kind::Lacks("sums of waves"),
        ops!(local) => Box::new(local::Local),
        Op::Scale => Box::new(local::Scale),
        Op::Linear | Op::MatMul | Op::Conv2d { .. } => Box::new(linear::Linear),
        Op::Mul => Box::new(mul::Mul),
        Op::Truncate { shift, rounding } => {
            Box::new(truncate::Truncate { shift: *shift, rounding: *rounding })
        }
        Op::Dither { shift } => Box::new(truncate::Dither { shift: *shift }),
        Op::Piecewise { shift, pieces } => Box::new(table::Quadratics { shift: *shift, pieces }),
        Op::Exponential { first, rows, scale } => {
            Box::new(exponential::Exponentials { first: *first, rows, scale: *scale })
        }
        Op::Lookup { tables } => Box::new(table::Tables { tables }),
        Op::Relu => Box::new(relu::Relu),
        Op::Extend => Box::new(relu::Extend),
        Op::IsNegative => Box::new(compare::Sign),
        Op::Equal => Box::new(compare::Equal),
        Op::Max => Box::new(max::Max),
        Op::MaxPool2d { window } => Box::new(max::Pool(window)),
        Op::Argmax { dim } => Box::new(argmax::Argmax { dim: *dim }),
        Op::Choose => Box::new(choose::Choose),
        Op::ChooseEvery => Box::new(choose::ChooseEvery),
        Op::Select => Box::new(choose::Select),
    };
    Kind::Gate(gate)
}

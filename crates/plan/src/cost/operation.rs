//! One operation as a price sees it: types, and who knows an operand in clear.

use crate::cut::Cut;
use crate::form::Form;
use crate::ir::{Op, Plan, Type, ValueId};
use crate::local::is_static;
use crate::ops;
use crate::spread::Spread;

/// Who knows a value in clear, from the plan alone. A party that plays the role may compute with the value itself, and a
/// family whose gates are cheaper then may say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// Nobody.
    Nobody,
    /// Whoever runs the plan.
    Everybody,
    /// The role that shares it.
    Role(&'a str),
}

impl<'a> Known<'a> {
    /// Who knows a value that is computed from two others.
    fn and(self, other: Known<'a>) -> Known<'a> {
        match (self, other) {
            (Known::Everybody, known) | (known, Known::Everybody) => known,
            (Known::Role(a), Known::Role(b)) if a == b => self,
            (Known::Role(_) | Known::Nobody, Known::Role(_) | Known::Nobody) => Known::Nobody,
        }
    }
}

/// Who knows each value of a checked plan in clear: what owners share, public numbers, and what local operations make of
/// values that one role knows. Of a state only the first value has an owner who knows it.
pub fn known(plan: &Plan) -> Vec<Known<'_>> {
    let mut all: Vec<Known<'_>> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        all.push(match &node.op {
            Op::Input { owner, .. } | Op::Weight { owner, .. } => Known::Role(owner),
            Op::Public { .. } => Known::Everybody,
            ops!(local) => node.inputs.iter().fold(Known::Everybody, |known, &i| known.and(all[i])),
            Op::State { .. } | ops!(gate) => Known::Nobody,
        });
    }
    all
}

/// An operand of an [`Operation`].
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Its type.
    pub ty: &'a Type,
    /// Who knows it in clear.
    pub known: Known<'a>,
    /// Whether its elements are a few numbers, each at several places.
    pub spread: Option<Spread>,
    /// Whether it depends on weights alone, and is the same in every run of a session.
    pub is_static: bool,
}

/// An operation that has a price.
#[derive(Clone, Debug)]
pub struct Operation<'a> {
    /// What it computes.
    pub op: &'a Op,
    /// What it reads, in order.
    pub operands: Vec<Operand<'a>>,
    /// For every operand the first one that is the same value: both factors of a square are the first.
    pub alike: Vec<usize>,
    /// The type of its result.
    pub result: &'a Type,
    /// How it compares, where the plan says so.
    pub form: Option<Form>,
    /// The truncation and the ReLU that it is part of, where nobody else reads what is between.
    pub cut: Option<Cut>,
    /// Its node in the plan; 0 outside of one. A family may treat nodes in turn, so that its parties have equal parts.
    pub node: ValueId,
}

impl<'a> Operation<'a> {
    /// Node `id` of a checked plan; `known` is that of the plan ([`known()`]).
    pub fn of(plan: &'a Plan, id: ValueId, known: &[Known<'a>]) -> Operation<'a> {
        let node = &plan.nodes[id];
        let operand = |&i: &ValueId| Operand {
            ty: &plan.nodes[i].ty,
            known: known[i],
            spread: Spread::of(plan, i),
            is_static: is_static(plan, i),
        };
        Operation {
            op: &node.op,
            operands: node.inputs.iter().map(operand).collect(),
            alike: node.inputs.iter().filter_map(|i| node.inputs.iter().position(|j| j == i)).collect(),
            result: &node.ty,
            form: node.form,
            cut: Cut::of(plan, id),
            node: id,
        }
    }

    /// On operands of these types that nobody knows.
    pub fn of_types(op: &'a Op, operands: &[&'a Type], result: &'a Type) -> Operation<'a> {
        let nobody = |&ty: &&'a Type| Operand { ty, known: Known::Nobody, spread: None, is_static: false };
        let operands: Vec<_> = operands.iter().map(nobody).collect();
        let alike = (0..operands.len()).collect();
        Operation { op, operands, alike, result, form: None, cut: None, node: 0 }
    }

    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        self.result.len() as u64
    }

    /// Ring bits of the result.
    pub fn result_bits(&self) -> u32 {
        self.result.bits
    }

    /// Ring bits of operand 0; of the result where nothing is read.
    pub fn operand_bits(&self) -> u32 {
        self.operands.first().map_or(self.result.bits, |operand| operand.ty.bits)
    }

    /// Types of the operands.
    pub fn types(&self) -> Vec<&'a Type> {
        self.operands.iter().map(|operand| operand.ty).collect()
    }
}

//! How a comparison is made, where a family knows several ways.

use crate::ir::{Node, Op, Plan};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way of a comparison. It changes no result: only what is prepared and sent, and in how many rounds.
///
/// A family that knows one way alone ignores it, and whoever compiles for it states none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// One tree of a distributed point function for all bits: one round, some 16 bytes a bit.
    Tree,
    /// Dealt tables for chunks of `width` bits, combined `fan` at a time: few bytes, a round for each level.
    Chunks {
        /// Bits of a chunk.
        width: u8,
        /// Neighbours that are combined at once.
        fan: u8,
    },
    /// Of a ReLU that alone reads a truncation ([`crate::Cut`]): one comparison of the value before gives the truncation's carry, too. Fewer
    /// rounds; the value is chosen in the larger ring.
    WithTruncation,
    /// Of such a ReLU: a comparison of its own, of the bits that the truncation leaves.
    AfterTruncation,
}

impl Form {
    /// Whether an operation has a form: it compares.
    pub fn applies(op: &Op) -> bool {
        use crate::ir::Rounding;
        match op {
            Op::Truncate { rounding: Rounding::Floor | Rounding::OneUlp, .. }
            | Op::Relu
            | Op::Extend
            | Op::MaxPool2d { .. }
            | Op::Max
            | Op::IsNegative
            | Op::Equal
            | Op::Argmax { .. } => true,
            Op::Truncate { rounding: Rounding::Stochastic, .. }
            | Op::Dither { .. }
            | Op::Choose
            | Op::ChooseEvery
            | Op::Select => false,
            crate::ops!(source)
            | crate::ops!(local)
            | crate::ops!(bilinear)
            | crate::ops!(public)
            | crate::ops!(table) => false,
        }
    }

    /// Why it is none, if it is not: a chunk has 1 to 8 bits, and 2 to 9 are combined.
    pub fn check(self) -> Result<(), String> {
        match self {
            Form::Tree | Form::WithTruncation | Form::AfterTruncation => Ok(()),
            Form::Chunks { width: 1..=8, fan: 2..=9 } => Ok(()),
            Form::Chunks { width, fan } => {
                Err(format!("chunks of {width} bits, {fan} at a time; 1 to 8 bits and 2 to 9 are possible"))
            }
        }
    }
}

/// A node's operation for people: its JSON kind, and its form where the plan states one.
pub fn named(node: &Node) -> String {
    match node.form {
        Some(form) => format!("{} ({form})", node.op.kind()),
        None => node.op.kind(),
    }
}

/// How many comparisons of a plan have which form, for people: `12 by chunks of 4, 4 at a time; 1 by tree`. Nothing where
/// the plan states no form.
pub fn summary(plan: &Plan) -> Option<String> {
    let mut counts: Vec<(Form, usize)> = Vec::new();
    for form in plan.nodes.iter().filter_map(|node| node.form) {
        match counts.iter_mut().find(|(known, _)| *known == form) {
            Some((_, count)) => *count += 1,
            None => counts.push((form, 1)),
        }
    }
    // stable: among equal counts the form that comes first in the plan
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let texts: Vec<String> = counts.iter().map(|(form, count)| format!("{count} by {form}")).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Tree => f.write_str("tree"),
            Form::WithTruncation => f.write_str("one addition with the truncation"),
            Form::AfterTruncation => f.write_str("an addition after the truncation"),
            Form::Chunks { width, fan } => write!(f, "chunks of {width}, {fan} at a time"),
        }
    }
}

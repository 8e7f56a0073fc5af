//! Columns that a party has in more than one of its roles, folded once.

use super::batch::Factor;
use super::column::{Column, Identity, Operand};
use foldhash::HashMap;
use std::ops::Range;

/// What both folds of words make of columns of bits, at one pair of points: for all three proofs where they have them in common. Weights are
/// not in it: each proof has its own.
#[derive(Default)]
pub(super) struct Folded {
    columns: HashMap<(Identity, Factor), Known>,
    /// Of all columns.
    items: Vec<u64>,
}

/// Where a column's items are. The column stays, so that no other one gets its identity.
struct Known {
    _column: Column,
    items: Range<usize>,
}

impl Folded {
    /// Append the items of an operand; `fold` makes what is not known. Of a sum they are the sum of its columns' items, where both
    /// are known by now.
    pub fn append(
        &mut self,
        operand: &Operand,
        factor: Factor,
        fold: impl Fn(&Operand, &mut Vec<u64>),
        items: &mut Vec<u64>,
    ) {
        let known = |column: &Column| {
            self.columns.get(&(column.identity(), factor)).map(|known| &self.items[known.items.clone()])
        };
        let column = match operand {
            Operand::Whole(column) => column,
            Operand::Sum([a, b]) | Operand::Total([a, b]) => {
                match (known(a), known(b)) {
                    (Some(a), Some(b)) => items.extend(a.iter().zip(b).map(|(a, b)| a ^ b)),
                    _ => fold(operand, items),
                }
                return;
            }
        };
        let known = self.columns.entry((column.identity(), factor)).or_insert_with(|| {
            let start = self.items.len();
            fold(operand, &mut self.items);
            Known { _column: column.clone(), items: start..self.items.len() }
        });
        items.extend_from_slice(&self.items[known.items.clone()]);
    }
}

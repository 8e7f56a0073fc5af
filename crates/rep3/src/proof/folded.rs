//! Columns that a party has in more than one of its roles, folded once.

use super::batch::Factor;
use super::column::{Column, Identity, Operand};
use std::collections::HashMap;

/// What both folds of words make of columns of bits, at one pair of points: for all three proofs where they have them in common. Weights are
/// not in it: each proof has its own.
#[derive(Default)]
pub(super) struct Folded(HashMap<(Identity, Factor), Known>);

/// A column's items. The column stays, so that no other one gets its identity.
struct Known {
    _column: Column,
    items: Vec<u64>,
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
        let known = |column: &Column| self.0.get(&(column.identity(), factor)).map(|known| &known.items);
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
        let known = self.0.entry((column.identity(), factor)).or_insert_with(|| {
            let mut items = vec![];
            fold(operand, &mut items);
            Known { _column: column.clone(), items }
        });
        items.extend_from_slice(&known.items);
    }
}

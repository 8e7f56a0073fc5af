//! Columns that a party has in more than one of its roles, folded once.

use super::batch::Factor;
use super::column::{Column, Identity};
use std::collections::HashMap;

/// What both folds of words make of columns of bits, for as long as all three proofs are at the same points. Weights are not in it: each
/// proof has its own.
#[derive(Default)]
pub(super) struct Folded(HashMap<(Identity, Factor), Known>);

/// A column's items. The column stays, so that no other one gets its identity.
struct Known {
    _column: Column,
    items: Vec<u64>,
}

impl Folded {
    /// Append the items of a column, or of the sum of two that are known by now; `fold` makes what is not known.
    pub fn append(
        &mut self,
        column: &Column,
        summands: Option<&[Column; 2]>,
        factor: Factor,
        fold: impl Fn(&Column, &mut Vec<u64>),
        items: &mut Vec<u64>,
    ) {
        let known = |column: &Column| self.0.get(&(column.identity(), factor)).map(|known| &known.items);
        if let Some([a, b]) = summands {
            match (known(a), known(b)) {
                (Some(a), Some(b)) => items.extend(a.iter().zip(b).map(|(a, b)| a ^ b)),
                _ => fold(column, items),
            }
            return;
        }
        let known = self.0.entry((column.identity(), factor)).or_insert_with(|| {
            let mut items = vec![];
            fold(column, &mut items);
            Known { _column: column.clone(), items }
        });
        items.extend_from_slice(&known.items);
    }
}

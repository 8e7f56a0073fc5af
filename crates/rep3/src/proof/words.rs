//! Folds of words of ring elements. A column is folded once, whatever statements and roles a party has it in: weights come after. What is
//! long is folded where it lies; short columns are put side by side first, so that matrix products are not much smaller than what they
//! cost to begin.

use super::batch::Batch;
use super::column::{Column, Identity, Operand};
use super::extension::Extension;
use super::galois::{BLOCKS, Gr};
use super::outer::Sums;
use super::tensor::basis;
use foldhash::HashMap;
use privet_kernels::{Device, LinearShape, Weights as Prepared, fold};
use privet_ring::Ring;
use std::sync::Arc;

/// The powers of a point as a prepared matrix.
struct Powers {
    /// Powers.
    len: usize,
    matrix: Arc<dyn Prepared>,
}

impl Powers {
    fn new(device: &dyn Device, powers: &[Gr]) -> Powers {
        let shape = Powers::shape(1, powers.len());
        Powers { len: powers.len(), matrix: device.prepare(Ring::R64, shape, powers.as_flattened()) }
    }

    fn shape(groups: usize, len: usize) -> LinearShape {
        LinearShape::MatMul { m: groups, k: len, n: Gr::ZERO.len() }
    }

    /// Append an item for every group of words, padded with zeros.
    fn fold(&self, device: &dyn Device, words: &[u64], items: &mut Vec<Gr>) {
        let mut multiply = |words: &[u64]| {
            let (at, groups) = (items.len(), words.len() / self.len);
            items.resize(at + groups, Gr::ZERO);
            let (shape, out) = (Powers::shape(groups, self.len), items[at..].as_flattened_mut());
            device.linear_acc(Ring::R64, shape, words, self.matrix.as_ref(), out);
        };
        let (whole, rest) = words.split_at(words.len() / self.len * self.len);
        if !whole.is_empty() {
            multiply(whole);
        }
        if !rest.is_empty() {
            let mut last = rest.to_vec();
            last.resize(self.len, 0);
            multiply(&last);
        }
    }
}

/// What the folds of words make of columns of ring elements modulo 2^64, at one pair of points: for all three proofs where they have them
/// in common.
#[derive(Default)]
pub(super) struct FoldedWords {
    columns: HashMap<Identity, Known>,
}

/// A column's items. The column stays, so that no other one gets its identity.
struct Known {
    _column: Column,
    items: Vec<Gr>,
    /// By both folds, not by the first alone.
    twice: bool,
}

impl FoldedWords {
    /// Fold all columns of these batches at the first point, but for those that are folded.
    fn first(&mut self, device: &dyn Device, batches: &[Batch], point: &[u64]) {
        let operands = batches.iter().flat_map(|b| b.terms.iter().flatten().flatten());
        let mut missing: Vec<&Column> = vec![];
        for column in operands.flat_map(Operand::columns) {
            self.columns.entry(column.identity()).or_insert_with(|| {
                missing.push(column);
                Known { _column: column.clone(), items: vec![], twice: false }
            });
        }
        if missing.is_empty() {
            return;
        }
        let powers = Powers::new(device, &basis::<Gr>(device, point));
        let long = BLOCKS * powers.len;
        let mut keep = |column: &Column, items: Vec<Gr>| {
            if let Some(known) = self.columns.get_mut(&column.identity()) {
                known.items = items;
            }
        };
        let (whole, short): (Vec<&Column>, Vec<&Column>) =
            missing.into_iter().partition(|column| column.len() >= long);
        for column in whole {
            let mut items = Vec::with_capacity(column.len().div_ceil(powers.len));
            powers.fold(device, column, &mut items);
            keep(column, items);
        }
        let (mut together, mut words, mut items) = (vec![], vec![], vec![]);
        let mut rest = short.into_iter().peekable();
        while let Some(column) = rest.next() {
            words.extend_from_slice(column);
            words.resize(words.len().next_multiple_of(powers.len), 0);
            together.push(column);
            if words.len() >= long || rest.peek().is_none() {
                items.clear();
                powers.fold(device, &words, &mut items);
                let mut left = &items[..];
                for column in together.drain(..) {
                    let (of_column, others) = left.split_at(column.len().div_ceil(powers.len));
                    keep(column, of_column.to_vec());
                    left = others;
                }
                words.clear();
            }
        }
    }

    /// Fold all columns of these batches at both points.
    pub fn both(&mut self, device: &dyn Device, batches: &[Batch], [first, second]: [&[u64]; 2]) {
        self.first(device, batches, first);
        for known in self.columns.values_mut().filter(|known| !known.twice) {
            known.items = Gr::fold(device, &known.items, second);
            known.twice = true;
        }
    }

    /// Append the items `range` of an operand, as far as there are such.
    fn append_some(&self, operand: &Operand, range: std::ops::Range<usize>, to: &mut Vec<Gr>) {
        let items = |column: &Column| {
            let all = self.columns.get(&column.identity()).map_or(&[][..], |known| &known.items);
            &all[range.start.min(all.len())..range.end.min(all.len())]
        };
        match operand.columns() {
            [a, b] => to.extend(items(a).iter().zip(items(b)).map(|(a, b)| a.add(*b))),
            columns => columns.iter().for_each(|column| to.extend_from_slice(items(column))),
        }
    }

    /// Append the items of an operand whose columns are folded.
    pub fn append(&self, operand: &Operand, to: &mut Vec<Gr>) {
        self.append_some(operand, 0..usize::MAX, to);
    }

    /// The values of the second fold, of `vars` variables, of batches with a weight for every block, after the first one.
    pub fn second_values<'a>(
        &mut self,
        device: &dyn Device,
        all: &[Batch],
        point: &[u64],
        vars: u32,
        weighted: impl Iterator<Item = (&'a Batch, &'a [u64])>,
    ) -> Vec<Gr> {
        self.first(device, all, point);
        let (mut sums, block, piece) = (Sums::new(vars, fold::Powers::All), 1usize << vars, BLOCKS << vars);
        let (mut left, mut right, mut weights) = (vec![], vec![], vec![]);
        let mut add = |left: &mut Vec<Gr>, right: &mut Vec<Gr>, weights: &mut Vec<u64>| {
            device.fold().weigh(left, weights);
            sums.add(device, left, right);
            left.clear();
            right.clear();
            weights.clear();
        };
        for (batch, s) in weighted {
            for (u, v) in batch.factors() {
                for (i, s) in s.chunks(BLOCKS).enumerate() {
                    let range = i * piece..(i + 1) * piece;
                    for (operand, items) in [(u, &mut left), (v, &mut right)] {
                        self.append_some(operand, range.clone(), items);
                        items.resize(items.len().next_multiple_of(block), Gr::ZERO);
                    }
                    weights.extend(s.iter().flat_map(|s| std::iter::repeat_n(*s, block)));
                    if left.len() >= piece {
                        add(&mut left, &mut right, &mut weights);
                    }
                }
            }
        }
        if !left.is_empty() {
            add(&mut left, &mut right, &mut weights);
        }
        sums.finish()
    }
}

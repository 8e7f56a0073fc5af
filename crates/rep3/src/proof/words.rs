//! Folds of words of ring elements. What is long is folded where it lies; short columns are put side by side first, so that
//! matrix products are not much smaller than what they cost to begin.

use super::extension::Extension;
use super::galois::{BLOCKS, Gr, of_ring};
use super::outer::Sums;
use privet_kernels::{Device, LinearShape, Weights as Prepared};
use privet_ring::Ring;
use std::sync::Arc;

/// The powers of a point as a prepared matrix, as far as a ring's bits go.
struct Powers {
    ring: Ring,
    /// Powers.
    len: usize,
    matrix: Arc<dyn Prepared>,
}

impl Powers {
    fn new(device: &dyn Device, ring: Ring, powers: &[Gr]) -> Powers {
        let shape = Powers::shape(1, powers.len());
        Powers { ring, len: powers.len(), matrix: device.prepare(ring, shape, powers.as_flattened()) }
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
            device.linear_acc(self.ring, shape, words, self.matrix.as_ref(), out);
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

/// Append words, and zeros up to a whole number of blocks.
fn append(words: &[u64], block: usize, to: &mut Vec<u64>) {
    to.extend_from_slice(words);
    to.resize(to.len().next_multiple_of(block), 0);
}

/// Columns of these rings, each folded once with these powers, times the weights of its groups where it has any, and finished.
pub(super) fn fold_columns<'a>(
    device: &dyn Device,
    columns: impl Iterator<Item = (Ring, &'a [u64], Option<&'a [u64]>)>,
    powers: &[Gr],
    finish: fn(&mut Gr, Ring),
) -> Vec<Gr> {
    let long = BLOCKS * powers.len();
    let (mut by_ring, mut items) = (vec![], vec![]);
    let mut fold = |ring: Ring, words: &[u64], weights: &[u64]| {
        let at = items.len();
        of_ring(&mut by_ring, ring, || Powers::new(device, ring, powers)).fold(device, words, &mut items);
        if !weights.is_empty() {
            device.fold().weigh(&mut items[at..], weights);
        }
        items[at..].iter_mut().for_each(|item| finish(item, ring));
    };
    // items keep the order of their columns
    let mut short = (Ring::R64, vec![], vec![]);
    for (ring, column, s) in columns {
        let s = s.unwrap_or_default();
        let (of, words, weights) = &mut short;
        if !words.is_empty() && (ring != *of || words.len().max(column.len()) >= long) {
            fold(*of, words, weights);
            words.clear();
            weights.clear();
        }
        if column.len() >= long {
            fold(ring, column, s);
        } else {
            *of = ring;
            append(column, powers.len(), words);
            weights.extend_from_slice(s);
        }
    }
    let (of, words, weights) = short;
    fold(of, &words, &weights);
    items
}

/// The values of the second fold of one ring's words, as far as they have come.
pub(super) struct Second {
    vars: u32,
    powers: Powers,
    sums: Sums,
    /// What is too short to be folded by itself: columns of u and of v, and a weight for every block of them.
    short: [Vec<u64>; 3],
    /// Items of u and of v.
    left: Vec<Gr>,
    right: Vec<Gr>,
}

impl Second {
    /// Where the first fold was at the point with the powers `first`.
    pub fn new(device: &dyn Device, ring: Ring, first: &[Gr], vars: u32) -> Second {
        Second {
            vars,
            powers: Powers::new(device, ring, first),
            sums: Sums::new(vars),
            short: [vec![], vec![], vec![]],
            left: vec![],
            right: vec![],
        }
    }

    /// Words of a block, which has a weight.
    fn block(&self) -> usize {
        self.powers.len << self.vars
    }

    /// Add the products of two columns with a weight for every block.
    pub fn add(&mut self, device: &dyn Device, u: &[u64], v: &[u64], s: &[u64]) {
        let (block, piece) = (self.block(), self.block() * BLOCKS);
        for ((u, v), s) in u.chunks(piece).zip(v.chunks(piece)).zip(s.chunks(BLOCKS)) {
            if u.len() == piece {
                self.fold(device, u, v, s);
                continue;
            }
            append(u, block, &mut self.short[0]);
            append(v, block, &mut self.short[1]);
            self.short[2].extend_from_slice(s);
            if self.short[0].len() >= piece {
                self.fold_short(device);
            }
        }
    }

    fn fold_short(&mut self, device: &dyn Device) {
        let [mut u, mut v, mut s] = std::mem::take(&mut self.short);
        self.fold(device, &u, &v, &s);
        [&mut u, &mut v, &mut s].into_iter().for_each(Vec::clear);
        self.short = [u, v, s];
    }

    /// Whole blocks.
    fn fold(&mut self, device: &dyn Device, u: &[u64], v: &[u64], s: &[u64]) {
        self.left.clear();
        self.right.clear();
        self.powers.fold(device, u, &mut self.left);
        self.powers.fold(device, v, &mut self.right);
        let s: Vec<u64> = s.iter().flat_map(|s| std::iter::repeat_n(*s, 1 << self.vars)).collect();
        device.fold().weigh(&mut self.left, &s);
        self.sums.add(device, &self.left, &self.right);
    }

    /// All values.
    pub fn finish(mut self, device: &dyn Device) -> Vec<Gr> {
        if !self.short[0].is_empty() {
            self.fold_short(device);
        }
        self.sums.finish()
    }
}

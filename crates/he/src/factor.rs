//! Weights, prepared once for all calls: what one party multiplies with, and what hides it.

use crate::block::{Beside, Block, Coefficients, whole};
use crate::context::{Context, Points};
use crate::panel::Panel;
use crate::product::{Hint, Message, Product};
use crate::sample::{self, Small};
use crate::{Plain, mutation};
use privet_prg::{Prg, Seed, Wiped};
use std::ops::Range;

/// One party's share of the weights, without the other parties' hints; wiped on drop.
pub struct Weights {
    product: Product,
    kept: Kept,
    /// Values are kept, once they are made.
    keeps: bool,
    /// Of what hides each answer's hint.
    hiding: Vec<Seed>,
}

enum Kept {
    /// For each group, a panel for each block of its answers: their weights' values, what hides them, and a place for the hint.
    Values(Vec<Panel>),
    /// Signed: their values are made whenever they are needed.
    Words(Small),
}

/// What a party multiplies an encrypted operand with.
pub struct Factor {
    pub(crate) product: Product,
    weights: Option<Weights>,
    /// All parties' hints, where they are not beside the weights; none at a party that encrypts nothing.
    hints: Vec<Points>,
    encrypts: bool,
}

impl Product {
    /// This party's weights, modulo t, as wide as the parameters say, and its hint for all who encrypt. Values that take a whole transform
    /// each are kept, unless that takes more than `room` bytes; others are made anew in every call. With no room none are, as for a
    /// single call: memory that is new costs more than transforms. `prg` is the party's own.
    ///
    /// Panics where the number of weights is another, or where a weight is too wide, which would break the bounds that
    /// secrecy rests on.
    pub fn weights(&self, w: &[u64], prg: &mut Prg, room: usize) -> (Weights, Message<Hint>) {
        let (b, context) = (self.layout.blocks(), &self.context);
        assert_eq!(w.len(), self.layout.weight_len(), "number of weights");
        let signed = signed(self.parameters.plain(), self.parameters.weight_bits(), w);
        let hiding: Vec<Seed> = (0..self.hints(b.groups)).map(|_| prg.seed()).collect();
        let errors: Vec<Seed> = hiding.iter().map(|_| prg.seed()).collect();
        let bytes = b.groups * b.outputs * (b.inputs + 2) * context.set().value_bytes();
        let keeps = self.layout.weights_are_whole(context.degree()) && bytes <= room;
        let mut weights = Weights { product: self.clone(), kept: Kept::Words(signed), keeps, hiding };
        let a_zero = self.public_of_zero();
        let (mut panels, mut hints) = (Vec::new(), Vec::new());
        for group in 0..b.groups {
            let mut public = Panel::new(context, 1, b.inputs + 2);
            for input in 0..b.inputs {
                public.put(0, input, &self.public(group, input));
            }
            public.put(0, b.inputs, &a_zero);
            let made = each_block(context, weights.together(), b.outputs, |rows, sums| {
                let block = weights.block(group, rows.clone(), None);
                let mut hints: Vec<Points> = rows.clone().map(|_| context.zero()).collect();
                block.times(context, &public, sums, |prime, i, sum| {
                    hints[i].words[context.range(prime)].copy_from_slice(sum);
                });
                for (row, hint) in rows.zip(&mut hints) {
                    let seed = &errors[group * b.outputs + row];
                    let mut errors = sample::errors(&mut seed.stream(), context.degree());
                    mutation::constant("rerandomised-without-error", &mut errors, sample::OFFSET);
                    context.add(&mut hint.words, &context.points(context.small(&errors)).words, false);
                }
                (if keeps { block.into_panel() } else { None }, hints)
            });
            for (panel, of_block) in made {
                panels.extend(panel);
                hints.extend(of_block);
            }
        }
        if keeps {
            weights.kept = Kept::Values(panels);
        }
        (weights, self.message(hints))
    }
}

/// Signed weights. Panics where one is too wide.
fn signed(plain: Plain, bits: u32, w: &[u64]) -> Small {
    let (signed, narrow) = (plain.signed(w), privet_ring::Ring::new(bits));
    // no early end: how long this takes tells nothing but that all is well
    let wide = signed.iter().fold(0, |any, w| any | (narrow.signed(*w) as u64 ^ *w));
    assert!(wide == 0, "a weight has more than {bits} bits");
    signed
}

/// Answers of a tile that are worked on together: with the operand's, their values' parts fit into the second-level cache.
const ROWS: usize = 12;
/// The same where all values of a prime are made at once: they stay in the third-level cache.
const WHOLE_ROWS: usize = 6;

/// Blocks of so many rows.
fn blocks(size: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(size).map(move |first| first..(first + size).min(rows))
}

/// The block of kept values that a row is in, and its number there.
#[expect(clippy::integer_division_remainder_used, reason = "numbers of answers are public")]
fn block_of(row: usize) -> [usize; 2] {
    [row / ROWS, row % ROWS]
}

/// What `work` makes of each block of `size` rows, in order, by as many threads as there may be; each has room for sums.
pub(crate) fn each_block<T: Send>(
    context: &Context,
    size: usize,
    rows: usize,
    work: impl Fn(Range<usize>, &mut Wiped<u64>) -> T + Sync,
) -> Vec<T> {
    let all: Vec<Range<usize>> = blocks(size, rows).collect();
    let parts = context.each_part(all.len(), |part| {
        let mut sums = Wiped::default();
        all[part].iter().map(|rows| work(rows.clone(), &mut sums)).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

impl Weights {
    /// Answers that are worked on together.
    fn together(&self) -> usize {
        let degree = self.product.context.degree();
        if !self.keeps && self.product.layout.weights_are_whole(degree) { WHOLE_ROWS } else { ROWS }
    }

    /// Weights of these answers and what hides them. Beside them stand the hints, or zeros where there are none.
    fn block<'a>(&'a self, group: usize, rows: Range<usize>, hints: Option<&'a [Points]>) -> Block<'a> {
        let (layout, context) = (&self.product.layout, &self.product.context);
        let b = layout.blocks();
        let words = match &self.kept {
            Kept::Values(panels) => {
                let [block, _] = block_of(rows.start);
                return Block::Kept(&panels[group * blocks(ROWS, b.outputs).count() + block]);
            }
            Kept::Words(words) => words,
        };
        let number = |row: usize| group * b.outputs + rows.start + row;
        let used = layout.weight_span(context.degree());
        let pack = |row: usize, column: usize, packed: &mut [u64]| {
            layout.pack_weights(number(row) * b.inputs + column, words, packed);
        };
        let beside = |row: usize| {
            let hint = match hints {
                Some(hints) => Beside::Of(&hints[number(row)]),
                None => Beside::Own(context.zero()),
            };
            vec![Beside::Own(hiding(context, &self.hiding[number(row)])), hint]
        };
        let beside = (0..rows.len()).map(beside).collect();
        match self.keeps {
            true => Block::Own(whole(context, b.inputs, beside, pack)),
            false => Block::Made(Coefficients::new(context, b.inputs, used, beside, pack)),
        }
    }

    /// What to multiply with, from all parties' hints, added up; `None` at a party that encrypts nothing.
    pub fn factor(mut self, hints: Option<Message<Hint>>) -> Factor {
        let b = self.product.layout.blocks();
        let encrypts = hints.is_some();
        let mut hints = hints.map_or(Vec::new(), |hints| hints.polynomials);
        assert!(!encrypts || hints.len() == self.product.hints(b.groups), "a hint for each answer of a tile");
        if let (Kept::Values(panels), true) = (&mut self.kept, encrypts) {
            for (i, hint) in hints.drain(..).enumerate() {
                let (group, output) = self.product.group_and_output(i);
                let [block, row] = block_of(output);
                panels[group * blocks(ROWS, b.outputs).count() + block].put(row, b.inputs + 1, &hint);
            }
        }
        Factor { product: self.product.clone(), weights: Some(self), hints, encrypts }
    }
}

/// What hides a hint: ternary, as values.
fn hiding(context: &Context, seed: &Seed) -> Points {
    let mut u = sample::ternary(&mut seed.stream(), context.degree());
    mutation::constant("not-rerandomised", &mut u, sample::OFFSET);
    context.points(context.small(&u))
}

impl Factor {
    /// At a party without weights: all others' hints, added up.
    pub fn of_hints(product: &Product, hints: Message<Hint>) -> Factor {
        assert_eq!(
            hints.len(),
            product.hints(product.layout.blocks().groups),
            "a hint for each answer of a tile"
        );
        Factor { product: product.clone(), weights: None, hints: hints.polynomials, encrypts: true }
    }

    /// The product.
    pub fn product(&self) -> &Product {
        &self.product
    }

    /// Answers that are worked on together.
    pub(crate) fn together(&self) -> usize {
        self.weights.as_ref().map_or(ROWS, Weights::together)
    }

    /// Whether this party has weights, and whether it encrypts.
    pub(crate) fn roles(&self) -> (bool, bool) {
        (self.weights.is_some(), self.encrypts)
    }

    /// What acts on these answers, a block. Columns: weights and what hides them, where there are any, and the hint; at a party without
    /// weights the hint alone.
    pub(crate) fn block(&self, group: usize, rows: Range<usize>) -> Block<'_> {
        let (b, context) = (self.product.layout.blocks(), &self.product.context);
        match &self.weights {
            Some(weights) => weights.block(group, rows, self.encrypts.then_some(&self.hints[..])),
            None => {
                let mut panel = Panel::new(context, rows.len(), 1);
                let hints = &self.hints[group * b.outputs..][rows];
                hints.iter().enumerate().for_each(|(row, hint)| panel.put(row, 0, hint));
                Block::Own(panel)
            }
        }
    }
}

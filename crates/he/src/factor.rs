//! Weights, prepared once for all calls: what one party multiplies with, and what hides it.

use crate::context::{Context, Points};
use crate::panel::Panel;
use crate::product::{Hint, Message, Product};
use crate::sample::{self, Small};
use crate::{Plain, mutation};
use privet_prg::{Prg, Seed};
use std::ops::Range;

/// One party's share of the weights, without the other parties' hints; wiped on drop.
pub struct Weights {
    product: Product,
    kept: Kept,
    /// Of what hides each answer's hint.
    hiding: Vec<Seed>,
}

enum Kept {
    /// For each group, a row for each answer of a tile: its weights' values, what hides them, and a place for the hint.
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
    /// This party's weights, modulo t, as wide as the parameters say, and its hint for all who encrypt. Their values are
    /// kept where that takes at most `room` bytes, and otherwise made anew in every call. `prg` is the party's own.
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
        let mut weights = Weights { product: self.clone(), kept: Kept::Words(signed), hiding };
        let a_zero = self.public_of_zero();
        let (mut panels, mut hints) = (Vec::new(), Vec::new());
        for group in 0..b.groups {
            let mut public = Panel::new(context, 1, b.inputs + 2);
            for input in 0..b.inputs {
                public.put(0, input, &self.public(group, input));
            }
            public.put(0, b.inputs, &a_zero);
            let keeps = bytes <= room;
            let rows_at_once = if keeps { b.outputs } else { ROWS.min(b.outputs) };
            let mut panel = Panel::new(context, rows_at_once, b.inputs + 2);
            for rows in blocks(b.outputs) {
                // where values are kept, each row has its place; else all blocks have the same
                let first = if keeps { rows.start } else { 0 };
                weights.values(group, rows.clone(), &mut panel, first);
                let sums = public.times(context, &panel, first..first + rows.len());
                let hint = |i: usize, mut sum: Points| {
                    let seed = &errors[group * b.outputs + rows.start + i];
                    let mut errors = sample::errors(&mut seed.stream(), context.degree());
                    mutation::constant("rerandomised-without-error", &mut errors, sample::OFFSET);
                    context.add(&mut sum.words, &context.points(context.small(&errors)).words, false);
                    sum
                };
                hints.extend(sums.into_iter().enumerate().map(|(i, sum)| hint(i, sum)));
            }
            panels.extend(keeps.then_some(panel));
        }
        if bytes <= room {
            weights.kept = Kept::Values(panels);
        }
        (weights, Message::new(hints))
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

/// Room for a block of rows, used again for each: memory that is new is cleared first and wiped at last.
pub(crate) struct Scratch(Option<Panel>);

/// Rows that are worked on together, whose sums lie in memory meanwhile.
pub(crate) const ROWS: usize = 12;

/// Blocks of rows.
pub(crate) fn blocks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(ROWS).map(move |first| first..(first + ROWS).min(rows))
}

impl Weights {
    /// Values of the weights of these answers and of what hides them, into rows of a panel from `first` on. What is in the
    /// hints' places stays.
    fn values(&self, group: usize, rows: Range<usize>, panel: &mut Panel, first: usize) {
        let Kept::Words(words) = &self.kept else { unreachable!("only where no values are kept") };
        let (layout, context) = (&self.product.layout, &self.product.context);
        let b = layout.blocks();
        for (row, answer) in rows.enumerate() {
            let number = group * b.outputs + answer;
            // as many at a time as there are threads: what was just made is near when it is placed
            for columns in (0..=b.inputs).step_by(context.threads()) {
                let end = (columns + context.threads()).min(b.inputs + 1);
                let made = context.each(end - columns, |i| {
                    if columns + i < b.inputs {
                        let mut packed = Small::zeros(layout.weight_span(context.degree()));
                        layout.pack_weights(number * b.inputs + columns + i, words, &mut packed);
                        context.signed_points(&packed)
                    } else {
                        hiding(context, &self.hiding[number])
                    }
                });
                made.iter().enumerate().for_each(|(i, v)| panel.put(first + row, columns + i, v));
            }
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
                let (group, row) = self.product.group_and_output(i);
                panels[group].put(row, b.inputs + 1, &hint);
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

    /// Whether this party has weights, and whether it encrypts.
    pub(crate) fn roles(&self) -> (bool, bool) {
        (self.weights.is_some(), self.encrypts)
    }

    /// Where values that are not kept are made, block after block of rows; of no use where they are kept.
    pub(crate) fn scratch(&self) -> Scratch {
        let (b, context) = (self.product.layout.blocks(), &self.product.context);
        let rows = ROWS.min(b.outputs);
        Scratch(match &self.weights {
            Some(Weights { kept: Kept::Values(_), .. }) => None,
            Some(_) => Some(Panel::new(context, rows, b.inputs + 2)),
            None => Some(Panel::new(context, rows, 1)),
        })
    }

    /// Panel and rows of it that act on these answers. Columns: weights and what hides them, where there are any, and the
    /// place of the hint; at a party without weights the hint alone.
    pub(crate) fn rows<'a>(
        &'a self,
        group: usize,
        rows: Range<usize>,
        scratch: &'a mut Scratch,
    ) -> (&'a Panel, Range<usize>) {
        let b = self.product.layout.blocks();
        let hint = |row: usize| &self.hints[group * b.outputs + row];
        if let Some(Weights { kept: Kept::Values(panels), .. }) = &self.weights {
            return (&panels[group], rows);
        }
        let panel = scratch.0.as_mut().expect("made for this factor");
        let column = match &self.weights {
            Some(weights) => {
                weights.values(group, rows.clone(), panel, 0);
                b.inputs + 1
            }
            None => 0,
        };
        if self.encrypts {
            rows.clone().enumerate().for_each(|(i, row)| panel.put(i, column, hint(row)));
        }
        (panel, 0..rows.len())
    }
}

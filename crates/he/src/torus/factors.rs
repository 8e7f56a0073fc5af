//! What a server multiplies hints' polynomials and preparations with: transformed weights and hidings. They take many times the room of
//! the weights, and are made again from these and the hidings' seed whenever somebody needs them.

use super::client::divide;
use super::digits::{Cut, gather, signed_digits};
use super::filters::Filters;
use super::layer::Shape;
use super::wide::Wides;
use crate::context::Points;
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use privet_prg::{Domain, Seed};
use std::ops::Range;
use zeroize::Zeroizing;

/// How weights are cut, and how what they are multiplied with is. LOCAL: no message follows from it.
#[derive(Clone, Copy)]
pub(super) struct Cuts {
    pub weights: Cut,
    pub operand: Cut,
}

impl Cuts {
    /// Those with the fewest products: of weights as they are, or of words of them.
    pub fn of(shape: &Shape) -> Cuts {
        let p = &shape.parameters;
        let (taps, hiding) = (shape.layout.coefficients(), p.dimension() as f64);
        let bits = (p.norm_bits() + 1).min(p.ring().bits());
        let cut = |words: u32| {
            let weights = Cut::of(bits, bits.div_ceil(words));
            let squares = match weights.count {
                1 => 4f64.powi(p.norm_bits() as i32),
                // the last word may be one more than others by a carry
                _ => taps as f64 * (2f64.powi(weights.bits as i32 - 1) + 1.0).powi(2),
            };
            let operand = Cut::for_squares(p.modulus_bits(), squares + hiding, taps + p.dimension())?;
            Some(Cuts { weights, operand })
        };
        let cuts = (1..=bits).filter_map(cut);
        cuts.min_by_key(|cuts| cuts.weights.count * cuts.operand.count).expect("words of a bit are small")
    }
}

/// Answers whose sums are made together: the operand is read once for all of them.
const ANSWERS: usize = 12;

/// A layer's weights and hidings, transformed; wiped on drop. As secret as both.
pub struct Factors {
    cuts: Cuts,
    /// For each group, some answers at a time: rows are digits of the weights of each answer, columns operand polynomials; then, beside the
    /// lowest digit, what hides the answer's hint.
    panels: Vec<Vec<Panel>>,
}

/// The answers of a group that stand in its panel `i`.
fn answers(outputs: usize, i: usize) -> Range<usize> {
    i * ANSWERS..outputs.min((i + 1) * ANSWERS)
}

impl Factors {
    /// `hidings` is the seed of this layer's hint and of no other one.
    pub(super) fn new(s: &Shape, cuts: Cuts, filters: &Filters, hidings: &Seed) -> Factors {
        let (b, context, count) = (s.layout.blocks(), &s.context, cuts.weights.count);
        let words = signed_digits(&filters.signed(), cuts.weights);
        let packed = |group: usize, some: Range<usize>| {
            let mut panel = Panel::new(context, some.len() * count, b.inputs + s.parameters.rank());
            let mut poly = Zeroizing::new(vec![0; s.parameters.degree()]);
            for (at, answer) in some.map(|answer| group * b.outputs + answer).enumerate() {
                for (digit, words) in words.iter().enumerate() {
                    for input in 0..b.inputs {
                        poly.fill(0);
                        s.layout.pack_weights(answer * b.inputs + input, words, &mut poly);
                        panel.put(at * count + digit, input, &context.signed_points(&poly));
                    }
                }
                let again = if mutation::active("torus-hidings-repeat") { 0 } else { answer };
                for (column, hiding) in ternary(s, hidings, again).iter().enumerate() {
                    panel.put(at * count, b.inputs + column, hiding);
                }
            }
            panel
        };
        let parts = b.outputs.div_ceil(ANSWERS);
        let of_group = |group| context.each(parts, |i| packed(group, answers(b.outputs, i)));
        Factors { cuts, panels: (0..b.groups).map(of_group).collect() }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.panels.iter().flatten().map(Panel::bytes).sum()
    }

    /// What is made of some answers of a group at a time, in order.
    pub(super) fn each<T: Send>(
        &self,
        s: &Shape,
        group: usize,
        of: impl Fn(Range<usize>, &Panel) -> T + Sync,
    ) -> Vec<T> {
        let (panels, outputs) = (&self.panels[group], s.layout.blocks().outputs);
        s.context.each(panels.len(), |i| of(answers(outputs, i), &panels[i]))
    }

    /// Adds `sum of w v + u b` of the answers of a panel, at these coefficients of each; rows of `digits` are the digits of all v and b.
    pub(super) fn weigh<C: Iterator<Item = usize>>(
        &self,
        s: &Shape,
        [digits, panel]: [&Panel; 2],
        coefficients: impl Fn(usize) -> C,
        into: &mut [Wides],
    ) {
        let (context, rows) = (&s.context, panel.rows());
        for (i, sum) in digits.times(context, panel, 0..rows).into_iter().enumerate() {
            let (digit, row) = divide(i, rows);
            let (answer, word) = divide(row, self.cuts.weights.count);
            let shift = self.cuts.operand.below(digit) + self.cuts.weights.below(word);
            gather(context, sum, shift, coefficients(answer), &mut into[answer]);
        }
    }
}

/// What hides an answer's hint: a ternary key that follows from the seed.
fn ternary(s: &Shape, hidings: &Seed, answer: usize) -> Vec<Points> {
    let mut prg = hidings.derive(Domain::Mask, answer as u64).stream();
    let mut poly = || {
        let mut u = sample::ternary(&mut prg, s.parameters.degree());
        mutation::constant("torus-hint-not-hidden", &mut u, OFFSET);
        s.context.points(s.context.small(&u))
    };
    (0..s.parameters.rank()).map(|_| poly()).collect()
}

impl std::fmt::Debug for Factors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Factors(..)")
    }
}

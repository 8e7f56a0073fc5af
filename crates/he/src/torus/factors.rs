//! What a server makes a hint with: transformed weights and hidings. They take many times the room of the weights, and are there for some
//! answers at a time.

use super::client::divide;
use super::digits::{Cut, gather};
use super::layer::Shape;
use super::wide::Wides;
use crate::context::Points;
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use privet_prg::{Domain, Seed};
use std::ops::Range;
use zeroize::Zeroizing;

/// Answers whose sums are made together: what they are multiplied with is read once for all of them.
const ANSWERS: usize = 12;

/// The answers of a group some at a time.
pub(super) fn parts(outputs: usize) -> Vec<Range<usize>> {
    (0..outputs).step_by(ANSWERS).map(|first| first..outputs.min(first + ANSWERS)).collect()
}

/// Weights and hidings of some answers of a group, transformed; wiped on drop. As secret as both.
pub(super) struct Factors {
    weights: Cut,
    /// Rows are digits of the weights of each answer, columns operand polynomials; then, beside the lowest digit, what hides the
    /// answer's hint.
    panel: Panel,
}

impl Factors {
    /// `words` are the weights' digits, and `hidings` the seed of this layer's hint and of no other one.
    pub fn new(
        s: &Shape,
        weights: Cut,
        words: &[Zeroizing<Vec<u64>>],
        hidings: &Seed,
        group: usize,
        some: Range<usize>,
    ) -> Factors {
        let (b, context, count) = (s.layout.blocks(), &s.context, weights.count);
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
            for (column, hiding) in ternary(s, hidings, answer).iter().enumerate() {
                panel.put(at * count, b.inputs + column, hiding);
            }
        }
        Factors { weights, panel }
    }

    /// `sum of w A + u A0` of each answer, added to `into`; rows of `digits` are the digits of all A and A0, cut like this.
    pub fn weigh(&self, s: &Shape, digits: &Panel, operand: Cut, into: &mut [Wides]) {
        let (context, rows) = (&s.context, self.panel.rows());
        for (i, sum) in digits.times(context, &self.panel, 0..rows).into_iter().enumerate() {
            let (digit, row) = divide(i, rows);
            let (answer, word) = divide(row, self.weights.count);
            let shift = operand.below(digit) + self.weights.below(word);
            gather(context, sum, shift, 0..s.parameters.degree(), &mut into[answer]);
        }
    }
}

/// What hides an answer's hint: a ternary key that follows from the seed. Answers of all groups count.
pub(super) fn ternary(s: &Shape, hidings: &Seed, answer: usize) -> Vec<Points> {
    let answer = if mutation::active("torus-hidings-repeat") { 0 } else { answer };
    let mut prg = hidings.derive(Domain::Mask, answer as u64).stream();
    let mut poly = || {
        let mut u = sample::ternary(&mut prg, s.parameters.degree());
        mutation::constant("torus-hint-not-hidden", &mut u, OFFSET);
        s.context.points(s.context.small(&u))
    };
    (0..s.parameters.rank()).map(|_| poly()).collect()
}

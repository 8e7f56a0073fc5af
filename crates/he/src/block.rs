//! Weights of a few answers of a tile, as what an operand is multiplied with: values that are kept, or made where they are used.
//!
//! Making them anew prime by prime and part by part keeps them in the second-level cache: of a polynomial whose first
//! coefficients alone are filled, each part of the values takes a transform of that size ([`Ntt::forward_parts`]).
//!
//! [`Ntt::forward_parts`]: crate::ntt::Ntt::forward_parts

use crate::context::{Context, Points};
use crate::lane::LIMB;
use crate::modulus::Modulus;
use crate::panel::{Panel, Part, SPAN, multiply, place, spans};
use crate::pointwise::{self, limb_factors};
use crate::sample::Small;
use privet_prg::Wiped;
use std::ops::Range;

/// Answers that are worked on together: for each, columns of values that operands' columns are multiplied with.
pub(crate) enum Block<'a> {
    /// All values.
    Kept(&'a Panel),
    /// Values of this block alone.
    Own(Panel),
    /// What values are made of.
    Made(Coefficients<'a>),
}

/// Coefficients of weights, and columns beside them whose values are there.
pub(crate) struct Coefficients<'a> {
    rows: usize,
    columns: usize,
    /// Coefficients of each polynomial that may be others than 0.
    filled: usize,
    /// Signed coefficients, row by row, column by column.
    signed: Small,
    /// Each row's columns after those of weights.
    beside: Vec<Vec<Beside<'a>>>,
}

/// Coefficients of the smallest transform: whole spans.
const LEAST_FILLED: usize = 32;
const _: () = assert!(LEAST_FILLED >= SPAN);

/// A column whose values are there.
pub(crate) enum Beside<'a> {
    Own(Points),
    Of(&'a Points),
}

impl<'a> Coefficients<'a> {
    /// Of as many rows as have columns beside. `pack` writes signed coefficients of a row's column, the first `used`, into zeros.
    pub(crate) fn new(
        context: &Context,
        weights: usize,
        used: usize,
        beside: Vec<Vec<Beside<'a>>>,
        mut pack: impl FnMut(usize, usize, &mut [u64]),
    ) -> Coefficients<'a> {
        let filled = used.next_power_of_two().clamp(LEAST_FILLED, context.degree());
        let (rows, columns) = (beside.len(), weights + beside.first().map_or(0, Vec::len));
        let mut signed = Small::zeros(rows * weights * filled);
        for (row, of_row) in signed.chunks_mut((weights * filled).max(1)).enumerate() {
            for (column, polynomial) in of_row.chunks_exact_mut(filled).enumerate() {
                pack(row, column, &mut polynomial[..used]);
            }
        }
        Coefficients { rows, columns, filled, signed, beside }
    }

    /// Values of a prime, some spans at a time, as long as those of what is filled.
    fn each_part(&self, context: &Context, prime: usize, mut each: impl FnMut(Range<usize>, &[u64])) {
        let (ntt, m, filled) = (context.ntt(prime), context.modulus(prime), self.filled);
        let count = self.signed.len() >> filled.trailing_zeros();
        context.count_transforms(count);
        let shape = [self.rows, self.columns];
        let mut part = Wiped::zeros(self.rows * self.columns * filled);
        let beside = self.beside.first().map_or(0, Vec::len);
        // where there are several parts, all residues are kept for them
        let mut reduced = Small::zeros(if filled < context.degree() { self.signed.len() } else { 0 });
        for (signed, reduced) in self.signed.chunks_exact(filled).zip(reduced.chunks_exact_mut(filled)) {
            reduce(context, m, signed, reduced);
        }
        let mut one = Small::zeros(filled);
        for number in 0..context.degree() >> filled.trailing_zeros() {
            let values = number * filled..(number + 1) * filled;
            let mut at = [0, 0];
            let mut put = |values: &[u64]| {
                place(&mut part, shape, at, values);
                at[1] += 1;
                if at[1] + beside == self.columns {
                    at = [at[0] + 1, 0];
                }
            };
            match filled < context.degree() {
                true => {
                    ntt.forward_parts(context.path(), &reduced, filled, number, |_, values| put(values));
                }
                false => {
                    for signed in self.signed.chunks_exact(filled) {
                        reduce(context, m, signed, &mut one);
                        ntt.forward(context.path(), &mut one);
                        put(&one);
                    }
                }
            }
            for (row, beside) in self.beside.iter().enumerate() {
                let first = self.columns - beside.len();
                for (i, points) in beside.iter().enumerate() {
                    let points = &points.points().words[context.range(prime)];
                    place(&mut part, shape, [row, first + i], &points[values.clone()]);
                }
            }
            let in_a_span = SPAN.trailing_zeros();
            each(values.start >> in_a_span..values.end >> in_a_span, &part);
        }
    }
}

/// Signed words modulo a prime.
fn reduce(context: &Context, m: Modulus, signed: &[u64], out: &mut [u64]) {
    let [mut low, mut high] = [(); 2].map(|()| Small::zeros(signed.len()));
    for ((v, low), high) in signed.iter().zip(low.iter_mut()).zip(high.iter_mut()) {
        let shifted = v ^ (1 << 63);
        (*low, *high) = (shifted & ((1 << LIMB) - 1), shifted >> LIMB);
    }
    let [one, limb, _] = limb_factors(m);
    let limbs = [(&low[..], one), (&high[..], limb)];
    pointwise::combine(context.path(), m, &limbs, m.p() - m.reduce(1 << 63), out);
}

/// A block's values, where each takes a whole transform. `pack` writes signed coefficients of a row's column into zeros.
pub(crate) fn whole(
    context: &Context,
    weights: usize,
    beside: Vec<Vec<Beside<'_>>>,
    mut pack: impl FnMut(usize, usize, &mut [u64]),
) -> Panel {
    let columns = weights + beside.first().map_or(0, Vec::len);
    let mut panel = Panel::new(context, beside.len(), columns);
    for (row, beside) in beside.iter().enumerate() {
        for column in 0..weights {
            let mut packed = Small::zeros(context.degree());
            pack(row, column, &mut packed);
            panel.put(row, column, &context.signed_points(&packed));
        }
        for (i, points) in beside.iter().enumerate() {
            panel.put(row, weights + i, points.points());
        }
    }
    panel
}

impl Beside<'_> {
    fn points(&self) -> &Points {
        match self {
            Beside::Own(points) => points,
            Beside::Of(points) => points,
        }
    }
}

impl Block<'_> {
    /// The values, where this block has them alone.
    pub(crate) fn into_panel(self) -> Option<Panel> {
        match self {
            Block::Own(panel) => Some(panel),
            Block::Kept(_) | Block::Made(_) => None,
        }
    }

    /// Rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Block::Kept(panel) => panel.rows(),
            Block::Own(panel) => panel.rows(),
            Block::Made(made) => made.rows,
        }
    }

    /// For each row of the operand and each of this block the sum over columns of products, N values each, prime by prime, row by row:
    /// `take` gets a prime, the number of a sum, and values that it may change. `sums` is room for them, used again.
    pub(crate) fn times(
        &self,
        context: &Context,
        operand: &Panel,
        sums: &mut Wiped<u64>,
        mut take: impl FnMut(usize, usize, &mut [u64]),
    ) {
        let (degree, rows) = (context.degree(), 0..self.rows());
        let n = operand.rows() * self.rows() * degree;
        if sums.len() < n {
            *sums = Wiped::zeros(n);
        }
        let sums = &mut sums[..n];
        context.count_products(operand.rows() * operand.columns() * self.rows());
        for prime in context.primes() {
            let mut add = |spans: Range<usize>, part: Part<'_>| {
                let values = spans.start * SPAN..spans.end * SPAN;
                let some = sums.chunks_exact_mut(degree).map(|sum| &mut sum[values.clone()]);
                let of = [operand.part(context, prime, spans.clone()), part];
                multiply(context, prime, of, rows.clone(), &mut some.collect::<Vec<_>>());
            };
            let all = 0..spans(context);
            match self {
                Block::Kept(panel) => add(all.clone(), panel.part(context, prime, all)),
                Block::Own(panel) => add(all.clone(), panel.part(context, prime, all)),
                Block::Made(made) => made.each_part(context, prime, |spans, part| {
                    add(spans, Part::new(part, made.rows, made.columns));
                }),
            }
            sums.chunks_exact_mut(degree).enumerate().for_each(|(i, sum)| take(prime, i, sum));
        }
    }
}

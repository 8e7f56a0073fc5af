//! Matrices of polynomials' values, and their product: what a layer's work is made of.
//!
//! Values of one prime that stand together in all polynomials stand together in memory, [`SPAN`] at a time. So a product
//! of matrices streams through memory, and a value is loaded once for several sums.

use crate::context::{Context, Points};
use crate::field::Field;
use crate::lane::{Kernel, Lane};
use crate::modulus::Modulus;
use crate::pointwise::{MAX_TERMS, limb_factors, reduced};
use crate::word::Factor;
use privet_prg::wiped::{wipe, zeros};
use std::ops::Range;

/// Values of a polynomial that stand together.
pub(crate) const SPAN: usize = 16;
/// Sums that are in registers at a time: rows of one matrix by rows of the other.
const TILE: [usize; 2] = [4, 3];

/// Rows of polynomials as values; wiped on drop.
pub(crate) struct Panel {
    words: Vec<u64>,
    rows: usize,
    columns: usize,
}

impl Drop for Panel {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.words));
    }
}

impl Panel {
    pub(crate) fn new(context: &Context, rows: usize, columns: usize) -> Panel {
        let words = context.set().primes.len() * context.degree() * rows * columns;
        Panel { words: zeros(words), rows, columns }
    }

    /// Place a polynomial.
    pub(crate) fn put(&mut self, row: usize, column: usize, v: &Points) {
        assert!(row < self.rows && column < self.columns, "a place of the panel");
        place(&mut self.words, [self.rows, self.columns], [row, column], &v.words);
    }

    /// For each row of `self` and each of these rows of `other`: the sum over columns of products, row by row.
    pub(crate) fn times(&self, context: &Context, other: &Panel, rows: Range<usize>) -> Vec<Points> {
        context.count_products(self.rows * self.columns * rows.len());
        let words = context.set().primes.len() * context.degree();
        let mut out: Vec<Points> =
            (0..self.rows * rows.len()).map(|_| Points { words: zeros(words) }).collect();
        let spans = spans(context);
        for prime in context.primes() {
            let of = [self, other].map(|panel| panel.part(context, prime, 0..spans));
            let mut out: Vec<&mut [u64]> =
                out.iter_mut().map(|out| &mut out.words[context.range(prime)]).collect();
            multiply(context, prime, of, rows.clone(), &mut out);
        }
        out
    }

    /// Some spans of a prime.
    pub(crate) fn part(&self, context: &Context, prime: usize, some: Range<usize>) -> Part<'_> {
        let span = self.rows * self.columns * SPAN;
        let first = prime * spans(context);
        let words = &self.words[(first + some.start) * span..(first + some.end) * span];
        Part { words, rows: self.rows, columns: self.columns }
    }

    /// Rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

/// Spans of a prime's values.
pub(crate) fn spans(context: &Context) -> usize {
    context.degree() >> SPAN.trailing_zeros()
}

/// Rows of polynomials' values in some spans of one prime: span by span, row by row, column by column.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    words: &'a [u64],
    rows: usize,
    columns: usize,
}

impl<'a> Part<'a> {
    /// Of words as [`place`] puts them.
    pub(crate) fn new(words: &'a [u64], rows: usize, columns: usize) -> Part<'a> {
        Part { words, rows, columns }
    }

    /// Words of a row in a span.
    #[inline(always)]
    fn row(&self, span: usize, row: usize) -> &'a [u64] {
        let len = self.columns * SPAN;
        &self.words[(span * self.rows + row) * len..][..len]
    }
}

/// Place a polynomial's values of some spans into those of [`Part`].
#[inline(always)]
pub(crate) fn place(to: &mut [u64], [rows, columns]: [usize; 2], [row, column]: [usize; 2], values: &[u64]) {
    let (stride, first) = (rows * columns * SPAN, (row * columns + column) * SPAN);
    for (from, to) in values.chunks_exact(SPAN).zip(to.chunks_exact_mut(stride)) {
        to[first..first + SPAN].copy_from_slice(from);
    }
}

/// For each row of the first and each of these rows of the second: the sum over columns of products, into words of its own.
pub(crate) fn multiply(
    context: &Context,
    prime: usize,
    of: [Part<'_>; 2],
    rows: Range<usize>,
    out: &mut [&mut [u64]],
) {
    let [a, b] = &of;
    assert!(a.columns == b.columns && rows.end <= b.rows, "panels of one product");
    assert!(a.words.len() * b.rows == b.words.len() * a.rows, "the same spans");
    assert!(a.columns <= MAX_TERMS, "more products than a sum holds");
    assert_eq!(out.len(), a.rows * rows.len(), "a sum for each pair of rows");
    let modulus = context.modulus(prime);
    context.path().run(Sums { of, rows, modulus, out });
}

struct Sums<'a, 'b> {
    of: [Part<'a>; 2],
    rows: Range<usize>,
    modulus: Modulus,
    out: &'a mut [&'b mut [u64]],
}

impl Kernel for Sums<'_, '_> {
    #[inline(always)]
    fn run<L: Lane>(mut self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        let factors = limb_factors(self.modulus);
        let spans = self.out.first().map_or(0, |out| out.len() >> SPAN.trailing_zeros());
        for span in 0..spans {
            for b in self.rows.clone().step_by(TILE[1]) {
                for a in (0..self.of[0].rows).step_by(TILE[0]) {
                    let (height, width) =
                        ((self.of[0].rows - a).min(TILE[0]), (self.rows.end - b).min(TILE[1]));
                    match (height, width) {
                        (4, 3) => tile::<L, 4, 3>(f, factors, &mut self, span, a, b),
                        (4, 2) => tile::<L, 4, 2>(f, factors, &mut self, span, a, b),
                        (4, _) => tile::<L, 4, 1>(f, factors, &mut self, span, a, b),
                        (3, 3) => tile::<L, 3, 3>(f, factors, &mut self, span, a, b),
                        (3, 2) => tile::<L, 3, 2>(f, factors, &mut self, span, a, b),
                        (3, _) => tile::<L, 3, 1>(f, factors, &mut self, span, a, b),
                        (2, 3) => tile::<L, 2, 3>(f, factors, &mut self, span, a, b),
                        (2, 2) => tile::<L, 2, 2>(f, factors, &mut self, span, a, b),
                        (2, _) => tile::<L, 2, 1>(f, factors, &mut self, span, a, b),
                        (_, 3) => tile::<L, 1, 3>(f, factors, &mut self, span, a, b),
                        (_, 2) => tile::<L, 1, 2>(f, factors, &mut self, span, a, b),
                        _ => tile::<L, 1, 1>(f, factors, &mut self, span, a, b),
                    }
                }
            }
        }
    }
}

/// Low and high halves of products are summed apart, in registers, and reduced once.
#[inline(always)]
fn tile<L: Lane, const A: usize, const B: usize>(
    f: Field<L>,
    factors: [Factor<u64>; 3],
    sums: &mut Sums<'_, '_>,
    span: usize,
    a: usize,
    b: usize,
) {
    let lane = f.lane;
    let xs: [&[u64]; A] = std::array::from_fn(|i| sums.of[0].row(span, a + i));
    let ys: [&[u64]; B] = std::array::from_fn(|j| sums.of[1].row(span, b + j));
    let width = sums.rows.len();
    let columns = sums.of[0].columns;
    for at in (0..SPAN).step_by(L::WIDTH) {
        let mut acc = [[(lane.splat(0), lane.splat(0)); B]; A];
        for column in 0..columns {
            let from = column * SPAN + at;
            let mut y = [lane.splat(0); B];
            for j in 0..B {
                y[j] = lane.load(&ys[j][from..from + L::WIDTH]);
            }
            for i in 0..A {
                let x = lane.load(&xs[i][from..from + L::WIDTH]);
                for j in 0..B {
                    acc[i][j] = lane.multiply_add(acc[i][j], x, y[j]);
                }
            }
        }
        for (i, acc) in acc.into_iter().enumerate() {
            for (j, sum) in acc.into_iter().enumerate() {
                let out = &mut sums.out[(a + i) * width + b + j - sums.rows.start];
                lane.store(&mut out[span * SPAN + at..], reduced(f, factors, sum));
            }
        }
    }
}

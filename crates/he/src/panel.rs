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
const SPAN: usize = 64;
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
        let (stride, first) = (self.rows * self.columns * SPAN, (row * self.columns + column) * SPAN);
        for (from, to) in v.words.chunks_exact(SPAN).zip(self.words.chunks_exact_mut(stride)) {
            to[first..first + SPAN].copy_from_slice(from);
        }
    }

    /// For each row of `self` and each of these rows of `other`: the sum over columns of products, row by row.
    pub(crate) fn times(&self, context: &Context, other: &Panel, rows: Range<usize>) -> Vec<Points> {
        assert!(self.columns == other.columns && rows.end <= other.rows, "panels of one product");
        assert!(self.columns <= MAX_TERMS, "more products than a sum holds");
        context.count_products(self.rows * self.columns * rows.len());
        let words = context.set().primes.len() * context.degree();
        let mut out: Vec<Points> =
            (0..self.rows * rows.len()).map(|_| Points { words: zeros(words) }).collect();
        let spans = context.degree() >> SPAN.trailing_zeros();
        for prime in context.primes() {
            let modulus = context.modulus(prime);
            let kernel = Sums {
                of: [self, other],
                rows: rows.clone(),
                first: prime * spans,
                spans,
                modulus,
                out: &mut out,
            };
            context.path().run(kernel);
        }
        out
    }

    /// Words of a row in a span.
    #[inline(always)]
    fn row(&self, span: usize, row: usize) -> &[u64] {
        let len = self.columns * SPAN;
        &self.words[(span * self.rows + row) * len..][..len]
    }
}

struct Sums<'a> {
    of: [&'a Panel; 2],
    rows: Range<usize>,
    first: usize,
    spans: usize,
    modulus: Modulus,
    out: &'a mut [Points],
}

impl Kernel for Sums<'_> {
    #[inline(always)]
    fn run<L: Lane>(mut self, lane: L) {
        let f = Field::new(lane, self.modulus.p());
        let factors = limb_factors(self.modulus);
        for span in self.first..self.first + self.spans {
            for b in self.rows.clone().step_by(TILE[1]) {
                for a in (0..self.of[0].rows).step_by(TILE[0]) {
                    let (height, width) =
                        ((self.of[0].rows - a).min(TILE[0]), (self.rows.end - b).min(TILE[1]));
                    match (height, width) {
                        (4, 3) => tile::<L, 4, 3>(f, factors, &mut self, span, a, b),
                        (4, 2) => tile::<L, 4, 2>(f, factors, &mut self, span, a, b),
                        (4, _) => tile::<L, 4, 1>(f, factors, &mut self, span, a, b),
                        (_, 3) => {
                            (a..a + height).for_each(|a| tile::<L, 1, 3>(f, factors, &mut self, span, a, b))
                        }
                        (_, 2) => {
                            (a..a + height).for_each(|a| tile::<L, 1, 2>(f, factors, &mut self, span, a, b))
                        }
                        _ => (a..a + height).for_each(|a| tile::<L, 1, 1>(f, factors, &mut self, span, a, b)),
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
    sums: &mut Sums<'_>,
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
                let out = &mut sums.out[(a + i) * width + b + j - sums.rows.start].words;
                lane.store(&mut out[span * SPAN + at..], reduced(f, factors, sum));
            }
        }
    }
}

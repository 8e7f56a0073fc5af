use super::{Blocks, Layout, Output, Wanted, Windowed, last_apart, sizes};
use crate::params::{NoSet, Parameters};
use privet_kernels::LinearShape;
use privet_ring::Ring;
use zeroize::Zeroizing;

/// `[groups, m, k] x [groups, k, o]`: rows times inner dimension times columns. Rows of several runs stand below each
/// other, so one query serves them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul {
    /// Independent products.
    pub groups: usize,
    /// Rows of the operand.
    pub m: usize,
    /// Columns of the operand, rows of the weights.
    pub k: usize,
    /// Columns of the weights.
    pub o: usize,
}

/// Row i, place j of the operand stands at `i k' o' + k' - 1 - j`; place j of weight column c at `c k' + j`; output
/// (i, c) at `i k' o' + c k' + k' - 1`, for blocks of m' rows, k' places and o' columns with m' k' o' <= N.
///
/// Another pair of places lands within k' - 1 of an output, never on one; what passes X^N comes back at most at k' - 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulLayout {
    shape: Matmul,
    block: [usize; 3],
}

impl MatmulLayout {
    /// The blocks and parameters with the least traffic, for weights of `weight_bits` among so many parties,
    /// where the same weights serve so many calls.
    pub fn plan(
        shape: Matmul,
        ring: Ring,
        weight_bits: u32,
        parties: usize,
        uses: usize,
    ) -> Result<(Parameters, MatmulLayout), NoSet> {
        MatmulLayout::wanted(shape, &Wanted { ring, weight_bits, parties, uses, together: 1, coarse: false })
    }

    /// The same for weights that serve one call, where the answers of so many calls are to be within the distance together, and hints and encryptions
    /// of 0 are sent without the bits that noise hides ([`Parameters::coarse`]).
    pub fn plan_coarse(
        shape: Matmul,
        ring: Ring,
        weight_bits: u32,
        parties: usize,
        together: usize,
    ) -> Result<(Parameters, MatmulLayout), NoSet> {
        MatmulLayout::wanted(shape, &Wanted { ring, weight_bits, parties, uses: 1, together, coarse: true })
    }

    fn wanted(shape: Matmul, wanted: &Wanted) -> Result<(Parameters, MatmulLayout), NoSet> {
        let Matmul { groups, m, k, o } = shape;
        assert!(groups * m * k * o > 0, "a product of nothing");
        let found = wanted.cheapest(|n| {
            let rows = sizes(m, n).into_iter();
            let candidates = rows.flat_map(move |m1| sizes(k, n / m1).into_iter().map(move |k1| (m1, k1)));
            candidates.map(move |(m1, k1)| MatmulLayout { shape, block: [m1, k1, o.min(n / (m1 * k1))] })
        });
        found.expect("a polynomial holds blocks of one place")
    }

    /// Blocks of so many rows, places and columns. Panics where they do not fit into `degree` coefficients.
    pub fn with_blocks(shape: Matmul, degree: usize, block: [usize; 3]) -> MatmulLayout {
        assert!(block.iter().all(|b| *b > 0) && block.iter().product::<usize>() <= degree, "m' k' o' <= N");
        MatmulLayout { shape, block }
    }

    /// Coefficients that products read of all operand polynomials, each of so many coefficients: distances of outputs from weights.
    pub(crate) fn read(&self, degree: usize) -> usize {
        let (Matmul { groups, m, k, .. }, [m1, k1, o1], b) = (self.shape, self.block, self.blocks());
        let mut sum = 0;
        for (rows, of_rows) in last_apart(m, m1, b.tiles) {
            for (places, of_places) in last_apart(k, k1, b.inputs) {
                sum += of_rows * of_places * degree.min(places * (rows * o1 + o1 - 1));
            }
        }
        groups * sum
    }

    /// The group, and the block of rows or columns and of places, of a polynomial.
    fn position(&self, number: usize, outer: usize) -> (usize, usize, usize) {
        let inputs = self.blocks().inputs;
        (number / inputs / outer, number / inputs % outer, number % inputs)
    }
}

impl Layout for MatmulLayout {
    fn blocks(&self) -> Blocks {
        let (Matmul { groups, m, k, o }, [m1, k1, o1]) = (self.shape, self.block);
        Blocks { groups, tiles: m.div_ceil(m1), inputs: k.div_ceil(k1), outputs: o.div_ceil(o1) }
    }

    fn input_len(&self) -> usize {
        self.shape.groups * self.shape.m * self.shape.k
    }

    fn weight_len(&self) -> usize {
        self.shape.groups * self.shape.k * self.shape.o
    }

    fn output_len(&self) -> usize {
        self.shape.groups * self.shape.m * self.shape.o
    }

    fn weights_in_a_polynomial(&self) -> usize {
        self.block[1].min(self.shape.k) * self.block[2].min(self.shape.o)
    }

    fn weight_span(&self, degree: usize) -> usize {
        degree.min(self.block[1] * self.block[2])
    }

    fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]) {
        let (Matmul { m, k, .. }, [m1, k1, o1]) = (self.shape, self.block);
        let (group, tile, place) = self.position(number, self.blocks().tiles);
        for i in (tile * m1..m).take(m1) {
            for j in (place * k1..k).take(k1) {
                out[(i - tile * m1) * k1 * o1 + k1 - 1 - (j - place * k1)] = x[(group * m + i) * k + j];
            }
        }
    }

    fn pack_weights(&self, number: usize, w: &[u64], out: &mut [u64]) {
        let (Matmul { k, o, .. }, [_, k1, o1]) = (self.shape, self.block);
        let (group, column, place) = self.position(number, self.blocks().outputs);
        for j in (place * k1..k).take(k1) {
            for c in (column * o1..o).take(o1) {
                out[(c - column * o1) * k1 + j - place * k1] = w[(group * k + j) * o + c];
            }
        }
    }

    fn outputs(&self, answer: usize) -> Vec<Output> {
        let (Matmul { m, o, .. }, [m1, k1, o1], b) = (self.shape, self.block, self.blocks());
        let (tile, column) = (answer / b.outputs, answer % b.outputs);
        let (group, tile) = (tile / b.tiles, tile % b.tiles);
        let rows = (tile * m1..m).take(m1);
        rows.flat_map(|i| {
            (column * o1..o).take(o1).map(move |c| Output {
                coefficient: (i - tile * m1) * k1 * o1 + (c - column * o1) * k1 + k1 - 1,
                index: (group * m + i) * o + c,
            })
        })
        .collect()
    }
}

/// Each place of a row stands in one polynomial: windows are the rows themselves.
impl Windowed for MatmulLayout {
    fn products(&self) -> (LinearShape, usize) {
        let Matmul { groups, m, k, o } = self.shape;
        (LinearShape::MatMul { m, k, n: o }, groups)
    }

    fn product_weights(&self, w: &[u64]) -> Zeroizing<Vec<u64>> {
        Zeroizing::new(w.to_vec())
    }

    fn window(&self, _: usize) -> Option<usize> {
        None
    }

    fn output_places(&self) -> Option<Vec<u32>> {
        None
    }

    fn held(&self) -> usize {
        self.input_len()
    }
}

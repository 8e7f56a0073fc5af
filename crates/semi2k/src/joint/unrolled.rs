//! Products of matrices and convolutions of masks, one multiplication of elements at a time by oblivious transfer.
//!
//! It costs about `k^2 / 2` bits each way for a multiplication of k bits and a pair of parties, so it is for small layers.
//!
//! SECURITY. [`Transfers::multiply`] alone, and sums of shares: each product is shared afresh.

use super::Transfers;
use crate::preprocess::PrepareError;
use crate::shares::Words;
use privet_family::{Products, Secret};
use privet_kernels::LinearShape;
use std::ops::Range;

/// Multiplications at a time, which bounds memory.
const CHUNK: usize = 1 << 12;

/// This party's share of the products, from its shares of both operands.
pub(super) fn products(
    transfers: &mut Transfers<'_>,
    what: Products,
    x: &Words,
    w: &Words,
) -> Result<Words, PrepareError> {
    let ring = x.ring();
    let mut sum = Secret::new(vec![0; what.output_len()]);
    let mut terms = Terms::of(what);
    while let Some(chunk) = terms.next_chunk() {
        let of = |words: &Words, places: fn(&Term) -> usize| {
            words.map(ring, |share| chunk.iter().map(|term| share[places(term)]).collect())
        };
        let products = transfers.multiply(&of(x, |term| term.x), &of(w, |term| term.w))?;
        for (term, product) in chunk.iter().zip(products.own().iter()) {
            sum[term.out] = ring.wrap(sum[term.out].wrapping_add(*product));
        }
    }
    Ok(Words::new(transfers.seats(), ring, vec![sum]))
}

/// A multiplication: places of its operands, and of the sum that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    x: usize,
    w: usize,
    out: usize,
}

/// All multiplications of products, output by output.
struct Terms {
    what: Products,
    outputs: Range<usize>,
    ready: Vec<Term>,
}

impl Terms {
    fn of(what: Products) -> Terms {
        Terms { what, outputs: 0..what.output_len(), ready: Vec::new() }
    }

    /// The next ones, [`CHUNK`] or a few more while there are so many; none at the end.
    fn next_chunk(&mut self) -> Option<Vec<Term>> {
        while self.ready.len() < CHUNK
            && let Some(out) = self.outputs.next()
        {
            self.of_output(out);
        }
        let chunk = std::mem::take(&mut self.ready);
        (!chunk.is_empty()).then_some(chunk)
    }

    fn of_output(&mut self, out: usize) {
        let shape = self.what.shape;
        let (product, at) = (out / shape.output_len(), out % shape.output_len());
        let (first_x, first_w) = (product * shape.input_len(), product * shape.weight_len());
        let mut add = |x: usize, w: usize| self.ready.push(Term { x: first_x + x, w: first_w + w, out });
        match shape {
            LinearShape::MatMulT { k, n, .. } => {
                (0..k).for_each(|i| add(at / n * k + i, at % n * k + i));
            }
            LinearShape::MatMul { k, n, .. } => (0..k).for_each(|i| add(at / n * k + i, i * n + at % n)),
            LinearShape::Conv2d(c) => {
                let [height, width] = c.output();
                let [column, row] = [at % width, at / width % height];
                let [channel, image] =
                    [at / (width * height) % c.out_channels, at / (width * height) / c.out_channels];
                let of_group = c.in_channels / c.groups;
                let group = channel / (c.out_channels / c.groups);
                // The place along a side, unless it is in the padding.
                let along = |side: usize, out: usize, tap: usize| {
                    let place = out * c.stride[side] + tap * c.dilation[side];
                    place.checked_sub(c.padding[2 * side]).filter(|place| *place < c.input[side])
                };
                for input in 0..of_group {
                    for (i, j) in (0..c.kernel[0]).flat_map(|i| (0..c.kernel[1]).map(move |j| (i, j))) {
                        let (Some(y), Some(x)) = (along(0, row, i), along(1, column, j)) else { continue };
                        let plane = image * c.in_channels + group * of_group + input;
                        let kernel = channel * of_group + input;
                        add(
                            (plane * c.input[0] + y) * c.input[1] + x,
                            (kernel * c.kernel[0] + i) * c.kernel[1] + j,
                        );
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;
    use privet_ring::{Conv2d, Ring};

    #[test]
    fn multiplications_add_up_to_the_products_of_the_kernels() {
        let conv = Conv2d {
            batch: 2,
            in_channels: 4,
            input: [7, 6],
            out_channels: 6,
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 0, 2, 1],
            dilation: [1, 2],
            groups: 2,
        };
        let shapes = [
            (LinearShape::MatMulT { m: 3, k: 5, n: 4 }, 1),
            (LinearShape::MatMul { m: 3, k: 5, n: 4 }, 3),
            (LinearShape::MatMul { m: 70, k: 9, n: 11 }, 1),
            (LinearShape::Conv2d(conv), 1),
        ];
        let (ring, device) = (Ring::new(50), privet_kernels::cpu(1));
        for (shape, count) in shapes {
            let what = Products { shape, count };
            let mut stream = Seed::from_bytes([7; 16]).stream();
            let x = stream.elements(ring, count * shape.input_len());
            let w = stream.elements(ring, count * shape.weight_len());
            let mut right = vec![0; what.output_len()];
            what.accumulate(device.as_ref(), ring, &x, &what.prepare(device.as_ref(), ring, &w), &mut right);
            let (mut sum, mut terms) = (vec![0u64; what.output_len()], Terms::of(what));
            while let Some(chunk) = terms.next_chunk() {
                for Term { x: i, w: j, out } in chunk {
                    sum[out] = sum[out].wrapping_add(x[i].wrapping_mul(w[j]));
                }
            }
            assert!(sum.iter().zip(&right).all(|(a, b)| ring.wrap(*a) == ring.wrap(*b)), "{shape:?}");
        }
    }
}

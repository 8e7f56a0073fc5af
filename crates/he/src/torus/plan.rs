//! Which ring, and how many output channels a polynomial: the fewest bytes for the runs that are planned.
//!
//! One output channel a polynomial makes the operand's polynomials shortest and hints most; c of them divide the hints by c
//! and multiply the operand by about c.

use super::digits::bits_of;
use super::params::{NoTorus, RINGS, TorusParameters};
use super::wide;
use crate::layout::{Blocks, ConvLayout, Layout, Matmul, MatmulLayout, sizes};
use privet_ring::{Conv2d, Ring};

/// Bytes of a layer, nearly: coefficients that products do not read are reckoned where several output channels share a
/// polynomial. [`super::TorusLayer`] has the exact numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusCost {
    /// Once, from server to client.
    pub hint_bytes: usize,
    /// Before each run, from client to server.
    pub prepare_bytes: usize,
    /// In each run, from client to server.
    pub run_bytes: usize,
}

impl TorusCost {
    /// With `used` coefficients of each operand polynomial.
    fn of(p: &TorusParameters, b: Blocks, used: usize) -> TorusCost {
        let vector = p.rank() * wide::bytes(p.kept_bits(), p.degree());
        let operands = b.groups * b.tiles * b.inputs;
        TorusCost {
            hint_bytes: b.groups * b.outputs * vector,
            prepare_bytes: b.tiles * vector + operands * wide::bytes(p.step_bits(), used),
            run_bytes: operands * p.ring().packed_bytes(used),
        }
    }

    /// Bytes a run where so many share the hint.
    fn a_run(&self, runs: usize) -> usize {
        self.prepare_bytes + self.run_bytes + self.hint_bytes.div_ceil(runs.max(1))
    }
}

/// A layout with its norm: of filters, each of which is an output channel.
fn cheapest<T: Layout>(
    ring: Ring,
    norm_bits: u32,
    runs: usize,
    candidates: impl Fn(usize) -> Vec<(T, usize, usize)>,
) -> Result<(TorusParameters, T, TorusCost), NoTorus> {
    let mut best: Option<(usize, TorusParameters, T, TorusCost)> = None;
    let mut refused = None;
    for degree in RINGS.iter().map(|set| set.degree) {
        for (layout, outs, used) in candidates(degree) {
            // filters side by side in a polynomial are one packed filter
            match TorusParameters::exact(ring, norm_bits + bits_of(outs).div_ceil(2), degree) {
                Err(why) => refused = refused.or(Some(why)),
                Ok(p) => {
                    let cost = TorusCost::of(&p, layout.blocks(), used);
                    let bytes = cost.a_run(runs);
                    if best.as_ref().is_none_or(|(least, ..)| bytes < *least) {
                        best = Some((bytes, p, layout, cost));
                    }
                }
            }
        }
    }
    match best {
        Some((_, p, layout, cost)) => Ok((p, layout, cost)),
        None => Err(refused.unwrap_or(NoTorus::Window)),
    }
}

impl MatmulLayout {
    /// The blocks and the ring with the fewest bytes a run, for filters (columns of the weights) of a Euclidean norm of at most
    /// 2^`norm_bits`, where so many runs share a hint.
    pub fn for_torus(
        shape: Matmul,
        ring: Ring,
        norm_bits: u32,
        runs: usize,
    ) -> Result<(TorusParameters, MatmulLayout, TorusCost), NoTorus> {
        let Matmul { groups, m, k, o } = shape;
        assert!(groups * m * k * o > 0, "a product of nothing");
        cheapest(ring, norm_bits, runs, |degree| {
            let mut all = Vec::new();
            for rows in sizes(m, degree) {
                for places in sizes(k, degree.checked_div(rows).unwrap_or(1)) {
                    let room = degree.checked_div(rows * places).unwrap_or(1);
                    for outs in channels(o.min(room)) {
                        let used = if outs == 1 { rows * places } else { degree };
                        let layout = MatmulLayout::with_blocks(shape, degree, [rows, places, outs]);
                        all.push((layout, outs, used));
                    }
                }
            }
            all
        })
    }
}

impl ConvLayout {
    /// The tiles and the ring with the fewest bytes a run, for filters of a Euclidean norm of at most 2^`norm_bits`, where so
    /// many runs share a hint. Fails too where no tile fits in a polynomial, as with a kernel of 3 x 3 and a dilation of 36.
    pub fn for_torus(
        conv: Conv2d,
        ring: Ring,
        norm_bits: u32,
        runs: usize,
    ) -> Result<(TorusParameters, ConvLayout, TorusCost), NoTorus> {
        assert!(conv.output_len() > 0 && conv.in_channels > 0, "a convolution of nothing");
        cheapest(ring, norm_bits, runs, |degree| {
            let layouts = ConvLayout::candidates(conv, degree);
            layouts
                .flat_map(|layout| {
                    let (span, most) = (layout.span(), layout.outs());
                    channels(most).into_iter().map(move |outs| {
                        let used = if outs == 1 { span } else { degree };
                        (layout.clone().with_outs(outs), outs, used)
                    })
                })
                .collect()
        })
    }
}

/// Output channels in a polynomial that are worth a look: powers of two, and as many as there is room for.
fn channels(most: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..=most.ilog2()).map(|i| 1 << i).collect();
    all.push(most);
    all.dedup();
    all
}

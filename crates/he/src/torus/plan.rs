//! Which ring, and how many output channels a polynomial: the fewest bytes for the runs that are planned.
//!
//! One output channel a polynomial makes the operand's polynomials shortest and hints most; c of them divide the hints by c
//! and multiply the operand by about c. Where many rows of a matrix share a polynomial, the server's transformed weights take as many times the
//! room. Beyond [`WEIGHTS_ROOM`] that counts as bytes too.

use super::digits::bits_of;
use super::params::{NoTorus, RINGS, TorusParameters};
use super::wide;
use crate::layout::{Blocks, ConvLayout, Matmul, MatmulLayout, Windowed, sizes};
use privet_ring::{Conv2d, Ring};

/// Bytes of a layer's transformed weights that a packing may keep at the server for nothing: models have some fifty layers.
const WEIGHTS_ROOM: usize = 32 << 20;
/// So many bytes beyond are worth one that is sent.
const ROOM_FOR_A_BYTE: usize = 64;

/// What a packing keeps of transformed weights beyond [`WEIGHTS_ROOM`], as bytes that are sent.
fn crowding(b: Blocks, degree: usize) -> usize {
    let words = b.groups * b.outputs * b.inputs * degree;
    (words * size_of::<u64>()).saturating_sub(WEIGHTS_ROOM).div_ceil(ROOM_FOR_A_BYTE)
}

/// Bytes of a layer and work before a run, nearly. [`super::TorusLayer`] has the exact numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusCost {
    /// Once, from server to client.
    pub hint_bytes: usize,
    /// Before each run, from client to server.
    pub prepare_bytes: usize,
    /// Values of polynomials that the server transforms before each run; products of values count by what they take beside.
    pub prepare_values: usize,
    /// In each run, from client to server.
    pub run_bytes: usize,
}

/// Bits of a digit of wide polynomials, nearly.
const DIGIT: u32 = 30;
/// Products of values that take as long as transforming one.
const PRODUCTS: usize = 16;

impl TorusCost {
    /// With so many coefficients of all operand polynomials that are read, and operands at `held` of them.
    fn of(p: &TorusParameters, b: Blocks, read: usize, held: usize) -> TorusCost {
        let vector = p.rank() * wide::bytes(p.kept_bits(), p.degree());
        let (held, blanks) = (held.min(read), read.saturating_sub(held));
        let operands = wide::bytes(p.step_bits(), held) + wide::bytes(p.modulus_bits(), blanks);
        let columns = b.inputs + p.rank();
        let polynomials = columns + b.outputs + (b.outputs * columns).div_ceil(PRODUCTS);
        let digits = p.modulus_bits().div_ceil(DIGIT) as usize;
        TorusCost {
            hint_bytes: b.groups * b.outputs * vector,
            prepare_bytes: b.tiles * vector + operands,
            prepare_values: b.groups * b.tiles * digits * polynomials * p.degree(),
            run_bytes: p.ring().packed_bytes(held),
        }
    }

    /// Bytes a run where so many share the hint.
    fn a_run(&self, runs: usize) -> usize {
        self.prepare_bytes + self.run_bytes + self.hint_bytes.div_ceil(runs.max(1))
    }
}

/// A layout that is worth a look.
struct Candidate<T> {
    layout: T,
    /// Output channels in a polynomial.
    outs: usize,
    /// [`Windowed::held`].
    held: usize,
}

/// A layout that says how much of its operand it sends.
trait Reads: Windowed {
    /// Coefficients of all operand polynomials that products read.
    fn read(&self, degree: usize) -> usize;
}

impl Reads for MatmulLayout {
    fn read(&self, degree: usize) -> usize {
        MatmulLayout::read(self, degree)
    }
}

impl Reads for ConvLayout {
    fn read(&self, degree: usize) -> usize {
        ConvLayout::read(self, degree)
    }
}

impl<T: Reads> Candidate<T> {
    /// Parameters for filters of a norm of at most 2^`norm_bits`.
    fn parameters(&self, ring: Ring, norm_bits: u32, degree: usize) -> Result<TorusParameters, NoTorus> {
        // filters side by side in a polynomial are one packed filter
        TorusParameters::exact(ring, norm_bits + bits_of(self.outs).div_ceil(2), degree)
    }

    fn cost(&self, p: &TorusParameters) -> TorusCost {
        TorusCost::of(p, self.layout.blocks(), self.layout.read(p.degree()), self.held)
    }
}

/// The layout with the fewest bytes a run, [`crowding`] included, of filters, each of which is an output channel.
fn cheapest<T: Reads, I: Iterator<Item = Candidate<T>>>(
    ring: Ring,
    norm_bits: u32,
    runs: usize,
    candidates: impl Fn(usize) -> I,
) -> Result<(TorusParameters, T, TorusCost), NoTorus> {
    let mut best: Option<(usize, TorusParameters, T, TorusCost)> = None;
    let mut refused = None;
    for degree in RINGS.iter().map(|set| set.degree) {
        for candidate in candidates(degree) {
            let p = match candidate.parameters(ring, norm_bits, degree) {
                Ok(p) => p,
                Err(why) => {
                    refused = refused.or(Some(why));
                    continue;
                }
            };
            let (b, least) = (candidate.layout.blocks(), best.as_ref().map_or(usize::MAX, |best| best.0));
            let crowding = crowding(b, degree);
            // most have too many hints or tiles, whatever they read of the operand: that takes longest to find
            if TorusCost::of(&p, b, 0, 0).a_run(runs) + crowding >= least {
                continue;
            }
            let cost = candidate.cost(&p);
            let bytes = cost.a_run(runs) + crowding;
            if bytes < least {
                best = Some((bytes, p, candidate.layout, cost));
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
        cheapest(ring, norm_bits, runs, |degree| MatmulLayout::on_torus(shape, degree))
    }

    /// All that are worth a look.
    fn on_torus(shape: Matmul, degree: usize) -> impl Iterator<Item = Candidate<MatmulLayout>> {
        let fitting = move |rows: usize| {
            let places = sizes(shape.k, degree.checked_div(rows).unwrap_or(1)).into_iter();
            places.map(move |places| [rows, places])
        };
        let with_outs = move |[rows, places]: [usize; 2]| {
            let room = degree.checked_div(rows * places).unwrap_or(1);
            channels(shape.o.min(room)).map(move |outs| {
                let layout = MatmulLayout::with_blocks(shape, degree, [rows, places, outs]);
                Candidate { layout, outs, held: layout.held() }
            })
        };
        sizes(shape.m, degree).into_iter().flat_map(fitting).flat_map(with_outs)
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
        cheapest(ring, norm_bits, runs, |degree| ConvLayout::on_torus(conv, degree))
    }

    /// As [`MatmulLayout::on_torus`].
    fn on_torus(conv: Conv2d, degree: usize) -> impl Iterator<Item = Candidate<ConvLayout>> {
        // of one size of tiles after the other, whatever stands in a polynomial
        let mut of_tile = None;
        let layouts = ConvLayout::candidates(conv, degree).map(move |layout| {
            let held = match of_tile {
                Some((tile, held)) if tile == layout.tile() => held,
                _ => layout.held(),
            };
            of_tile = Some((layout.tile(), held));
            (layout, held)
        });
        let with_channels = |(layout, held): (ConvLayout, usize)| {
            channels(layout.outs()).map(move |outs| Candidate {
                outs,
                held,
                layout: layout.clone().with_outs(outs),
            })
        };
        layouts.flat_map(with_channels)
    }
}

/// Output channels in a polynomial that are worth a look: powers of two, and as many as there is room for.
fn channels(most: usize) -> impl Iterator<Item = usize> {
    (0..=most.ilog2()).map(|i| 1 << i).chain((!most.is_power_of_two()).then_some(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torus::{HintId, TorusLayer};
    use std::sync::Arc;

    const NORM_BITS: u32 = 15;

    /// Bytes that parties send, in so many runs with their hint: as a layer counts them, nothing reckoned.
    fn counted(p: TorusParameters, layout: impl Windowed + 'static, runs: usize) -> usize {
        let layer = TorusLayer::new(p, Arc::new(layout), HintId::random(), 0, 1).unwrap();
        layer.hint_bytes() + runs * (layer.prepare_bytes() + layer.run_bytes())
    }

    /// The choice beside those that come next by what is reckoned and crowd the server no more: none of them sends fewer bytes, but for a twentieth:
    /// where many output channels share a polynomial, a tile at an edge reads coefficients twice that are reckoned apart.
    fn is_best<T: Reads + Clone + std::fmt::Debug + 'static, I: Iterator<Item = Candidate<T>>>(
        name: &str,
        runs: usize,
        chosen: (TorusParameters, T),
        candidates: impl Fn(usize) -> I,
    ) {
        let ring = chosen.0.ring();
        let mut next = Vec::new();
        let most = crowding(chosen.1.blocks(), chosen.0.degree());
        for degree in RINGS.iter().map(|set| set.degree) {
            for candidate in candidates(degree) {
                if crowding(candidate.layout.blocks(), degree) > most {
                    continue;
                }
                let p = candidate.parameters(ring, NORM_BITS, degree).unwrap();
                let cost = candidate.cost(&p);
                next.push((cost.a_run(runs), p, candidate.layout));
            }
        }
        next.sort_by_key(|(bytes, ..)| *bytes);
        let (own, found) = (counted(chosen.0, chosen.1.clone(), runs), chosen.1);
        for (_, p, layout) in next.into_iter().take(NEIGHBOURS) {
            let other = counted(p, layout.clone(), runs);
            let least = own - own.div_euclid(20);
            assert!(other >= least, "{name}, {runs} runs: {own} bytes by {found:?}, {other} by {layout:?}");
        }
    }

    /// Packings that are looked at beside a choice.
    const NEIGHBOURS: usize = 40;

    /// Layers of LeNet, SqueezeNet, ResNet-50 and BERT, for a run, for ten and for a hundred.
    #[test]
    fn the_choice_sends_no_more_than_its_neighbours() {
        let ring = Ring::new(37);
        let conv = |in_channels, side, out_channels, kernel, stride| Conv2d {
            batch: 1,
            in_channels,
            input: [side, side],
            out_channels,
            kernel: [kernel, kernel],
            stride: [stride, stride],
            padding: [if kernel == 3 { 1 } else { 0 }; 4],
            dilation: [1, 1],
            groups: 1,
        };
        let convs = [
            ("LeNet's second convolution", conv(20, 12, 50, 5, 1)),
            ("SqueezeNet, expansion by 3 x 3", conv(48, 13, 192, 3, 1)),
            ("SqueezeNet, squeeze by 1 x 1", conv(384, 13, 64, 1, 1)),
            ("ResNet-50, 1 x 1 with a stride", conv(256, 28, 128, 1, 2)),
        ];
        let matmul = |m, k, o| Matmul { groups: 1, m, k, o };
        let matmuls = [
            ("LeNet's first matrix", matmul(1, 800, 500)),
            ("ResNet-50's matrix", matmul(1, 2048, 1000)),
            ("32 tokens", matmul(32, 768, 768)),
            ("128 tokens", matmul(128, 768, 3072)),
        ];
        for runs in [1, 10, 100] {
            for (name, conv) in convs {
                let (p, layout, _) = ConvLayout::for_torus(conv, ring, NORM_BITS, runs).unwrap();
                is_best(name, runs, (p, layout), |degree| ConvLayout::on_torus(conv, degree));
            }
            for (name, shape) in matmuls {
                let (p, layout, _) = MatmulLayout::for_torus(shape, ring, NORM_BITS, runs).unwrap();
                is_best(name, runs, (p, layout), |degree| MatmulLayout::on_torus(shape, degree));
            }
        }
    }
}

//! Which ring, and how many output channels a polynomial: the least time for the runs that are planned, on the way between both sides.
//!
//! One output channel a polynomial makes the operand's polynomials shortest and hints most; c of them divide the hints by c
//! and multiply the operand, and the server's multiplications, by about c. Near sides have fewer bytes to wait for than work: they take
//! rings of more coefficients, with fewer polynomials.

use super::digits::bits_of;
use super::params::{NoTorus, RINGS, TorusParameters};
use super::wide;
use super::work::{self, PrepareWork};
use crate::layout::{ConvLayout, Matmul, MatmulLayout, Windowed, sizes};
use privet_ring::{Conv2d, Ring};
use std::sync::Arc;

/// The way between both sides, as far as packings depend on it. AGREEMENT class: both sides derive packings from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// A network of some 10 Gbit/s.
    Near,
    /// One of some 400 Mbit/s, or less.
    Distant,
}

impl Link {
    /// Both.
    pub const ALL: [Link; 2] = [Link::Near, Link::Distant];

    /// Hundredths of a nanosecond that a byte takes: packed, encrypted, sent, decrypted and unpacked.
    pub fn byte(self) -> u64 {
        match self {
            Link::Near => 570,
            Link::Distant => 2500,
        }
    }
}

/// What a packing is chosen for. AGREEMENT class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackingAim {
    /// Runs that share a hint.
    pub runs: usize,
    /// The way between both sides.
    pub link: Link,
}

/// Bytes of a layer and work before a run, nearly. [`super::TorusLayer`] has the exact numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusCost {
    /// Once, from server to client.
    pub hint_bytes: usize,
    /// Before each run, from client to server: all, as if no other layer shared keys with this one.
    pub prepare_bytes: usize,
    /// Of these, encryptions of 0 under the layer's keys.
    pub zero_bytes: usize,
    /// In each run, from client to server.
    pub run_bytes: usize,
    /// Hundredths of a nanosecond that the server computes, once.
    hint_work: u64,
    /// Those that both sides compute before each run.
    prepare_work: PrepareWork,
}

impl TorusCost {
    /// With so many coefficients of all operand polynomials that are read, and operands at `held` of them.
    fn of(p: &TorusParameters, layout: &dyn Windowed, read: usize, held: usize) -> TorusCost {
        let b = layout.blocks();
        let vector = p.rank() * wide::bytes(p.kept_bits(), p.degree());
        let (held, blanks) = (held.min(read), read.saturating_sub(held));
        let operands = wide::bytes(p.low_bits(), held) + wide::bytes(p.blank_bits(), blanks);
        TorusCost {
            hint_bytes: b.groups * b.outputs * vector,
            prepare_bytes: b.tiles * vector + operands,
            zero_bytes: b.tiles * vector,
            run_bytes: p.ring().packed_bytes(held),
            hint_work: work::of_hint(p, b),
            prepare_work: PrepareWork::of(p, layout, [held, blanks]),
        }
    }

    /// What both sides compute before each run, in values of small polynomials that are transformed: so many take as long.
    pub fn prepare_values(&self) -> PrepareWork {
        self.prepare_work.in_values()
    }

    /// What both sides take for a run together, in hundredths of a nanosecond: work, and bytes on their way.
    pub fn a_run(&self, aim: PackingAim) -> u64 {
        let taken = |bytes: usize, work: u64| bytes as u64 * aim.link.byte() + work;
        let once = taken(self.hint_bytes, self.hint_work);
        taken(self.prepare_bytes + self.run_bytes, self.prepare_work.sum())
            + once.div_ceil(aim.runs.max(1) as u64)
    }
}

/// A layer's packing, and what it costs.
pub struct Packing {
    /// Ring and norm.
    pub parameters: TorusParameters,
    /// Where what stands.
    pub layout: Arc<dyn Windowed>,
    /// By which it is chosen.
    pub cost: TorusCost,
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
        TorusCost::of(p, &self.layout, self.layout.read(p.degree()), self.held)
    }
}

/// The layout with the least time a run, of filters, each of which is an output channel.
fn cheapest<T: Reads, I: Iterator<Item = Candidate<T>>>(
    ring: Ring,
    norm_bits: u32,
    aim: PackingAim,
    candidates: impl Fn(usize) -> I,
) -> Result<(TorusParameters, T, TorusCost), NoTorus> {
    let mut best: Option<(u64, TorusParameters, T, TorusCost)> = None;
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
            let least = best.as_ref().map_or(u64::MAX, |best| best.0);
            // most have too many hints or tiles, whatever they read of the operand: that takes longest to find
            if TorusCost::of(&p, &candidate.layout, 0, 0).a_run(aim) >= least {
                continue;
            }
            let cost = candidate.cost(&p);
            let taken = cost.a_run(aim);
            if taken < least {
                best = Some((taken, p, candidate.layout, cost));
            }
        }
    }
    match best {
        Some((_, p, layout, cost)) => Ok((p, layout, cost)),
        None => Err(refused.unwrap_or(NoTorus::Window)),
    }
}

/// All of them, with what they cost.
fn packings<T: Reads + 'static, I: Iterator<Item = Candidate<T>>>(
    ring: Ring,
    norm_bits: u32,
    candidates: impl Fn(usize) -> I,
) -> Vec<Packing> {
    let of = |degree: usize| candidates(degree).map(move |candidate| (degree, candidate));
    let all = RINGS.iter().flat_map(|set| of(set.degree));
    let reckoned = all.filter_map(|(degree, candidate)| {
        let parameters = candidate.parameters(ring, norm_bits, degree).ok()?;
        let cost = candidate.cost(&parameters);
        Some(Packing { parameters, layout: Arc::new(candidate.layout), cost })
    });
    reckoned.collect()
}

impl MatmulLayout {
    /// All packings that [`MatmulLayout::for_torus`] chooses from.
    pub fn packings(shape: Matmul, ring: Ring, norm_bits: u32) -> Vec<Packing> {
        packings(ring, norm_bits, |degree| MatmulLayout::on_torus(shape, degree))
    }

    /// The blocks and the ring with the least time a run, for filters (columns of the weights) of a Euclidean norm of at most
    /// 2^`norm_bits`.
    pub fn for_torus(
        shape: Matmul,
        ring: Ring,
        norm_bits: u32,
        aim: PackingAim,
    ) -> Result<(TorusParameters, MatmulLayout, TorusCost), NoTorus> {
        let Matmul { groups, m, k, o } = shape;
        assert!(groups * m * k * o > 0, "a product of nothing");
        cheapest(ring, norm_bits, aim, |degree| MatmulLayout::on_torus(shape, degree))
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
    /// All packings that [`ConvLayout::for_torus`] chooses from.
    pub fn packings(conv: Conv2d, ring: Ring, norm_bits: u32) -> Vec<Packing> {
        packings(ring, norm_bits, |degree| ConvLayout::on_torus(conv, degree))
    }

    /// The tiles and the ring with the least time a run, for filters of a Euclidean norm of at most 2^`norm_bits`. Fails too where no
    /// tile fits in a polynomial, as with a kernel of 3 x 3 and a dilation of 36.
    pub fn for_torus(
        conv: Conv2d,
        ring: Ring,
        norm_bits: u32,
        aim: PackingAim,
    ) -> Result<(TorusParameters, ConvLayout, TorusCost), NoTorus> {
        assert!(conv.output_len() > 0 && conv.in_channels > 0, "a convolution of nothing");
        cheapest(ring, norm_bits, aim, |degree| ConvLayout::on_torus(conv, degree))
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

    const NORM_BITS: u32 = 15;

    /// What both sides take, in so many runs with their hint: of bytes as a layer counts them, nothing reckoned.
    fn counted(
        (p, layout): (TorusParameters, impl Windowed + 'static),
        cost: TorusCost,
        aim: PackingAim,
    ) -> u64 {
        let layer = TorusLayer::new(p, Arc::new(layout), HintId::random(), 0, 1).unwrap();
        let (hint_bytes, prepare_bytes) = (layer.hint_bytes(), layer.prepare_bytes());
        TorusCost { hint_bytes, prepare_bytes, run_bytes: layer.run_bytes(), ..cost }.a_run(aim)
    }

    /// The choice beside those that come next by what is reckoned: none of them takes less, but for a twentieth:
    /// where many output channels share a polynomial, a tile at an edge reads coefficients twice that are reckoned apart.
    fn is_best<T: Reads + Clone + std::fmt::Debug + 'static, I: Iterator<Item = Candidate<T>>>(
        name: &str,
        aim: PackingAim,
        chosen: (TorusParameters, T, TorusCost),
        candidates: impl Fn(usize) -> I,
    ) {
        let (p, found, cost) = chosen;
        let mut next = Vec::new();
        for degree in RINGS.iter().map(|set| set.degree) {
            for candidate in candidates(degree) {
                let p = candidate.parameters(p.ring(), NORM_BITS, degree).unwrap();
                let cost = candidate.cost(&p);
                next.push((cost.a_run(aim), p, candidate.layout, cost));
            }
        }
        next.sort_by_key(|(taken, ..)| *taken);
        let own = counted((p, found.clone()), cost, aim);
        for (_, p, layout, cost) in next.into_iter().take(NEIGHBOURS) {
            let other = counted((p, layout.clone()), cost, aim);
            let least = own - own.div_euclid(20);
            assert!(other >= least, "{name}, {aim:?}: {own} by {found:?}, {other} by {layout:?}");
        }
    }

    /// Packings that are looked at beside a choice.
    const NEIGHBOURS: usize = 40;

    /// Layers of LeNet, SqueezeNet, ResNet-50 and BERT, for a run, for ten and for a hundred, near and far.
    #[test]
    fn the_choice_takes_no_more_than_its_neighbours() {
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
        let aims = [1, 10, 100].into_iter().flat_map(|runs| Link::ALL.map(|link| PackingAim { runs, link }));
        for aim in aims {
            for (name, conv) in convs {
                let chosen = ConvLayout::for_torus(conv, ring, NORM_BITS, aim).unwrap();
                is_best(name, aim, chosen, |degree| ConvLayout::on_torus(conv, degree));
            }
            for (name, shape) in matmuls {
                let chosen = MatmulLayout::for_torus(shape, ring, NORM_BITS, aim).unwrap();
                is_best(name, aim, chosen, |degree| MatmulLayout::on_torus(shape, degree));
            }
        }
    }

    /// Between distant sides no byte more is sent than between near ones.
    #[test]
    fn distant_sides_send_less() {
        let shape = Matmul { groups: 1, m: 128, k: 768, o: 768 };
        for runs in [1, 10, 100] {
            let [near, distant] = Link::ALL.map(|link| {
                let aim = PackingAim { runs, link };
                let (_, _, cost) = MatmulLayout::for_torus(shape, Ring::new(37), NORM_BITS, aim).unwrap();
                cost.prepare_bytes + cost.run_bytes + cost.hint_bytes.div_ceil(runs)
            });
            assert!(distant <= near, "{runs} runs: {near} bytes near, {distant} far");
        }
    }
}

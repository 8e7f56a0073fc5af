use super::{Blocks, Layout, Output, Wanted, Windowed, last_apart, sizes};
use crate::params::{NoSet, Parameters, SETS};
use privet_kernels::LinearShape;
use privet_ring::{Conv2d, Ring};
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A convolution as one of stride 1 over *phases*: phase (a, b) of a channel has the pixels whose row is a and whose column
/// is b modulo the stride, and is a channel of its own; dilation leaves holes in a larger kernel. Images of a batch stand
/// below each other, with the rows between them unused.
///
/// A tile is a window of h x w pixels of that tall image, c' channels of it in a polynomial: channel c, pixel (y, x) at
/// `(c h + y) w + x`; tap (c, dy, dx) of output channel o at `((o c' + c' - 1 - c) h + kh - 1 - dy) w + kw - 1 - dx`; output
/// (o, y, x) at `((o c' + c' - 1) h + y + kh - 1) w + x + kw - 1`, with o' c' h w <= N.
///
/// Other channels land in other planes; what passes a row's, a plane's or X^N's end lands before the first output there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvLayout {
    conv: Conv2d,
    /// Phases with a tap. Shared, as layouts are copied by the thousand while one is chosen.
    phases: Arc<[[usize; 2]]>,
    /// Kernel of a phase.
    kernel: [usize; 2],
    /// Pixels of a tile.
    tile: [usize; 2],
    /// Channels (phases included) and output channels in a polynomial.
    channels: usize,
    outs: usize,
}

impl ConvLayout {
    /// The tiles and parameters with the least traffic, for weights of `weight_bits` among so many parties,
    /// where the same weights serve so many calls.
    ///
    /// Fails too where the window of one output exceeds a polynomial.
    pub fn plan(
        conv: Conv2d,
        ring: Ring,
        weight_bits: u32,
        parties: usize,
        uses: usize,
    ) -> Result<(Parameters, ConvLayout), NoSet> {
        assert!(conv.output_len() > 0 && conv.in_channels > 0, "a convolution of nothing");
        ConvLayout::fits(&conv)?;
        let wanted = Wanted { ring, weight_bits, parties, uses, together: 1, coarse: false };
        let found = wanted.cheapest(|degree| ConvLayout::candidates(conv, degree));
        found.expect("a polynomial holds the window of an output")
    }

    /// Whether a polynomial holds what one output reads of a channel.
    pub fn fits(conv: &Conv2d) -> Result<(), NoSet> {
        let degree = SETS.iter().map(|set| set.degree).max().expect("there are sets");
        let [height, width] = [0, 1].map(|side| ConvLayout::window(conv, side));
        match height.saturating_mul(width) <= degree {
            true => Ok(()),
            false => Err(NoSet::Window { height, width, degree }),
        }
    }

    /// Pixels of a phase that one output reads along a side.
    fn window(conv: &Conv2d, side: usize) -> usize {
        (conv.dilation[side] * (conv.kernel[side] - 1) + 1).div_ceil(conv.stride[side])
    }

    /// A layout for every sensible size of tiles and blocks.
    pub fn candidates(conv: Conv2d, degree: usize) -> impl Iterator<Item = ConvLayout> {
        let axis = |i: usize| {
            let (stride, dilation) = (conv.stride[i], conv.dilation[i]);
            let taps = |phase: &usize| (0..conv.kernel[i]).any(|t| t * dilation % stride == *phase);
            (ConvLayout::window(&conv, i), (0..stride).filter(taps).collect::<Vec<_>>())
        };
        let ((kh, rows), (kw, columns)) = (axis(0), axis(1));
        let phases: Arc<[[usize; 2]]> = rows.iter().flat_map(|a| columns.iter().map(|b| [*a, *b])).collect();
        let channels = conv.in_channels / conv.groups * phases.len();
        let base = ConvLayout { conv, phases, kernel: [kh, kw], tile: [kh, kw], channels: 1, outs: 1 };
        let (tall, wide) = (base.tall() + 1 - kh, conv.output()[1]);
        let mut widths: Vec<usize> = sizes(wide, degree).into_iter().take(16).collect();
        if widths.last() != Some(&1) {
            // the narrowest, for kernels that fill a polynomial
            widths.push(1);
        }
        let windows = widths.into_iter().flat_map(move |w| {
            let w = w + kw - 1;
            sizes(tall, degree).into_iter().map(move |h| [h + kh - 1, w])
        });
        let fits = move |t: &[usize; 2]| t[0] * t[1] <= degree;
        windows.filter(fits).flat_map(move |tile| {
            let base = base.clone();
            sizes(channels, degree / (tile[0] * tile[1])).into_iter().map(move |channels| {
                let outs = (degree / (channels * tile[0] * tile[1])).min(conv.out_channels / conv.groups);
                ConvLayout { tile, channels, outs, ..base.clone() }
            })
        })
    }

    /// Rows and columns of a tile.
    pub(crate) fn tile(&self) -> [usize; 2] {
        self.tile
    }

    /// Output channels in a polynomial.
    pub(crate) fn outs(&self) -> usize {
        self.outs
    }

    /// Coefficients that products read of all operand polynomials, each of so many coefficients: distances of outputs from taps, of all
    /// output channels in a polynomial. Nearly: rows between images are reckoned, and those that two distances reach after X^N.
    pub(crate) fn read(&self, degree: usize) -> usize {
        let (b, [kh, kw], [down, across], [rows, columns]) =
            (self.blocks(), self.kernel, self.steps(), self.grid());
        let planes = 2 * self.outs - 1;
        let mut sum = 0;
        for (height, of_height) in last_apart(self.tall() + 1 - kh, down, rows) {
            for (width, of_width) in last_apart(self.conv.output()[1], across, columns) {
                for (channels, of_channels) in last_apart(self.group()[0], self.channels, b.inputs) {
                    let read = planes * channels * (height + kh - 1) * (width + kw - 1);
                    sum += of_height * of_width * of_channels * read.min(degree);
                }
            }
        }
        b.groups * sum
    }

    /// The same with so many output channels in a polynomial, not more than there were.
    pub(crate) fn with_outs(self, outs: usize) -> ConvLayout {
        assert!((1..=self.outs).contains(&outs), "output channels in a polynomial");
        ConvLayout { outs, ..self }
    }

    /// Rows of an image of a phase, and of the whole batch.
    fn rows(&self) -> usize {
        self.conv.output()[0] + self.kernel[0] - 1
    }

    fn tall(&self) -> usize {
        self.conv.batch * self.rows()
    }

    /// Outputs of a tile down and across.
    fn steps(&self) -> [usize; 2] {
        [self.tile[0] + 1 - self.kernel[0], self.tile[1] + 1 - self.kernel[1]]
    }

    /// Tiles down and across.
    fn grid(&self) -> [usize; 2] {
        let [down, across] = self.steps();
        [(self.tall() + 1 - self.kernel[0]).div_ceil(down), self.conv.output()[1].div_ceil(across)]
    }

    /// Channels of a group, phases included, and output channels.
    fn group(&self) -> [usize; 2] {
        let c = &self.conv;
        [c.in_channels / c.groups * self.phases.len(), c.out_channels / c.groups]
    }

    /// The tall image's first row and column of a tile.
    fn corner(&self, tile: usize) -> [usize; 2] {
        let ([down, across], columns) = (self.steps(), self.grid()[1]);
        [tile / columns * down, tile % columns * across]
    }

    /// The place of a pixel of the tall image in the operand; `None` in padding and below the last image.
    fn pixel(&self, group: usize, channel: usize, [row, column]: [usize; 2]) -> Option<usize> {
        let (c, phases) = (&self.conv, self.phases.len());
        let (image, row) = (row / self.rows(), row % self.rows());
        let [a, b] = self.phases[channel % phases];
        let y = (row * c.stride[0] + a).checked_sub(c.padding[0])?;
        let x = (column * c.stride[1] + b).checked_sub(c.padding[2])?;
        let channel = group * (c.in_channels / c.groups) + channel / phases;
        let inside = image < c.batch && y < c.input[0] && x < c.input[1];
        inside.then(|| ((image * c.in_channels + channel) * c.input[0] + y) * c.input[1] + x)
    }

    /// Of a phase: the coefficient of each tap in its channel's plane, and the tap's place in a filter's channel.
    fn taps(&self, phase: usize) -> Vec<(usize, usize)> {
        let ([_, w], [kh, kw]) = (self.tile, self.kernel);
        let all = (0..kh).flat_map(|dy| (0..kw).map(move |dx| [dy, dx]));
        // of the first output channel's first channel with this phase
        all.filter_map(|[dy, dx]| Some(((kh - 1 - dy) * w + kw - 1 - dx, self.tap(0, phase, [dy, dx])?)))
            .collect()
    }

    /// The place of a tap among the weights; `None` in a hole of the kernel.
    fn tap(&self, out: usize, channel: usize, [dy, dx]: [usize; 2]) -> Option<usize> {
        let (c, phases) = (&self.conv, self.phases.len());
        let phase = self.phases[channel % phases];
        let along = |i: usize, d: usize| {
            let at = d * c.stride[i] + phase[i];
            (at.is_multiple_of(c.dilation[i]) && at / c.dilation[i] < c.kernel[i])
                .then_some(at / c.dilation[i])
        };
        let (y, x) = (along(0, dy)?, along(1, dx)?);
        Some(((out * (c.in_channels / c.groups) + channel / phases) * c.kernel[0] + y) * c.kernel[1] + x)
    }
}

impl Layout for ConvLayout {
    fn blocks(&self) -> Blocks {
        let ([channels, outs], [down, across]) = (self.group(), self.grid());
        Blocks {
            groups: self.conv.groups,
            tiles: down * across,
            inputs: channels.div_ceil(self.channels),
            outputs: outs.div_ceil(self.outs),
        }
    }

    fn input_len(&self) -> usize {
        self.conv.input_len()
    }

    fn weight_len(&self) -> usize {
        self.conv.weight_len()
    }

    fn output_len(&self) -> usize {
        self.conv.output_len()
    }

    fn weights_in_a_polynomial(&self) -> usize {
        self.outs * self.channels * self.kernel[0] * self.kernel[1]
    }

    fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]) {
        let (b, [h, w]) = (self.blocks(), self.tile);
        let (tile, block) = (number / b.inputs, number % b.inputs);
        let (group, corner) = (tile / b.tiles, self.corner(tile % b.tiles));
        for (c, channel) in (block * self.channels..self.group()[0]).take(self.channels).enumerate() {
            for row in 0..h.min(self.tall() - corner[0]) {
                for column in 0..w {
                    if let Some(at) = self.pixel(group, channel, [corner[0] + row, corner[1] + column]) {
                        out[(c * h + row) * w + column] = x[at];
                    }
                }
            }
        }
    }

    fn pack_weights(&self, number: usize, weights: &[u64], out: &mut [u64]) {
        let (b, [h, w], phases) = (self.blocks(), self.tile, self.phases.len());
        let (outer, block) = (number / b.inputs, number % b.inputs);
        let ([channels, outs], group, first) =
            (self.group(), outer / b.outputs, outer % b.outputs * self.outs);
        let (filter, size) =
            (self.conv.in_channels / self.conv.groups, self.conv.kernel[0] * self.conv.kernel[1]);
        let taps: Vec<_> = (0..phases).map(|phase| self.taps(phase)).collect();
        for (o, own) in (first..outs).take(self.outs).enumerate() {
            for (c, channel) in (block * self.channels..channels).take(self.channels).enumerate() {
                let plane = (o * self.channels + self.channels - 1 - c) * h * w;
                let weight = ((group * outs + own) * filter + channel / phases) * size;
                for (to, from) in &taps[channel % phases] {
                    out[plane + to] = weights[weight + from];
                }
            }
        }
    }

    fn outputs(&self, answer: usize) -> Vec<Output> {
        let (b, [h, w], [kh, kw]) = (self.blocks(), self.tile, self.kernel);
        let (tile, block) = (answer / b.outputs, answer % b.outputs);
        let outs = self.group()[1];
        let own = block * self.outs..outs.min((block + 1) * self.outs);
        let mut found = Vec::new();
        self.each_output(tile, own, |[own, row, column], index| {
            let plane = (own - block * self.outs) * self.channels + self.channels - 1;
            let coefficient = (plane * h + row + kh - 1) * w + column + kw - 1;
            found.push(Output { coefficient, index });
        });
        found
    }
}

impl ConvLayout {
    /// For some output channels of a tile (those of all groups count): channel, row and column in it, and the output's place.
    fn each_output(&self, tile: usize, own: Range<usize>, mut found: impl FnMut([usize; 3], usize)) {
        let b = self.blocks();
        let (group, [top, left]) = (tile / b.tiles, self.corner(tile % b.tiles));
        let ([height, width], [down, across]) = (self.conv.output(), self.steps());
        let outs = self.group()[1];
        for own in own {
            for row in 0..down {
                let (image, y) = ((top + row) / self.rows(), (top + row) % self.rows());
                // the rows between images
                if image >= self.conv.batch || y >= height {
                    continue;
                }
                let line = ((image * self.conv.out_channels + group * outs + own) * height + y) * width;
                for column in 0..across.min(width - left) {
                    found([own, row, column], line + left + column);
                }
            }
        }
    }

    /// Kernel and dilation over windows: where phases are channels, holes of the kernel are weights that are 0.
    fn over_windows(&self) -> [[usize; 2]; 2] {
        if self.conv.stride == [1, 1] {
            [self.conv.kernel, self.conv.dilation]
        } else {
            [self.kernel, [1, 1]]
        }
    }
}

/// A tile's windows of all channels, phases included, are an image of a convolution without padding.
impl Windowed for ConvLayout {
    fn products(&self) -> (LinearShape, usize) {
        let [kernel, dilation] = self.over_windows();
        let shape = Conv2d {
            batch: self.blocks().tiles,
            in_channels: self.conv.groups * self.group()[0],
            input: self.tile,
            out_channels: self.conv.out_channels,
            kernel,
            stride: [1, 1],
            padding: [0; 4],
            dilation,
            groups: self.conv.groups,
        };
        (LinearShape::Conv2d(shape), 1)
    }

    fn product_weights(&self, w: &[u64]) -> Zeroizing<Vec<u64>> {
        if self.conv.stride == [1, 1] {
            return Zeroizing::new(w.to_vec());
        }
        let ([kh, kw], channels) = (self.kernel, self.group()[0]);
        let mut out = Zeroizing::new(vec![0; self.conv.out_channels * channels * kh * kw]);
        for (i, to) in out.iter_mut().enumerate() {
            let (line, dx) = (i / kw, i % kw);
            let (plane, dy) = (line / kh, line % kh);
            if let Some(at) = self.tap(plane / channels, plane % channels, [dy, dx]) {
                *to = w[at];
            }
        }
        out
    }

    fn window(&self, number: usize) -> Option<usize> {
        let (b, [channels, _], [h, w]) = (self.blocks(), self.group(), self.tile);
        let (tile, block) = (number / b.inputs, number % b.inputs);
        let plane = (tile % b.tiles * b.groups + tile / b.tiles) * channels + block * self.channels;
        Some(plane * h * w)
    }

    fn output_places(&self) -> Option<Vec<u32>> {
        let (b, [down, across], outs) = (self.blocks(), self.steps(), self.group()[1]);
        assert!(self.products_len() <= u32::MAX as usize, "a layer of less than 2^32 values");
        let mut places = vec![0; self.conv.output_len()];
        for tile in 0..b.groups * b.tiles {
            let first = (tile % b.tiles * b.groups + tile / b.tiles) * outs;
            self.each_output(tile, 0..outs, |[own, row, column], index| {
                places[index] = (((first + own) * down + row) * across + column) as u32;
            });
        }
        Some(places)
    }

    fn held(&self) -> usize {
        let (c, [grid_down, grid_across], [down, across], [h, w]) =
            (&self.conv, self.grid(), self.steps(), self.tile);
        let (rows, tall) = (self.rows(), self.tall());
        let pixels = |[a, b]: &[usize; 2]| {
            let row = |r: usize| (r % rows * c.stride[0] + a).wrapping_sub(c.padding[0]) < c.input[0];
            let column = |x: usize| (x * c.stride[1] + b).wrapping_sub(c.padding[2]) < c.input[1];
            let tall = (0..grid_down).flat_map(|t| t * down..(t * down + h).min(tall)).filter(|r| row(*r));
            let wide = (0..grid_across).flat_map(|t| t * across..t * across + w).filter(|x| column(*x));
            tall.count() * wide.count()
        };
        c.in_channels * self.phases.iter().map(pixels).sum::<usize>()
    }
}

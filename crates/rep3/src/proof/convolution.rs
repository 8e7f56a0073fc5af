//! Convolutions among the products: random coefficients for images and places, and what they make of inputs and outputs.
//!
//! A row of the product is an image and a place of the output. It has a coefficient of its own, or `a_ny c_x` for image n and place (y, x) where that
//! is less work. Then all images' lines are combined first, and all that follows is of one line. A product of a word and a coefficient takes
//! about a nanosecond, one of an element of the Galois rings and a coefficient about a hundred: see `is_cheaper`.

use super::extension::Extension;
use super::galois::{DEGREE, Gr, product, reduce};
use super::products;
use privet_family::Secret;
use privet_kernels::fold::RINGS;
use privet_kernels::{Device, LinearShape};
use privet_prg::Prg;
use privet_ring::Conv2d;
use std::ops::Range;

/// The coefficients of a product's rows, elements of the exceptional set.
pub(super) enum Rows {
    /// One for each.
    Each(Vec<u64>),
    /// Products of two, of a convolution alone.
    Lines(Lines),
}

/// Coefficients of all images' lines of outputs, and of a line's columns.
pub(super) struct Lines {
    images: usize,
    height: usize,
    /// Line by line those of all images, or, where there are more lines, image by image those of all lines.
    lines: Vec<u64>,
    columns: Vec<u64>,
}

impl Rows {
    /// Of one product.
    pub fn of(shape: LinearShape, prg: &mut Prg) -> Rows {
        match shape {
            LinearShape::MatMulT { m, .. } | LinearShape::MatMul { m, .. } => {
                Rows::Each(products::some(prg, m))
            }
            LinearShape::Conv2d(c) => Rows::draw(&c, prg),
        }
    }

    /// Of a convolution.
    fn draw(c: &Conv2d, prg: &mut Prg) -> Rows {
        let [height, width] = c.output();
        let mut some = |n| products::some(prg, n);
        match Lines::is_cheaper(c) {
            true => Rows::Lines(Lines {
                images: c.batch,
                height,
                lines: some(c.batch * height),
                columns: some(width),
            }),
            false => Rows::Each(some(c.batch * height * width)),
        }
    }

    /// One for each row, as a matrix has.
    pub fn each(&self) -> &[u64] {
        match self {
            Rows::Each(bits) => bits,
            Rows::Lines(_) => unreachable!("a row of a matrix has a coefficient of its own"),
        }
    }

    /// The sum of all.
    pub fn total(&self, device: &dyn Device) -> Gr {
        match self {
            Rows::Each(bits) => products::total(device, bits),
            Rows::Lines(lines) => {
                let [lines, columns] =
                    [&lines.lines, &lines.columns].map(|elements| products::total(device, elements));
                product(&lines, &columns)
            }
        }
    }

    /// Whether each is a product of two.
    #[cfg(test)]
    pub fn are_products(&self) -> bool {
        matches!(self, Rows::Lines(_))
    }
}

impl Lines {
    /// Whether two coefficients for a row are less work by a quarter, which depends on the shape alone. Counted in nanoseconds for one component,
    /// of which a party combines two; it combines two results as well.
    fn is_cheaper(c: &Conv2d) -> bool {
        let ([height, width], [kh, kw]) = (c.output(), c.kernel);
        let combined = if width <= FEW { 190 * width } else { 1200 + 65 * width };
        // words are gathered, and combined
        let each = 2 * c.batch * height * width * c.in_channels * kh * kw;
        let lines = 300 * c.batch.min(height) + c.batch * height * c.input[1];
        let two = c.in_channels * kh * (lines + kw * combined) + c.out_channels * combined;
        4 * two < 3 * each
    }

    /// Add the lines `range` of all images, combined, to `out`. They begin at word 0 of `words`, so many words apart: `strides` of
    /// images and of lines.
    fn combine(
        &self,
        device: &dyn Device,
        words: &[u64],
        strides: [usize; 2],
        range: Range<usize>,
        out: &mut [Gr],
    ) {
        if self.are_by_image() {
            for (n, bits) in self.lines.chunks(self.height).enumerate() {
                device.fold().rows_combine(
                    &words[n * strides[0]..],
                    [strides[1], 1],
                    &bits[range.clone()],
                    out,
                );
            }
        } else {
            for (i, bits) in self.lines.chunks(self.images).skip(range.start).take(range.len()).enumerate() {
                device.fold().rows_combine(&words[i * strides[1]..], [strides[0], 1], bits, out);
            }
        }
    }

    /// Whether lines of an image are combined at once, not a line of all images: whatever are more.
    fn are_by_image(&self) -> bool {
        self.images < self.height
    }
}

/// Rows and positions gathered at a time: 256 KiB.
const ROWS: usize = 512;
const POSITIONS: usize = 64;

/// The input's rows combined: for every input channel and place of the kernel, added to what stands there.
pub(super) fn first(device: &dyn Device, c: &Conv2d, x: &[u64], rows: &Rows, out: &mut [Gr]) {
    match rows {
        Rows::Each(bits) => first_of_each(device, c, x, bits, out),
        Rows::Lines(lines) => first_of_lines(device, c, x, lines, out),
    }
}

/// The output's rows combined: for every output channel, added to what stands there.
pub(super) fn result(device: &dyn Device, c: &Conv2d, s: &[u64], rows: &Rows, out: &mut [Gr]) {
    let [height, width] = c.output();
    let area = height * width;
    match rows {
        Rows::Each(bits) => {
            for (s, bits) in s.chunks(area * c.out_channels).zip(bits.chunks(area)) {
                device.fold().rows_combine(s, [1, area], bits, out);
            }
        }
        Rows::Lines(lines) => {
            for (channel, out) in out.iter_mut().enumerate() {
                let mut line = vec![Gr::ZERO; width];
                let strides = [c.out_channels * area, width];
                lines.combine(device, &s[channel * area..], strides, 0..height, &mut line);
                *out = out.add(combined(device, &line, 1, &lines.columns));
            }
        }
    }
}

/// Items whose products with weights are made one by one: of more it takes less to combine coefficient after coefficient.
const FEW: usize = 9;

/// The sum of items that are `step` apart, times their weights.
pub(super) fn combined(device: &dyn Device, items: &[Gr], step: usize, weights: &[u64]) -> Gr {
    if weights.len() <= FEW {
        let mut items: Vec<Gr> = items.iter().step_by(step).take(weights.len()).copied().collect();
        device.fold().weigh(&mut items, weights);
        return items.into_iter().fold(Gr::ZERO, Gr::add);
    }
    // as words are combined, and then Y^k times what that makes of coefficient k in the same ring
    let mut parts = [Gr::ZERO; DEGREE];
    device.fold().rows_combine(items.as_flattened(), [step * DEGREE, 1], weights, &mut parts);
    let mut wide = [0u64; 2 * DEGREE];
    for (t, part) in parts.iter().enumerate() {
        let of_ring = part[t % RINGS..].iter().step_by(RINGS);
        wide[t..]
            .iter_mut()
            .step_by(RINGS)
            .zip(of_ring)
            .for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    reduce(wide)
}

/// The lines of all images that a line of the kernel meets; then what its columns meet of them.
fn first_of_lines(device: &dyn Device, c: &Conv2d, x: &[u64], lines: &Lines, out: &mut [Gr]) {
    let ([input_height, input_width], [kh, kw]) = (c.input, c.kernel);
    let strides = [c.in_channels * input_height * input_width, c.stride[0] * input_width];
    for (i, out) in out.chunks_mut(kw).enumerate() {
        let (channel, ky) = (i / kh, i % kh);
        let Some((first, outputs)) = met(c, 0, ky) else { continue };
        let mut line = vec![Gr::ZERO; input_width];
        let x = &x[(channel * input_height + first) * input_width..];
        lines.combine(device, x, strides, outputs, &mut line);
        for (kx, out) in out.iter_mut().enumerate() {
            if let Some((first, outputs)) = met(c, 1, kx) {
                *out = out.add(combined(device, &line[first..], c.stride[1], &lines.columns[outputs]));
            }
        }
    }
}

/// What place `k` of the kernel meets along an axis: the first place of the input, and the outputs for which it reads no padding, if any.
fn met(c: &Conv2d, axis: usize, k: usize) -> Option<(usize, Range<usize>)> {
    let outputs = reading(c, axis, k);
    let first = (outputs.start * c.stride[axis] + k * c.dilation[axis]).checked_sub(c.padding[2 * axis]);
    first.filter(|_| !outputs.is_empty()).map(|first| (first, outputs))
}

/// The outputs along an axis for which place `k` of the kernel reads no padding.
fn reading(c: &Conv2d, axis: usize, k: usize) -> Range<usize> {
    let (from, padding) = (k * c.dilation[axis], c.padding[2 * axis]);
    let before = |end: usize| end.saturating_sub(from).div_ceil(c.stride[axis]).min(c.output()[axis]);
    before(padding)..before(padding + c.input[axis])
}

/// Some rows and positions at a time.
fn first_of_each(device: &dyn Device, c: &Conv2d, x: &[u64], bits: &[u64], out: &mut [Gr]) {
    let mut words = Secret::new(vec![0; ROWS.min(bits.len()) * POSITIONS.min(out.len())]);
    for (i, bits) in bits.chunks(ROWS).enumerate() {
        let rows = i * ROWS..i * ROWS + bits.len();
        for (j, out) in out.chunks_mut(POSITIONS).enumerate() {
            for (position, words) in words.chunks_mut(bits.len()).take(out.len()).enumerate() {
                patches(c, x, j * POSITIONS + position, rows.clone(), words);
            }
            device.fold().rows_combine(&words, [1, bits.len()], bits, out);
        }
    }
}

/// What is multiplied with the weights at one `position`, an input channel and a place in the kernel, for the outputs `rows`; 0 in
/// the padding.
fn patches(c: &Conv2d, x: &[u64], position: usize, rows: Range<usize>, out: &mut [u64]) {
    let ([height, width], [kh, kw]) = (c.output(), c.kernel);
    let (channel, ky, kx) = (position / (kh * kw), position / kw % kh, position % kw);
    // the column that output 0 of a line reads, padding included; and the outputs that read no padding
    let (from, step, there) = (kx * c.dilation[1], c.stride[1], reading(c, 1, kx));
    let mut row = rows.start;
    let mut out = out;
    while row < rows.end {
        let (image, oy, ox) = (row / (height * width), row / width % height, row % width);
        let len = (width - ox).min(rows.end - row);
        let (line, rest) = out.split_at_mut(len);
        // padding
        line.fill(0);
        let y = (oy * c.stride[0] + ky * c.dilation[0]).checked_sub(c.padding[0]);
        let (first, end) = (there.start.max(ox), there.end.min(ox + len));
        if let (Some(y), true) = (y.filter(|&y| y < c.input[0]), first < end) {
            let start = ((image * c.in_channels + channel) * c.input[0] + y) * c.input[1];
            let read = &x[start + first * step + from - c.padding[2]..];
            let line = &mut line[first - ox..end - ox];
            match step {
                1 => line.copy_from_slice(&read[..line.len()]),
                _ => line.iter_mut().zip(read.iter().step_by(step)).for_each(|(out, word)| *out = *word),
            }
        }
        (row, out) = (row + len, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;
    use privet_ring::Ring;

    /// Products of a convolution's inputs and outputs with coefficients, one row after the other.
    fn expected(c: &Conv2d, x: &[u64], s: &[u64], rows: &Rows) -> [Vec<Gr>; 2] {
        let ([height, width], [kh, kw], [input_height, input_width]) = (c.output(), c.kernel, c.input);
        let mut inputs = vec![Gr::ZERO; c.in_channels * kh * kw];
        let mut outputs = vec![Gr::ZERO; c.out_channels];
        for row in 0..c.batch * height * width {
            let (image, oy, ox) = (row / (height * width), row / width % height, row % width);
            let coefficient = match rows {
                Rows::Each(bits) => Gr::embed(bits[row]),
                Rows::Lines(of) => {
                    let line = if of.are_by_image() { image * height + oy } else { oy * of.images + image };
                    product(&Gr::embed(of.lines[line]), &Gr::embed(of.columns[ox]))
                }
            };
            let times = |word: u64| coefficient.map(|a: u64| a.wrapping_mul(word));
            for (position, sum) in inputs.iter_mut().enumerate() {
                let (channel, ky, kx) = (position / (kh * kw), position / kw % kh, position % kw);
                let y = (oy * c.stride[0] + ky * c.dilation[0]).checked_sub(c.padding[0]);
                let x_at = (ox * c.stride[1] + kx * c.dilation[1]).checked_sub(c.padding[2]);
                let (Some(y), Some(x_at)) = (y, x_at) else { continue };
                if y < input_height && x_at < input_width {
                    let line = (image * c.in_channels + channel) * input_height + y;
                    *sum = sum.add(times(x[line * input_width + x_at]));
                }
            }
            for (channel, sum) in outputs.iter_mut().enumerate() {
                *sum = sum.add(times(s[((image * c.out_channels + channel) * height + oy) * width + ox]));
            }
        }
        [inputs, outputs]
    }

    /// More outputs, and more places of kernels, than are gathered at a time; also with a stride, and with kernels that
    /// meet nothing but padding. With a coefficient for each row, and with two; few images, and many.
    #[test]
    fn rows_are_combined_either_way() {
        let device = privet_kernels::cpu(1);
        let mut prg = Seed::from_bytes([6; 16]).stream();
        let shapes = [
            ([1, 1], [1, 1, 1, 1], [1, 1]),
            ([1, 2], [2, 0, 3, 6], [2, 1]),
            ([2, 1], [0, 0, 15, 20], [1, 4]),
        ];
        for ((stride, padding, dilation), batch) in shapes.into_iter().flat_map(|s| [(s, 5), (s, 23)]) {
            let c = Conv2d {
                batch,
                in_channels: 8,
                input: [17, 13],
                out_channels: 2,
                kernel: [3, 3],
                stride,
                padding,
                dilation,
                groups: 2,
            };
            let [height, width] = c.output();
            let mut some = |n| prg.elements(Ring::R64, n);
            let (x, s) = (some(batch * 8 * 17 * 13), some(batch * 2 * height * width));
            let each = Rows::Each(some(batch * height * width));
            let lines = Lines { images: batch, height, lines: some(batch * height), columns: some(width) };
            assert_eq!(lines.are_by_image(), batch == 5);
            assert!(batch * height * width > ROWS && 8 * 3 * 3 > POSITIONS);
            for rows in [each, Rows::Lines(lines)] {
                let (mut inputs, mut outputs) = (vec![Gr::ZERO; 8 * 3 * 3], vec![Gr::ZERO; 2]);
                // what stands there stays
                inputs[0][0] = 1;
                first(device.as_ref(), &c, &x, &rows, &mut inputs);
                inputs[0][0] = inputs[0][0].wrapping_sub(1);
                result(device.as_ref(), &c, &s, &rows, &mut outputs);
                assert_eq!([inputs, outputs], expected(&c, &x, &s, &rows), "stride {stride:?}");
            }
        }
    }

    /// Many lines of outputs have coefficients of their own, a few have one a row.
    #[test]
    fn many_lines_have_coefficients_of_their_own() {
        let of = |batch, side, kernel| {
            let (in_channels, out_channels, padding) = (20, 50, [0; 4]);
            let (input, kernel, stride, dilation, groups) = ([side; 2], [kernel; 2], [1, 1], [1, 1], 1);
            Lines::is_cheaper(&Conv2d {
                batch,
                in_channels,
                input,
                out_channels,
                kernel,
                stride,
                padding,
                dilation,
                groups,
            })
        };
        assert!(of(128, 12, 5) && of(1, 112, 3));
        assert!(!of(1, 12, 5) && !of(0, 12, 5));
    }
}

//! Convolutions among the products: random coefficients for images and places, and what they make of inputs and outputs.
//!
//! A row of the product is an image and a place of the output. It has a coefficient of its own, or `a_n b_y c_x` for image n and place (y, x)
//! where that is less work. Then the images are combined first, and all that follows is of one image. A product of a word and a
//! coefficient takes about a nanosecond, one of an element of the Galois ring and a coefficient about a hundred: see `is_cheaper`.

use super::extension::Extension;
use super::galois::{DEGREE, Gr, reduce};
use privet_family::Secret;
use privet_kernels::Device;
use privet_prg::Prg;
use privet_ring::{Conv2d, Ring};
use std::ops::Range;

/// The coefficients of a product's rows, elements of the exceptional set.
pub(super) enum Rows {
    /// One for each.
    Each(Vec<u64>),
    /// Products of three, of a convolution alone.
    Tensor(Tensor),
}

/// Coefficients of images, and of lines and columns of outputs.
pub(super) struct Tensor {
    images: Vec<u64>,
    lines: Vec<u64>,
    columns: Vec<u64>,
}

impl Rows {
    /// Of a convolution.
    pub fn draw(c: &Conv2d, prg: &mut Prg) -> Rows {
        let [height, width] = c.output();
        let mut some = |n| prg.elements(Ring::R64, n);
        match Tensor::is_cheaper(c) {
            true => Rows::Tensor(Tensor { images: some(c.batch), lines: some(height), columns: some(width) }),
            false => Rows::Each(some(c.batch * height * width)),
        }
    }

    /// One for each row, as a matrix has.
    pub fn each(&self) -> &[u64] {
        match self {
            Rows::Each(bits) => bits,
            Rows::Tensor(_) => unreachable!("a row of a matrix has a coefficient of its own"),
        }
    }

    /// Whether each is a product of three.
    #[cfg(test)]
    pub fn are_products(&self) -> bool {
        matches!(self, Rows::Tensor(_))
    }
}

impl Tensor {
    /// Whether three coefficients for a row are less work, which depends on the shape alone. Counted in nanoseconds for one component, of
    /// which a party combines two; it combines two results as well.
    fn is_cheaper(c: &Conv2d) -> bool {
        let ([height, width], [kh, kw]) = (c.output(), c.kernel);
        let combined = |n: usize| if n <= FEW { 190 * n } else { 1200 + 65 * n };
        // words are gathered, and combined
        let each = 2 * c.batch * height * width * c.in_channels * kh * kw;
        let of_channel = kw * (c.input[0] * combined(width) + kh * combined(height));
        let of_output = height * combined(width) + combined(height);
        let words = c.batch * c.in_channels * c.input[0] * c.input[1];
        words + c.in_channels * of_channel + c.out_channels * of_output < each
    }
}

/// Rows and positions gathered at a time: 256 KiB.
const ROWS: usize = 512;
const POSITIONS: usize = 64;

/// The input's rows combined: for every input channel and place of the kernel, added to what stands there.
pub(super) fn first(device: &dyn Device, c: &Conv2d, x: &[u64], rows: &Rows, out: &mut [Gr]) {
    match rows {
        Rows::Each(bits) => first_of_each(device, c, x, bits, out),
        Rows::Tensor(tensor) => first_of_images(device, c, x, tensor, out),
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
        Rows::Tensor(Tensor { images, lines, columns }) => {
            for (channel, out) in out.iter_mut().enumerate() {
                let sums: Vec<Gr> = (0..height)
                    .map(|y| {
                        let mut line = vec![Gr::ZERO; width];
                        let s = &s[channel * area + y * width..];
                        device.fold().rows_combine(s, [c.out_channels * area, 1], images, &mut line);
                        combined(device, &line, 1, columns)
                    })
                    .collect();
                *out = out.add(combined(device, &sums, 1, lines));
            }
        }
    }
}

/// Items whose products with weights are made one by one: of more it takes less to combine coefficient after coefficient.
const FEW: usize = 9;

/// The sum of items that are `step` apart, times their weights.
fn combined(device: &dyn Device, items: &[Gr], step: usize, weights: &[u64]) -> Gr {
    if weights.len() <= FEW {
        let mut items: Vec<Gr> = items.iter().step_by(step).take(weights.len()).copied().collect();
        device.fold().weigh(&mut items, weights);
        return items.into_iter().fold(Gr::ZERO, Gr::add);
    }
    // as words are combined, and then Y^t times what that makes of coefficient t
    let mut parts = [Gr::ZERO; DEGREE];
    device.fold().rows_combine(items.as_flattened(), [step * DEGREE, 1], weights, &mut parts);
    let mut wide = [0u64; 2 * DEGREE];
    for (t, part) in parts.iter().enumerate() {
        wide[t..t + DEGREE].iter_mut().zip(part).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    reduce(wide)
}

/// A line of the input of all images at a time, met by every column of the kernel; then these by every line of it.
fn first_of_images(device: &dyn Device, c: &Conv2d, x: &[u64], tensor: &Tensor, out: &mut [Gr]) {
    let ([input_height, input_width], [kh, kw]) = (c.input, c.kernel);
    let image = c.in_channels * input_height * input_width;
    for (channel, out) in out.chunks_mut(kh * kw).enumerate() {
        let mut lines = Vec::with_capacity(input_height * kw);
        for y in channel * input_height..(channel + 1) * input_height {
            let mut line = vec![Gr::ZERO; input_width];
            device.fold().rows_combine(&x[y * input_width..], [image, 1], &tensor.images, &mut line);
            lines.extend((0..kw).map(|kx| met(device, c, 1, kx, (&line, 1), &tensor.columns)));
        }
        for (position, out) in out.iter_mut().enumerate() {
            let (ky, kx) = (position / kw, position % kw);
            *out = out.add(met(device, c, 0, ky, (&lines[kx..], kw), &tensor.lines));
        }
    }
}

/// What place `k` of the kernel meets along an axis, of items that are `step` apart, combined by the coefficients of outputs; 0 in the padding.
fn met(
    device: &dyn Device,
    c: &Conv2d,
    axis: usize,
    k: usize,
    (items, step): (&[Gr], usize),
    weights: &[u64],
) -> Gr {
    let outputs = reading(c, axis, k);
    if outputs.is_empty() {
        return Gr::ZERO;
    }
    let first = outputs.start * c.stride[axis] + k * c.dilation[axis] - c.padding[2 * axis];
    combined(device, &items[first * step..], c.stride[axis] * step, &weights[outputs])
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

    /// Products of a convolution's inputs and outputs with coefficients, one row after the other.
    fn expected(c: &Conv2d, x: &[u64], s: &[u64], rows: &Rows) -> [Vec<Gr>; 2] {
        let ([height, width], [kh, kw], [input_height, input_width]) = (c.output(), c.kernel, c.input);
        let mut inputs = vec![Gr::ZERO; c.in_channels * kh * kw];
        let mut outputs = vec![Gr::ZERO; c.out_channels];
        for row in 0..c.batch * height * width {
            let (image, oy, ox) = (row / (height * width), row / width % height, row % width);
            let coefficient = match rows {
                Rows::Each(bits) => Gr::embed(bits[row]),
                Rows::Tensor(t) => {
                    Gr::embed(t.images[image]).mul(Gr::embed(t.lines[oy])).mul(Gr::embed(t.columns[ox]))
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
    /// meet nothing but padding. With a coefficient for each row, and with three.
    #[test]
    fn rows_are_combined_either_way() {
        let device = privet_kernels::cpu(1);
        let mut prg = Seed::from_bytes([6; 16]).stream();
        for (stride, padding, dilation) in
            [([1, 1], [1, 1, 1, 1], [1, 1]), ([1, 2], [2, 0, 3, 6], [2, 1]), ([2, 1], [0, 0, 15, 20], [1, 4])]
        {
            let c = Conv2d {
                batch: 5,
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
            let (x, s) = (some(5 * 8 * 17 * 13), some(5 * 2 * height * width));
            let each = Rows::Each(some(5 * height * width));
            let tensor = Tensor { images: some(5), lines: some(height), columns: some(width) };
            assert!(5 * height * width > ROWS && 8 * 3 * 3 > POSITIONS);
            for rows in [each, Rows::Tensor(tensor)] {
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

    /// Many images have three coefficients a row, one image has one.
    #[test]
    fn many_images_have_coefficients_of_their_own() {
        let of = |batch| {
            let (in_channels, out_channels, padding) = (20, 50, [0; 4]);
            let input = [12, 12];
            let (kernel, stride, dilation, groups) = ([5, 5], [1, 1], [1, 1], 1);
            Tensor::is_cheaper(&Conv2d {
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
        assert!(of(128) && !of(1) && !of(0));
    }
}

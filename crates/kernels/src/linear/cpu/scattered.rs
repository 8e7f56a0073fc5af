//! Convolutions whose padding makes more outputs than there are inputs, as gradients by inputs do: `y_o = sum over j of h_j x_(o+j-p)`.
//!
//! The definition multiplies every output's taps, also those that meet padding. Here every input meets every tap once, and
//! `h_j x_i` is added to output `i + p - j`. Example: 8 x 8 inputs and 5 x 5 taps give 12 x 12 outputs, 3,600 multiplications for
//! each pair of channels by the definition, and 1,600 so. All products are one of matrices: a row for each tap of an output
//! channel, a column for each input pixel.

use super::kernel::Shared;
use privet_ring::Conv2d;

/// A convolution, and where its products belong. Row `o t + j` is tap j of t of output channel o.
#[derive(Clone, Copy)]
pub(super) struct Scattered {
    conv: Conv2d,
    output: [usize; 2],
}

impl Scattered {
    /// Of a convolution that takes less time so.
    pub(super) fn of(conv: Conv2d) -> Option<Scattered> {
        conv.work_scattered()?;
        Some(Scattered { conv, output: conv.output() })
    }

    /// Taps of a window.
    pub(super) fn taps(self) -> usize {
        self.conv.kernel[0] * self.conv.kernel[1]
    }

    /// All products as a convolution by single taps, an output channel for each row.
    pub(super) fn products(self) -> Conv2d {
        let out_channels = self.conv.out_channels * self.taps();
        Conv2d { out_channels, kernel: [1; 2], padding: [0; 4], dilation: [1; 2], ..self.conv }
    }

    /// The weights of [`Scattered::products`].
    pub(super) fn rows(self, w: &[u64]) -> Vec<u64> {
        let channels = self.conv.in_channels / self.conv.groups;
        let per_output = w.chunks(channels * self.taps());
        per_output
            .flat_map(|w| (0..self.taps()).flat_map(|tap| w.iter().skip(tap).step_by(self.taps())))
            .copied()
            .collect()
    }

    /// Add to `out` what row `row` has got for input pixels of `image`, from `pixel` on.
    ///
    /// # Safety
    /// As for [`Shared::add`], for this image's outputs of this channel.
    #[inline(always)]
    pub(super) unsafe fn add(
        self,
        image: usize,
        row: usize,
        mut pixel: usize,
        mut values: &[u64],
        out: Shared,
    ) {
        let c = &self.conv;
        let (channel, tap) = (row / self.taps(), row % self.taps());
        let [dy, dx] = [tap / c.kernel[1] * c.dilation[0], tap % c.kernel[1] * c.dilation[1]];
        let [height, width] = self.output;
        let plane = (image * c.out_channels + channel) * height;
        while !values.is_empty() {
            let (iy, ix) = (pixel / c.input[1], pixel % c.input[1]);
            let (line, rest) = values.split_at(values.len().min(c.input[1] - ix));
            // The outputs at and past `left` of the padded input's columns; this line starts at `at`.
            let (y, at) = ((iy + c.padding[0]).wrapping_sub(dy), ix + c.padding[2]);
            if y < height {
                let first = dx.saturating_sub(at).min(line.len());
                let end = (width + dx).saturating_sub(at).clamp(first, line.len());
                let line = &line[first..end];
                if !line.is_empty() {
                    // SAFETY: by this function's contract.
                    unsafe { out.add((plane + y) * width + at + first - dx, line) };
                }
            }
            (values, pixel) = (rest, pixel + line.len());
        }
    }
}

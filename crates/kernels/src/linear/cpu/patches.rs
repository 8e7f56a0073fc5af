use privet_ring::Conv2d;
use std::ops::Range;

/// The columns of the patch matrix for a contiguous range of output pixels of the batch.
pub(super) struct Patches {
    conv: Conv2d,
    group: usize,
    width: usize,
    plane: usize,
    segments: Vec<Segment>,
}

/// Pixels of one output row.
struct Segment {
    /// First column that they fill.
    column: usize,
    len: usize,
    image: usize,
    oy: usize,
    ox: usize,
}

/// Columns of a tile that lie in one image, contiguous in its output plane.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) image: usize,
    /// First pixel in the output plane.
    pub(super) pixel: usize,
    /// First column in the tile.
    pub(super) column: usize,
    pub(super) len: usize,
}

/// Outputs `first..` of `len` along an axis that read inside the input for one kernel tap, as a sub-range.
pub(super) fn inside(
    extent: usize,
    stride: usize,
    padding: usize,
    tap: usize,
    outputs: Range<usize>,
) -> Range<usize> {
    let first = padding.saturating_sub(tap).div_ceil(stride);
    let end = (extent + padding).saturating_sub(tap).div_ceil(stride);
    let first = first.clamp(outputs.start, outputs.end);
    first..end.clamp(first, outputs.end)
}

impl Patches {
    pub(super) fn new(conv: Conv2d, group: usize, pixels: Range<usize>) -> Patches {
        let [height, width] = conv.output();
        let plane = height * width;
        let mut segments = Vec::new();
        let mut p = pixels.start;
        while p < pixels.end {
            let (image, oy, ox) = (p / plane, p % plane / width, p % width);
            let len = (width - ox).min(pixels.end - p);
            segments.push(Segment { column: p - pixels.start, len, image, oy, ox });
            p += len;
        }
        Patches { conv, group, width, plane, segments }
    }

    /// Row `l` of the patch matrix (one input channel and kernel tap); zeros past its depth and past the pixels.
    pub(super) fn fill(&self, x: &[u64], l: usize, row: &mut [u64]) {
        let c = &self.conv;
        let taps = c.kernel[0] * c.kernel[1];
        let channels = c.in_channels / c.groups;
        let (channel, ky, kx) = (l / taps, l % taps / c.kernel[1], l % c.kernel[1]);
        if channel >= channels {
            return row.fill(0);
        }
        let [dy, dx] = [ky * c.dilation[0], kx * c.dilation[1]];
        let mut end = 0;
        for s in &self.segments {
            end = s.column + s.len;
            let row = &mut row[s.column..end];
            let y = (s.oy * c.stride[0] + dy).wrapping_sub(c.padding[0]);
            if y >= c.input[0] {
                row.fill(0);
                continue;
            }
            let plane = s.image * c.in_channels + self.group * channels + channel;
            let line = &x[(plane * c.input[0] + y) * c.input[1]..][..c.input[1]];
            let valid = inside(c.input[1], c.stride[1], c.padding[2], dx, s.ox..s.ox + s.len);
            let (before, rest) = row.split_at_mut(valid.start - s.ox);
            let (row, after) = rest.split_at_mut(valid.len());
            before.fill(0);
            after.fill(0);
            if row.is_empty() {
                continue;
            }
            let line = &line[valid.start * c.stride[1] + dx - c.padding[2]..];
            if c.stride[1] == 1 {
                row.copy_from_slice(&line[..row.len()]);
            } else {
                for (v, x) in row.iter_mut().zip(line.iter().step_by(c.stride[1])) {
                    *v = *x;
                }
            }
        }
        row[end..].fill(0);
    }

    /// The images that the pixels `range` of the batch lie in.
    pub(super) fn runs(&self, range: Range<usize>) -> impl Iterator<Item = Run> + use<> {
        let (plane, mut p) = (self.plane, range.start);
        debug_assert!(self.width <= plane);
        std::iter::from_fn(move || {
            let (image, pixel, column) = (p / plane, p % plane, p - range.start);
            let len = (plane - pixel).min(range.end - p);
            p += len;
            (len > 0).then_some(Run { image, pixel, column, len })
        })
    }
}

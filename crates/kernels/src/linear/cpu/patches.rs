use privet_ring::Conv2d;
use std::ops::Range;

/// The columns of the patch matrix for a contiguous range of output pixels of the batch.
pub(super) struct Patches {
    conv: Conv2d,
    group: usize,
    /// Pixels of an output plane.
    plane: usize,
    pixels: usize,
    /// What to copy for each kernel tap; the same for every input channel.
    taps: Vec<Vec<Piece>>,
}

/// Columns that read the input at a fixed step.
#[derive(Clone, Copy)]
struct Piece {
    column: usize,
    len: usize,
    /// Offset of the first element in x for channel 0 of the group.
    source: usize,
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

/// The part of `outputs` along an axis for which a tap at distance `tap` reads inside the input.
fn inside(extent: usize, stride: usize, padding: usize, tap: usize, outputs: Range<usize>) -> Range<usize> {
    let first = padding.saturating_sub(tap).div_ceil(stride);
    let end = (extent + padding).saturating_sub(tap).div_ceil(stride);
    let first = first.clamp(outputs.start, outputs.end);
    first..end.clamp(first, outputs.end)
}

impl Patches {
    pub(super) fn new(conv: Conv2d, group: usize, pixels: Range<usize>) -> Patches {
        let [height, width] = conv.output();
        let plane = height * width;
        let taps = (0..conv.kernel[0] * conv.kernel[1])
            .map(|t| pieces(&conv, group, t / conv.kernel[1], t % conv.kernel[1], pixels.clone()))
            .collect();
        Patches { conv, group, plane, pixels: pixels.len(), taps }
    }

    /// Row `l` of the patch matrix (one input channel and kernel tap); zeros past its depth and past the pixels.
    pub(super) fn fill(&self, x: &[u64], l: usize, row: &mut [u64]) {
        let c = &self.conv;
        let (channel, pieces) = (l / self.taps.len(), &self.taps[l % self.taps.len()]);
        if channel >= c.in_channels / c.groups {
            return row.fill(0);
        }
        debug_assert!(self.group < c.groups && self.pixels <= row.len());
        let x = &x[channel * c.input[0] * c.input[1]..];
        let mut done = 0;
        for p in pieces {
            clear(&mut row[done..p.column]);
            done = p.column + p.len;
            let (row, source) = (&mut row[p.column..done], &x[p.source..]);
            if c.stride[1] == 1 {
                copy(row, &source[..p.len]);
            } else {
                for (v, x) in row.iter_mut().zip(source.iter().step_by(c.stride[1])) {
                    *v = *x;
                }
            }
        }
        row[done..].fill(0);
    }

    /// The images that the pixels `range` of the batch lie in.
    pub(super) fn runs(&self, range: Range<usize>) -> impl Iterator<Item = Run> + use<> {
        let (plane, mut p) = (self.plane, range.start);
        std::iter::from_fn(move || {
            let (image, pixel, column) = (p / plane, p % plane, p - range.start);
            let len = (plane - pixel).min(range.end - p);
            p += len;
            (len > 0).then_some(Run { image, pixel, column, len })
        })
    }
}

/// Words that two eights hold, which may overlap.
const SHORT: std::ops::RangeInclusive<usize> = 8..=16;
/// The same of four.
const MEDIUM: std::ops::RangeInclusive<usize> = 17..=32;

/// Copy a line of an image: most lines are short, and a call of `memcpy` takes longer than they do.
#[inline]
fn copy(to: &mut [u64], from: &[u64]) {
    let eight = |to: &mut [u64], at: usize| {
        let from: &[u64; 8] = from[at..].first_chunk().expect("eight words");
        *to[at..].first_chunk_mut().expect("eight words") = *from;
    };
    let n = to.len();
    match n {
        _ if SHORT.contains(&n) => [0, n - 8].into_iter().for_each(|at| eight(to, at)),
        _ if MEDIUM.contains(&n) => [0, 8, n - 16, n - 8].into_iter().for_each(|at| eight(to, at)),
        _ => to.copy_from_slice(from),
    }
}

/// Clear the border between two lines, of a few words at most.
#[inline]
fn clear(border: &mut [u64]) {
    match border {
        [] => {}
        [a] => *a = 0,
        [a, b] => (*a, *b) = (0, 0),
        [a, b, c, d] => (*a, *b, *c, *d) = (0, 0, 0, 0),
        border => border.fill(0),
    }
}

/// What tap (ky, kx) copies for these pixels, in order of columns.
fn pieces(c: &Conv2d, group: usize, ky: usize, kx: usize, pixels: Range<usize>) -> Vec<Piece> {
    let [height, width] = c.output();
    let [dy, dx] = [ky * c.dilation[0], kx * c.dilation[1]];
    let mut out: Vec<Piece> = Vec::new();
    let mut p = pixels.start;
    while p < pixels.end {
        let (line, ox) = (p / width, p % width);
        let (image, oy) = (line / height, line % height);
        let len = (width - ox).min(pixels.end - p);
        let y = (oy * c.stride[0] + dy).wrapping_sub(c.padding[0]);
        let valid = inside(c.input[1], c.stride[1], c.padding[2], dx, ox..ox + len);
        if y < c.input[0] && !valid.is_empty() {
            let plane = image * c.in_channels + group * (c.in_channels / c.groups);
            let piece = Piece {
                column: p + valid.start - ox - pixels.start,
                len: valid.len(),
                source: (plane * c.input[0] + y) * c.input[1] + valid.start * c.stride[1] + dx - c.padding[2],
            };
            match out.last_mut() {
                Some(last)
                    if last.column + last.len == piece.column
                        && last.source + last.len * c.stride[1] == piece.source =>
                {
                    last.len += piece.len;
                }
                _ => out.push(piece),
            }
        }
        p += len;
    }
    out
}

use super::kernel::Shared;
use crate::threads::{in_parallel, split};
use privet_ring::Conv2d;

/// One term of a row of outputs: `weight * source[i]` goes to output `i`.
pub(super) type Term<'a> = (u64, &'a [u64]);

/// A convolution whose groups are too small to fill a tile (depthwise above all): a row of pixels at a time.
///
/// `add_row(terms, out)` adds every term to `out`, modulo 2^64; each source is as long as `out`.
pub(super) fn run(
    conv: Conv2d,
    threads: usize,
    x: &[u64],
    w: &[u64],
    out: &mut [u64],
    add_row: impl Fn(&[Term], &mut [u64]) + Sync,
) {
    let [height, width] = conv.output();
    if out.is_empty() {
        return;
    }
    let outputs = Shared::new(out);
    let taps = conv.kernel[0] * conv.kernel[1];
    let channels = conv.in_channels / conv.groups;
    in_parallel(split(conv.batch * conv.out_channels, threads), |range| {
        let mut padded: Vec<Padded> = (0..channels).map(|_| Padded::new(conv)).collect();
        let mut row = vec![0; width];
        for p in range {
            let (image, o) = (p / conv.out_channels, p % conv.out_channels);
            let group = o / (conv.out_channels / conv.groups);
            for (i, plane) in padded.iter_mut().enumerate() {
                plane.fill(x, image * conv.in_channels + group * channels + i);
            }
            let weights = &w[o * channels * taps..][..channels * taps];
            let mut terms = Vec::with_capacity(weights.len());
            for oy in 0..height {
                terms.clear();
                terms.extend(weights.iter().enumerate().map(|(l, &weight)| {
                    let (ky, kx) = (l % taps / conv.kernel[1], l % conv.kernel[1]);
                    (weight, &padded[l / taps].line(oy, ky, kx)[..width])
                }));
                row.fill(0);
                add_row(&terms, &mut row);
                // SAFETY: every plane of the result belongs to one thread, and `out` outlives the threads.
                unsafe { outputs.add((p * height + oy) * width, &row) };
            }
        }
    });
}

/// An input plane with its padding; columns sorted by their remainder modulo the stride, so that what one tap
/// reads for a whole row of outputs is contiguous.
struct Padded {
    conv: Conv2d,
    phase: usize,
    data: Vec<u64>,
}

impl Padded {
    fn new(conv: Conv2d) -> Padded {
        let rows = conv.input[0] + conv.padding[0] + conv.padding[1];
        let columns = conv.input[1] + conv.padding[2] + conv.padding[3];
        let phase = columns.div_ceil(conv.stride[1]);
        Padded { conv, phase, data: vec![0; rows * conv.stride[1] * phase] }
    }

    /// Take over a plane of the input; the padding stays zero.
    fn fill(&mut self, x: &[u64], plane: usize) {
        let [height, width] = self.conv.input;
        let (stride, left) = (self.conv.stride[1], self.conv.padding[2]);
        let lines = self.data.chunks_mut(stride * self.phase).skip(self.conv.padding[0]);
        for (line, x) in lines.zip(x[plane * height * width..].chunks(width)).take(height) {
            if stride == 1 {
                line[left..left + width].copy_from_slice(x);
            } else {
                for (i, v) in x.iter().enumerate() {
                    line[(left + i) % stride * self.phase + (left + i) / stride] = *v;
                }
            }
        }
    }

    /// What tap (ky, kx) reads for output row `oy`, from its first output on.
    fn line(&self, oy: usize, ky: usize, kx: usize) -> &[u64] {
        let c = &self.conv;
        let y = oy * c.stride[0] + ky * c.dilation[0];
        let dx = kx * c.dilation[1];
        &self.data[(y * c.stride[1] + dx % c.stride[1]) * self.phase + dx / c.stride[1]..]
    }
}

/// [`run`]'s `add_row` in plain code, which the compiler vectorises for whatever its caller enables.
#[inline(always)]
pub(super) fn add_row(terms: &[Term], out: &mut [u64]) {
    const CHUNK: usize = 32;
    let (chunks, rest) = out.as_chunks_mut::<CHUNK>();
    for (c, out) in chunks.iter_mut().enumerate() {
        let mut acc = *out;
        for (weight, source) in terms {
            let source: &[u64; CHUNK] = source[c * CHUNK..].first_chunk().expect("as long as the output");
            for (a, x) in acc.iter_mut().zip(source) {
                *a = a.wrapping_add(weight.wrapping_mul(*x));
            }
        }
        *out = acc;
    }
    let done = CHUNK * chunks.len();
    for (weight, source) in terms {
        for (o, x) in rest.iter_mut().zip(&source[done..]) {
            *o = o.wrapping_add(weight.wrapping_mul(*x));
        }
    }
}

use super::kernel::Shared;
use super::patches::inside;
use crate::threads::{in_parallel, split};
use privet_ring::Conv2d;

/// A convolution whose groups are too small to fill a tile (depthwise above all): a row of pixels at a time.
///
/// `axpy(a, x, out)` is `out += a * x`.
pub(super) fn run(
    conv: Conv2d,
    threads: usize,
    x: &[u64],
    w: &[u64],
    out: &mut [u64],
    axpy: impl Fn(u64, &[u64], &mut [u64]) + Sync,
) {
    let [height, width] = conv.output();
    let plane = height * width;
    if out.is_empty() {
        return;
    }
    let outputs = Shared::new(out);
    let planes = conv.batch * conv.out_channels;
    in_parallel(split(planes, threads), |range| {
        let mut acc = vec![0; plane];
        let mut gathered = vec![0; width];
        for p in range {
            acc.fill(0);
            one_plane(&conv, p, x, w, &mut acc, &mut gathered, &axpy);
            // SAFETY: every plane belongs to one thread, and `out` outlives the threads.
            unsafe { outputs.add(p * plane, &acc) };
        }
    });
}

fn one_plane(
    c: &Conv2d,
    plane: usize,
    x: &[u64],
    w: &[u64],
    acc: &mut [u64],
    gathered: &mut [u64],
    axpy: &impl Fn(u64, &[u64], &mut [u64]),
) {
    let [height, width] = c.output();
    let channels = c.in_channels / c.groups;
    let (image, o) = (plane / c.out_channels, plane % c.out_channels);
    let group = o / (c.out_channels / c.groups);
    for i in 0..channels {
        let input = &x[(image * c.in_channels + group * channels + i) * c.input[0] * c.input[1]..];
        for ky in 0..c.kernel[0] {
            let dy = ky * c.dilation[0];
            for oy in inside(c.input[0], c.stride[0], c.padding[0], dy, 0..height) {
                let line = &input[(oy * c.stride[0] + dy - c.padding[0]) * c.input[1]..][..c.input[1]];
                for kx in 0..c.kernel[1] {
                    let tap = w[((o * channels + i) * c.kernel[0] + ky) * c.kernel[1] + kx];
                    let dx = kx * c.dilation[1];
                    let valid = inside(c.input[1], c.stride[1], c.padding[2], dx, 0..width);
                    if valid.is_empty() {
                        continue;
                    }
                    let line = &line[valid.start * c.stride[1] + dx - c.padding[2]..];
                    let out = &mut acc[oy * width..][valid.clone()];
                    if c.stride[1] == 1 {
                        axpy(tap, &line[..out.len()], out);
                    } else {
                        let row = &mut gathered[..valid.len()];
                        for (v, x) in row.iter_mut().zip(line.iter().step_by(c.stride[1])) {
                            *v = *x;
                        }
                        axpy(tap, row, out);
                    }
                }
            }
        }
    }
}

use super::LinearShape;
use privet_ring::{Conv2d, Ring};

/// The plain definition of a linear layer, one multiplication at a time; what every fast path must equal.
///
/// Returns [`LinearShape::output_len`] elements, reduced modulo 2^k.
pub fn reference(ring: Ring, shape: LinearShape, x: &[u64], w: &[u64]) -> Vec<u64> {
    assert_eq!(x.len(), shape.input_len(), "elements of x");
    assert_eq!(w.len(), shape.weight_len(), "elements of w");
    let mut out = vec![0u64; shape.output_len()];
    match shape {
        LinearShape::MatMulT { m, k, n } => {
            matmul(m, k, n, &mut out, |i, l| x[i * k + l], |l, j| w[j * k + l])
        }
        LinearShape::MatMul { m, k, n } => {
            matmul(m, k, n, &mut out, |i, l| x[i * k + l], |l, j| w[l * n + j])
        }
        LinearShape::Conv2d(c) => convolution(c, x, w, &mut out),
    }
    out.iter_mut().for_each(|v| *v = ring.wrap(*v));
    out
}

fn matmul(
    m: usize,
    k: usize,
    n: usize,
    out: &mut [u64],
    x: impl Fn(usize, usize) -> u64,
    w: impl Fn(usize, usize) -> u64,
) {
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).fold(0, |acc: u64, l| acc.wrapping_add(x(i, l).wrapping_mul(w(l, j))));
        }
    }
}

fn convolution(c: Conv2d, x: &[u64], w: &[u64], out: &mut [u64]) {
    let [oh, ow] = c.output();
    let [ih, iw] = c.input;
    let (ci, co) = (c.in_channels / c.groups, c.out_channels / c.groups);
    // Where kernel tap `t` of output `o` reads along an axis; `None` in the padding.
    let at = |axis: usize, o: usize, t: usize| {
        (o * c.stride[axis] + t * c.dilation[axis])
            .checked_sub(c.padding[2 * axis])
            .filter(|&p| p < c.input[axis])
    };
    for b in 0..c.batch {
        for o in 0..c.out_channels {
            for oy in 0..oh {
                for ox in 0..ow {
                    let mut acc = 0u64;
                    for i in 0..ci {
                        let plane = (b * c.in_channels + o / co * ci + i) * ih * iw;
                        let taps = (o * ci + i) * c.kernel[0] * c.kernel[1];
                        for ky in 0..c.kernel[0] {
                            for kx in 0..c.kernel[1] {
                                if let (Some(y), Some(x_)) = (at(0, oy, ky), at(1, ox, kx)) {
                                    let v =
                                        x[plane + y * iw + x_].wrapping_mul(w[taps + ky * c.kernel[1] + kx]);
                                    acc = acc.wrapping_add(v);
                                }
                            }
                        }
                    }
                    out[((b * c.out_channels + o) * oh + oy) * ow + ox] = acc;
                }
            }
        }
    }
}

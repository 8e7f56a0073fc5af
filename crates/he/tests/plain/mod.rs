//! Layers by plain loops, modulo 2^64.

use privet_he::layout::Matmul;
use privet_ring::Conv2d;

pub(crate) fn matmul(s: Matmul, x: &[u64], w: &[u64]) -> Vec<u64> {
    let mut out = vec![0u64; s.groups * s.m * s.o];
    for g in 0..s.groups {
        for i in 0..s.m {
            for c in 0..s.o {
                for j in 0..s.k {
                    let t = x[(g * s.m + i) * s.k + j].wrapping_mul(w[(g * s.k + j) * s.o + c]);
                    let at = &mut out[(g * s.m + i) * s.o + c];
                    *at = at.wrapping_add(t);
                }
            }
        }
    }
    out
}

#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn conv(c: &Conv2d, x: &[u64], w: &[u64]) -> Vec<u64> {
    let [oh, ow] = c.output();
    let (ig, og) = (c.in_channels / c.groups, c.out_channels / c.groups);
    let mut out = Vec::new();
    for n in 0..c.batch {
        for o in 0..c.out_channels {
            for y in 0..oh {
                for z in 0..ow {
                    let mut sum = 0u64;
                    for i in 0..ig {
                        for dy in 0..c.kernel[0] {
                            for dx in 0..c.kernel[1] {
                                let r = (y * c.stride[0] + dy * c.dilation[0]).wrapping_sub(c.padding[0]);
                                let s = (z * c.stride[1] + dx * c.dilation[1]).wrapping_sub(c.padding[2]);
                                if r < c.input[0] && s < c.input[1] {
                                    let at = ((n * c.in_channels + o / og * ig + i) * c.input[0] + r)
                                        * c.input[1]
                                        + s;
                                    let tap = ((o * ig + i) * c.kernel[0] + dy) * c.kernel[1] + dx;
                                    sum = sum.wrapping_add(x[at].wrapping_mul(w[tap]));
                                }
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

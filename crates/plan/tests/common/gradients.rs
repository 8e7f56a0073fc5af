//! Training's operations straight from their definitions: loops over the forward operation.

use super::reference::{get, index};
use privet_plan::FloatTensor;
use privet_plan::graph::GraphOp;
use privet_ring::Pool2d;

/// The whole value of an operation of training.
pub fn value(op: &GraphOp, xs: &[&FloatTensor], shape: &[usize]) -> Vec<f64> {
    let x = xs[0];
    let mut out = vec![0.0; shape.iter().product()];
    match op {
        GraphOp::Positive => x.data.iter().map(|&v| (v > 0.0) as u64 as f64).collect(),
        GraphOp::Choose => x.data.iter().zip(&xs[1].data).map(|(b, v)| b * v).collect(),
        GraphOp::Dropout { stream, keep } => {
            let coins = coins(*stream, x.data.len());
            let kept = |coin: u64| (coin as f64) < keep * 2f64.powi(32);
            x.data.iter().zip(coins).map(|(&v, c)| if kept(c) { v } else { 0.0 }).collect()
        }
        GraphOp::InRange { limit } => {
            let inside = xs.iter().all(|x| x.data.iter().all(|v| v.abs() < *limit));
            vec![inside as u64 as f64]
        }
        GraphOp::Reverse { dims } => {
            for (i, v) in out.iter_mut().enumerate() {
                let mut from = index(shape, i);
                dims.iter().for_each(|&d| from[d] = shape[d] - 1 - from[d]);
                *v = get(x, &from);
            }
            out
        }
        GraphOp::Conv2dInputGrad { stride, padding, dilation, groups } => {
            taps(shape, &x.shape, &xs[1].shape, [*stride, *padding, *dilation], *groups, |image, tap, o| {
                out[image] += x.data[tap] * xs[1].data[o];
            });
            out
        }
        GraphOp::Conv2dWeightGrad { stride, padding, dilation, groups } => {
            taps(&x.shape, shape, &xs[1].shape, [*stride, *padding, *dilation], *groups, |image, tap, o| {
                out[tap] += x.data[image] * xs[1].data[o];
            });
            out
        }
        GraphOp::MaxPool2dGrad { window } => {
            for (o, &g) in xs[1].data.iter().enumerate() {
                let elements = elements(window, &x.shape, &index(&xs[1].shape, o));
                // the first of the largest
                let best =
                    elements.iter().fold(elements[0], |b, &i| if x.data[i] > x.data[b] { i } else { b });
                out[best] += g;
            }
            out
        }
        GraphOp::AvgPool2dGrad { window, count_include_pad, divisor } => {
            for (o, &g) in x.data.iter().enumerate() {
                let at = index(&x.shape, o);
                let elements = elements(window, shape, &at);
                let padded = |i: usize| {
                    let start = at[2 + i] * window.stride[i];
                    window.kernel[i].min(shape[2 + i] + 2 * window.padding[i] - start)
                };
                let n = if *count_include_pad { padded(0) * padded(1) } else { elements.len() };
                elements.iter().for_each(|&i| out[i] += g / divisor.unwrap_or(n) as f64);
            }
            out
        }
        other => panic!("{other:?} is not in the reference"),
    }
}

/// The coins of the tests.
pub fn coins(stream: u32, count: usize) -> Vec<u64> {
    let mut numbers = super::Numbers(1 + u64::from(stream));
    (0..count).map(|_| numbers.next() >> 32).collect()
}

/// Flat indices of a window's elements inside the image, in row-major order.
fn elements(window: &Pool2d, image: &[usize], at: &[usize]) -> Vec<usize> {
    let mut all = Vec::new();
    for ky in 0..window.kernel[0] {
        for kx in 0..window.kernel[1] {
            let position = |i: usize, k: usize| {
                (at[2 + i] * window.stride[i] + k * window.dilation[i]).checked_sub(window.padding[i])
            };
            let (Some(y), Some(x)) = (position(0, ky), position(1, kx)) else { continue };
            if y < image[2] && x < image[3] {
                all.push(((at[0] * image[1] + at[1]) * image[2] + y) * image[3] + x);
            }
        }
    }
    all
}

/// Call `visit(image, weight, output)` with the flat indices of every product of a convolution.
fn taps(
    image: &[usize],
    weight: &[usize],
    output: &[usize],
    [stride, padding, dilation]: [[usize; 2]; 3],
    groups: usize,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let per = weight[0] / groups;
    for (o, at) in (0..output.iter().product()).map(|o| (o, index(output, o))) {
        for c in 0..weight[1] {
            for ky in 0..weight[2] {
                for kx in 0..weight[3] {
                    let y = (at[2] * stride[0] + ky * dilation[0]).wrapping_sub(padding[0]);
                    let x = (at[3] * stride[1] + kx * dilation[1]).wrapping_sub(padding[1]);
                    if y < image[2] && x < image[3] {
                        let channel = at[1] / per * weight[1] + c;
                        let from = ((at[0] * image[1] + channel) * image[2] + y) * image[3] + x;
                        let tap = ((at[1] * weight[1] + c) * weight[2] + ky) * weight[3] + kx;
                        visit(from, tap, o);
                    }
                }
            }
        }
    }
}

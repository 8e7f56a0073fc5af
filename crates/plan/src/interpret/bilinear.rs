//! Matrix products and convolutions modulo 2^64 (or in floating point): plain loops in an order that the
//! compiler can vectorise, on all cores. Not the protocol's kernels, which are tested against these.

use super::parallel;
use crate::element::Element;
use crate::ir::{Op, Type};
use crate::ops;
use privet_ring::{Conv2d, Ring};

/// Columns of a block of the product, so that the operands' blocks stay in the second-level cache.
const COLUMNS: usize = 512;
/// Inner extent of a block.
const DEPTH: usize = 64;

/// The value of a bilinear operation of a checked plan, reduced modulo 2^k.
pub(super) fn apply<E: Element>(op: &Op, types: &[&Type], output: &Type, xs: &[&[E]]) -> Vec<E> {
    let mut out = match op {
        Op::Scale => xs[0].iter().map(|&a| a.mul(xs[1][0])).collect(),
        Op::Mul => products(xs),
        Op::Linear => linear(types, xs),
        Op::MatMul => matmul(types, xs),
        Op::Conv2d { geometry } => conv2d(geometry, xs),
        ops!(source) | ops!(local) | Op::Dropout { .. } | ops!(rounding) | ops!(comparison) | ops!(table) => {
            unreachable!("{op:?} is not bilinear")
        }
    };
    if let (Op::Linear | Op::Conv2d { .. }, Some(bias)) = (op, xs.get(2)) {
        let inner: usize = output.shape[2..].iter().product();
        for (i, row) in out.chunks_exact_mut(inner).enumerate() {
            let b = bias[i % bias.len()];
            row.iter_mut().for_each(|v| *v = v.add(b));
        }
    }
    let ring = Ring::new(output.bits);
    out.iter_mut().for_each(|v| *v = v.reduce(ring));
    out
}

/// Of pairs, element by element.
fn products<E: Element>(xs: &[&[E]]) -> Vec<E> {
    let mut sum = vec![E::ZERO; xs[0].len()];
    for [a, b] in xs.as_chunks::<2>().0 {
        sum.iter_mut().zip(a.iter().zip(*b)).for_each(|(sum, (a, b))| *sum = sum.add(a.mul(*b)));
    }
    sum
}

fn linear<E: Element>(types: &[&Type], xs: &[&[E]]) -> Vec<E> {
    let (m, k, n) = (types[0].shape[0], types[0].shape[1], types[1].shape[0]);
    let mut columns = vec![E::ZERO; m * n];
    // transposed while it is computed, so that each weight row is read once
    let items: Vec<_> = columns.chunks_exact_mut(m).zip(xs[1].chunks_exact(k)).collect();
    parallel::for_each(m * k * n, items, |(out, w)| {
        for (o, x) in out.iter_mut().zip(xs[0].chunks_exact(k)) {
            *o = dot(x, w);
        }
    });
    (0..m * n).map(|i| columns[i % n * m + i / n]).collect()
}

fn dot<E: Element>(a: &[E], b: &[E]) -> E {
    const LANES: usize = 8;
    let mut lanes = [E::ZERO; LANES];
    let (a, b) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (x, y) in a.0.iter().zip(b.0) {
        for i in 0..LANES {
            lanes[i] = lanes[i].add(x[i].mul(y[i]));
        }
    }
    let tail = a.1.iter().zip(b.1).map(|(&x, &y)| x.mul(y));
    lanes.into_iter().chain(tail).fold(E::ZERO, E::add)
}

fn matmul<E: Element>(types: &[&Type], xs: &[&[E]]) -> Vec<E> {
    let (x, y) = (&types[0].shape, &types[1].shape);
    let lead = x.len() - 2;
    let (m, k, n) = (x[lead], x[lead + 1], y[lead + 1]);
    let batches: usize = x[..lead].iter().product();
    let macs = batches * m * k * n;
    let mut out = vec![E::ZERO; batches * m * n];
    let rows = m.div_ceil(parallel::threads(macs));
    let mut items = Vec::new();
    for (b, product) in out.chunks_exact_mut(m * n).enumerate() {
        for (i, part) in product.chunks_mut(rows * n).enumerate() {
            let left = &xs[0][b * m * k + i * rows * k..];
            items.push((left, &xs[1][b * k * n..(b + 1) * k * n], part));
        }
    }
    parallel::for_each(macs, items, |(left, right, part)| {
        product(&left[..part.len() / n * k], right, part, [k, n], [n, 0]);
    });
    out
}

/// `out += a b`, a `[m, k]`, b `[k, n]`; out is the columns from `first` of rows of `stride` elements.
fn product<E: Element>(a: &[E], b: &[E], out: &mut [E], [k, n]: [usize; 2], [stride, first]: [usize; 2]) {
    for j in (0..n).step_by(COLUMNS) {
        let width = COLUMNS.min(n - j);
        for p in (0..k).step_by(DEPTH) {
            for (row, a) in out.chunks_exact_mut(stride).zip(a.chunks_exact(k)) {
                let row = &mut row[first + j..first + j + width];
                for q in p..(p + DEPTH).min(k) {
                    let (factor, b) = (a[q], &b[q * n + j..q * n + j + width]);
                    for (o, &v) in row.iter_mut().zip(b) {
                        *o = o.add(factor.mul(v));
                    }
                }
            }
        }
    }
}

/// For every image and group: `out[channels, positions] = weights[channels, taps] * patches[taps, positions]`.
fn conv2d<E: Element>(g: &Conv2d, xs: &[&[E]]) -> Vec<E> {
    let positions: usize = g.output().iter().product();
    let image = g.in_channels / g.groups * g.input[0] * g.input[1];
    let (channels, taps) = (g.out_channels / g.groups, g.weight_len() / g.out_channels);
    let macs = g.macs() as usize;
    let mut out = vec![E::ZERO; g.output_len()];
    let parts = if g.batch * g.groups > 1 { 1 } else { parallel::threads(macs) };
    let rows = channels.div_ceil(parts);
    let mut items = Vec::new();
    for (i, group) in out.chunks_exact_mut(channels * positions).enumerate() {
        for (part, rows_out) in group.chunks_mut(rows * positions).enumerate() {
            let first = (i % g.groups * channels + part * rows) * taps;
            let weights = &xs[1][first..first + rows_out.len() / positions * taps];
            items.push((&xs[0][i * image..(i + 1) * image], weights, rows_out));
        }
    }
    parallel::for_each(macs, items, |(image, weights, out)| conv_rows(g, image, weights, out));
    out
}

fn conv_rows<E: Element>(g: &Conv2d, image: &[E], weights: &[E], out: &mut [E]) {
    let positions: usize = g.output().iter().product();
    let taps = g.weight_len() / g.out_channels;
    for start in (0..positions).step_by(COLUMNS) {
        let width = COLUMNS.min(positions - start);
        let patches = patches(g, image, start, width);
        product(weights, &patches, out, [taps, width], [positions, start]);
    }
}

/// `[taps, width]`: what every kernel tap sees at output positions `start..start + width`; padding is zero.
fn patches<E: Element>(g: &Conv2d, image: &[E], start: usize, width: usize) -> Vec<E> {
    let [h, w] = g.input;
    let out_w = g.output()[1];
    let mut out = Vec::with_capacity(g.weight_len() / g.out_channels * width);
    for plane in image.chunks_exact(h * w) {
        for ky in 0..g.kernel[0] {
            for kx in 0..g.kernel[1] {
                for position in start..start + width {
                    let y = (position / out_w * g.stride[0] + ky * g.dilation[0]).wrapping_sub(g.padding[0]);
                    let x = (position % out_w * g.stride[1] + kx * g.dilation[1]).wrapping_sub(g.padding[2]);
                    out.push(if y < h && x < w { plane[y * w + x] } else { E::ZERO });
                }
            }
        }
    }
    out
}

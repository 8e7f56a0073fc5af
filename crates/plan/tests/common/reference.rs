//! A captured graph in double precision, each operation straight from its definition.

use privet_plan::FloatTensor;
use privet_plan::functions::Function;
use privet_plan::graph::{Graph, GraphOp};
use std::collections::BTreeMap;

type Tensors = BTreeMap<String, FloatTensor>;

pub fn index(shape: &[usize], mut flat: usize) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        out[d] = flat % shape[d];
        flat /= shape[d];
    }
    out
}

/// The element at `at`, numpy broadcasting included.
pub fn get(t: &FloatTensor, at: &[usize]) -> f64 {
    let lead = at.len() - t.shape.len();
    let flat =
        t.shape.iter().enumerate().fold(0, |flat, (d, &n)| flat * n + if n == 1 { 0 } else { at[lead + d] });
    t.data[flat]
}

/// The element at a signed image position; `outside` in the padding.
fn pixel(t: &FloatTensor, n: usize, c: usize, y: isize, x: isize, outside: f64) -> f64 {
    if y < 0 || x < 0 || y >= t.shape[2] as isize || x >= t.shape[3] as isize {
        return outside;
    }
    get(t, &[n, c, y as usize, x as usize])
}

pub fn evaluate(graph: &Graph, inputs: &Tensors, params: &Tensors) -> Vec<FloatTensor> {
    let mut values: Vec<FloatTensor> = Vec::new();
    for node in &graph.nodes {
        let xs: Vec<&FloatTensor> = node.inputs.iter().map(|&i| &values[i]).collect();
        let data = match &node.op {
            GraphOp::Input { name, .. } => inputs[name].data.clone(),
            GraphOp::Parameter { name } | GraphOp::State { name, .. } => params[name].data.clone(),
            GraphOp::Public { name, .. } => inputs[name].data.clone(),
            op if is_training(op) => super::gradients::value(op, &xs, &node.shape),
            op => (0..node.shape.iter().product())
                .map(|i| element(op, &xs, &node.shape, &index(&node.shape, i)))
                .collect(),
        };
        values.push(FloatTensor { shape: node.shape.clone(), data });
    }
    values
}

fn element(op: &GraphOp, xs: &[&FloatTensor], shape: &[usize], at: &[usize]) -> f64 {
    let x = xs.first().copied();
    let one = || get(x.unwrap(), at);
    match op {
        GraphOp::Conv2d { stride, padding, dilation, groups } => {
            let (x, w) = (xs[0], xs[1]);
            let mut sum = xs.get(2).map_or(0.0, |b| b.data[at[1]]);
            let per = w.shape[0] / groups;
            for c in 0..w.shape[1] {
                for ky in 0..w.shape[2] {
                    for kx in 0..w.shape[3] {
                        let y = (at[2] * stride[0] + ky * dilation[0]) as isize - padding[0] as isize;
                        let z = (at[3] * stride[1] + kx * dilation[1]) as isize - padding[1] as isize;
                        let channel = at[1] / per * w.shape[1] + c;
                        sum += pixel(x, at[0], channel, y, z, 0.0) * get(w, &[at[1], c, ky, kx]);
                    }
                }
            }
            sum
        }
        GraphOp::Linear => {
            let (lead, o) = (&at[..at.len() - 1], at[at.len() - 1]);
            let dot = |j: usize| get(xs[0], &[lead, &[j]].concat()) * get(xs[1], &[o, j]);
            (0..xs[1].shape[1]).map(dot).sum::<f64>() + xs.get(2).map_or(0.0, |b| b.data[o])
        }
        GraphOp::MatMul => {
            let (lead, i, j) = (&at[..at.len() - 2], at[at.len() - 2], at[at.len() - 1]);
            let inner = xs[0].shape[xs[0].shape.len() - 1];
            (0..inner)
                .map(|p| get(xs[0], &[lead, &[i, p]].concat()) * get(xs[1], &[lead, &[p, j]].concat()))
                .sum()
        }
        GraphOp::BatchNorm { eps } => {
            let p = |i: usize| xs[i].data[at[1]];
            (one() - p(3)) / (p(4) + eps).sqrt() * p(1) + p(2)
        }
        GraphOp::Relu => one().max(0.0),
        GraphOp::Smooth { function: Function::Softmax { dim } } => {
            let along = |i: usize| get(x.unwrap(), &[&at[..*dim], &[i], &at[dim + 1..]].concat());
            one().exp() / (0..shape[*dim]).map(|i| along(i).exp()).sum::<f64>()
        }
        GraphOp::Smooth { function: Function::LogSoftmax { dim } } => {
            let along = |i: usize| get(x.unwrap(), &[&at[..*dim], &[i], &at[dim + 1..]].concat());
            one() - (0..shape[*dim]).map(|i| along(i).exp()).sum::<f64>().ln()
        }
        GraphOp::Smooth { function } => function.at(one()),
        GraphOp::Clamp { lo, hi } => one().max(lo.unwrap_or(f64::MIN)).min(hi.unwrap_or(f64::MAX)),
        GraphOp::LeakyRelu { slope } => {
            if one() >= 0.0 {
                one()
            } else {
                slope * one()
            }
        }
        GraphOp::MaxPool2d { window } => {
            let mut best = f64::NEG_INFINITY;
            for ky in 0..window.kernel[0] {
                for kx in 0..window.kernel[1] {
                    let y = (at[2] * window.stride[0] + ky * window.dilation[0]) as isize
                        - window.padding[0] as isize;
                    let z = (at[3] * window.stride[1] + kx * window.dilation[1]) as isize
                        - window.padding[1] as isize;
                    best = best.max(pixel(xs[0], at[0], at[1], y, z, f64::NEG_INFINITY));
                }
            }
            best
        }
        GraphOp::AvgPool2d { window, count_include_pad, divisor } => {
            let (h, w) = (xs[0].shape[2] as isize, xs[0].shape[3] as isize);
            let (ph, pw) = (window.padding[0] as isize, window.padding[1] as isize);
            let y0 = (at[2] * window.stride[0]) as isize - ph;
            let x0 = (at[3] * window.stride[1]) as isize - pw;
            let y1 = (y0 + window.kernel[0] as isize).min(h + ph);
            let x1 = (x0 + window.kernel[1] as isize).min(w + pw);
            let padded = (y1 - y0) * (x1 - x0);
            let (y0, x0, y1, x1) = (y0.max(0), x0.max(0), y1.min(h), x1.min(w));
            let mut sum = 0.0;
            for y in y0..y1 {
                for z in x0..x1 {
                    sum += pixel(xs[0], at[0], at[1], y, z, 0.0);
                }
            }
            let inside = (y1 - y0) * (x1 - x0);
            let n = divisor.map_or(if *count_include_pad { padded } else { inside }, |d| d as isize);
            sum / n as f64
        }
        GraphOp::AdaptiveAvgPool2d { output } => {
            let bounds = |axis: usize| {
                let (n, o) = (xs[0].shape[2 + axis], at[2 + axis]);
                (o * n / output[axis], ((o + 1) * n).div_ceil(output[axis]))
            };
            let ((y0, y1), (x0, x1)) = (bounds(0), bounds(1));
            let mut sum = 0.0;
            for y in y0..y1 {
                for z in x0..x1 {
                    sum += get(xs[0], &[at[0], at[1], y, z]);
                }
            }
            sum / ((y1 - y0) * (x1 - x0)) as f64
        }
        GraphOp::Mean { dims, keepdim } => {
            let n: usize = dims.iter().map(|&d| xs[0].shape[d]).product();
            total(xs[0], dims, *keepdim, at) / n as f64
        }
        GraphOp::Sum { dims, keepdim } => total(xs[0], dims, *keepdim, at),
        GraphOp::Add => one() + get(xs[1], at),
        GraphOp::Sub => one() - get(xs[1], at),
        GraphOp::Mul => one() * get(xs[1], at),
        GraphOp::Neg => -one(),
        GraphOp::AddScalar { value } => one() + value,
        GraphOp::MulScalar { value } => one() * value,
        GraphOp::Reshape => xs[0].data[at.iter().zip(shape).fold(0, |flat, (i, n)| flat * n + i)],
        GraphOp::Permute { dims } => {
            let mut from = vec![0; at.len()];
            dims.iter().zip(at).for_each(|(&d, &i)| from[d] = i);
            get(xs[0], &from)
        }
        GraphOp::Slice { dim, start, step, .. } => {
            let mut from = at.to_vec();
            from[*dim] = start + at[*dim] * step;
            get(xs[0], &from)
        }
        GraphOp::Concat { dim } => {
            let mut from = at.to_vec();
            for x in xs {
                if from[*dim] < x.shape[*dim] {
                    return get(x, &from);
                }
                from[*dim] -= x.shape[*dim];
            }
            unreachable!()
        }
        GraphOp::Pad { amounts } => {
            let from: Vec<usize> = at.iter().zip(amounts).map(|(&i, a)| i.wrapping_sub(a[0])).collect();
            if from.iter().zip(&xs[0].shape).all(|(i, n)| i < n) { get(xs[0], &from) } else { 0.0 }
        }
        GraphOp::Expand => one(),
        GraphOp::Argmax { dim, keepdim } => {
            let mut from = at.to_vec();
            if !keepdim {
                from.insert(*dim, 0);
            }
            let mut best = (0, f64::NEG_INFINITY);
            for i in 0..xs[0].shape[*dim] {
                from[*dim] = i;
                if get(xs[0], &from) > best.1 {
                    best = (i, get(xs[0], &from));
                }
            }
            best.0 as f64
        }
        GraphOp::Input { .. } | GraphOp::Parameter { .. } | GraphOp::Unsupported { .. } => unreachable!(),
        training => unreachable!("{training:?} is in `gradients`"),
    }
}

fn is_training(op: &GraphOp) -> bool {
    matches!(
        op,
        GraphOp::Positive
            | GraphOp::Choose
            | GraphOp::Reverse { .. }
            | GraphOp::Dropout { .. }
            | GraphOp::Conv2dInputGrad { .. }
            | GraphOp::Conv2dWeightGrad { .. }
            | GraphOp::MaxPool2dGrad { .. }
            | GraphOp::AvgPool2dGrad { .. }
            | GraphOp::InRange { .. }
    )
}

fn total(x: &FloatTensor, dims: &[usize], keepdim: bool, at: &[usize]) -> f64 {
    (0..x.data.len())
        .filter(|&i| {
            let from = index(&x.shape, i);
            let kept: Vec<usize> = (0..from.len())
                .filter(|d| keepdim || !dims.contains(d))
                .map(|d| if dims.contains(&d) { 0 } else { from[d] })
                .collect();
            kept == at
        })
        .map(|i| x.data[i])
        .sum()
}

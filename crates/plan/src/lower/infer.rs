//! Shapes of a captured graph, from the operands' shapes.

use crate::check::{conv_geometry, pool_output};
use crate::graph::GraphOp;
use crate::strided::broadcasts;
use privet_ring::Conv2d;

/// The shape that `op` makes of operands of shapes `xs`; `declared` decides where the operation leaves it open
/// (inputs, reshapes, broadcasts).
pub(crate) fn infer(op: &GraphOp, xs: &[&[usize]], declared: &[usize]) -> Result<Vec<usize>, String> {
    use GraphOp::*;
    let x = xs.first().copied().unwrap_or(&[]);
    match op {
        Input { .. } | Parameter { .. } | State { .. } | Unsupported { .. } => Ok(declared.to_vec()),
        Public { .. } | InRange { .. } => Ok(vec![]),
        Choose => {
            ensure(x == xs[1], || format!("chooses {:?} by bits of shape {x:?}", xs[1]))?;
            Ok(x.to_vec())
        }
        Reverse { dims } => {
            ensure(dims.iter().all(|&d| d < x.len()), || format!("reverses {dims:?} of {x:?}"))?;
            Ok(x.to_vec())
        }
        Conv2dInputGrad { stride, padding, dilation, groups }
        | Conv2dWeightGrad { stride, padding, dilation, groups } => {
            let forward =
                GraphOp::Conv2d { stride: *stride, padding: *padding, dilation: *dilation, groups: *groups };
            let (input, weight) =
                if matches!(op, Conv2dInputGrad { .. }) { (declared, x) } else { (x, declared) };
            let result = conv_geometry(&geometry(&forward, input, weight)?, input, weight)?;
            ensure(result == xs[1], || format!("a gradient of shape {:?} for {result:?}", xs[1]))?;
            Ok(declared.to_vec())
        }
        MaxPool2dGrad { window } => {
            let result = pool_output(window, x)?;
            ensure(result == xs[1], || format!("a gradient of shape {:?} for {result:?}", xs[1]))?;
            Ok(x.to_vec())
        }
        AvgPool2dGrad { window, .. } => {
            let result = pool_output(window, declared)?;
            ensure(result == x, || format!("a gradient of shape {x:?} for {result:?}"))?;
            Ok(declared.to_vec())
        }
        Conv2d { .. } => {
            let g = geometry(op, x, xs[1])?;
            bias(xs, xs[1][0])?;
            Ok(conv_geometry(&g, x, xs[1])?.to_vec())
        }
        Linear => {
            let [n, k] = *xs[1] else { return Err(format!("weight of shape {:?}", xs[1])) };
            bias(xs, n)?;
            let (last, lead) = x.split_last().ok_or("operand without dimensions")?;
            ensure(*last == k, || format!("operand of shape {x:?} for a weight of {:?}", xs[1]))?;
            Ok([lead, &[n]].concat())
        }
        MatMul => {
            let y = xs[1];
            let fits = x.len() >= 2
                && x.len() == y.len()
                && x[..x.len() - 2] == y[..y.len() - 2]
                && x[x.len() - 1] == y[y.len() - 2];
            ensure(fits, || format!("multiplies {x:?} by {y:?}; leading dimensions must be equal"))?;
            Ok([&x[..x.len() - 1], &y[y.len() - 1..]].concat())
        }
        BatchNorm { .. } => {
            ensure(x.len() >= 2 && xs[1..].iter().all(|p| **p == [x[1]]), || {
                format!("operand of shape {x:?} with statistics of {:?}", &xs[1..])
            })?;
            Ok(x.to_vec())
        }
        Positive | Dropout { .. } => Ok(x.to_vec()),
        Relu | Clamp { .. } | LeakyRelu { .. } | Neg | AddScalar { .. } | MulScalar { .. } => Ok(x.to_vec()),
        Smooth { function } => {
            function.check(x)?;
            Ok(x.to_vec())
        }
        MaxPool2d { window } | AvgPool2d { window, .. } => Ok(pool_output(window, x)?.to_vec()),
        AdaptiveAvgPool2d { output } => {
            let [n, c, h, w] = *x else { return Err(format!("operand of shape {x:?}, not NCHW")) };
            ensure((1..=h).contains(&output[0]) && (1..=w).contains(&output[1]), || {
                format!("pools {h} x {w} to {} x {}", output[0], output[1])
            })?;
            Ok(vec![n, c, output[0], output[1]])
        }
        Mean { dims, keepdim } | Sum { dims, keepdim } => reduced(x, dims, *keepdim),
        Argmax { dim, keepdim } => reduced(x, &[*dim], *keepdim),
        Add | Sub | Mul => broadcast(x, xs[1]),
        Reshape => {
            let (from, to): (usize, usize) = (x.iter().product(), declared.iter().product());
            ensure(from == to, || format!("reshapes {x:?} to {declared:?}"))?;
            Ok(declared.to_vec())
        }
        Expand => {
            ensure(broadcasts(x, declared), || format!("{x:?} does not broadcast to {declared:?}"))?;
            Ok(declared.to_vec())
        }
        Permute { dims } => {
            let mut seen = dims.clone();
            seen.sort_unstable();
            ensure(seen.iter().copied().eq(0..x.len()), || format!("{dims:?} does not permute {x:?}"))?;
            Ok(dims.iter().map(|&d| x[d]).collect())
        }
        Slice { dim, start, end, step } => {
            let extent = *x.get(*dim).ok_or("dimension out of range")?;
            ensure(start < end && *end <= extent && *step >= 1, || {
                format!("slice {start}..{end} by {step} of {extent}; it must not be empty")
            })?;
            let mut out = x.to_vec();
            out[*dim] = (end - start).div_ceil(*step);
            Ok(out)
        }
        Concat { dim } => {
            let mut out = x.to_vec();
            let total = xs.iter().try_fold(0usize, |sum, y| sum.checked_add(*y.get(*dim)?));
            *out.get_mut(*dim).ok_or("dimension out of range")? = total.ok_or("dimension out of range")?;
            for y in xs {
                let same = y.len() == x.len() && (0..x.len()).all(|d| d == *dim || x[d] == y[d]);
                ensure(same, || format!("concatenates {x:?} and {y:?}"))?;
            }
            Ok(out)
        }
        Pad { amounts } => {
            ensure(amounts.len() == x.len(), || format!("{} padding amounts for {x:?}", amounts.len()))?;
            let padded = x.iter().zip(amounts).map(|(&n, a)| n.checked_add(a[0])?.checked_add(a[1]));
            padded.collect::<Option<_>>().ok_or_else(|| "padding overflows".into())
        }
    }
}

/// The geometry of a captured convolution.
pub(crate) fn geometry(op: &GraphOp, x: &[usize], w: &[usize]) -> Result<Conv2d, String> {
    let GraphOp::Conv2d { stride, padding, dilation, groups } = op else {
        return Err("not a convolution".into());
    };
    let ([batch, in_channels, h, width], [out_channels, _, kh, kw]) = (four(x)?, four(w)?);
    Ok(Conv2d {
        batch,
        in_channels,
        input: [h, width],
        out_channels,
        kernel: [kh, kw],
        stride: *stride,
        padding: [padding[0], padding[0], padding[1], padding[1]],
        dilation: *dilation,
        groups: *groups,
    })
}

/// The shape of `a op b` under numpy's broadcasting.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, String> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], d: usize| if d + s.len() < rank { 1 } else { s[d + s.len() - rank] };
    (0..rank)
        .map(|d| match (at(a, d), at(b, d)) {
            (m, n) if m == n || n == 1 => Ok(m),
            (1, n) => Ok(n),
            _ => Err(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

fn reduced(x: &[usize], dims: &[usize], keepdim: bool) -> Result<Vec<usize>, String> {
    let mut seen = dims.to_vec();
    seen.sort_unstable();
    seen.dedup();
    ensure(seen.len() == dims.len() && dims.iter().all(|&d| d < x.len()), || {
        format!("reduces dimensions {dims:?} of {x:?}")
    })?;
    let kept = x.iter().enumerate().filter(|(d, _)| keepdim || !dims.contains(d));
    Ok(kept.map(|(d, &n)| if dims.contains(&d) { 1 } else { n }).collect())
}

fn bias(xs: &[&[usize]], n: usize) -> Result<(), String> {
    match xs.get(2) {
        Some(b) => ensure(**b == [n], || format!("bias of shape {b:?}, should be [{n}]")),
        None => Ok(()),
    }
}

fn four(shape: &[usize]) -> Result<[usize; 4], String> {
    shape.try_into().map_err(|_| format!("shape {shape:?} does not have four dimensions"))
}

fn ensure(ok: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(problem()) }
}

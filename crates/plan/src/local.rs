//! The local linear operations, one definition for everyone: the interpreter applies them to values, the
//! dealer to masks, the parties to masked values and to shares.

use crate::element::Element;
use crate::ir::{Op, Type};
use crate::ops;
use crate::strided;
use privet_ring::{Pool2d, Ring};

/// Whether public constants are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affine {
    /// With [`Op::AddConst`]'s constant: for values and masked values, and for one party's additive share.
    Full,
    /// The linear part alone: for masks, and for the other parties' additive shares.
    Linear,
}

impl Op {
    /// True for the operations of [`apply_local`]: no key, no byte on the wire.
    pub fn is_local(&self) -> bool {
        match self {
            ops!(local) => true,
            ops!(source) | ops!(gate) => false,
        }
    }
}

/// The value of a local operation, reduced modulo 2^k' of `output`.
///
/// `types` and `inputs` are the operands' types and elements (reduced, row-major), in order.
///
/// # Panics
/// When `op` is not local ([`Op::is_local`]) or its types were not checked ([`crate::Plan::check`]).
pub fn apply_local<E: Element>(
    op: &Op,
    types: &[&Type],
    output: &Type,
    inputs: &[&[E]],
    affine: Affine,
) -> Vec<E> {
    let ring = Ring::new(output.bits);
    let (x, shape) = (inputs[0], types[0].shape.as_slice());
    let map = |f: &dyn Fn(E) -> E| x.iter().map(|&a| f(a).reduce(ring)).collect();
    match op {
        Op::Add => zip(x, inputs[1], |a, b| a.add(b).reduce(ring)),
        Op::Sub => zip(x, inputs[1], |a, b| a.sub(b).reduce(ring)),
        Op::Neg => map(&|a| E::ZERO.sub(a)),
        Op::AddConst { value } => match affine {
            Affine::Full => {
                let c = E::constant(*value, output.frac);
                map(&|a| a.add(c))
            }
            Affine::Linear => x.to_vec(),
        },
        Op::MulConst { value } => {
            let c = E::factor(*value);
            map(&|a| a.mul(c))
        }
        Op::SumPool2d { window } => sum_pool(x, shape, &output.shape, ring, window),
        Op::AdaptiveSumPool2d => adaptive_sum_pool(x, shape, &output.shape, ring),
        Op::Sum { dims } => sum(x, shape, dims, ring),
        Op::Reduce => map(&|a| a),
        Op::Rescale => map(&|a| a.rescale(types[0].frac, output.frac)),
        Op::Reshape => x.to_vec(),
        Op::Permute { dims } => {
            let own = strided::strides(shape);
            let strides: Vec<usize> = dims.iter().map(|&d| own[d]).collect();
            strided::gather(x, &output.shape, &strides, 0)
        }
        Op::Slice { dim, start, step, .. } => {
            let mut strides = strided::strides(shape);
            let offset = start * strides[*dim];
            strides[*dim] *= step;
            strided::gather(x, &output.shape, &strides, offset)
        }
        Op::Concat { dim } => concat(types, inputs, *dim),
        Op::Reverse { dims } => reverse(x, shape, dims),
        Op::Pad { amounts } => pad(x, shape, &output.shape, amounts),
        Op::Expand => strided::gather(x, &output.shape, &strided::broadcast_strides(shape, &output.shape), 0),
        Op::Mix { rows } => mix(x, rows, ring),
        Op::ShiftUp { shift } => {
            let c = E::factor(1u64.wrapping_shl(*shift) as i64);
            map(&|a| a.mul(c).rescale(types[0].frac, output.frac))
        }
        Op::Approximates { function } => E::approximated(function, shape, x, inputs[1]),
        ops!(source) | ops!(gate) => panic!("{op:?} is not a local operation"),
    }
}

fn zip<E: Element>(x: &[E], y: &[E], f: impl Fn(E, E) -> E) -> Vec<E> {
    x.iter().zip(y).map(|(&a, &b)| f(a, b)).collect()
}

fn mix<E: Element>(x: &[E], rows: &[Vec<i64>], ring: Ring) -> Vec<E> {
    let inner = x.len() / rows[0].len();
    let mut out = Vec::with_capacity(rows.len() * inner);
    for row in rows {
        let mut line = vec![E::ZERO; inner];
        for (&c, x) in row.iter().zip(x.chunks_exact(inner)).filter(|(c, _)| **c != 0) {
            let c = E::factor(c);
            line.iter_mut().zip(x).for_each(|(y, &x)| *y = y.add(x.mul(c)));
        }
        out.extend(line.iter().map(|y| y.reduce(ring)));
    }
    out
}

fn sum<E: Element>(x: &[E], shape: &[usize], dims: &[usize], ring: Ring) -> Vec<E> {
    let kept: Vec<usize> =
        shape.iter().enumerate().map(|(d, &n)| if dims.contains(&d) { 1 } else { n }).collect();
    let mut strides = strided::strides(&kept);
    for &d in dims {
        strides[d] = 0;
    }
    let mut out = vec![E::ZERO; kept.iter().product()];
    strided::walk(shape, &strides, 0, |i, at| out[at] = out[at].add(x[i]));
    out.iter().map(|a| a.reduce(ring)).collect()
}

fn concat<E: Element>(types: &[&Type], inputs: &[&[E]], dim: usize) -> Vec<E> {
    let (outer, _, inner) = strided::split(&types[0].shape, dim);
    let mut out = Vec::with_capacity(inputs.iter().map(|x| x.len()).sum());
    for o in 0..outer {
        for (ty, x) in types.iter().zip(inputs) {
            let row = ty.shape[dim] * inner;
            out.extend_from_slice(&x[o * row..(o + 1) * row]);
        }
    }
    out
}

fn reverse<E: Element>(x: &[E], shape: &[usize], dims: &[usize]) -> Vec<E> {
    let mut out = x.to_vec();
    for &d in dims {
        let (_, extent, inner) = strided::split(shape, d);
        for line in out.chunks_exact_mut(extent * inner) {
            // blocks of `inner` in reverse order: all elements reversed, then those of each block again
            line.reverse();
            line.chunks_exact_mut(inner).for_each(<[E]>::reverse);
        }
    }
    out
}

fn pad<E: Element>(x: &[E], shape: &[usize], output: &[usize], amounts: &[[usize; 2]]) -> Vec<E> {
    let strides = strided::strides(output);
    let offset = amounts.iter().zip(&strides).map(|(a, s)| a[0] * s).sum();
    let mut out = vec![E::ZERO; output.iter().product()];
    let row = shape.last().copied().unwrap_or(1);
    let outer = shape.len().saturating_sub(1);
    strided::walk(&shape[..outer], &strides[..outer], offset, |i, at| {
        out[at..at + row].copy_from_slice(&x[i * row..(i + 1) * row]);
    });
    out
}

fn sum_pool<E: Element>(x: &[E], shape: &[usize], output: &[usize], ring: Ring, window: &Pool2d) -> Vec<E> {
    let positions = |axis: usize| -> Vec<Vec<usize>> {
        (0..output[2 + axis]).map(|o| window.window(axis, o, shape[2 + axis]).collect()).collect()
    };
    sum_windows(x, shape, &positions(0), &positions(1), ring)
}

fn adaptive_sum_pool<E: Element>(x: &[E], shape: &[usize], output: &[usize], ring: Ring) -> Vec<E> {
    let positions = |axis: usize| -> Vec<Vec<usize>> {
        (0..output[2 + axis])
            .map(|o| {
                let (start, end) = adaptive_window(shape[2 + axis], output[2 + axis], o);
                (start..end).collect()
            })
            .collect()
    };
    sum_windows(x, shape, &positions(0), &positions(1), ring)
}

/// First and one past the last input position of adaptive window `o` of `output` windows over `extent`
/// positions, by torch's rule.
pub fn adaptive_window(extent: usize, output: usize, o: usize) -> (usize, usize) {
    (o * extent / output, ((o + 1) * extent).div_ceil(output))
}

fn sum_windows<E: Element>(
    x: &[E],
    shape: &[usize],
    rows: &[Vec<usize>],
    columns: &[Vec<usize>],
    ring: Ring,
) -> Vec<E> {
    let (h, w) = (shape[2], shape[3]);
    let mut out = Vec::with_capacity(shape[0] * shape[1] * rows.len() * columns.len());
    for plane in x.chunks_exact(h * w) {
        for r in rows {
            for c in columns {
                let mut total = E::ZERO;
                for &i in r {
                    for &j in c {
                        total = total.add(plane[i * w + j]);
                    }
                }
                out.push(total.reduce(ring));
            }
        }
    }
    out
}

//! The local linear operations, one definition for everyone: the interpreter applies them to values, the
//! dealer to masks, the parties to masked values and to shares.

use crate::element::Element;
use crate::ir::{Op, Plan, Type, ValueId};
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

/// True where the value depends on weights alone: it is the same in every record of a session.
pub fn is_static(plan: &Plan, v: ValueId) -> bool {
    let node = &plan.nodes[v];
    matches!(node.op, Op::Weight { .. })
        || (node.op.is_local() && !node.inputs.is_empty() && node.inputs.iter().all(|&i| is_static(plan, i)))
}

impl Op {
    /// True for the operations of [`apply_local_in_place`]: each element is made of one element of every operand.
    pub fn is_elementwise(&self) -> bool {
        match self {
            Op::Add | Op::Sub | Op::Neg | Op::AddConst { .. } | Op::MulConst { .. } => true,
            Op::Reduce | Op::Rescale | Op::ShiftUp { .. } => true,
            Op::SumPool2d { .. } | Op::AdaptiveSumPool2d | Op::Sum { .. } | Op::Reshape => false,
            Op::Permute { .. } | Op::Slice { .. } | Op::Concat { .. } | Op::Reverse { .. } => false,
            Op::Pad { .. } | Op::Expand | Op::Mix { .. } | Op::Approximates { .. } => false,
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
    if op.is_elementwise() {
        let fresh = Fresh { ring, x, y: inputs.get(1).copied() };
        return elementwise(op, types[0].frac, output.frac, affine, fresh);
    }
    match op {
        Op::SumPool2d { window } => sum_pool(x, shape, &output.shape, ring, window),
        Op::AdaptiveSumPool2d => adaptive_sum_pool(x, shape, &output.shape, ring),
        Op::Sum { dims } => sum(x, shape, dims, ring),
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
        Op::Approximates { function } => E::approximated(function, shape, x, inputs[1]),
        Op::Add | Op::Sub | Op::Neg | Op::AddConst { .. } | Op::MulConst { .. } => {
            unreachable!("{op:?} is elementwise")
        }
        Op::Reduce | Op::Rescale | Op::ShiftUp { .. } => unreachable!("{op:?} is elementwise"),
        ops!(source) | ops!(gate) => panic!("{op:?} is not a local operation"),
    }
}

/// [`apply_local`] of an operation whose elements are each made of one element of every operand, in the place of the first operand's: `y`
/// is the second one, if there is one.
///
/// # Panics
/// When `op` is no such operation ([`Op::is_elementwise`]) or its types were not checked ([`crate::Plan::check`]).
pub fn apply_local_in_place<E: Element>(
    op: &Op,
    types: &[&Type],
    output: &Type,
    x: &mut [E],
    y: Option<&[E]>,
    affine: Affine,
) {
    elementwise(op, types[0].frac, output.frac, affine, InPlace { ring: Ring::new(output.bits), x, y });
}

/// A loop over elements, which is compiled for each operation.
trait Elements<E> {
    type Made;
    fn each(self, f: impl Fn(E) -> E) -> Self::Made;
    fn both(self, f: impl Fn(E, E) -> E) -> Self::Made;
}

/// Into memory of its own.
struct Fresh<'a, E> {
    ring: Ring,
    x: &'a [E],
    y: Option<&'a [E]>,
}

impl<E: Element> Elements<E> for Fresh<'_, E> {
    type Made = Vec<E>;

    fn each(self, f: impl Fn(E) -> E) -> Vec<E> {
        self.x.iter().map(|&a| f(a).reduce(self.ring)).collect()
    }

    fn both(self, f: impl Fn(E, E) -> E) -> Vec<E> {
        self.x.iter().zip(self.y.unwrap_or_default()).map(|(&a, &b)| f(a, b).reduce(self.ring)).collect()
    }
}

/// Over the first operand.
struct InPlace<'a, E> {
    ring: Ring,
    x: &'a mut [E],
    y: Option<&'a [E]>,
}

impl<E: Element> Elements<E> for InPlace<'_, E> {
    type Made = ();

    fn each(self, f: impl Fn(E) -> E) {
        self.x.iter_mut().for_each(|a| *a = f(*a).reduce(self.ring));
    }

    fn both(self, f: impl Fn(E, E) -> E) {
        self.x.iter_mut().zip(self.y.unwrap_or_default()).for_each(|(a, &b)| *a = f(*a, b).reduce(self.ring));
    }
}

/// What the loop makes of an elementwise operation, from `from` to `to` fraction bits.
fn elementwise<E: Element, L: Elements<E>>(
    op: &Op,
    from: u32,
    to: u32,
    affine: Affine,
    elements: L,
) -> L::Made {
    match op {
        Op::Add => elements.both(E::add),
        Op::Sub => elements.both(E::sub),
        Op::Neg => elements.each(|a| E::ZERO.sub(a)),
        Op::AddConst { value } => {
            let c = match affine {
                Affine::Full => E::constant(*value, to),
                Affine::Linear => E::ZERO,
            };
            elements.each(|a| a.add(c))
        }
        Op::MulConst { value } => {
            let c = E::factor(*value);
            elements.each(|a| a.mul(c))
        }
        Op::Reduce => elements.each(|a| a),
        Op::Rescale => elements.each(|a| a.rescale(from, to)),
        Op::ShiftUp { shift } => {
            let c = E::factor(1u64.wrapping_shl(*shift) as i64);
            elements.each(|a| a.mul(c).rescale(from, to))
        }
        Op::SumPool2d { .. } | Op::AdaptiveSumPool2d | Op::Sum { .. } | Op::Reshape => not_elementwise(op),
        Op::Permute { .. } | Op::Slice { .. } | Op::Concat { .. } | Op::Reverse { .. } => not_elementwise(op),
        Op::Pad { .. } | Op::Expand | Op::Mix { .. } | Op::Approximates { .. } => not_elementwise(op),
        ops!(source) | ops!(gate) => not_elementwise(op),
    }
}

fn not_elementwise(op: &Op) -> ! {
    panic!("{op:?} is not elementwise")
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

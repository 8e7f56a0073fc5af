//! Products: all of one ring but elementwise ones, the fraction bits of the factors added up.

use super::rule::{Checked, ensure, same_bits, same_frac, same_shapes, shape_is, with};
use crate::check::conv_geometry;
use crate::ir::Type;
use privet_ring::Conv2d;

pub(super) fn linear(xs: &[&Type], y: &Type) -> Checked {
    let ([x, w], bias) = with_bias(xs)?;
    product(x, w, y)?;
    let ([m, k], [n, wk]) = (matrix(&x.shape)?, matrix(&w.shape)?);
    ensure(k == wk, || format!("multiplies {:?} by {:?} transposed", x.shape, w.shape))?;
    bias_is(bias, n, y)?;
    shape_is(y, &[m, n])
}

/// Leading dimensions, which are equal, are a batch of matrices.
pub(super) fn mat_mul([x, w]: [&Type; 2], y: &Type) -> Checked {
    product(x, w, y)?;
    let (x, w) = (&x.shape, &w.shape);
    let fits = x.len() >= 2 && x.len() == w.len() && {
        let lead = x.len() - 2;
        x[..lead] == w[..lead] && x[lead + 1] == w[lead]
    };
    ensure(fits, || format!("multiplies {x:?} by {w:?}"))?;
    let last = x.len() - 1;
    shape_is(y, &with(x, last, w[last]))
}

pub(super) fn conv2d(xs: &[&Type], y: &Type, geometry: &Conv2d) -> Checked {
    let ([x, w], bias) = with_bias(xs)?;
    product(x, w, y)?;
    let out = conv_geometry(geometry, &x.shape, &w.shape)?;
    bias_is(bias, geometry.out_channels, y)?;
    shape_is(y, &out)
}

/// Pairs of factors.
pub(super) fn mul(xs: &[&Type], y: &Type) -> Checked {
    let (pairs, rest) = xs.as_chunks::<2>();
    ensure(!pairs.is_empty() && rest.is_empty(), || format!("{} operands, takes pairs", xs.len()))?;
    for [x, w] in pairs {
        ensure(x.bits.min(w.bits) >= y.bits, || {
            format!("makes {} ring bits of {} and {}", y.bits, x.bits, w.bits)
        })?;
        product_frac(x, w, y)?;
        same_shapes(&[x, w], y)?;
    }
    Ok(())
}

/// By one public number.
pub(super) fn scale([x, p]: [&Type; 2], y: &Type) -> Checked {
    product(x, p, y)?;
    ensure(p.shape.is_empty(), || format!("scales by a tensor of shape {:?}", p.shape))?;
    same_shapes(&[x], y)
}

fn product(x: &Type, w: &Type, y: &Type) -> Checked {
    same_bits(&[x, w], y)?;
    product_frac(x, w, y)
}

fn product_frac(x: &Type, w: &Type, y: &Type) -> Checked {
    ensure(x.frac + w.frac == y.frac, || {
        format!("{} and {} fraction bits make {}, not {}", x.frac, w.frac, x.frac + w.frac, y.frac)
    })
}

/// Two factors, and a bias or none.
fn with_bias<'a>(xs: &[&'a Type]) -> Result<([&'a Type; 2], Option<&'a Type>), String> {
    match *xs {
        [x, w] => Ok(([x, w], None)),
        [x, w, bias] => Ok(([x, w], Some(bias))),
        _ => Err(format!("{} operands, takes 2 or 3", xs.len())),
    }
}

/// A bias has the numbers of the result and an element for each of `n` features or channels.
fn bias_is(bias: Option<&Type>, n: usize, y: &Type) -> Checked {
    let Some(bias) = bias else { return Ok(()) };
    same_bits(&[bias], y)?;
    same_frac(&[bias], y)?;
    ensure(bias.shape == [n], || format!("bias of shape {:?}, should be [{n}]", bias.shape))
}

fn matrix(shape: &[usize]) -> Result<[usize; 2], String> {
    shape.try_into().map_err(|_| format!("shape {shape:?} is not a matrix"))
}

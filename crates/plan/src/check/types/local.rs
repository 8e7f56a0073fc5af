//! Operations that cost nothing: sums, changes of how a number is read, and moved elements.

use super::rule::{
    Checked, distinct, ensure, extent, kept_or_not, same_bits, same_frac, same_numbers, same_shapes,
    shape_is, with,
};
use crate::check::{MAX_POOLED, bounded_by, checked_len, pool_output};
use crate::functions::Function;
use crate::ir::Type;
use crate::local::adaptive_window;
use crate::strided::broadcasts;
use privet_ring::Pool2d;

pub(super) fn sum_pool([x]: [&Type; 1], y: &Type, window: &Pool2d) -> Checked {
    same_numbers(&[x], y)?;
    shape_is(y, &pool_output(window, &x.shape)?)
}

pub(super) fn adaptive_sum_pool([x]: [&Type; 1], y: &Type) -> Checked {
    same_numbers(&[x], y)?;
    let ([n, c, h, w], [yn, yc, oh, ow]) = (images(&x.shape)?, images(&y.shape)?);
    ensure([n, c] == [yn, yc], || format!("pools {:?} to {:?}", x.shape, y.shape))?;
    bounded_by(MAX_POOLED, "image extent", &[h, w, oh, ow])?;
    for (extent, output) in [(h, oh), (w, ow)] {
        ensure(equal_windows(extent, output), || {
            format!("{output} adaptive windows over {extent} are not of equal size")
        })?;
    }
    Ok(())
}

fn images(shape: &[usize]) -> Result<[usize; 4], String> {
    shape.try_into().map_err(|_| format!("shape {shape:?} is not NCHW"))
}

/// Whether torch's adaptive windows over `extent` positions all have one size.
fn equal_windows(extent: usize, output: usize) -> bool {
    let size = |o| {
        let (start, end) = adaptive_window(extent, output, o);
        end - start
    };
    (1..output).all(|o| size(o) == size(0))
}

pub(super) fn sum([x]: [&Type; 1], y: &Type, dims: &[usize]) -> Checked {
    same_numbers(&[x], y)?;
    distinct("sums", dims, &x.shape)?;
    kept_or_not(&x.shape, dims, &y.shape)
}

pub(super) fn reduce([x]: [&Type; 1], y: &Type) -> Checked {
    ensure(y.bits <= x.bits, || format!("reduces {} bits to {}", x.bits, y.bits))?;
    same_frac(&[x], y)?;
    same_shapes(&[x], y)
}

/// Any fraction bits: the integers stay, and the number they stand for is another.
pub(super) fn rescale([x]: [&Type; 1], y: &Type) -> Checked {
    same_bits(&[x], y)?;
    same_shapes(&[x], y)
}

pub(super) fn reshape([x]: [&Type; 1], y: &Type) -> Checked {
    same_numbers(&[x], y)?;
    let (from, to) = (checked_len(&x.shape)?, checked_len(&y.shape)?);
    ensure(from == to, || format!("reshapes {from} elements to {to}"))
}

pub(super) fn permute([x]: [&Type; 1], y: &Type, dims: &[usize]) -> Checked {
    same_numbers(&[x], y)?;
    ensure(dims.len() == x.shape.len(), || format!("{dims:?} does not permute {:?}", x.shape))?;
    distinct("permutes", dims, &x.shape)?;
    shape_is(y, &dims.iter().map(|&d| x.shape[d]).collect::<Vec<_>>())
}

pub(super) fn slice([x]: [&Type; 1], y: &Type, dim: usize, [start, end, step]: [usize; 3]) -> Checked {
    same_numbers(&[x], y)?;
    let extent = extent(&x.shape, dim)?;
    ensure(start < end && end <= extent && step >= 1, || {
        format!("slice {start}..{end} by {step} of {extent}")
    })?;
    shape_is(y, &with(&x.shape, dim, (end - start).div_ceil(step)))
}

/// At least one operand; all extents but that of `dim` are equal.
pub(super) fn concat(xs: &[&Type], y: &Type, dim: usize) -> Checked {
    let x = xs.first().ok_or("0 operands, takes at least 1")?;
    same_numbers(xs, y)?;
    let mut total = 0usize;
    for other in xs {
        let extent = extent(&other.shape, dim)?;
        total = total.checked_add(extent).ok_or("concatenates more than fits into memory")?;
        ensure(with(&other.shape, dim, 0) == with(&x.shape, dim, 0), || {
            format!("concatenates {:?} and {:?}", x.shape, other.shape)
        })?;
    }
    shape_is(y, &with(&x.shape, dim, total))
}

pub(super) fn reverse([x]: [&Type; 1], y: &Type, dims: &[usize]) -> Checked {
    same_numbers(&[x], y)?;
    distinct("reverses", dims, &x.shape)?;
    same_shapes(&[x], y)
}

pub(super) fn pad([x]: [&Type; 1], y: &Type, amounts: &[[usize; 2]]) -> Checked {
    same_numbers(&[x], y)?;
    ensure(amounts.len() == x.shape.len(), || {
        format!("{} padding amounts for {:?}", amounts.len(), x.shape)
    })?;
    let padded = x.shape.iter().zip(amounts).map(|(&n, a)| n.checked_add(a[0])?.checked_add(a[1]));
    let padded: Vec<usize> = padded.collect::<Option<_>>().ok_or("padding overflows")?;
    shape_is(y, &padded)
}

pub(super) fn expand([x]: [&Type; 1], y: &Type) -> Checked {
    same_numbers(&[x], y)?;
    ensure(broadcasts(&x.shape, &y.shape), || format!("{:?} does not broadcast to {:?}", x.shape, y.shape))
}

pub(super) fn mix([x]: [&Type; 1], y: &Type, rows: &[Vec<i64>]) -> Checked {
    same_numbers(&[x], y)?;
    let extent = *x.shape.first().ok_or("mixes a scalar")?;
    ensure(!rows.is_empty() && rows.iter().all(|row| row.len() == extent), || {
        format!("mixes {extent} with rows of another length, or none")
    })?;
    shape_is(y, &with(&x.shape, 0, rows.len()))
}

pub(super) fn shift_up([x]: [&Type; 1], y: &Type, shift: u32) -> Checked {
    ensure((1..64).contains(&shift) && x.bits + shift == y.bits, || {
        format!("shifts {} bits up by {shift} to {}", x.bits, y.bits)
    })?;
    ensure(x.frac + shift == y.frac, || {
        format!("{} fraction bits shifted up by {shift} to {}", x.frac, y.frac)
    })?;
    same_shapes(&[x], y)
}

/// Of x only the shape counts: no protocol reads it.
pub(super) fn approximates([x, value]: [&Type; 2], y: &Type, function: &Function) -> Checked {
    same_numbers(&[value], y)?;
    function.check(&x.shape)?;
    same_shapes(&[x, value], y)
}

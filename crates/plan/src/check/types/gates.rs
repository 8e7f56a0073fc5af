//! Operations on the bits of a value: roundings, signs, comparisons and choices.

use super::rule::{
    Checked, alike, ensure, extent, kept_or_not, same_frac, same_numbers, same_shapes, shape_is, whole,
};
use crate::check::pool_output;
use crate::ir::{MOST_CHOSEN_BY, Type};
use privet_ring::Pool2d;

pub(super) fn dropout([x]: [&Type; 1], y: &Type, keep: u32) -> Checked {
    ensure(keep > 0, || "keeps nothing".into())?;
    alike(&[x], y)
}

/// To the k - shift bits that are left, or to more where the sign can be extended without a comparison.
pub(super) fn truncate([x]: [&Type; 1], y: &Type, shift: u32) -> Checked {
    let k = x.bits;
    ensure(shift >= 1 && shift < k, || format!("shifts {k} bits by {shift}"))?;
    ensure(y.bits == k - shift || (y.bits > k - shift && shift + 2 <= k), || {
        format!("{k} bits shifted by {shift} are not {}", y.bits)
    })?;
    ensure(shift <= x.frac && x.frac - shift == y.frac, || {
        format!("{} fraction bits shifted by {shift} are not {}", x.frac, y.frac)
    })?;
    same_shapes(&[x], y)
}

pub(super) fn relu([x]: [&Type; 1], y: &Type) -> Checked {
    has_sign(x)?;
    extend([x], y)
}

pub(super) fn extend([x]: [&Type; 1], y: &Type) -> Checked {
    ensure(y.bits >= x.bits, || format!("widens {} bits to {}", x.bits, y.bits))?;
    same_frac(&[x], y)?;
    same_shapes(&[x], y)
}

pub(super) fn max_pool([x]: [&Type; 1], y: &Type, window: &Pool2d) -> Checked {
    has_sign(x)?;
    same_numbers(&[x], y)?;
    shape_is(y, &pool_output(window, &x.shape)?)
}

pub(super) fn max([x, other]: [&Type; 2], y: &Type) -> Checked {
    has_sign(x)?;
    alike(&[x, other], y)
}

pub(super) fn is_negative([x]: [&Type; 1], y: &Type) -> Checked {
    has_sign(x)?;
    whole(y)?;
    same_shapes(&[x], y)
}

pub(super) fn equal([x, other]: [&Type; 2], y: &Type) -> Checked {
    ensure([x.bits, x.frac] == [other.bits, other.frac], || {
        format!(
            "compares {} bits, {} of the fraction, with {} bits, {} of the fraction",
            x.bits, x.frac, other.bits, other.frac
        )
    })?;
    whole(y)?;
    same_shapes(&[x, other], y)
}

/// By a bit.
pub(super) fn choose([b, x]: [&Type; 2], y: &Type) -> Checked {
    ensure(b.bits == 1 && x.bits == y.bits, || {
        format!("chooses {} bits by {} to {}", x.bits, b.bits, y.bits)
    })?;
    whole(b)?;
    same_frac(&[x], y)?;
    same_shapes(&[b, x], y)
}

/// By several bits.
pub(super) fn choose_every(xs: &[&Type], y: &Type) -> Checked {
    let Some((x, bits)) = xs.split_last().filter(|(_, bits)| (2..=MOST_CHOSEN_BY).contains(&bits.len()))
    else {
        return Err(format!("{} operands, takes 2 to {MOST_CHOSEN_BY} bits and what they choose", xs.len()));
    };
    bits.iter().try_for_each(|b| choose([b, x], y))
}

/// By a number that is 0 or 1, in the ring of what is selected.
pub(super) fn select([c, x, other]: [&Type; 3], y: &Type) -> Checked {
    same_numbers(&[x, other], y)?;
    ensure(c.bits == y.bits, || format!("selects {} bits by {}", y.bits, c.bits))?;
    whole(c)?;
    same_shapes(&[c, x, other], y)
}

/// The result holds every index, as a signed number.
pub(super) fn argmax([x]: [&Type; 1], y: &Type, dim: usize) -> Checked {
    has_sign(x)?;
    whole(y)?;
    let extent = extent(&x.shape, dim)?;
    ensure(y.bits == 64 || extent as u64 <= 1 << (y.bits - 1), || {
        format!("indices up to {extent} do not fit in {} bits", y.bits)
    })?;
    kept_or_not(&x.shape, &[dim], &y.shape)
}

/// A sign is compared over k - 1 bits, so gates that look at one need a bit beside it.
fn has_sign(x: &Type) -> Checked {
    ensure(x.bits >= 2, || "a ring of 1 bit has no room beside the sign".into())
}

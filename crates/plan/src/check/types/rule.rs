//! What typing rules are made of. Every problem is a sentence without its subject, the node.

use crate::ir::Type;

pub(super) type Checked = Result<(), String>;

pub(super) fn ensure(ok: bool, problem: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(problem()) }
}

/// Exactly as many operands as the rule names.
pub(super) fn take<'a, const N: usize>(xs: &[&'a Type]) -> Result<[&'a Type; N], String> {
    xs.try_into().map_err(|_| format!("{} operands, takes {N}", xs.len()))
}

/// Ring, fraction and shape of the operands are those of the result.
pub(super) fn alike(xs: &[&Type], y: &Type) -> Checked {
    same_numbers(xs, y)?;
    same_shapes(xs, y)
}

/// Ring and fraction of the operands are those of the result.
pub(super) fn same_numbers(xs: &[&Type], y: &Type) -> Checked {
    same_bits(xs, y)?;
    same_frac(xs, y)
}

pub(super) fn same_bits(xs: &[&Type], y: &Type) -> Checked {
    ensure(xs.iter().all(|x| x.bits == y.bits), || {
        let found: Vec<u32> = xs.iter().map(|x| x.bits).collect();
        format!("operands of {found:?} bits for a result of {}", y.bits)
    })
}

pub(super) fn same_frac(xs: &[&Type], y: &Type) -> Checked {
    ensure(xs.iter().all(|x| x.frac == y.frac), || {
        let found: Vec<u32> = xs.iter().map(|x| x.frac).collect();
        format!("operands of {found:?} fraction bits for a result of {}", y.frac)
    })
}

/// A number without a fraction.
pub(super) fn whole(ty: &Type) -> Checked {
    ensure(ty.frac == 0, || format!("{} fraction bits of a whole number", ty.frac))
}

pub(super) fn same_shapes(xs: &[&Type], y: &Type) -> Checked {
    xs.iter().try_for_each(|x| shape_is(y, &x.shape))
}

/// The result has the shape that it should have.
pub(super) fn shape_is(y: &Type, want: &[usize]) -> Checked {
    ensure(y.shape == want, || format!("result of shape {:?}, should be {want:?}", y.shape))
}

/// The result has the shape of an operand after `dims`, each with one element left, kept or not.
pub(super) fn kept_or_not(x: &[usize], dims: &[usize], y: &[usize]) -> Checked {
    let reduced = |d: &usize| dims.contains(d);
    let kept: Vec<usize> = (0..x.len()).map(|d| if reduced(&d) { 1 } else { x[d] }).collect();
    let dropped: Vec<usize> = (0..x.len()).filter(|d| !reduced(d)).map(|d| x[d]).collect();
    ensure(y == kept || y == dropped, || format!("result of shape {y:?}, should be {kept:?} or {dropped:?}"))
}

/// Dimensions of `x`, each once; `does` says for what.
pub(super) fn distinct(does: &str, dims: &[usize], x: &[usize]) -> Checked {
    let mut seen = dims.to_vec();
    seen.sort_unstable();
    seen.dedup();
    ensure(seen.len() == dims.len() && dims.iter().all(|&d| d < x.len()), || {
        format!("{does} dimensions {dims:?} of {x:?}")
    })
}

/// The extent of dimension `dim`.
pub(super) fn extent(x: &[usize], dim: usize) -> Result<usize, String> {
    x.get(dim).copied().ok_or_else(|| format!("dimension {dim} of {x:?}"))
}

/// `shape` with another extent at `dim`.
pub(super) fn with(shape: &[usize], dim: usize, extent: usize) -> Vec<usize> {
    let mut out = shape.to_vec();
    if let Some(d) = out.get_mut(dim) {
        *d = extent;
    }
    out
}

use super::{MAX_POOLED, bounded_by, check_name, checked_len, conv_geometry, pool_output};
use crate::ir::{Op, Type};
use crate::local::adaptive_window;
use crate::strided::broadcasts;

/// Most fraction bits.
const MAX_FRAC: u32 = 63;

/// Most bits of what a table is read at.
const MOST_INDEX: u32 = 12;
/// Most tables read at once.
const MOST_TABLES: usize = 16;
/// Most bits below the index of a piece: the square of t stays below 2^63.
const MOST_SHIFT: u32 = 31;

type Checked = Result<(), String>;

fn ensure(ok: bool, problem: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(problem()) }
}

/// Check one node against the types of its operands (each already checked).
pub(super) fn check_node(op: &Op, xs: &[&Type], y: &Type) -> Checked {
    ensure((1..=64).contains(&y.bits), || format!("{} ring bits, not 1 to 64", y.bits))?;
    ensure(y.frac <= MAX_FRAC, || format!("{} fraction bits, at most {MAX_FRAC}", y.frac))?;
    checked_len(&y.shape)?;
    arity(op, xs.len())?;
    bits_and_frac(op, xs, y)?;
    shapes(op, xs, y)
}

fn arity(op: &Op, found: usize) -> Checked {
    use Op::*;
    let (least, most) = match op {
        Input { .. } | Weight { .. } | State { .. } | Public { .. } => (0, 0),
        Scale | Choose => (2, 2),
        Add | Sub | MatMul | Mul | Max | Equal | Approximates { .. } => (2, 2),
        Linear | Conv2d { .. } => (2, 3),
        Select => (3, 3),
        Concat { .. } => (1, usize::MAX),
        _ => (1, 1),
    };
    ensure((least..=most).contains(&found), || format!("{found} operands"))
}

fn bits_and_frac(op: &Op, xs: &[&Type], y: &Type) -> Checked {
    use Op::*;
    let same_bits = || {
        ensure(xs.iter().all(|x| x.bits == y.bits), || {
            format!("operands of {:?} bits for a result of {}", bits(xs), y.bits)
        })
    };
    let same_frac = |xs: &[&Type]| {
        ensure(xs.iter().all(|x| x.frac == y.frac), || {
            let fracs: Vec<u32> = xs.iter().map(|x| x.frac).collect();
            format!("operands of {fracs:?} fraction bits for a result of {}", y.frac)
        })
    };
    let whole = |ty: &Type| ensure(ty.frac == 0, || format!("{} fraction bits of a whole number", ty.frac));
    // A sign is compared over k - 1 bits, so gates that look at one need a bit beside it.
    if matches!(op, Relu | IsNegative | Max | MaxPool2d { .. } | Argmax { .. }) {
        ensure(xs[0].bits >= 2, || "a ring of 1 bit has no room beside the sign".into())?;
    }
    match op {
        Input { name, owner, limit } => {
            check_name(name, false)?;
            check_name(owner, false)?;
            ensure(limit.is_finite() && *limit > 0.0, || "its limit is not a positive number".into())
        }
        Public { name, limit } => {
            check_name(name, false)?;
            ensure(limit.is_finite() && *limit > 0.0, || "its limit is not a positive number".into())
        }
        Weight { name, owner } | State { name, owner } => {
            check_name(name, false)?;
            check_name(owner, false)
        }
        Linear | MatMul | Conv2d { .. } | Mul | Scale => {
            same_bits()?;
            ensure(xs[0].frac + xs[1].frac == y.frac, || {
                format!(
                    "{} and {} fraction bits make {}, not {}",
                    xs[0].frac,
                    xs[1].frac,
                    xs[0].frac + xs[1].frac,
                    y.frac
                )
            })?;
            same_frac(&xs[2..])
        }
        Rescale => same_bits(),
        ShiftUp { shift } => {
            ensure(*shift >= 1 && *shift < 64 && xs[0].bits + shift == y.bits, || {
                format!("shifts {} bits up by {shift} to {}", xs[0].bits, y.bits)
            })?;
            ensure(xs[0].frac + shift == y.frac, || {
                format!("{} fraction bits shifted up by {shift} to {}", xs[0].frac, y.frac)
            })
        }
        Approximates { .. } => ensure(xs[1].bits == y.bits && xs[1].frac == y.frac, || {
            format!("{} bits, {} of the fraction, as {} and {}", xs[1].bits, xs[1].frac, y.bits, y.frac)
        }),
        Reduce => {
            ensure(y.bits <= xs[0].bits, || format!("reduces {} bits to {}", xs[0].bits, y.bits))?;
            same_frac(xs)
        }
        Relu | Extend => {
            ensure(y.bits >= xs[0].bits, || format!("widens {} bits to {}", xs[0].bits, y.bits))?;
            same_frac(xs)
        }
        Truncate { shift, .. } => check_truncation(xs[0], y, *shift),
        Dither { shift } => check_truncation(xs[0], y, *shift),
        Piecewise { shift, pieces } => {
            let index = xs[0].bits.saturating_sub(*shift);
            ensure(
                (1..=MOST_INDEX).contains(&index) && pieces.len() == 1 << index && *shift <= MOST_SHIFT,
                || format!("{} pieces and {shift} bits below for {} bits", pieces.len(), xs[0].bits),
            )
        }
        Lookup { tables } => {
            let entries = |t: &Vec<i64>| xs[0].bits <= MOST_INDEX && t.len() == 1 << xs[0].bits;
            ensure(!tables.is_empty() && tables.len() <= MOST_TABLES && tables.iter().all(entries), || {
                format!("tables of another length than 2^{}, none, or too many", xs[0].bits)
            })
        }
        Exponential { first, rows } => crate::tables::Exponential::new(xs[0], *first, rows).map(drop),
        IsNegative => whole(y),
        Equal => {
            ensure(xs[0].bits == xs[1].bits && xs[0].frac == xs[1].frac, || {
                format!("compares {:?} bits", bits(xs))
            })?;
            whole(y)
        }
        Dropout { keep, .. } => {
            ensure(*keep > 0, || "keeps nothing".into())?;
            same_bits()?;
            same_frac(xs)
        }
        Choose => {
            ensure(xs[0].bits == 1 && xs[1].bits == y.bits, || {
                format!("chooses {} bits by {} to {}", xs[1].bits, xs[0].bits, y.bits)
            })?;
            whole(xs[0])?;
            same_frac(&xs[1..])
        }
        Select => {
            same_bits()?;
            whole(xs[0])?;
            same_frac(&xs[1..])
        }
        Argmax { dim } => {
            whole(y)?;
            let extent = *xs[0].shape.get(*dim).ok_or("dimension out of range")? as u64;
            ensure(y.bits == 64 || extent <= 1 << (y.bits - 1), || {
                format!("indices up to {extent} do not fit in {} bits", y.bits)
            })
        }
        _ => {
            same_bits()?;
            same_frac(xs)
        }
    }
}

fn check_truncation(x: &Type, y: &Type, shift: u32) -> Checked {
    let k = x.bits;
    ensure(shift >= 1 && shift < k, || format!("shifts {k} bits by {shift}"))?;
    ensure(y.bits == k - shift || (y.bits > k - shift && shift + 2 <= k), || {
        format!("{k} bits shifted by {shift} are not {}", y.bits)
    })?;
    ensure(shift <= x.frac && x.frac - shift == y.frac, || {
        format!("{} fraction bits shifted by {shift} are not {}", x.frac, y.frac)
    })
}

fn bits(xs: &[&Type]) -> Vec<u32> {
    xs.iter().map(|x| x.bits).collect()
}

fn shapes(op: &Op, xs: &[&Type], y: &Type) -> Checked {
    use Op::*;
    let x = xs.first().map_or(&[][..], |x| &x.shape);
    let shape_is = |want: &[usize]| {
        ensure(want == y.shape, || format!("result of shape {:?}, should be {want:?}", y.shape))
    };
    let bias_is = |n: usize| match xs.get(2) {
        Some(b) => ensure(b.shape == [n], || format!("bias of shape {:?}, should be [{n}]", b.shape)),
        None => Ok(()),
    };
    match op {
        Input { .. } | Weight { .. } | State { .. } => Ok(()),
        Public { .. } => shape_is(&[]),
        Scale => {
            ensure(xs[1].shape.is_empty(), || format!("scales by a tensor of shape {:?}", xs[1].shape))?;
            shape_is(x)
        }
        Reverse { dims } => {
            let mut seen = dims.clone();
            seen.sort_unstable();
            seen.dedup();
            ensure(seen.len() == dims.len() && dims.iter().all(|&d| d < x.len()), || {
                format!("reverses dimensions {dims:?} of {x:?}")
            })?;
            shape_is(x)
        }
        Reshape => {
            let (from, to) = (checked_len(x)?, checked_len(&y.shape)?);
            ensure(from == to, || format!("reshapes {from} elements to {to}"))
        }
        Permute { dims } => {
            let mut seen = dims.clone();
            seen.sort_unstable();
            ensure(seen.iter().copied().eq(0..x.len()), || format!("{dims:?} does not permute {x:?}"))?;
            shape_is(&dims.iter().map(|&d| x[d]).collect::<Vec<_>>())
        }
        Slice { dim, start, end, step } => {
            let extent = *x.get(*dim).ok_or("dimension out of range")?;
            ensure(start < end && *end <= extent && *step >= 1, || {
                format!("slice {start}..{end} by {step} of {extent}")
            })?;
            shape_is(&with(x, *dim, (end - start).div_ceil(*step)))
        }
        Concat { dim } => {
            let mut total = 0usize;
            for other in xs {
                let extent = *other.shape.get(*dim).ok_or("dimension out of range")?;
                total = total.checked_add(extent).ok_or("too long")?;
                ensure(with(&other.shape, *dim, 0) == with(x, *dim, 0), || {
                    format!("concatenates {x:?} and {:?}", other.shape)
                })?;
            }
            shape_is(&with(x, *dim, total))
        }
        Pad { amounts } => {
            ensure(amounts.len() == x.len(), || format!("{} padding amounts for {x:?}", amounts.len()))?;
            let padded: Option<Vec<usize>> =
                x.iter().zip(amounts).map(|(&n, a)| n.checked_add(a[0])?.checked_add(a[1])).collect();
            shape_is(&padded.ok_or("padding overflows")?)
        }
        Expand => ensure(broadcasts(x, &y.shape), || format!("{x:?} does not broadcast to {:?}", y.shape)),
        Sum { dims } => {
            let mut seen = dims.clone();
            seen.sort_unstable();
            seen.dedup();
            ensure(seen.len() == dims.len() && dims.iter().all(|&d| d < x.len()), || {
                format!("sums dimensions {dims:?} of {x:?}")
            })?;
            kept_or_not(x, dims, &y.shape)
        }
        Argmax { dim } => kept_or_not(x, &[*dim], &y.shape),
        Mix { rows } => {
            let extent = *x.first().ok_or("mixes a scalar")?;
            ensure(!rows.is_empty() && rows.iter().all(|row| row.len() == extent), || {
                format!("mixes {extent} with rows of another length, or none")
            })?;
            shape_is(&with(x, 0, rows.len()))
        }
        Lookup { tables } => shape_is(&[&[tables.len()], x].concat()),
        Exponential { rows, .. } => shape_is(&[&[rows.len()], x].concat()),
        Approximates { function } => {
            function.check(x)?;
            xs.iter().try_for_each(|other| shape_is(&other.shape))
        }
        SumPool2d { window } | MaxPool2d { window } => shape_is(&pool_output(window, x)?),
        AdaptiveSumPool2d => {
            let ([n, c, h, w], [yn, yc, oh, ow]) = (four(x)?, four(&y.shape)?);
            ensure([n, c] == [yn, yc], || format!("pools {x:?} to {:?}", y.shape))?;
            bounded_by(MAX_POOLED, "image extent", &[h, w, oh, ow])?;
            for (extent, output) in [(h, oh), (w, ow)] {
                ensure(equal_windows(extent, output), || {
                    format!("{output} adaptive windows over {extent} are not of equal size")
                })?;
            }
            Ok(())
        }
        Linear => {
            let ([m, k], [n, wk]) = (two(x)?, two(&xs[1].shape)?);
            ensure(k == wk, || format!("multiplies {x:?} by {:?} transposed", xs[1].shape))?;
            bias_is(n)?;
            shape_is(&[m, n])
        }
        MatMul => {
            let w = &xs[1].shape;
            ensure(x.len() >= 2 && x.len() == w.len(), || format!("multiplies {x:?} by {w:?}"))?;
            let lead = x.len() - 2;
            ensure(x[..lead] == w[..lead] && x[lead + 1] == w[lead], || {
                format!("multiplies {x:?} by {w:?}")
            })?;
            shape_is(&with(x, lead + 1, w[lead + 1]))
        }
        Conv2d { geometry } => {
            let out = conv_geometry(geometry, x, &xs[1].shape)?;
            bias_is(geometry.out_channels)?;
            shape_is(&out)
        }
        _ => {
            for other in xs {
                shape_is(&other.shape)?;
            }
            Ok(())
        }
    }
}

/// `shape` with another extent at `dim`.
fn with(shape: &[usize], dim: usize, extent: usize) -> Vec<usize> {
    let mut out = shape.to_vec();
    if let Some(d) = out.get_mut(dim) {
        *d = extent;
    }
    out
}

fn kept_or_not(x: &[usize], dims: &[usize], y: &[usize]) -> Checked {
    let kept: Vec<usize> =
        x.iter().enumerate().map(|(d, &n)| if dims.contains(&d) { 1 } else { n }).collect();
    let dropped: Vec<usize> =
        x.iter().enumerate().filter(|(d, _)| !dims.contains(d)).map(|(_, &n)| n).collect();
    ensure(y == kept || y == dropped, || format!("result of shape {y:?}, should be {kept:?} or {dropped:?}"))
}

fn four(shape: &[usize]) -> Result<[usize; 4], String> {
    shape.try_into().map_err(|_| format!("shape {shape:?} is not NCHW"))
}

fn two(shape: &[usize]) -> Result<[usize; 2], String> {
    shape.try_into().map_err(|_| format!("shape {shape:?} is not a matrix"))
}

/// Whether torch's adaptive windows over `extent` positions all have one size.
pub(crate) fn equal_windows(extent: usize, output: usize) -> bool {
    let size = |o| {
        let (start, end) = adaptive_window(extent, output, o);
        end - start
    };
    (1..output).all(|o| size(o) == size(0))
}

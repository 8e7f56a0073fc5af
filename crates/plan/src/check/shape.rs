use super::{MAX_DIMS, MAX_ELEMENTS};
use privet_ring::{Conv2d, Pool2d};

/// Largest stride, kernel, padding or dilation. Sums and products of two stay far below the word size.
const MAX_GEOMETRY: usize = 1 << 24;

/// Number of elements of an acceptable shape: at most [`MAX_DIMS`] extents of at least 1, at most
/// [`MAX_ELEMENTS`] elements.
pub(crate) fn checked_len(shape: &[usize]) -> Result<usize, String> {
    if shape.len() > MAX_DIMS {
        return Err(format!("{} dimensions, at most {MAX_DIMS}", shape.len()));
    }
    if shape.contains(&0) {
        return Err(format!("shape {shape:?} has an empty dimension"));
    }
    shape
        .iter()
        .try_fold(1usize, |len, &n| len.checked_mul(n).filter(|&len| len <= MAX_ELEMENTS))
        .ok_or_else(|| format!("shape {shape:?} has more than {MAX_ELEMENTS} elements"))
}

/// Largest image height or width that is pooled, so that windows can be checked one by one.
pub(crate) const MAX_POOLED: usize = 1 << 16;

fn bounded(what: &str, values: &[usize], least: usize) -> Result<(), String> {
    match values.iter().find(|&&v| v < least || v > MAX_GEOMETRY) {
        Some(v) => Err(format!("{what} {v} is not in {least}..={MAX_GEOMETRY}")),
        None => Ok(()),
    }
}

pub(crate) fn bounded_by(most: usize, what: &str, values: &[usize]) -> Result<(), String> {
    match values.iter().find(|&&v| v > most) {
        Some(v) => Err(format!("{what} {v} is more than {most}")),
        None => Ok(()),
    }
}

/// Check a convolution of `x` (NCHW) with `w` and give its output shape.
pub(crate) fn conv_geometry(g: &Conv2d, x: &[usize], w: &[usize]) -> Result<[usize; 4], String> {
    bounded("kernel", &g.kernel, 1)?;
    bounded("stride", &g.stride, 1)?;
    bounded("dilation", &g.dilation, 1)?;
    bounded("padding", &g.padding, 0)?;
    bounded("groups", &[g.groups], 1)?;
    let [n, c, h, width] = *x else { return Err(format!("operand of shape {x:?}, not NCHW")) };
    if [n, c, h, width] != [g.batch, g.in_channels, g.input[0], g.input[1]] {
        return Err(format!("operand of shape {x:?} for a geometry of {g:?}"));
    }
    if !g.in_channels.is_multiple_of(g.groups) || !g.out_channels.is_multiple_of(g.groups) {
        return Err(format!(
            "{} groups do not divide {} and {} channels",
            g.groups, g.in_channels, g.out_channels
        ));
    }
    if w != [g.out_channels, g.in_channels / g.groups, g.kernel[0], g.kernel[1]] {
        return Err(format!("weight of shape {w:?} for a geometry of {g:?}"));
    }
    for (i, extent) in g.input.iter().enumerate() {
        let span = g.dilation[i] * (g.kernel[i] - 1) + 1;
        let padded = extent.saturating_add(g.padding[2 * i] + g.padding[2 * i + 1]);
        if padded < span {
            return Err(format!("a kernel that spans {span} over a padded extent of {padded}"));
        }
    }
    let [oh, ow] = g.output();
    Ok([n, g.out_channels, oh, ow])
}

/// Check a pooling window over `x` (NCHW) and give its output shape. Every window has an element outside the
/// padding.
pub(crate) fn pool_output(p: &Pool2d, x: &[usize]) -> Result<[usize; 4], String> {
    bounded("kernel", &p.kernel, 1)?;
    bounded("stride", &p.stride, 1)?;
    bounded("dilation", &p.dilation, 1)?;
    bounded("padding", &p.padding, 0)?;
    let [n, c, h, w] = *x else { return Err(format!("operand of shape {x:?}, not NCHW")) };
    bounded_by(MAX_POOLED, "image extent", &[h, w])?;
    bounded_by(MAX_POOLED, "padding", &p.padding)?;
    for (i, extent) in [h, w].into_iter().enumerate() {
        let span = p.dilation[i] * (p.kernel[i] - 1) + 1;
        if extent.saturating_add(2 * p.padding[i]) < span {
            return Err(format!("a window that spans {span} over a padded extent of {extent}"));
        }
    }
    let out = p.output([h, w]);
    for (i, extent) in [h, w].into_iter().enumerate() {
        if let Some(o) = (0..out[i]).find(|&o| window_is_empty(p, i, o, extent)) {
            return Err(format!("pooling window {o} lies in the padding entirely"));
        }
    }
    Ok([n, c, out[0], out[1]])
}

fn window_is_empty(p: &Pool2d, axis: usize, o: usize, extent: usize) -> bool {
    let (start, pad) = (o * p.stride[axis], p.padding[axis]);
    let first = pad.saturating_sub(start).div_ceil(p.dilation[axis]);
    first >= p.kernel[axis] || start + first * p.dilation[axis] >= extent + pad
}

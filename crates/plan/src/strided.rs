//! Walks over dense row-major tensors through another tensor's strides.

/// Row-major strides of `shape`.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        out[d - 1] = out[d] * shape[d];
    }
    out
}

/// Call `f(i, offset + sum_d index_d * strides_d)` for every index of `shape` in row-major order, `i` its
/// flat position.
pub(crate) fn walk(shape: &[usize], strides: &[usize], offset: usize, mut f: impl FnMut(usize, usize)) {
    if shape.contains(&0) {
        return;
    }
    let (inner, inner_stride) = match (shape.last(), strides.last()) {
        (Some(&n), Some(&s)) => (n, s),
        _ => (1, 0),
    };
    let outer = shape.len().saturating_sub(1);
    let mut index = vec![0; outer];
    let (mut flat, mut at) = (0, offset);
    loop {
        for j in 0..inner {
            f(flat + j, at + j * inner_stride);
        }
        flat += inner;
        let mut d = outer;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}

/// The elements of `src` at [`walk`]'s offsets.
pub(crate) fn gather<E: Copy>(src: &[E], shape: &[usize], strides: &[usize], offset: usize) -> Vec<E> {
    let mut out = Vec::with_capacity(shape.iter().product());
    walk(shape, strides, offset, |_, at| out.push(src[at]));
    out
}

/// Strides that read an operand of shape `from` as if broadcast to `to` (numpy rules; `from` must fit).
pub(crate) fn broadcast_strides(from: &[usize], to: &[usize]) -> Vec<usize> {
    let lead = to.len() - from.len();
    let own = strides(from);
    (0..to.len()).map(|d| if d < lead || from[d - lead] == 1 { 0 } else { own[d - lead] }).collect()
}

/// Whether `from` broadcasts to `to`.
pub(crate) fn broadcasts(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(&a, &b)| a == b || a == 1)
}

/// `(outer, extent, inner)`: products of the extents before, at and after `dim`.
pub(crate) fn split(shape: &[usize], dim: usize) -> (usize, usize, usize) {
    (shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product())
}

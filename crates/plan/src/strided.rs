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

/// Side of the tiles in which [`gather`] turns a matrix: a tile's rows and columns are whole lines of a cache.
const TILE: usize = 16;

/// The elements of `src` at [`walk`]'s offsets.
pub(crate) fn gather<E: Copy>(src: &[E], shape: &[usize], strides: &[usize], offset: usize) -> Vec<E> {
    let (shape, strides) = merged(shape, strides);
    let len: usize = shape.iter().product();
    if len == 0 {
        return Vec::new();
    }
    let (Some((&inner, outer)), Some((&step, outer_strides))) = (shape.split_last(), strides.split_last())
    else {
        return src[offset..offset + len].to_vec();
    };
    // What lies side by side in `src` is another dimension: tiles over it and the last one.
    if let Some(d) = outer_strides.iter().position(|&s| s == 1)
        && step > 1
        && outer[d].min(inner) >= TILE
    {
        return turn(src, &shape, &strides, offset, d);
    }
    let mut out = Vec::with_capacity(len);
    walk(outer, outer_strides, offset, |_, at| match step {
        0 => out.extend(std::iter::repeat_n(src[at], inner)),
        1 => out.extend_from_slice(&src[at..at + inner]),
        _ => out.extend((0..inner).map(|j| src[at + j * step])),
    });
    out
}

/// [`gather`] where dimension `d`, not the last one, has stride 1.
fn turn<E: Copy>(src: &[E], shape: &[usize], steps: &[usize], offset: usize, d: usize) -> Vec<E> {
    let last = shape.len() - 1;
    let own = strides(shape);
    let (rows, columns, step) = (shape[d], shape[last], steps[last]);
    let others = |of: &[usize]| -> Vec<usize> { (0..last).filter(|&i| i != d).map(|i| of[i]).collect() };
    let mut places = Vec::new();
    walk(&others(shape), &others(&own), 0, |_, to| places.push(to));
    let mut out = vec![src[offset]; shape.iter().product()];
    walk(&others(shape), &others(steps), offset, |i, from| {
        for row in (0..rows).step_by(TILE) {
            for column in (0..columns).step_by(TILE) {
                for r in row..(row + TILE).min(rows) {
                    let line = &mut out[places[i] + r * own[d]..][..columns];
                    for (c, to) in line.iter_mut().enumerate().skip(column).take(TILE) {
                        *to = src[from + r + c * step];
                    }
                }
            }
        }
    });
    out
}

/// The same walk over fewer dimensions: without those of extent 1, and those joined that follow each other in memory.
fn merged(shape: &[usize], strides: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (mut extents, mut steps): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (&n, &s) in shape.iter().zip(strides).filter(|(n, _)| **n != 1) {
        match (extents.last_mut(), steps.last_mut()) {
            (Some(extent), Some(step)) if *step == s * n => {
                *extent *= n;
                *step = s;
            }
            _ => {
                extents.push(n);
                steps.push(s);
            }
        }
    }
    (extents, steps)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every order of dimensions of a few shapes, slices and broadcasts among them, against the plain walk.
    #[test]
    fn gathering_is_the_walk() {
        let src: Vec<u32> = (0..40_000).collect();
        let check = |shape: &[usize], strides: &[usize], offset: usize| {
            let mut plain = Vec::new();
            walk(shape, strides, offset, |_, at| plain.push(src[at]));
            assert_eq!(gather(&src, shape, strides, offset), plain, "{shape:?} {strides:?} {offset}");
        };
        let shapes: [&[usize]; 9] = [
            &[],
            &[1],
            &[7],
            &[40, 37],
            &[16, 16, 3],
            &[2, 33, 17],
            &[3, 1, 20, 5],
            &[2, 0, 4],
            &[17, 2, 1, 48],
        ];
        for shape in shapes {
            let own = strides(shape);
            for turn in 0..24usize {
                let mut order: Vec<usize> = (0..shape.len()).collect();
                for i in 1..shape.len() {
                    order.swap(i, (turn / i) % (i + 1));
                }
                let pick = |of: &[usize]| -> Vec<usize> { order.iter().map(|&d| of[d]).collect() };
                check(&pick(shape), &pick(&own), 0);
                check(&pick(shape), &pick(&own), 9);
                let doubled: Vec<usize> = own.iter().map(|s| 2 * s).collect();
                check(&pick(shape), &pick(&doubled), 1);
                for d in 0..shape.len() {
                    let mut broadcast = own.clone();
                    broadcast[d] = 0;
                    check(&pick(shape), &pick(&broadcast), 0);
                }
            }
        }
    }
}

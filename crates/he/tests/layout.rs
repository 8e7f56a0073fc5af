//! Packings against plain loops, with plain products of polynomials: every candidate of blocks, at small degrees.

use privet_he::layout::{ConvLayout, Layout, Matmul, MatmulLayout, Windowed};
use privet_kernels::LinearShape;
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};
use std::collections::HashSet;

mod plain;
use plain::{conv, matmul};

const DEGREE: usize = 128;

fn negacyclic(a: &[u64], b: &[u64], sum: &mut [u64]) {
    let n = a.len();
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
        for (j, y) in b.iter().enumerate() {
            let t = x.wrapping_mul(*y);
            let at = (i + j) % n;
            sum[at] = if i + j < n { sum[at].wrapping_add(t) } else { sum[at].wrapping_sub(t) };
        }
    }
}

/// The layer by its packing; every output exactly once.
fn by_packing(layout: &dyn Layout, x: &[u64], w: &[u64]) -> Vec<u64> {
    let polynomial = |pack: &dyn Fn(&mut [u64])| {
        let mut out = vec![0; DEGREE];
        pack(&mut out);
        out
    };
    let mut out = vec![0; layout.output_len()];
    let mut seen = HashSet::new();
    let b = layout.blocks();
    let ones = vec![1; w.len()];
    let taps = |number: usize| polynomial(&|o| layout.pack_weights(number, &ones, o));
    let firsts: Vec<Vec<u64>> = (0..b.inputs).map(taps).collect();
    for tile in 0..layout.tiles() {
        for output in 0..b.outputs {
            let (answer, mut sum) = (tile * b.outputs + output, vec![0; DEGREE]);
            for (input, first) in firsts.iter().enumerate() {
                let (query, weight) =
                    (tile * b.inputs + input, (tile / b.tiles * b.outputs + output) * b.inputs + input);
                let wp = polynomial(&|o| layout.pack_weights(weight, w, o));
                // which coefficients are read follows from the first answer's weights
                let stands = taps(weight).into_iter().zip(first).all(|(tap, first)| tap <= *first);
                assert!(stands, "weights {weight} stand where the first answer has none");
                assert!(wp.iter().filter(|w| **w != 0).count() <= layout.weights_in_a_polynomial());
                negacyclic(&polynomial(&|o| layout.pack_input(query, x, o)), &wp, &mut sum);
            }
            for o in layout.outputs(answer) {
                assert!(seen.insert(o.index), "output {} twice", o.index);
                out[o.index] = sum[o.coefficient];
            }
        }
    }
    assert_eq!(seen.len(), out.len(), "every output");
    out
}

/// The layer without polynomials, from the windows that the same packing has.
fn by_windows(layout: &dyn Windowed, x: &[u64], w: &[u64]) -> Vec<u64> {
    let (mut windows, mut held) = (vec![0; layout.windows_len()], 0);
    for query in 0..layout.queries() {
        let mut packed = vec![0; DEGREE];
        layout.pack_input(query, x, &mut packed);
        held += packed.iter().filter(|x| **x != 0).count();
        match layout.window(query) {
            None => windows.copy_from_slice(x),
            Some(first) => {
                for (at, x) in packed.into_iter().enumerate().filter(|(_, x)| *x != 0) {
                    assert_eq!(std::mem::replace(&mut windows[first + at], x), 0, "a place of two pixels");
                }
            }
        }
    }
    assert_eq!(layout.held(), held, "places where operands stand");
    let (shape, w) = (layout.products(), layout.product_weights(w));
    let out = match shape {
        (LinearShape::Conv2d(c), 1) => conv(&c, &windows, &w),
        (LinearShape::MatMul { m, k, n }, groups) => matmul(Matmul { groups, m, k, o: n }, &windows, &w),
        other => panic!("{other:?}"),
    };
    assert_eq!(out.len(), layout.products_len());
    match layout.output_places() {
        None => out,
        Some(places) => places.into_iter().map(|at| out[at as usize]).collect(),
    }
}

fn some(prg: &mut Prg, n: usize) -> Vec<u64> {
    // no zeros, which would hide a misplaced product
    prg.elements(Ring::R64, n).into_iter().map(|w| w | 1).collect()
}

#[test]
fn matrix_products_of_every_block() {
    let mut prg = Seed::from_bytes([1; 16]).stream();
    for (groups, m, k, o) in
        [(1, 1, 1, 1), (1, 7, 5, 3), (2, 3, 17, 4), (1, 1, 300, 2), (3, 9, 2, 130), (1, 140, 3, 1)]
    {
        let shape = Matmul { groups, m, k, o };
        let (x, w) = (some(&mut prg, groups * m * k), some(&mut prg, groups * k * o));
        let expected = matmul(shape, &x, &w);
        for m1 in 1..=m.min(8) {
            for k1 in 1..=k.min(DEGREE / m1) {
                let o1 = o.min(DEGREE / (m1 * k1));
                let layout = MatmulLayout::with_blocks(shape, DEGREE, [m1, k1, o1]);
                if layout.queries() * layout.blocks().outputs <= 400 {
                    assert_eq!(by_packing(&layout, &x, &w), expected, "{layout:?}");
                    assert_eq!(by_windows(&layout, &x, &w), expected, "{layout:?}");
                }
            }
        }
    }
}

#[test]
fn convolutions_of_every_tile() {
    let mut prg = Seed::from_bytes([2; 16]).stream();
    let base = Conv2d {
        batch: 1,
        in_channels: 2,
        input: [6, 5],
        out_channels: 3,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    let shapes = [
        base,
        Conv2d { batch: 3, ..base },
        Conv2d { stride: [2, 2], ..base },
        Conv2d { stride: [2, 1], padding: [0, 2, 1, 0], batch: 2, ..base },
        Conv2d { kernel: [1, 1], stride: [2, 2], padding: [0; 4], ..base },
        Conv2d { kernel: [1, 1], padding: [0; 4], in_channels: 40, ..base },
        Conv2d { kernel: [5, 2], padding: [2; 4], ..base },
        Conv2d { dilation: [2, 2], padding: [2; 4], ..base },
        Conv2d { dilation: [2, 1], stride: [2, 2], padding: [2; 4], input: [8, 7], ..base },
        Conv2d { groups: 2, in_channels: 4, out_channels: 6, ..base },
        Conv2d { groups: 4, in_channels: 4, out_channels: 4, ..base },
        Conv2d { kernel: [7, 7], stride: [2, 2], padding: [3; 4], input: [14, 15], in_channels: 3, ..base },
        Conv2d { input: [30, 21], in_channels: 1, ..base },
    ];
    let mut checked = 0;
    for c in shapes {
        let (x, w) = (some(&mut prg, c.input_len()), some(&mut prg, c.weight_len()));
        let expected = conv(&c, &x, &w);
        for layout in ConvLayout::candidates(c, DEGREE) {
            if layout.queries() * layout.blocks().outputs <= 300 {
                assert_eq!(by_packing(&layout, &x, &w), expected, "{layout:?}");
                assert_eq!(by_windows(&layout, &x, &w), expected, "{layout:?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "{checked} candidates");
}

#[test]
fn a_kernel_wider_than_a_polynomial_is_an_error_with_a_remedy() {
    let wide = |kernel, dilation: usize| Conv2d {
        batch: 1,
        in_channels: 1,
        input: [300, 300],
        out_channels: 1,
        kernel: [kernel; 2],
        stride: [1, 1],
        padding: [0; 4],
        dilation: [dilation; 2],
        groups: 1,
    };
    let plan = |conv| ConvLayout::plan(conv, Ring::R64, 64, 2, 1);
    assert!(plan(wide(90, 1)).is_ok() && plan(Conv2d { stride: [2, 2], ..wide(3, 80) }).is_ok());
    for conv in [wide(91, 1), wide(3, 46)] {
        let error = plan(conv).unwrap_err();
        assert!(matches!(error, privet_he::NoSet::Window { degree: 8192, .. }), "{error}");
        assert!(error.to_string().contains("Use a smaller kernel"), "{error}");
    }
}

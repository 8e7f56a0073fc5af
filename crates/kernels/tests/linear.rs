//! Every path of the linear layers against the plain definition.

use privet_kernels::linear::cpu::{LinearPath, add_weighted, linear_acc, prepare, prepare_bits};
use privet_kernels::linear::reference;
use privet_kernels::{LinearShape, Weights};
use privet_prg::Seed;
use privet_ring::{Conv2d, Ring};
use proptest::prelude::*;
use std::sync::Arc;

/// The paths this machine can run; says which it cannot.
fn paths() -> Vec<LinearPath> {
    LinearPath::ALL
        .into_iter()
        .filter(|p| match p.missing() {
            Some(what) => {
                eprintln!("skipped: {p} needs {what}, which this machine lacks");
                false
            }
            None => true,
        })
        .collect()
}

/// Accumulate twice, with different inputs and weights, onto a random result, on every path; and with bits of the weights alone.
fn check(ring: Ring, shape: LinearShape, threads: usize, data: [u8; 16]) {
    let mut prg = Seed::from_bytes(data).stream();
    // Upper bits of the operands are noise: only the low k bits count.
    let mut words = |n| prg.elements(Ring::R64, n);
    let start = words(shape.output_len());
    let passes: Vec<_> = (0..2).map(|_| (words(shape.input_len()), words(shape.weight_len()))).collect();
    check_with(ring, shape, threads, &start, &passes);
    let bits = passes.into_iter().map(|(x, w)| (x, w.iter().map(|w| w >> 63).collect())).collect::<Vec<_>>();
    check_prepared(ring, shape, threads, &start, &bits, prepare_bits_of_noise);
}

/// Bits whose words have noise above them.
fn prepare_bits_of_noise(
    path: LinearPath,
    threads: usize,
    ring: Ring,
    shape: LinearShape,
    bits: &[u64],
) -> Arc<dyn Weights> {
    let noise = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) << 1;
    let words: Vec<u64> = bits.iter().enumerate().map(|(i, bit)| bit | noise(i)).collect();
    prepare_bits(path, threads, ring, shape, &words)
}

fn check_with(
    ring: Ring,
    shape: LinearShape,
    threads: usize,
    start: &[u64],
    passes: &[(Vec<u64>, Vec<u64>)],
) {
    check_prepared(ring, shape, threads, start, passes, prepare);
}

/// How a path brings weights into its layout.
type Prepare = fn(LinearPath, usize, Ring, LinearShape, &[u64]) -> Arc<dyn Weights>;

fn check_prepared(
    ring: Ring,
    shape: LinearShape,
    threads: usize,
    start: &[u64],
    passes: &[(Vec<u64>, Vec<u64>)],
    prepare: Prepare,
) {
    let mut want = start.to_vec();
    for (x, w) in passes {
        for (o, v) in want.iter_mut().zip(reference(ring, shape, x, w)) {
            *o = ring.wrap(o.wrapping_add(v));
        }
    }
    for path in paths() {
        let mut out = start.to_vec();
        for (x, w) in passes {
            let weights = prepare(path, threads, ring, shape, w);
            linear_acc(path, threads, ring, shape, x, weights.as_ref(), &mut out);
        }
        for (i, (o, w)) in out.iter().zip(&want).enumerate() {
            assert_eq!(ring.wrap(*o), *w, "{path}, {ring}, {shape:?}, {threads} threads, element {i}");
        }
    }
}

fn ring() -> impl Strategy<Value = Ring> {
    (1u32..=64).prop_map(Ring::new)
}

fn conv() -> impl Strategy<Value = Conv2d> {
    let pair = |r: std::ops::RangeInclusive<usize>| [r.clone(), r];
    let channels = (1usize..=3, 1usize..=5, 1usize..=19);
    let paddings = [0usize..=3, 0..=3, 0..=3, 0..=3];
    (1usize..=3, channels, pair(1..=11), pair(1..=4), pair(1..=3), paddings, pair(1..=3))
        .prop_map(|(batch, (groups, ci, co), input, kernel, stride, padding, dilation)| Conv2d {
            batch,
            in_channels: ci * groups,
            input,
            out_channels: co * groups,
            kernel,
            stride,
            padding,
            dilation,
            groups,
        })
        .prop_filter("an output", |c| c.output_len() > 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn products(
        ring in ring(), m in 1usize..40, k in 1usize..150, n in 1usize..70,
        transposed: bool, threads in 1usize..4, data: [u8; 16],
    ) {
        let shape = if transposed { LinearShape::MatMulT { m, k, n } } else { LinearShape::MatMul { m, k, n } };
        check(ring, shape, threads, data);
    }

    #[test]
    fn convolutions(ring in ring(), conv in conv(), threads in 1usize..4, data: [u8; 16]) {
        check(ring, LinearShape::Conv2d(conv), threads, data);
    }

    #[test]
    fn depthwise(ring in ring(), conv in conv(), channels in 1usize..9, threads in 1usize..4, data: [u8; 16]) {
        let (groups, in_channels, out_channels) = (channels, channels, channels);
        check(ring, LinearShape::Conv2d(Conv2d { groups, in_channels, out_channels, ..conv }), threads, data);
    }
}

/// Windows of 3 x 3 over enough pixels and channels are made in fewer multiplications, in patches of 3 x 3 outputs: of all
/// remainders of patches, of tiles of patches and of channels, and with padding on any side.
fn windows() -> impl Strategy<Value = Conv2d> {
    let paddings = [0usize..=7, 0..=7, 0..=7, 0..=7];
    (1usize..=3, 16usize..=35, 16usize..=27, [12usize..=23, 12..=23], paddings).prop_map(
        |(batch, in_channels, out_channels, input, padding)| Conv2d {
            batch,
            in_channels,
            input,
            out_channels,
            kernel: [3, 3],
            stride: [1, 1],
            padding,
            dilation: [1, 1],
            groups: 1,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn windows_of_three(ring in ring(), conv in windows(), threads in 1usize..4, data: [u8; 16]) {
        check(ring, LinearShape::Conv2d(conv), threads, data);
    }
}

/// Convolutions with more outputs than inputs are scattered: padding of any width on any side, also such that the definition takes
/// less; taps that reach past the outputs; lines shorter and longer than a tile's columns.
fn padded() -> impl Strategy<Value = Conv2d> {
    let pair = |r: std::ops::RangeInclusive<usize>| [r.clone(), r];
    let paddings = [0usize..=9, 0..=9, 0..=9, 0..=9];
    let channels = (1usize..=2, 8usize..=37, 1usize..=5);
    (1usize..=4, channels, pair(1..=11), pair(1..=6), paddings, pair(1..=3))
        .prop_map(|(batch, (groups, ci, co), input, kernel, padding, dilation)| Conv2d {
            batch,
            in_channels: ci * groups,
            input,
            out_channels: (co + 3) * groups,
            kernel,
            stride: [1; 2],
            padding,
            dilation,
            groups,
        })
        .prop_filter("an output", |c| c.output_len() > 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn scattered(ring in ring(), conv in padded(), threads in 1usize..6, data: [u8; 16]) {
        check(ring, LinearShape::Conv2d(conv), threads, data);
    }
}

/// A gradient by the inputs of a layer of 5 x 5 taps, on as many threads as there are images and on more.
#[test]
fn scattered_on_many_threads() {
    let conv = Conv2d {
        batch: 3,
        in_channels: 50,
        input: [8, 8],
        out_channels: 20,
        kernel: [5, 5],
        stride: [1, 1],
        padding: [4; 4],
        dilation: [1, 1],
        groups: 1,
    };
    assert!(conv.work_scattered().is_some_and(|work| 2 * work < conv.macs()), "worth it");
    for threads in [1, 3, 7] {
        check(Ring::R64, LinearShape::Conv2d(Conv2d { batch: 3, ..conv }), threads, [9; 16]);
        check(Ring::new(37), LinearShape::Conv2d(Conv2d { batch: 40, ..conv }), threads, [7; 16]);
        // one image: threads share its channels, and a tile has taps of two of them
        let deep = Conv2d { batch: 1, in_channels: 400, ..conv };
        check(Ring::R64, LinearShape::Conv2d(deep), threads, [5; 16]);
    }
}

/// A thread's working memory keeps what products before have left in it, also beside an odd number of channels.
#[test]
fn what_other_products_left_changes_nothing() {
    let conv = |in_channels| Conv2d {
        batch: 2,
        in_channels,
        input: [17, 19],
        out_channels: 72,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    assert!(conv(65).work_in_patches(8).is_some(), "made in patches");
    for channels in [95, 67, 83, 65] {
        check(Ring::R64, LinearShape::Conv2d(conv(channels)), 1, [channels as u8; 16]);
        check(Ring::R64, LinearShape::MatMul { m: 40, k: channels, n: 50 }, 1, [channels as u8; 16]);
    }
}

#[test]
fn windows_of_three_over_many_channels() {
    let conv = Conv2d {
        batch: 1,
        in_channels: 530,
        input: [14, 13],
        out_channels: 17,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    for bits in [31, 52, 64] {
        check(Ring::new(bits), LinearShape::Conv2d(conv), 1, [bits as u8; 16]);
        let wide = Conv2d { batch: 2, in_channels: 16, input: [9, 301], ..conv };
        check(Ring::new(bits), LinearShape::Conv2d(wide), 2, [bits as u8; 16]);
    }
}

#[test]
fn every_ring_on_shapes_of_one_and_primes() {
    for bits in 1..=64 {
        for (m, k, n) in [(1, 1, 1), (17, 67, 37), (1, 131, 2), (13, 1, 29)] {
            check(Ring::new(bits), LinearShape::MatMulT { m, k, n }, 2, [bits as u8; 16]);
        }
    }
}

#[test]
fn enough_work_for_several_threads() {
    let data = [3; 16];
    for bits in [24, 40, 64] {
        let ring = Ring::new(bits);
        check(ring, LinearShape::MatMulT { m: 250, k: 200, n: 250 }, 3, data);
        check(ring, LinearShape::MatMulT { m: 2, k: 1500, n: 700 }, 3, data);
        let conv = Conv2d {
            batch: 2,
            in_channels: 12,
            input: [37, 37],
            out_channels: 40,
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1, 1, 1],
            dilation: [1, 1],
            groups: 1,
        };
        check(ring, LinearShape::Conv2d(conv), 3, data);
        let deep = Conv2d { batch: 1, in_channels: 128, out_channels: 300, input: [3, 3], ..conv };
        check(ring, LinearShape::Conv2d(deep), 3, data);
        let depthwise =
            Conv2d { in_channels: 1200, out_channels: 1200, groups: 1200, stride: [1, 2], ..conv };
        check(ring, LinearShape::Conv2d(depthwise), 3, data);
    }
}

/// The largest operands make the largest limb sums; the depth is past every accumulator's bound.
#[test]
fn carries_over_a_deep_product() {
    for bits in [8, 16, 25, 32, 40, 48, 52, 53, 64] {
        for (m, k, n) in [(1, 8193, 1), (3, 20_011, 5), (16, 8200, 33)] {
            let shape = LinearShape::MatMul { m, k, n };
            let ones = (vec![u64::MAX; m * k], vec![u64::MAX; k * n]);
            check_with(Ring::new(bits), shape, 1, &vec![u64::MAX; m * n], &[ones]);
        }
    }
}

#[test]
fn weights_serve_every_batch() {
    for path in paths() {
        let (k, n) = (70, 19);
        let w: Vec<u64> = (0..(k * n) as u64).map(|v| v.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let weights = prepare(path, 1, Ring::R64, LinearShape::MatMulT { m: 1, k, n }, &w);
        for m in [1, 2, 33] {
            let shape = LinearShape::MatMulT { m, k, n };
            let x: Vec<u64> = (0..(m * k) as u64).map(|v| !v.wrapping_mul(0xbf58_476d_1ce4_e5b9)).collect();
            let mut out = vec![0; m * n];
            linear_acc(path, 1, Ring::R64, shape, &x, weights.as_ref(), &mut out);
            assert_eq!(out, reference(Ring::R64, shape, &x, &w), "{path}");
        }
    }
}

#[test]
#[should_panic(expected = "another path or ring")]
fn weights_of_another_ring_are_refused() {
    let shape = LinearShape::MatMul { m: 1, k: 1, n: 1 };
    let weights = prepare(LinearPath::Portable, 1, Ring::new(32), shape, &[1]);
    linear_acc(LinearPath::Portable, 1, Ring::new(33), shape, &[1], weights.as_ref(), &mut [0]);
}

#[test]
#[should_panic(expected = "another shape")]
fn weights_of_another_shape_are_refused() {
    let weights =
        prepare(LinearPath::Portable, 1, Ring::R64, LinearShape::MatMul { m: 1, k: 2, n: 1 }, &[1, 2]);
    let shape = LinearShape::MatMul { m: 1, k: 1, n: 2 };
    linear_acc(LinearPath::Portable, 1, Ring::R64, shape, &[1], weights.as_ref(), &mut [0, 0]);
}

/// One column is not tiled: its length and the number of rows on all sides of what the vectors hold.
#[test]
fn single_columns() {
    for bits in [1, 24, 40, 64] {
        for (m, k) in [(1, 1), (3, 31), (1, 32), (5, 33), (70, 100), (1, 70_001)] {
            check(Ring::new(bits), LinearShape::MatMulT { m, k, n: 1 }, 2, [bits as u8; 16]);
            check(Ring::new(bits), LinearShape::MatMul { m, k, n: 1 }, 2, [bits as u8; 16]);
        }
    }
    check(Ring::R64, LinearShape::MatMul { m: 3000, k: 3001, n: 1 }, 3, [1; 16]);
}

#[test]
fn empty_layers_change_nothing() {
    for path in paths() {
        for (m, k, n) in [(0, 3, 2), (2, 0, 3), (2, 3, 0), (2, 0, 1), (0, 3, 1)] {
            check_with(
                Ring::R64,
                LinearShape::MatMulT { m, k, n },
                2,
                &vec![7; m * n],
                &[(vec![1; m * k], vec![1; n * k])],
            );
        }
        assert!(path.missing().is_none());
    }
}

/// Sums of vectors that are not prepared are matrix products: on every path, for lengths around its pieces, by one thread and by several.
#[test]
fn weighted_sums_are_products() {
    let mut prg = Seed::from_bytes([9; 16]).stream();
    for (m, k, n) in
        [(1, 1, 1), (3, 2, 255), (7, 12, 256), (2, 33, 257), (1, 5, 1000), (64, 16, 8192), (2, 3, 0)]
    {
        let [weights, rows, start] = [m * k, k * n, m * n].map(|len| prg.elements(Ring::R64, len));
        let product = reference(Ring::R64, LinearShape::MatMul { m, k, n }, &weights, &rows);
        let want: Vec<u64> = start.iter().zip(product).map(|(a, b)| a.wrapping_add(b)).collect();
        let vectors: Vec<&[u64]> = (0..k).map(|r| &rows[r * n..(r + 1) * n]).collect();
        for (path, threads) in paths().into_iter().flat_map(|path| [(path, 1), (path, 3)]) {
            let mut out = start.clone();
            add_weighted(path, threads, &weights, &vectors, &mut out);
            assert!(out == want, "{path}, {threads} threads: {m} sums of {k} vectors of {n}");
        }
    }
    add_weighted(LinearPath::Portable, 1, &[], &[], &mut []);
}

/// A weight too few would leave sums as they were.
#[test]
#[should_panic(expected = "a weight for each vector")]
fn a_weight_too_few() {
    add_weighted(LinearPath::Portable, 1, &[1, 2, 3], &[&[1, 2], &[3, 4]], &mut [0; 4]);
}

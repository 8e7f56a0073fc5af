//! Products over the torus, against plain loops: random shapes and layouts, and operands where a floor is off by one if
//! anything is.

mod plain;

use privet_he::layout::{ConvLayout, Layout, Matmul, MatmulLayout, Windowed};
use privet_he::torus::{
    Filters, HintId, Keys, Link, NoTorus, PackingAim, TorusLayer, TorusParameters, Zeros,
};
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};
use std::sync::Arc;

/// Operands at which fractions are not uniform: nothing, whole numbers, the ends of the ring; then uniform ones.
fn operands(ring: Ring, n: usize, prg: &mut Prg) -> Vec<Vec<u64>> {
    let ends = [1u64 << (ring.bits() - 1), (1u64 << (ring.bits() - 1)) - 1, 0, ring.mask()];
    let mixed = (0..n).map(|i| ring.wrap(ends[i % 4])).collect();
    let whole = prg.elements(ring, n).iter().map(|x| ring.wrap(x << (ring.bits() / 2))).collect();
    vec![vec![0; n], mixed, whole, prg.elements(ring, n)]
}

/// Packings for so many runs.
fn near(runs: usize) -> PackingAim {
    PackingAim { runs, link: Link::Near }
}

/// All outputs of all operands, under one hint, from fresh shares.
fn check(
    name: &str,
    p: TorusParameters,
    layout: impl Windowed + 'static,
    w: &[u64],
    truth: impl Fn(&[u64]) -> Vec<u64>,
) {
    let (ring, mut prg) = (p.ring(), Seed::random().stream());
    let layer = TorusLayer::new(p, Arc::new(layout), HintId::random(), 0, 2).unwrap();
    let filters = Arc::new(Filters::new(ring, p.norm_bits(), w));
    let (hinted, message) = layer.hint(&filters, &mut prg).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(message.len(), layer.hint_bytes(), "{name}");
    let hint = layer.read_hint(&message).unwrap();
    for (i, x) in operands(ring, layer.layout().input_len(), &mut prg).iter().enumerate() {
        let x0 = prg.elements(ring, x.len());
        let x1: Vec<u64> = x.iter().zip(&x0).map(|(x, x0)| ring.wrap(x.wrapping_sub(*x0))).collect();
        let (mask, prepared) = hint.prepare(&mut Keys::new(Seed::random().stream()));
        assert_eq!(prepared.len(), layer.prepare_bytes(), "{name}");
        let masked = hinted.multiplier().prepare(&mut Zeros::default(), &prepared).unwrap();
        let (body, y0) = mask.run(&x0);
        assert_eq!(body.len(), layer.run_bytes(), "{name}");
        let y1 = masked.run(&hinted, &body, &x1).unwrap();
        for (at, truth) in truth(x).iter().enumerate() {
            let found = ring.wrap(y0[at].wrapping_add(y1[at]));
            assert_eq!(found, ring.wrap(*truth), "{name}: operand {i}, output {at}");
        }
    }
}

/// Weights of up to `bits` bits, at both ends of their width and between.
fn weights(ring: Ring, bits: u32, n: usize) -> Vec<u64> {
    let narrow = Ring::new(bits);
    let mut prg = Seed::random().stream();
    let words = prg.elements(narrow, n);
    let ends = |i: usize, w: u64| match i % 5 {
        0 => 1u64 << (bits - 1),
        1 => (1u64 << (bits - 1)) - 1,
        _ => w,
    };
    words.iter().enumerate().map(|(i, w)| ring.wrap(narrow.signed(ends(i, *w)) as u64)).collect()
}

/// The least norm bound that serves so many weights of a packed filter.
fn norm(bits: u32, taps: usize) -> u32 {
    bits - 1 + taps.next_power_of_two().trailing_zeros().div_ceil(2)
}

#[test]
fn matrix_products_of_random_shapes_are_exact() {
    let shapes = [
        (37, 13, [1, 1, 40, 3], [1, 40, 1], 512),
        (37, 16, [1, 3, 700, 5], [1, 512, 1], 512),
        (64, 25, [1, 5, 33, 4], [2, 33, 1], 512),
        (2, 2, [1, 2, 9, 2], [2, 9, 2], 512),
        (1, 1, [1, 3, 7, 2], [2, 7, 1], 512),
        (24, 8, [2, 3, 21, 7], [3, 11, 4], 1024),
        (44, 20, [1, 40, 12, 6], [32, 12, 3], 2048),
        (64, 64, [1, 2, 33, 3], [1, 17, 2], 512),
        (41, 33, [1, 1, 300, 2], [1, 300, 1], 4096),
    ];
    for (k, bits, [groups, m, inner, o], block, degree) in shapes {
        let (ring, shape) = (Ring::new(k), Matmul { groups, m, k: inner, o });
        let layout = MatmulLayout::with_blocks(shape, degree, block);
        let p = TorusParameters::exact(ring, norm(bits, layout.coefficients()), degree).unwrap();
        let w = weights(ring, bits, layout.weight_len());
        check(&format!("{shape:?} {block:?} {ring}"), p, layout, &w, |x| plain::matmul(shape, x, &w));
    }
}

/// The words' products with the highest digits are multiples of 2^256, and more of the modulus.
#[test]
fn weights_with_room_for_a_far_larger_norm_are_exact() {
    let (ring, shape) = (Ring::new(64), Matmul { groups: 1, m: 2, k: 33, o: 3 });
    let layout = MatmulLayout::with_blocks(shape, 512, [1, 17, 2]);
    let p = TorusParameters::exact(ring, 110, 512).unwrap();
    let w = weights(ring, 64, layout.weight_len());
    check("a norm of 2^110", p, layout, &w, |x| plain::matmul(shape, x, &w));
}

#[test]
fn convolutions_of_every_kind_are_exact() {
    let plain_conv = Conv2d {
        batch: 1,
        in_channels: 3,
        input: [8, 8],
        out_channels: 4,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    let convs = [
        plain_conv,
        Conv2d { batch: 2, stride: [2, 2], padding: [1, 0, 0, 1], ..plain_conv },
        Conv2d { in_channels: 4, groups: 4, ..plain_conv },
        Conv2d { kernel: [1, 1], padding: [0; 4], stride: [2, 2], ..plain_conv },
        Conv2d { input: [40, 9], kernel: [3, 2], dilation: [1, 2], padding: [0; 4], ..plain_conv },
    ];
    let ring = Ring::new(37);
    for conv in convs {
        let taps = conv.in_channels / conv.groups * conv.kernel[0] * conv.kernel[1];
        for runs in [1, 1000] {
            let (p, layout, _) = ConvLayout::for_torus(conv, ring, norm(13, taps), near(runs)).unwrap();
            let w = weights(ring, 13, conv.weight_len());
            check(&format!("{conv:?}, {runs} runs"), p, layout, &w, |x| plain::conv(&conv, x, &w));
        }
    }
}

/// DeepLab has such dilations: 3 x 3 taps, 73 x 73 pixels.
#[test]
fn a_window_that_exceeds_a_polynomial_is_refused() {
    let conv = Conv2d {
        batch: 1,
        in_channels: 1,
        input: [80, 80],
        out_channels: 1,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [36; 4],
        dilation: [36, 36],
        groups: 1,
    };
    assert_eq!(ConvLayout::for_torus(conv, Ring::new(37), 15, near(10)).map(|_| ()), Err(NoTorus::Window));
}

/// More runs make hints worth their bytes, and operands short.
#[test]
fn the_packing_follows_the_number_of_runs() {
    let shape = Matmul { groups: 1, m: 1, k: 2048, o: 1000 };
    let ring = Ring::new(37);
    let bytes = |runs| {
        let (p, layout, _) = MatmulLayout::for_torus(shape, ring, 15, near(runs)).unwrap();
        let layer = TorusLayer::new(p, Arc::new(layout), HintId::random(), 0, 1).unwrap();
        [layer.hint_bytes(), layer.prepare_bytes() + layer.run_bytes()]
    };
    let found: Vec<[usize; 2]> = [1, 10, 100, 10_000].into_iter().map(bytes).collect();
    for (few, many) in found.iter().zip(&found[1..]) {
        assert!(few[0] <= many[0] && few[1] >= many[1], "{found:?}");
    }
    let total = |of: [usize; 2], runs: usize| of[0] + runs * of[1];
    for (i, runs) in [1, 10, 100, 10_000].into_iter().enumerate() {
        let least = found.iter().map(|of| total(*of, runs)).min().unwrap();
        // the choice reckons coefficients nearly
        assert!(total(found[i], runs) <= least + least / 20, "{runs} runs: {found:?}");
    }
}
